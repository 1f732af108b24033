"""A page that is shown line by line while it is measured, and written at the end."""

from collections.abc import Iterable
from pathlib import Path

from driftbandit.lab.files import replace_file


def shown_and_kept(lines: Iterable[str], out: Path | None) -> None:
    """Print each line as soon as it is there; with `out`, keep them all."""
    page = []
    for line in lines:
        print(line, flush=True)
        page.append(line)
    if out is not None:
        with replace_file(out) as draft:
            draft.write_text("\n".join(page) + "\n", encoding="utf-8")
