"""How Sphinx builds the site: `make docs`, or `python -m sphinx -W --keep-going docs build/site`.

The pages are plain Markdown and hold the outputs of their code (`tools/site/outputs.py`), so no page runs here.
`tools/site` writes what comes from the code itself (command line, HTTP API, Python API, policy cards, pictures) before
Sphinx reads any page. The site makes no request to another host."""

import importlib
import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
MADE = DOCS / "_made"
sys.path.insert(0, str(DOCS.parent))

from driftbandit import __version__  # noqa: E402
from tools.site import api, committed, notebooks, pages  # noqa: E402

project, author, release = "driftbandit", "driftbandit contributors", __version__
copyright = "driftbandit contributors, MIT licence"  # Sphinx asks for this name
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton", "tools.site.mathml"]
exclude_patterns = ["_made/**", "paper/figures/**"]
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
highlight_language = "none"
smartquotes = False  # docstrings hold code outside backquotes

html_theme = "furo"
html_title = "driftbandit"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"

default_role = "code"  # the docstrings write code between single backquotes
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
nitpicky = True
nitpick_ignore_regex = [("py:.*", r".*")]  # types in signatures are words; links in pages and docstrings are checked

# Links to NumPy's own pages need its index from the network, so only hosted builds ask for it.
if os.environ.get("READTHEDOCS"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
    }


def make(app: object) -> None:
    """Write the pages and pictures that come from the code."""
    MADE.mkdir(exist_ok=True)
    quick = bool(os.environ.get("DOCS_QUICK"))
    committed.write()
    api.write(DOCS / "reference" / "api")
    notebooks.write(DOCS, MADE / "notebooks")
    for name, into in (("cards", DOCS / "reference" / "policies"), ("pictures", MADE)):
        into.mkdir(parents=True, exist_ok=True)
        importlib.import_module(f"tools.site.{name}").write(into, quick)


def read(app: object, name: str, content: list[str]) -> None:
    """Add the pictures that were made, and below a title the link to the page as a notebook."""
    text = content[0]
    if not re.search(r"^# ", text, re.MULTILINE) and "{include}" not in text:  # a table as its command wrote it
        text = f"# {name.replace('/', ': ').replace('-', ' ').capitalize()}\n\n{text}"
    text = pages.with_pictures(text, MADE)
    book = MADE / "notebooks" / f"{name.rsplit('/', 1)[-1]}.ipynb"
    if name.startswith(("tutorials/", "how-to/")) and book.exists():
        link = f"{{download}}`Download this page as a notebook </_made/notebooks/{book.name}>`"
        text = re.sub(
            r"^# .+$", lambda title: f"{title[0]}\n\n{{.notebook}}\n{link}\n", text, count=1, flags=re.MULTILINE
        )
    content[0] = text


def as_rst(app: object, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text: a bar in |H| is a bar, not the name of something to fill in."""
    for number, line in enumerate(lines):
        parts = line.split("`")
        lines[number] = "`".join(part.replace("|", "\\|") if at % 2 == 0 else part for at, part in enumerate(parts))


def no_fields(app: object, what: str, name: str, value: object, skip: bool, options: object) -> bool | None:
    """Leave out what a NamedTuple brings along: its fields stand in the signature, and `count` and `index` are a
    tuple's."""
    doc = getattr(value, "__doc__", None) or ""
    return True if doc.startswith("Alias for field number") or name in ("count", "index") else None


def setup(app: object) -> None:
    """Register the functions above with Sphinx."""
    app.connect("builder-inited", make)  # type: ignore[attr-defined]
    app.connect("source-read", read)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", as_rst)  # type: ignore[attr-defined]
    app.connect("autodoc-skip-member", no_fields)  # type: ignore[attr-defined]
