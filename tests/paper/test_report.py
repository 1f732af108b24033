"""The page: complete, self-contained, escaped, and readable by those who see no colour or no picture."""

import csv
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import jinja2
import pytest

from driftbandit.paper import report
from driftbandit.paper.claims import claims
from driftbandit.paper.items import choose
from driftbandit.paper.items.item import PaperOptions
from driftbandit.paper.picture import NAMES
from driftbandit.paper.report import render, typeset
from driftbandit.paper.reproduction import PaperRun
from harness import shortened

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:The formula gives gamma")]
ROOT = Path(__file__).parents[2]
URL = "https://arxiv.org/abs/2305.10718"
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
    chosen = {name: shortened(item, 500) for name, item in choose(["fig4a", "fig5a", "fig6b"]).items()}
    chosen["fig4a"] = replace(chosen["fig4a"], labels=("d-ucb", "ds-ts"), gaps=(0.05, 0.25))
    options = PaperOptions(tmp_path_factory.mktemp("report"), runs=3, quick=True)
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


def test_a_report_on_some_items_begins_with_their_figures_and_names_no_claim_about_others(run, tmp_path):
    asked = replace(run.options, items=("fig4a", "fig5a", "fig6b"))
    run.options = asked
    try:
        page = report.write(run, tmp_path).read_text(encoding="utf-8")
    finally:
        run.options = replace(asked, items=())
    assert page.index('id="figures"') < page.index('id="summary"')
    assert "\u2013 not run" not in page


def test_the_page_loads_nothing_from_anywhere(text):
    outline = Outline(text)
    assert all(source.startswith("figures/") for source in outline.loads)
    assert "default-src 'none'; img-src 'self' file:; style-src 'unsafe-inline'" in text
    assert "@import" not in text
    assert "<script" not in text
    assert "url(http" not in text
    assert all(not link.startswith("http") or link == URL for link in outline.links)


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


def test_every_picture_has_a_description(text, run):
    images = Outline(text).images
    assert len(images) == 3
    assert all(len(image["alt"]) > 40 and image["width"] and image["height"] for image in images)
    label, regret = report.rank_policies(run, run.items["fig6b"], "code")[0]
    assert f"lowest first: {NAMES[label]} {regret:.0f}," in images[2]["alt"]


def test_the_page_follows_the_systems_dark_mode_and_prints_on_white(text):
    style = text[text.index("<style>") : text.index("</style>")]
    assert "color-scheme: light dark" in style
    dark = style[style.index("prefers-color-scheme: dark") :]
    assert "--paper: #141414" in dark
    assert "invert" in dark
    printed = style[style.index("@media print") :]
    assert "--paper: #fff" in printed
    assert "filter: none" in printed
    # No colour is written down outside the variables, the focus ring apart.
    rules = re.sub(r":root \{.*?\}", "", style, flags=re.DOTALL)
    assert set(re.findall(r"#[0-9a-f]{3,6}\b(?! *,)", rules)) - {"#claims", "#figures", "#evidence"} <= {
        "#d55e00",
        "#f",
        "#fi",
    }


def test_the_summary_compares_ds_ts_with_the_best_other_policy(text, run):
    part = text[text.index('id="summary"') : text.index('id="setup"')]
    ends = dict(report.rank_policies(run, run.items["fig6b"], "text"))
    own = ends.pop("ds-ts")
    rival = min(ends, key=ends.get)
    assert f"{own / ends[rival]:.2f} ({NAMES[rival]})" in part


def test_the_page_and_the_docs_count_the_verdicts_alike(text, run):
    rows = report.verdict_rows(report.verdicts(run), run.options.parameters)
    counts = report.verdict_counts(rows)
    assert all(sum(numbers) == len(claims()) for numbers in counts.values())
    cells = "".join(f'<td class="number">{number}</td>' for number in counts["text"])
    assert f'<th scope="row">text</th>{cells}' in text
    if (ROOT / "docs").exists():
        with open(ROOT / "docs/paper/claims.csv", encoding="utf-8") as file:
            kept = report.verdict_counts(list(csv.DictReader(file)))
        page = (ROOT / "docs/how-to/reproduce.md").read_text(encoding="utf-8")
        for name, numbers in kept.items():
            assert f"| {name} | {' | '.join(map(str, numbers))} |" in page


def test_tables_have_captions_and_headed_rows_and_columns(text):
    tables = re.findall(r"<table>.*?</table>", text, flags=re.DOTALL)
    assert len(tables) > 8
    assert all(made.startswith("<table><caption>") and 'scope="col"' in made for made in tables)
    assert all('scope="row"' in made for made in tables)


def test_text_from_outside_is_escaped(text):
    assert "<script>alert" not in text
    assert text.count("1 &lt; 2 &amp; &lt;script&gt;") == 1


def test_a_verdict_is_a_word_and_a_sign_not_a_colour(text):
    badges = set(re.findall(r'<span class="verdict [\w-]+">([^<]*)</span>', text))
    assert badges <= {"✓ holds", "✗ fails", "? undecided", "– not run"}
    assert "– not run" in badges


def test_the_page_lists_what_was_run_and_what_was_not(text):
    assert "driftbandit reproduce --runs 3 --parameters both --environment authors --seed 0" in text
    assert "A quick run with 3 runs" in text
    assert "Not chosen: fig1, fig2, fig3a" in text
    for word in ("numpy ", "numba ", "python ", "core", "million rounds"):
        assert word in text


def test_numbers_in_the_tables_are_those_of_the_run(text, run):
    mean = run.final("fig6b", "ds-ts", "code").mean()
    assert f"{mean:.3g} [" in text
    row = re.search(
        r"Environment and parameters.*?DS-TS</th>(.*?)</tr>", text[text.index('id="fig6b"') :], flags=re.DOTALL
    )
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


def test_the_reference_is_that_of_the_citation_file(text):
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for part in ("Discounted Thompson Sampling for Non-Stationary Bandit Problems", URL, "arXiv:2305.10718"):
        assert part in lines
        assert part in text
    for given, family in re.findall(r"given-names: (\w+)\s+family-names: (\w+)", lines):
        assert f"{given} {family}" in text
        assert f"{family}, {given}" in text


def test_every_picture_is_a_file_of_the_shown_size(text, run):
    for image in Outline(text).images:
        root = ElementTree.fromstring((run.options.out / image["src"]).read_bytes())
        points = [float(size) for size in root.attrib["viewBox"].split()[2:]]
        assert [int(image["width"]), int(image["height"])] == pytest.approx([4 / 3 * size for size in points], abs=1)


def test_what_templates_are_given_is_escaped_and_a_name_they_lack_is_an_error():
    assert typeset("$\\mu_{max}$ & B_T") == "μ<sub>max</sub> &amp; B<sub>T</sub>"
    assert typeset("<b>_i") == "&lt;b&gt;_i"
    run = SimpleNamespace(failures={"<a>": "1 < 2"}, items={})
    assert "<li>&lt;a&gt; failed: 1 &lt; 2</li>" in render("missing.html.j2", run=run, absent=[], without_runs=[])
    with pytest.raises(jinja2.UndefinedError, match="run"):
        render("missing.html.j2")
