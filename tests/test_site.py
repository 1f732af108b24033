"""The pages that `make docs` makes besides Sphinx: cells from plain Markdown, notebooks, pages from the code itself."""

import argparse
import ast
import json
import re
from pathlib import Path

import pytest

from driftbandit.cli import _main as cli
from tools.site import api, command_line, http_api, notebooks, pages

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the pages are not part of the source archive")

PAGE = """# A title

Some words, and [a link](other.md).

```python
x = 1
```

```sh run
driftbandit list
```

```sh
rm -r everything
```

```python peer=river
import river
```
"""


def test_blocks_of_python_become_cells_and_other_blocks_stay(tmp_path):
    text = pages.executable(PAGE, tmp_path)
    assert text.startswith("---\nfile_format: mystnb")
    assert "```{code-cell} python\nx = 1\n```" in text
    assert "```{code-cell} python\n%%sh\ndriftbandit list\n```" in text
    assert "```{code-cell} python\n%%peer river\nimport river\n```" in text
    assert "```sh\nrm -r everything\n```" in text


def test_an_output_that_is_kept_in_a_page_gives_way_to_that_of_the_build(tmp_path):
    kept = PAGE.replace("x = 1\n```", "print(1)\n```\n\n<!-- output -->\n\n```text\n1\n```")
    assert "```text" in kept
    assert "```text" not in pages.executable(kept, tmp_path)


def test_a_page_without_code_is_left_as_it_is(tmp_path):
    assert pages.executable("# Words\n\nand no code.\n", tmp_path) == "# Words\n\nand no code.\n"


def test_a_picture_is_put_in_where_it_was_made_and_left_out_where_not(tmp_path):
    (tmp_path / "map.md").write_text("![a map](map.svg)\n", encoding="utf-8")
    assert pages.with_pictures("<!-- picture: map -->", tmp_path) == "![a map](map.svg)\n"
    assert pages.with_pictures("a <!-- picture: none --> b", tmp_path) == "a  b"


def test_a_service_is_started_only_where_a_page_talks_to_one(tmp_path):
    assert "serving=False" in pages.executable(PAGE, tmp_path)
    assert "serving=True" in pages.executable(PAGE + f"\n{pages.SERVED}\n", tmp_path)


def test_a_notebook_has_the_pages_text_and_code_without_links():
    made = notebooks.notebook(PAGE)
    kinds = [cell["cell_type"] for cell in made["cells"]]
    assert kinds == ["markdown", "code", "code", "markdown", "code"]
    sources = ["".join(cell["source"]) for cell in made["cells"]]
    assert sources[0] == "# A title\n\nSome words, and a link."
    assert sources[1:3] == ["x = 1", "%%sh\ndriftbandit list"]
    assert sources[4] == "import river"


@pytest.mark.parametrize("name", ["decide-live", "first-experiment", "log-to-policy"])
def test_every_tutorial_is_a_valid_notebook(name, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    written = notebooks.write(ROOT / "docs", tmp_path)
    book = nbformat.read(written[f"tutorials/{name}"], as_version=4)
    nbformat.validate(book)
    codes = [cell.source for cell in book.cells if cell.cell_type == "code"]
    assert len(codes) > 3
    for code in codes:
        if not code.startswith("%%"):
            ast.parse(code)


def test_the_page_of_the_command_line_has_every_command_and_option(tmp_path):
    path = tmp_path / "command-line.md"
    command_line.write(path)
    text = path.read_text(encoding="utf-8")
    commands = next(a for a in cli.build_parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
    for name, parser in commands.items():
        assert f"## driftbandit {name}\n" in text
        for action in parser._actions:
            assert all(option in text for option in action.option_strings)


def test_the_page_of_the_http_api_has_every_operation_and_message(tmp_path):
    openapi = pytest.importorskip("driftbandit.service.calls")
    path = tmp_path / "http-api.md"
    http_api.write(path)
    text = path.read_text(encoding="utf-8")
    document = json.loads(openapi.document())
    assert len(document["paths"]) > 20
    for route, methods in document["paths"].items():
        for method, what in methods.items():
            assert f"## `{method.upper()} {route}`" in text
            assert f"(op-{what['operationId']})=" in text
    for target in re.findall(r"\(#((?:op|message)-[\w-]+)\)", text):
        assert f"({target})=" in text
    assert set(re.findall(r"^### (\w+)", text, re.MULTILINE)) == set(document["components"]["schemas"])


def test_the_pages_of_the_api_have_every_public_name_and_no_other(tmp_path):
    api.write(tmp_path)
    text = (tmp_path / "driftbandit.md").read_text(encoding="utf-8")
    assert re.findall(r"autoclass:: driftbandit\.(\w+)", text) == [
        "Bandit",
        "DiscountedTS",
        "DriftTS",
    ]
    assert (tmp_path / "index.md").read_text(encoding="utf-8").count("](driftbandit") == len(api.PACKAGES)


def test_formulas_become_mathml():
    pytest.importorskip("latex2mathml")
    from latex2mathml.converter import convert

    for page in (ROOT / "docs").rglob("*.md"):
        for formula in re.findall(r"(?<![\w$\\])\$([^$\n`]+)\$(?![\w$])", page.read_text(encoding="utf-8")):
            if "\\" in formula:
                assert convert(formula).startswith("<math")
