"""Every block of docs/how-to/adapters.md runs, and prints what the page says.

`build/adapters/bin/python tests/adapters/test_adapters_page.py` writes the outputs into the page."""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/how-to/adapters.md"
BLOCK = re.compile(r"^```python adapter\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
NEEDED = {
    "river": ("river", "gymnasium"),
    "OpenFeature": ("openfeature",),
    "LiteLLM": ("litellm",),
    "Gymnasium": ("gymnasium",),
    "pandas, Polars, Arrow and DuckDB": ("polars", "pyarrow"),
}


def sections():
    """The blocks of each section with code, as pairs of code and output."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""  # the source archive has no pages
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {title: BLOCK.findall(part) for title, part in zip(parts[::2], parts[1::2], strict=True)}


SECTIONS = sections()


def play(code, scope):
    """What a block prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, PAGE.name, "exec"), scope)
    return out.getvalue()


@pytest.mark.skipif(not SECTIONS, reason="the pages are not part of the source archive")
@pytest.mark.parametrize("title", NEEDED)
def test_the_blocks_of_a_section_print_what_the_page_says(title, tmp_path, monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    for library in NEEDED[title]:
        pytest.importorskip(library, reason=f"needs {library}: make test-adapters")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {"__name__": "page"}
    for code, output in SECTIONS[title]:
        assert play(code, scope) == output
    assert SECTIONS[title][-1][1]


@pytest.mark.skipif(not SECTIONS, reason="the pages are not part of the source archive")
def test_every_section_with_code_is_run():
    assert [title for title, blocks in SECTIONS.items() if blocks] == list(NEEDED)


def write_outputs():
    """Run every block and put what it printed below it."""
    scope: dict[str, object] = {"__name__": "page"}

    def filled(found):
        printed = play(found[1], scope)
        return f"```python adapter\n{found[1]}```" + (f"\n\n```text\n{printed}```" if printed else "")

    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = BLOCK.sub(filled, text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    write_outputs()
