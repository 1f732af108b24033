"""The suite of late outcomes, and what the documents say about it and about the field."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.late import BATCH, CONDITIONS, ENVIRONMENTS, POLICIES, WAITS, LateSuite, main
from driftbandit.environments.named import APART
from driftbandit.field.suite import find_short_name
from driftbandit.field.suites import BINARY

ROOT = Path(__file__).resolve().parents[1]


def text_of(path: str) -> str:
    """The document with every run of white space as one space."""
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


def test_the_rivals_are_the_five_best_families_with_one_setting():
    rows = re.findall(r"^\| `([^`]+\([^`]+\))` \|", (ROOT / "docs/field/table.md").read_text(encoding="utf-8"), re.M)
    ranked = dict.fromkeys(
        find_short_name(label) for label in rows if ".py:" not in label and find_short_name(label) not in BINARY.aside
    )
    best = [next(label for label in rows if find_short_name(label) == family) for family in list(ranked)[:5]]
    assert [*POLICIES] == ["drift-ts", "ts", *best]


def test_waits_are_the_quantiles_of_the_delays():
    """100,000 delays: shares within 5 standard errors, at most 0.008."""
    delays = np.random.default_rng(3).exponential(400, 100_000)
    for name, late in list(WAITS.items())[1:]:
        assert np.mean(delays < late["wait"]) == pytest.approx(float(name.split("%")[0]) / 100, abs=0.008)


def test_readme_and_pages_give_the_fields_figures_for_drift_ts():
    with (ROOT / "docs/field/ratios.csv").open(newline="", encoding="utf-8") as file:
        mine = [row for row in csv.DictReader(file) if row["policy"] == "drift-ts"]
    changing = [float(row["ratio"]) for row in mine if row["kind"] not in APART]
    traps = [float(row["ratio"]) for row in mine if row["kind"] == "trap"]
    mean, span = f"{np.exp(np.mean(np.log(changing))):.2f}", f"{min(traps):.1f} to {max(traps):.1f}"
    for path in ("README.md", "docs/explanation/drift-ts.md", "docs/how-to/choose-a-policy.md"):
        text = text_of(path)
        for figure in (f"{len(changing)} ", mean, span):
            assert figure in text, (path, figure)


def test_the_page_on_waiting_repeats_what_the_command_wrote():
    table = text_of("docs/field/late.md")
    rows = [line for line in (ROOT / "docs/how-to/wait.md").read_text(encoding="utf-8").splitlines() if "0." in line]
    whole = [row for row in rows if row.startswith(("| outcomes known", "| `wait`"))]
    assert len(whole) == 5
    assert all(" ".join(row.split()) in table for row in whole)
    batches = [row for row in rows if row.startswith("| `") and row not in whole]
    assert len(batches) == len(POLICIES)
    for row in batches:
        name, *shares = (cell.strip() for cell in row.strip("|").split("|"))
        assert re.search(rf"\| {re.escape(name)} (\| [0-9.]+ ){{3}}\| {' [|] '.join(shares)} \|", table), row


@pytest.mark.long
def test_the_table_is_what_the_command_computes_today():
    suite, days = LateSuite(["ts"]), list(ENVIRONMENTS.values())[1]
    shares = " | ".join(f"{suite.play('ts', days, condition).share:.2f}" for condition in CONDITIONS.values())
    assert f"| `ts` | {shares} |" in text_of("docs/field/late.md")
    assert days.horizon == 20 * BATCH


def test_a_policy_that_cannot_be_read_is_refused_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="did you mean ts"):
        main(["tss", "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()
