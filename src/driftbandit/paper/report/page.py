"""The page's templates, and how text is set in them. Knows nothing of bandits.

What is on the page and in which order stands in templates/, how it looks in templates/page.css; the parts beside this
file only say what to put in. Everything is escaped unless it was made here."""

import math
import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

_LETTERS = {r"\sigma": "σ", r"\mu": "μ", r"\gamma": "γ", r"\Delta": "Δ", r"\tau": "τ"}


def render(template: str, **content: Any) -> str:
    """A template filled in; a name that it asks for and was not given is an error."""
    pages = Environment(
        loader=PackageLoader("driftbandit.paper.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters.update(typeset=typeset, number=number, percent=percent)
    return pages.get_template(template).render(content)


def typeset(title: str) -> Markup:
    """Text with its mathematics as HTML: Greek letters of TeX, and subscripts of one letter or in braces.

    >>> print(typeset("K = 5, $B_T$ = 10, $\\\\sigma$ = 0.1"))
    K = 5, B<sub>T</sub> = 10, σ = 0.1
    >>> print(typeset("tau_max < 1"))
    tau_max &lt; 1
    """
    text = title.replace("$", "")
    for name, letter in _LETTERS.items():
        text = text.replace(name, letter)
    # Text and subscripts in turn.
    pieces = re.split(r"(?<=\w)_(?:\{(\w+)\}|(\w)\b)", text)
    out = escape(pieces[0])
    for braced, single, after in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        out += Markup("<sub>{}</sub>{}").format(braced or single, after)
    return out


def number(value: float) -> str:
    """About three digits, with narrow spaces, which do not break, between thousands."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace(",", "\u202f").replace("-", "−")


def spread(mean: float, low: float, high: float) -> str:
    """A mean with its interval, to about three digits; in a narrow column a line may end between the two alone.

    >>> spread(-0.1234, -0.2, 0.01).replace("\u00a0", " ")
    '−0.123 [−0.2, 0.01]'
    """
    ends = "" if math.isnan(low) else f" [{number(low)},\u00a0{number(high)}]"
    return number(mean) + ends


def percent(share: float) -> str:
    """A share with its sign, or nothing where there is none.

    >>> percent(-0.0123)
    '−1.2%'
    """
    return "" if math.isnan(share) else f"{share:+.1%}".replace("-", "−")


AUTHORS = (("Han", "Qi"), ("Yue", "Wang"), ("Li", "Zhu"))
TITLE = "Discounted Thompson Sampling for Non-Stationary Bandit Problems"
YEAR = 2023
JOURNAL = "arXiv preprint"
PREPRINT = "arXiv:2305.10718"
URL = "https://arxiv.org/abs/2305.10718"
SOFTWARE = "driftbandit: bandits for rewards that change over time"


def cite() -> str:
    """The paper in one line.

    >>> cite()[:37]
    'Han Qi, Yue Wang and Li Zhu (2023). D'
    """
    names = [" ".join(author) for author in AUTHORS]
    return f"{', '.join(names[:-1])} and {names[-1]} ({YEAR}). {TITLE}. {JOURNAL} {PREPRINT}."


def cite_bibtex() -> str:
    """The paper for BibTeX."""
    key = f"{AUTHORS[0][1].lower()}{YEAR}{TITLE.split()[0].lower()}"
    authors = " and ".join(f"{family}, {given}" for given, family in AUTHORS)
    return (
        f"@article{{{key},\n  author = {{{authors}}},\n  title = {{{TITLE}}},\n  journal = {{{JOURNAL} {PREPRINT}}},\n"
        f"  year = {{{YEAR}}},\n  url = {{{URL}}}\n}}"
    )
