"""Keep one full run in the docs: copy its tables and figures here and rewrite the verdicts in docs/how-to/reproduce.md.

driftbandit reproduce --out build/paper
python docs/paper/update.py build/paper
"""

import csv
import json
import shutil
import sys
from pathlib import Path

from driftbandit.paper.report import KINDS, verdict_counts

HERE = Path(__file__).parent
PAGE = HERE.parent / "how-to" / "reproduce.md"
BEGIN, END = "<!-- verdicts: written by docs/paper/update.py -->", "<!-- end of verdicts -->"


def main(source: Path) -> None:
    """Copy summary, claims and SVG figures, note what made them, rewrite the page's section."""
    for name in ("summary.csv", "claims.csv"):
        shutil.copyfile(source / name, HERE / name)
    figures = HERE / "figures"
    figures.mkdir(exist_ok=True)
    for path in source.glob("figures/*.svg"):
        shutil.copyfile(path, figures / path.name)
    (HERE / "run.txt").write_text(made_by(source), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + "\n\n" + verdicts(HERE / "claims.csv") + "\n" + END + after, encoding="utf-8")


def made_by(source: Path) -> str:
    """The provenance that the run left in its data, and the time its simulations took."""
    import pyarrow.parquet as pq

    metadata = pq.read_schema(source / "data" / "fig3a.parquet").metadata or {}
    notes = [json.loads(value) for key, value in metadata.items() if b"driftbandit" in key]
    note = notes[0] if notes else {}
    kept = {name: note[name] for name in ("seed", "runs", "versions", "code") if name in note}
    lines = ["made by: driftbandit reproduce --out build/paper; python docs/paper/update.py build/paper"]
    log = source.with_suffix(".log")
    if log.exists():
        lines += [line.split("; wrote")[0] for line in log.read_text(encoding="utf-8").splitlines() if "chunks" in line]
    return "\n".join([*lines, json.dumps(kept, indent=1)]) + "\n"


def verdicts(path: Path) -> str:
    """How many claims hold, and each with its verdicts, as Markdown."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = ["| parameters | " + " | ".join(KINDS) + " |", "|---|" + "---:|" * len(KINDS)]
    lines += [f"| {name} | " + " | ".join(map(str, numbers)) + " |" for name, numbers in verdict_counts(rows).items()]
    lines += ["", "| the paper says | place | text | code |", "|---|---|---|---|"]
    lines += [f"| {row['says']} | {row['place']} | {row['text']} | {row['code']} |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
