"""What `tools/site` makes for the site: notebooks, and pages from the code itself."""

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


def test_a_picture_is_put_in_where_it_was_made_and_left_out_where_not(tmp_path):
    (tmp_path / "map.md").write_text("![a map](map.svg)\n", encoding="utf-8")
    assert pages.with_pictures("<!-- picture: map -->", tmp_path) == "![a map](map.svg)\n"
    assert pages.with_pictures("a <!-- picture: none --> b", tmp_path) == "a  b"


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
    written = notebooks.write(ROOT / "docs", tmp_path)
    book = json.loads(written[f"tutorials/{name}"].read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    assert all(not cell["outputs"] for cell in book["cells"] if cell["cell_type"] == "code")
    codes = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
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
