"""The page: complete, self-contained, escaped, and readable by those who see no colour or no picture."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from driftbandit.lab.paper import choose
from driftbandit.lab.paper.claims.claim import claims
from driftbandit.lab.paper.job import Options, PaperRun
from driftbandit.lab.paper.report import citation, report
from driftbandit.lab.paper.report.page import Table, escaped, picture, smaller, table, tag, typeset

pytestmark = pytest.mark.filterwarnings("ignore:The formula gives gamma")
ROOT = Path(__file__).parents[2]
VOID = {"meta", "link", "img", "br"}


class Outline(HTMLParser):
    """Checks that elements nest, and collects what the tests ask for."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.images, self.heads, self.loads = [], [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if name == "a" else []
        self.images += [given] if name == "img" else []
        self.heads += [name] if re.fullmatch("h[1-6]", name) else []
        self.loads += [value for key, value in attributes if key in ("src", "srcset", "data")]
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three items at a small scale: means, regret against the gap, regret curves, with the comparisons they allow."""
    chosen = {name: item.scaled(500) for name, item in choose(["fig4a", "fig5a", "fig6b"]).items()}
    chosen["fig4a"] = replace(chosen["fig4a"], labels=("d-ucb", "ds-ts"), gaps=(0.05, 0.25))
    chosen["fig6b"] = replace(chosen["fig6b"], labels=("d-ucb", "ds-ts"))
    options = Options(tmp_path_factory.mktemp("report"), runs=3, quick=True)
    made = PaperRun(options, report.extra_cells(options, {"fig6b": chosen["fig6b"]}), chosen.values())
    made.compute(progress=False, say=lambda _: None)
    return made


@pytest.fixture(scope="module")
def text(run):
    """The page, with one item that failed for a reason full of markup."""
    run.failures["fig6x"] = "ValueError: 1 < 2 & <script>alert(1)</script>"
    path = report.write(run, run.options.out)
    del run.failures["fig6x"]
    return path.read_text(encoding="utf-8")


def test_the_page_loads_nothing_from_anywhere(text):
    outline = Outline(text)
    assert all(source.startswith("data:") for source in outline.loads)
    assert "@import" not in text
    assert "url(http" not in text
    assert all(not link.startswith("http") or link == citation.URL for link in outline.links)


def test_the_page_nests_and_every_inner_link_has_its_place(text):
    outline = Outline(text)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert {link[1:] for link in outline.links if link.startswith("#")} <= set(outline.ids)
    assert {claim.id for claim in claims()} <= set(outline.ids)


def test_headings_go_down_by_one_step_at_a_time(text):
    levels = [int(head[1]) for head in Outline(text).heads]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_picture_says_in_words_what_it_shows(text, run):
    images = Outline(text).images
    assert len(images) == 3
    assert all(len(image["alt"]) > 40 and image["width"] and image["height"] for image in images)
    ends = sorted((run.final("fig6b", label, "code").mean(), label) for label in ("d-ucb", "ds-ts"))
    names = {"d-ucb": "D-UCB", "ds-ts": "DS-TS"}
    assert f"lowest first: {names[ends[0][1]]} {ends[0][0]:.0f}, {names[ends[1][1]]}" in images[2]["alt"]


def test_tables_have_captions_and_headed_rows_and_columns(text):
    tables = re.findall(r"<table>.*?</table>", text, flags=re.DOTALL)
    assert len(tables) > 8
    assert all(made.startswith("<table><caption>") and 'scope="col"' in made for made in tables)
    assert all('scope="row"' in made for made in tables)


def test_text_from_outside_is_escaped(text):
    assert "<script>alert" not in text
    assert "1 &lt; 2 &amp; &lt;script&gt;" in text


def test_a_verdict_is_a_word_and_a_sign_not_a_colour(text):
    badges = set(re.findall(r'<span class="verdict [\w-]+">([^<]*)</span>', text))
    assert badges <= {"✓ holds", "✗ fails", "? undecided", "– not run"}
    assert "– not run" in badges


def test_the_page_says_what_was_run_and_what_was_not(text):
    assert "driftbandit reproduce --runs 3 --parameters both --environment authors --seed 0" in text
    assert "A quick look with 3 runs" in text
    assert "Not asked for: fig1, fig2, fig3a" in text
    for word in ("numpy ", "numba ", "python ", "core", "million rounds"):
        assert word in text


def test_numbers_in_the_tables_are_those_of_the_run(text, run):
    mean = run.final("fig6b", "ds-ts", "code").mean()
    assert f"{mean:.3g} [" in text
    row = re.search(r"World and parameters.*?DS-TS</th>(.*?)</tr>", text[text.index('id="fig6b"') :], flags=re.DOTALL)
    assert "DiscountedTS(gamma=" in row[1]


def test_disagreements_are_measured_where_their_items_were_run(text):
    part = text[text.index('id="effect-smooth-gamma"') : text.index('id="effect-lag"')]
    assert "Corollary 2" in part
    assert "fig6b</th>" in part
    assert "not run: fig3a" in text[text.index('id="effect-gamma"') :][:1500]


def test_a_failed_item_is_reported_and_the_others_stay(run, tmp_path):
    run.failures["fig4a"] = "ValueError: broken"
    try:
        text = report.write(run, run.options.out).read_text(encoding="utf-8")
    finally:
        del run.failures["fig4a"]
    assert "Failed: ValueError: broken" in text
    assert len(Outline(text).images) == 2


def test_the_reference_is_that_of_the_citation_file():
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for part in (citation.TITLE, citation.URL, citation.PREPRINT, citation.SOFTWARE, citation.JOURNAL):
        assert part in lines
    assert f"year: {citation.YEAR}" in lines
    found = re.findall(r"given-names: (\w+)\s+family-names: (\w+)", lines)
    assert tuple(found) == citation.AUTHORS
    assert citation.bibtex().startswith("@article{qi2023discounted,\n  author = {Qi, Han and Wang, Yue and Zhu, Li},")


def test_a_smaller_picture_is_the_same_picture(run):
    path = run.options.out / "figures" / "fig6b.svg"
    svg = path.read_text(encoding="utf-8")
    small = smaller(svg)
    assert len(small) < 0.75 * len(svg)
    before, after = (ElementTree.fromstring(text) for text in (svg[svg.index("<svg") :], small))
    count = [sum(1 for node in tree.iter() if node.tag.endswith("}path")) for tree in (before, after)]
    assert count[0] == count[1]
    assert "alt=&quot;" not in picture(path, 'a "b"')


def test_pieces_of_the_page_escape_what_they_are_given():
    assert tag("p", "a < b", title='"') == '<p title="&quot;">a &lt; b</p>'
    assert escaped(tag("b", "x")) == "<b>x</b>"
    assert typeset("$\\Delta_T$ & B_T") == "Δ<sub>T</sub> &amp; B<sub>T</sub>"
    made = table(Table("<c>", ["h"], [["<r>"]]))
    assert "<caption>&lt;c&gt;</caption>" in made
    assert '<th scope="row">&lt;r&gt;</th>' in made
