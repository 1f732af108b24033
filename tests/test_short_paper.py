"""The short paper (docs/paper/drift.markdown) has every number from a file that a command wrote."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import paper

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "build" / "paper-tools" / "bin" / "python"
pytestmark = pytest.mark.skipif(not paper.SOURCE.exists(), reason="the paper is not part of the source archive")

NAME = r"[A-ZÀ-Þ][\w-]+"
CITATION = re.compile(rf"({NAME}(?:(?:,|,? and) {NAME}(?:-{NAME})?)*),? \(?((?:19|20)\d\d)\)?")
# A number may stand where it cannot be a result: in the name of a section, table or figure, and in formulas as a whole
# number of at most two digits. Words for numbers above twelve, and for factors, would be numbers typed in another way.
NUMBERED = re.compile(r"\b(?:Section|Table|Figure)\s+\d\b")
WORDS = re.compile(
    r"\b(?:\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundreds?|thousands?|percent|per cent|twice|thrice"
    r"|doubled?s?|tripled?s?|tenfold|half as|(?:a third|a quarter|a tenth) of)\b",
    re.IGNORECASE,
)


def parts():
    """The text before the references, and the references."""
    text, found, references = paper.SOURCE.read_text(encoding="utf-8").partition("\n# References")
    assert found
    return text, references


def entries():
    """The references, a line each, and the first author and year of each."""
    lines = [
        " ".join(entry.split()) for entry in re.split(r"\n{2,}", parts()[1].partition("```\n")[2]) if entry.strip()
    ]
    return lines, {(line.partition(",")[0], re.search(r"\((\d{4})\)", line)[1]) for line in lines}


def citation_of(found):
    """First author and year."""
    return re.split(r",| and ", found[1])[0], found[2]


def typed(text):
    """What in a text could be a result that was typed by hand."""
    text = paper.PLACEHOLDER.sub(" ", text)
    formulas = re.findall(r"\$\$?(.+?)\$\$?", text, re.DOTALL)
    found = [number for formula in formulas for number in re.findall(r"\d+\.\d+|\d{3,}", formula)]
    text = re.sub(r"\$\$?.+?\$\$?", " ", text, flags=re.DOTALL)
    text = re.sub(r"\]\([\w.]+\)", "]", text)  # files of figures
    text = re.sub(r"`[^`]*[A-Za-z][^`]*`", " ", text)  # names and commands
    known = entries()[1]
    text = NUMBERED.sub(" ", " ".join(text.split()))
    text = CITATION.sub(lambda found: " " if citation_of(found) in known else found[0], text)
    return found + re.findall(r"\S*\d\S*", text) + WORDS.findall(text)


def test_every_placeholder_names_a_number_that_a_command_wrote():
    text = paper.SOURCE.read_text(encoding="utf-8")
    placeholders = paper.PLACEHOLDER.findall(text)
    assert len(placeholders) > 100
    for placeholder in placeholders:
        assert re.search(r"\d", paper.resolve(placeholder)), placeholder
    filled = paper.fill(text)
    assert "{{" not in filled
    assert "}}" not in re.sub(r"\$.+?\$", "", filled, flags=re.DOTALL)


def test_no_result_is_typed_in_the_text():
    assert typed(parts()[0]) == []


@pytest.mark.parametrize(
    "sentence",
    ["A ratio of 1.01.", "It has 12% more.", "It has $1.01$ on average.", "It is `0.70`.", "In 2023 it had less.",
     "It has twice the regret.", "It is better in thirty environments.", "It has 1,233 in `trap-K5`."],
)  # fmt: skip
def test_a_typed_result_is_found(sentence):
    assert typed(sentence)


@pytest.mark.parametrize(
    "sentence",
    ["{{field/table.md#All policies; ts; worst}} times", "See Table 1 and Figure 2.", "Let $p = 1/2$.",
     "No policy can (Garivier and Moulines 2011).", "Russac, Vernade and Cappé (2019) forget.",
     "In `trap-K5`, two arms."],
)  # fmt: skip
def test_what_is_no_result_may_be_typed(sentence):
    assert typed(sentence) == []


@pytest.mark.parametrize(
    "placeholder",
    ["field/none.csv; policy=ts; ratio", "field/ratios.csv; policy=ts; ratio", "field/ratios.csv; policy=none; ratio",
     "field/table.md#All policies; ts; none", "field/table.md#None; ts; worst", "field/table.md ~ no (such) words",
     "const runs.NONE", "nothing"],
)  # fmt: skip
def test_a_placeholder_that_names_nothing_or_several_numbers_is_refused(placeholder):
    with pytest.raises(paper.UnresolvedError):
        paper.resolve(placeholder)


def test_the_numbers_of_the_abstract_are_those_of_the_tables():
    filled = " ".join(paper.fill(parts()[0]).split())
    for page, policy, place, sentence in (
        ("field/table.md", "drift-ts", 4, "It is {} for DriftTS"),
        ("field/linear/table.md", "drift-lin-ts", 9, "the last figure is {}."),
    ):
        _, _, rows = paper.read(page).partition("## All policies")
        row = next(line for line in rows.splitlines() if line.startswith(f"| `{policy}` |"))
        assert sentence.format(row.split("|")[place].split()[0]) in filled


def test_every_citation_has_an_entry_and_every_entry_is_cited():
    lines, known = entries()
    text = " ".join(paper.PLACEHOLDER.sub(" ", parts()[0]).split())
    assert {citation_of(found) for found in CITATION.finditer(text)} == known
    assert lines == sorted(lines)


def test_the_text_names_only_tables_and_figures_that_are_there():
    text = parts()[0]
    signs = {"Table": r"^: ", "Figure": r"^!\["}
    there = {kind: len(re.findall(sign, text, re.MULTILINE)) for kind, sign in signs.items()}
    for kind, count in there.items():
        assert {int(number) for number in re.findall(rf"{kind}\s+(\d)", text)} == set(range(1, count + 1))


def test_the_figures_are_drawn_from_the_files(tmp_path):
    pytest.importorskip("matplotlib")
    from tools import paper_figures

    for name, (draw, size) in paper_figures.FIGURES.items():
        assert f"]({name}.svg)" in paper.SOURCE.read_text(encoding="utf-8")
        assert paper_figures.save_chart(draw, tmp_path / f"{name}.svg", size).stat().st_size > 10_000


@pytest.mark.long
@pytest.mark.skipif(not TOOLS.exists(), reason="`make paper` installs pandoc and typst")
def test_the_pdf_is_made(tmp_path):
    run = {"check": True, "cwd": ROOT}
    subprocess.run([sys.executable, "-m", "tools.paper", "--out", tmp_path / "drift"], **run)
    subprocess.run([TOOLS, "tools/paper_pdf.py", tmp_path / "drift" / "drift.md", tmp_path / "drift.pdf"], **run)
    assert (tmp_path / "drift.pdf").read_bytes().startswith(b"%PDF-")
