"""How to cite the paper and this software: what CITATION.cff says, for a report made where that file is not at hand."""

AUTHORS = (("Han", "Qi"), ("Yue", "Wang"), ("Li", "Zhu"))
TITLE = "Discounted Thompson Sampling for Non-Stationary Bandit Problems"
YEAR = 2023
JOURNAL = "arXiv preprint"
PREPRINT = "arXiv:2305.10718"
URL = "https://arxiv.org/abs/2305.10718"
SOFTWARE = "driftbandit: bandits for rewards that change over time"


def reference() -> str:
    """The paper in one line.

    >>> reference()[:37]
    'Han Qi, Yue Wang and Li Zhu (2023). D'
    """
    names = [" ".join(author) for author in AUTHORS]
    return f"{', '.join(names[:-1])} and {names[-1]} ({YEAR}). {TITLE}. {JOURNAL} {PREPRINT}."


def bibtex() -> str:
    """The paper for BibTeX."""
    key = f"{AUTHORS[0][1].lower()}{YEAR}{TITLE.split()[0].lower()}"
    authors = " and ".join(f"{family}, {given}" for given, family in AUTHORS)
    return (
        f"@article{{{key},\n  author = {{{authors}}},\n  title = {{{TITLE}}},\n  journal = {{{JOURNAL} {PREPRINT}}},\n"
        f"  year = {{{YEAR}}},\n  url = {{{URL}}}\n}}"
    )
