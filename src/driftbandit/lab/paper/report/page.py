"""Pieces of the report's page: escaped text, tables, pictures and the style sheet. Knows nothing of bandits."""

import html
import re
import urllib.parse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple


class Markup(str):
    """Text that is HTML already; everything else is escaped."""

    __slots__ = ()


class Table(NamedTuple):
    """A table with a caption; the first column heads its row."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()  # columns set to the right


def escaped(text: str) -> Markup:
    """The text as HTML.

    >>> escaped("a < b")
    'a &lt; b'
    """
    return text if isinstance(text, Markup) else Markup(html.escape(str(text)))


def tag(name: str, *content: str, **attributes: str) -> Markup:
    """An element; attribute names lose a trailing underscore (`class_`).

    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{inside}>{''.join(escaped(part) for part in content)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Several pieces as one."""
    return Markup("".join(escaped(part) for part in parts))


def typeset(title: str) -> Markup:
    """Text with its mathematics as HTML: Greek letters of TeX, and subscripts of one letter or in braces.

    >>> typeset("K = 5, $B_T$ = 10, $\\\\sigma$ = 0.1")
    'K = 5, B<sub>T</sub> = 10, σ = 0.1'
    >>> typeset("tau_max < 1")
    'tau_max &lt; 1'
    """
    letters = {r"\sigma": "σ", r"\mu": "μ", r"\gamma": "γ", r"\Delta": "Δ", r"\tau": "τ"}
    text = html.escape(title.replace("$", ""))
    for name, letter in letters.items():
        text = text.replace(name, letter)
    return Markup(re.sub(r"(?<=\w)_(?:\{(\w+)\}|(\w)\b)", lambda m: f"<sub>{m[1] or m[2]}</sub>", text))


def table(made: Table) -> Markup:
    """A table that can be scrolled sideways by touch and by keyboard when the screen is narrow."""

    def cell(kind: str, column: int, text: str, scope: str = "") -> Markup:
        attributes = {"class_": "number"} if column in made.numbers else {}
        if scope:
            attributes["scope"] = scope
        return tag(kind, text, **attributes)

    head = tag("tr", *(cell("th", i, text, "col") for i, text in enumerate(made.head)))
    rows = [
        tag("tr", *(cell("td" if i else "th", i, text, "" if i else "row") for i, text in enumerate(row)))
        for row in made.rows
    ]
    inside = tag("table", tag("caption", made.caption), tag("thead", head), tag("tbody", *rows))
    return tag("div", inside, class_="scroll", role="region", aria_label=made.caption, tabindex="0")


def facts(rows: Iterable[tuple[str, str]]) -> Markup:
    """A list of terms and what they are."""
    return tag("dl", *(joined([tag("dt", term), tag("dd", text)]) for term, text in rows))


def folded(summary: str, *content: str) -> Markup:
    """Content that opens on demand, and is always open in print."""
    return tag("details", tag("summary", summary), *content)


def excerpt(few: str, summary: str, every: str) -> Markup:
    """Some rows in sight and all of them folded away; printed, all of them alone."""
    return joined([tag("div", few, class_="few"), folded(summary, every)])


def picture(path: Path, alternative: str) -> Markup:
    """An SVG file inside the page, with its size, so that nothing moves when it appears."""
    svg = smaller(path.read_text(encoding="utf-8"))
    size = re.search(r"viewBox=.0 0 ([\d.]+) ([\d.]+)", svg)
    # matplotlib measures in points, browsers in pixels: 96 to the inch in place of 72.
    room = f' width="{float(size[1]) * 4 / 3:.0f}" height="{float(size[2]) * 4 / 3:.0f}"' if size else ""
    data = "data:image/svg+xml," + urllib.parse.quote(svg, safe=" ='\"/:;,()-_.!*~@&+$?[]")
    return Markup(f'<img src="{html.escape(data)}" alt="{html.escape(alternative)}"{room}>')


def smaller(svg: str) -> str:
    """The same drawing in a third of the space: forty figures are to fit into one page.

    What only editors read goes, and curves are written as steps of tenths of a point, finer than a screen's pixels."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r' d="(M [^"CQ]*)"', lambda path: f' d="{_steps(path[1])}"', svg)
    svg = re.sub(r' id="(?:line2d|text|patch|xtick|ytick|PathCollection|FillBetween\w*)_\d+"', "", svg)
    svg = re.sub(r">\s+<", "><", re.sub(r"\s+", " ", svg))
    return svg if "'" in svg else svg.replace('"', "'")  # in an attribute " takes six characters


def _steps(path: str) -> str:
    """A path of straight lines with relative coordinates. Rounding is done on places, not on steps, so errors do not
    add up.

    >>> _steps("M 10.04 20 L 11.06 20.01 L 12.08 19 z ")
    'M10 20l1.1 0l1-1z'
    """
    out, here = [], (0, 0)
    for letter, x, y in re.findall(r"([MLz])\s*(?:(-?[\d.e-]+)\s+(-?[\d.e-]+))?", path):
        if letter == "z":
            out.append("z")
            continue
        place = round(10 * float(x)), round(10 * float(y))
        if letter == "M":
            out.append(f"M{place[0] / 10:g} {place[1] / 10:g}")
        else:
            step = f"l{(place[0] - here[0]) / 10:g} {(place[1] - here[1]) / 10:g}"
            out.append(step.replace(" -", "-"))
        here = place
    return "".join(out)


def page(title: str, body: Sequence[str]) -> str:
    """A whole page that needs nothing beside it."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="driftbandit">\n<link rel="icon" href="data:,">\n'
        f"<title>{escaped(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#content">Skip to the content</a>\n{joined(body)}\n<script>{_SCRIPT}</script>\n'
        "</body>\n</html>\n"
    )


# Folded numbers belong to the printed report; browsers keep them folded unless told.
_SCRIPT = """
const folds = () => document.querySelectorAll("details");
addEventListener("beforeprint", () => folds().forEach(d => { d.dataset.was = d.open; d.open = true; }));
addEventListener("afterprint", () => folds().forEach(d => { d.open = d.dataset.was === "true"; }));
"""

_STYLE = """
:root { color-scheme: light; --ink: #1a1a1a; --soft: #555; --line: #c9c9c9; --link: #004b87; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1.25rem 4rem; background: #fff; color: var(--ink);
  font: 1rem/1.55 Georgia, "Times New Roman", serif; overflow-wrap: break-word; }
h1, h2, h3, h4, nav, table, figcaption, dl, summary, .verdict { font-family: system-ui, "Segoe UI", Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.4rem; margin: 3rem 0 .75rem; padding-top: .75rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.1rem; margin: 2.25rem 0 .5rem; line-height: 1.35; }
p, ul, ol, dl { margin: .5rem 0 1rem; max-width: 46rem; }
.lead { font-size: 1.1rem; color: var(--soft); }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 3px solid #d55e00; outline-offset: 2px; }
.skip { position: absolute; left: -999rem; } .skip:focus { position: static; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .35rem 1.25rem; max-width: none; }
.figures { font-size: .9rem; }
dl { display: grid; grid-template-columns: minmax(8rem, 13rem) 1fr; gap: .35rem 1.25rem; max-width: none;
  font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
code, pre { font: .875em/1.5 ui-monospace, "DejaVu Sans Mono", Consolas, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; border-left: 3px solid var(--line); padding: .25rem .75rem; margin: .5rem 0 1rem; }
.scroll { overflow-x: auto; margin: .75rem 0 1.25rem; }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.4; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 0 0 .4rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--ink); } tbody th { font-weight: 600; } tbody th a { font-weight: 400; }
.number { text-align: right; white-space: nowrap; } th.number { white-space: normal; }
figure { margin: 1rem 0; } figure img { display: block; max-width: 100%; height: auto; border: 1px solid var(--line); }
figcaption { font-size: .875rem; color: var(--soft); margin-top: .5rem; }
.verdict { white-space: nowrap; font-weight: 600; font-size: .875rem; padding: .05rem .45rem; border: 1.5px solid;
  border-radius: .25rem; }
.holds { color: #00563f; } .fails { color: #8f2f00; border-style: double; border-width: 3px; }
.undecided { color: #4a4a4a; border-style: dashed; } .not-run { color: #4a4a4a; border-style: dotted; }
.place { color: var(--soft); font-size: .8125rem; font-weight: 400; display: block; }
details { margin: .5rem 0 1rem; } summary { cursor: pointer; font-size: .9rem; color: var(--link); padding: .3rem 0; }
.warning { border: 2px solid #8f2f00; padding: .25rem 1rem; max-width: 46rem; }
@media (max-width: 40rem) {
  body { padding: 1rem .9rem 3rem; } h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; }
  figure img { max-width: 44rem; } figcaption::before { content: "Swipe to see all of the figure. "; }
  .verdict { padding: .05rem .25rem; font-size: .8125rem; } th, td { padding-right: .5rem; }
  td:not(.number):not(:has(.verdict)) { min-width: 8rem; }
}
@page { margin: 16mm 14mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; } nav, .skip { display: none; }
  a { color: inherit; text-decoration: none; }
  #claims, #figures, #evidence { break-before: page; } h2, h3, caption, thead { break-after: avoid; }
  .few { display: none; } h3 { break-inside: avoid; }
  figure, tr, .claim > p { break-inside: avoid; } figure img { max-width: 100%; }
  .scroll { overflow: visible; } table { width: 100%; font-size: 8pt; } .number { white-space: normal; }
  summary { color: inherit; list-style: none; }
  details::details-content { content-visibility: visible; display: block; }
}
"""
