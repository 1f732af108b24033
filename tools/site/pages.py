"""The blocks of code on the pages, and the pictures that are made when the site is built.

The pages are Markdown as a hosting platform shows it. Blocks marked `python` are run by `tools.site.outputs`, which
keeps their outputs in the page. A word after the language says more:

    ```sh run                a command line that is run too
    ```python peer=river     Python that runs in an environment with that library
    ```python adapter        Python that `make test-adapters` runs, with its output in the block of text that follows

A comment `<!-- picture: map -->` is replaced by the lines that `tools.site.pictures` wrote for that picture; on the
hosting platform it is not shown."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(python|sh)([^\n`]*)\n(.*?)^```[ ]*$", re.DOTALL | re.MULTILINE)
OUTPUT = re.compile(r"\n\n<!-- output(?: of one run)? -->\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PEER = re.compile(r"peer=(\w+)")
PICTURE = re.compile(r"<!-- picture: ([\w-]+) -->")
SERVED = "http://127.0.0.1:8000"  # the address of a service on the pages


def runs(language: str, words: str) -> bool:
    """Whether `tools.site.outputs` runs a block of this language, with these words after it."""
    return (language == "python" and "adapter" not in words.split()) or "run" in words.split()


def with_pictures(text: str, made: Path) -> str:
    """The page with the lines that were written for its pictures; a picture without any is left out."""

    def lines(found: re.Match[str]) -> str:
        path = made / f"{found[1]}.md"
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    return PICTURE.sub(lines, text)
