"""The README's example prints something, and every link between pages leads somewhere."""

import csv
import functools
import json
import re
import sys
import tomllib
from pathlib import Path
from statistics import geometric_mean

import pytest

from driftbandit.environments.named import APART
from tools.site import committed

ROOT = Path(__file__).parent.parent
MADE = ("api", "policies")  # by `make docs`, below docs/reference
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PAGES = [page for page in PAGES if not {*MADE, "_made"} & set(page.relative_to(ROOT).parts)]

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the pages are not part of the source archive")


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_the_examples_of_a_page_run(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the README's makes a journal
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_picture_of_a_page_exists(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_the_readme_has_the_ratios_that_the_suite_measured():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    with open(ROOT / "docs/field/ratios.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = []
    for policy in ("drift-ts", "benchmarks/safe_bandit.py:Explored(base=drift-ts())"):
        of_kind: dict[str, list[float]] = {}
        for row in rows:
            if row["policy"] == policy:
                of_kind.setdefault(row["kind"], []).append(float(row["ratio"]))
        changing = [ratio for kind, ratios in of_kind.items() if kind not in APART for ratio in ratios]
        every = [ratio for ratios in of_kind.values() for ratio in ratios]
        spans = [f"{min(of_kind[kind]):.1f} to {max(of_kind[kind]):.1f}" for kind in ("trap", "stationary", "slow")]
        columns.append(
            [f"{geometric_mean(changing):.2f}", f"{geometric_mean(every):.2f}", f"{max(changing):.2f}", *spans]
        )
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    for single, shipped in zip(*columns, strict=True):
        assert any(line.endswith(f"| {single} | {shipped} |") for line in lines), (single, shipped)


def test_the_comparison_with_other_libraries_has_the_numbers_that_were_measured():
    data = json.loads((ROOT / "docs/speed/speed.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs/explanation/libraries.md").read_text(encoding="utf-8")
    chosen = {
        "driftbandit": "ds-ts",
        "river": "UCB, EWMean",
        "pymab": "discounted Thompson",
        "mabwiser": "Thompson (never forgets)",
        "pybandits": "Bernoulli, decay",
        "bayesianbandits": "Dirichlet, decay to the prior",
    }
    for row in data["peers"]:
        if row["kind"] == "environment" and row["n_arms"] == 10 and chosen.get(row["library"]) == row["policy"]:
            (line,) = [
                line
                for line in text.splitlines()
                if line.lower().startswith(f"| {row['library']} ")
                and "µ" not in line
                and line.lower().split("|")[2].strip() == row["policy"].lower()
            ]
            microseconds = row["cpu"] * 1e6
            assert f"| {sum(row['regrets']) / len(row['regrets']):.0f} " in line
            assert line.endswith(f"| {microseconds:.3f} |" if microseconds < 1 else f"| {microseconds:.1f} |")


@pytest.mark.parametrize("name", ["abrupt", "smooth"])
def test_the_page_on_d_lin_ucb_has_the_numbers_that_the_command_wrote(name):
    text = (ROOT / "docs/explanation/d-lin-ucb.md").read_text(encoding="utf-8")
    with open(ROOT / f"docs/field/russac/{name}.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            low, high = (f"{float(row[end]):.0f}" for end in ("low", "high"))
            (line,) = [line for line in text.splitlines() if line.startswith(f"| {row['policy']} ")]
            assert f"| {float(row['regret']):.0f} ({low} to {high}) |" in line


@functools.cache
def headings(page):
    """The anchors of a page's headings, as the site and the hosting platform make them."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^(`{3,}).*?^\1[ ]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#{1,4} (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"\]\([^)]*\)|[^\w\s-]", "", title.lower()) for title in titles]
    return {title.strip().replace(" ", "-") for title in plain} | set(
        re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_anchor_of_a_link_is_a_heading(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        other = page.parent / target if target else page
        if "://" not in target and other.suffix == ".md" and other.exists():
            assert anchor in headings(other), f"{page.name}: {target}#{anchor}"


def test_every_file_on_the_page_of_the_architecture_exists():
    """A path is one from the package or from the root; a bare name stands in a folder that was named before."""
    page = (ROOT / "docs/contributing/architecture.md").read_text(encoding="utf-8").split("## Adding something")[0]
    named = re.findall(r"`([\w/]+\.py)`", page)
    assert len(named) > 50
    folders = [ROOT, ROOT / "src/driftbandit"]
    for name in named:
        found = [folder / name for folder in folders if (folder / name).is_file()]
        assert found, f"there is no {name}"
        folders.append(found[0].parent)


def test_every_page_of_the_site_is_in_one_table_of_contents():
    docs, listed = ROOT / "docs", []
    for page in docs.rglob("*.md"):
        for block in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            folders = [docs if entry.startswith("/") else page.parent for entry in entries]
            for folder, entry in zip(folders, entries, strict=True):
                found = sorted(folder.glob(f"{entry.lstrip('/')}.md"))
                assert found or any(name in entry for name in ("api/", "policies/")), f"{page.name} lists {entry}"
                listed += found
    pages = {page for page in PAGES if page.is_relative_to(docs)} - {docs / "index.md"}
    assert set(map(Path.resolve, listed)) >= pages, sorted(pages - set(map(Path.resolve, listed)))
    assert len(listed) == len(set(listed))


def numbers(text, separated=False):
    """The numbers in a text, or in a file whose columns are separated by commas."""
    text = text.replace(",", " ") if separated else re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", text)


MARKED = [
    (page, *found)
    for page in PAGES
    for found in re.findall(r"<!-- figures: ([^>]+) -->\n(.*?)\n\n", page.read_text(encoding="utf-8"), re.DOTALL)
]


@pytest.mark.parametrize(("page", "files", "table"), MARKED, ids=[page.stem for page, *_ in MARKED])
def test_the_figures_of_a_table_are_those_that_a_command_wrote(page, files, table):
    written = [  # a set would hold one of 0.0 and -0.0
        float(number)
        for file in files.split()
        for number in numbers((ROOT / file).read_text(encoding="utf-8"), file.endswith(".csv"))
    ]
    for line in table.splitlines()[2:]:
        for number in numbers(" | ".join(line.split("|")[2:])):
            digits = len(number.partition(".")[2])
            assert any(f"{value:.{digits}f}" == number for value in written), f"{page.name}: {number} in {line}"


def test_the_address_of_the_repository_is_the_same_everywhere():
    address = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    for name in ("CITATION.cff", "SECURITY.md", "CONTRIBUTING.md"):
        assert address in (ROOT / name).read_text(encoding="utf-8"), f"{name} does not name {address}"


def test_no_page_installs_from_an_index_before_there_is_a_release():
    for page in PAGES:
        if page.name == "troubleshooting.md":  # has the messages of the code
            continue
        assert not re.search(r"pip install '?driftbandit", page.read_text(encoding="utf-8")), page.name


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse lays out its help differently in other versions")
@pytest.mark.parametrize("name", committed.PAGES)
def test_a_reference_page_is_what_the_code_says(name, tmp_path):
    committed.PAGES[name](tmp_path / name)  # refuses an exception without cause and cure
    kept, made = ((folder / name).read_text(encoding="utf-8") for folder in (committed.FOLDER, tmp_path))
    assert kept == made, f"python -m tools.site.committed writes docs/reference/{name} anew"
