"""How Sphinx builds the site: `make docs`, or `python -m sphinx -W --keep-going docs build/site`.

The pages are plain Markdown; `tools/site` turns their code into cells that run, and writes the pages that come from the
code itself (command line, HTTP API, Python API, policy cards, pictures) before anything is read. Nothing on the site
asks another host for anything."""

import hashlib
import importlib
import logging
import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
BUILD = ROOT / "build" / "docs"
MADE = DOCS / "_made"
sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
os.environ["IPYTHONDIR"] = str(BUILD / "ipython")  # nobody's own start-up files
PROFILE = BUILD / "ipython" / "profile_default"
PROFILE.mkdir(parents=True, exist_ok=True)
(PROFILE / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n", encoding="utf-8")  # errors alone

from driftbandit import __version__  # noqa: E402
from tools.site import api, committed, notebooks, pages  # noqa: E402

project, author, release = "driftbandit", "driftbandit contributors", __version__
copyright = "driftbandit contributors, MIT licence"  # Sphinx asks for this name
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton", "tools.site.mathml"]
exclude_patterns = ["_made/**", "paper/figures/**"]
source_suffix = {".md": "myst-nb"}

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
copybutton_prompt_text = "$ "
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


def digest_of_sources() -> str:
    """A digest of everything the code on the pages can depend on: outputs kept from other sources are not used."""
    digest = hashlib.sha256(release.encode())
    for folder in ("src/driftbandit", "examples"):
        for path in [*sorted((ROOT / folder).rglob("*")), ROOT / "tools/site/kernel.py", ROOT / "tools/site/pages.py"]:
            if path.is_file() and path.suffix in (".py", ".toml", ".csv", ".gz"):
                digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


logging.getLogger("traitlets").setLevel(logging.WARNING)  # not a line for every page that runs
nb_execution_mode = "cache"
nb_execution_cache_path = str(BUILD / "executed" / digest_of_sources())
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "show"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # by default these would come from other hosts


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
    """Turn a page into one whose code runs, with a notebook to download below its title."""
    text = content[0]
    if not re.search(r"^# ", text, re.MULTILINE) and "{include}" not in text:  # a table as its command wrote it
        text = f"# {name.replace('/', ': ').replace('-', ' ').capitalize()}\n\n{text}"
    text = pages.executable(text, MADE)
    book = MADE / "notebooks" / f"{name.rsplit('/', 1)[-1]}.ipynb"
    if name.startswith(("tutorials/", "how-to/")) and book.exists():
        link = f"{{download}}`Download this page as a notebook </_made/notebooks/{book.name}>`"
        text = re.sub(
            r"^# .+$", lambda title: f"{title[0]}\n\n{{.notebook}}\n{link}\n", text, count=1, flags=re.MULTILINE
        )
    content[0] = text


def without_magic(app: object, doctree: object, name: str) -> None:
    """A command line is shown as one types it, not as the notebook's cell that runs it."""
    from docutils import nodes

    for node in doctree.findall(nodes.literal_block):  # type: ignore[attr-defined]
        text = node.astext()
        if text.startswith(("%%sh\n", "%%peer ")):
            node["language"] = "python" if text.startswith("%%peer") else "console"
            shown = text.partition("\n")[2]
            if node["language"] == "console":
                shown = re.sub(r"^(?=\S)", "$ ", shown, flags=re.MULTILINE)
            node.children = [nodes.Text(shown)]
            node.rawsource = shown


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
    """For Sphinx: what happens when."""
    app.add_config_value("read_from", digest_of_sources(), "env")  # type: ignore[attr-defined]  # other sources: read all anew
    app.connect("builder-inited", make)  # type: ignore[attr-defined]
    app.connect("source-read", read)  # type: ignore[attr-defined]
    app.connect("doctree-resolved", without_magic)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", as_rst)  # type: ignore[attr-defined]
    app.connect("autodoc-skip-member", no_fields)  # type: ignore[attr-defined]
