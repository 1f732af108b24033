"""Plain Markdown becomes a page whose code runs.

The sources stay as GitHub shows them: a block marked `python` is a block of Python. When Sphinx reads a page, every
such block becomes a cell that MyST-NB runs (once: `conf.py` keeps the outputs under a digest of page and library). A
word after the language says more:

    ```sh run                a command line that is run here, and its output shown
    ```python peer=river     Python that runs in an environment with that library, if it can be installed
    ```python adapter        Python that `make test-adapters` runs, with its output in the block of text that follows

The output of a block may follow it, below `<!-- output -->` (see `tools.site.outputs`).

A comment `<!-- picture: map -->` is replaced by the lines that `tools.site.pictures` wrote for that picture; where no
build has made it, on GitHub for one, it is simply not there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(python|sh)([^\n`]*)\n(.*?)^```[ ]*$", re.DOTALL | re.MULTILINE)
OUTPUT = re.compile(r"\n\n<!-- output(?: of one run)? -->\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SERVED = "http://127.0.0.1:8000"  # where the pages say a service is
_HEAD = """---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3}
language_info: {name: python}
---
"""
_BEGIN = "```{{code-cell}} python\n:tags: [remove-cell]\nfrom tools.site import kernel\n{call}\n```\n\n"


def runs(language: str, words: str) -> bool:
    """Whether a block of this language, with these words behind it, is run when the site is built."""
    return (language == "python" and "adapter" not in words.split()) or "run" in words.split()


def cells(text: str) -> list[tuple[str, str]]:
    """The blocks of a page that run, as cells of a notebook: what to write for each block found by `FENCE`.

    >>> cells("```python\\nprint(1)\\n```\\n\\n```sh\\nrm -r x\\n```\\n")
    [('```python\\nprint(1)\\n```', 'print(1)\\n')]
    """
    out = []
    for found in FENCE.finditer(text):
        language, words, code = found.groups()
        if runs(language, words):
            peer = re.search(r"peer=(\w+)", words)
            magic = f"%%peer {peer[1]}\n" if peer else "%%sh\n" if language == "sh" else ""
            out.append((found[0], magic + code))
    return out


def executable(text: str, made: Path) -> str:
    """The page as MyST-NB wants it; `made` holds the pictures of this build."""
    text = with_pictures(OUTPUT.sub("", text), made)
    blocks = cells(text)
    if not blocks:
        return text
    for block, code in blocks:
        text = text.replace(block, f"```{{code-cell}} python\n{code}```", 1)
    title, line, rest = text.partition("\n")
    call = f"kernel.begin(get_ipython(), serving={SERVED in text})"
    return f"{_HEAD}{title}{line}\n{_BEGIN.format(call=call)}{rest}"


def with_pictures(text: str, made: Path) -> str:
    """The page with the pictures that were made; a picture that was not is left out."""

    def lines(found: re.Match[str]) -> str:
        path = made / f"{found[1]}.md"
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    return re.sub(r"<!-- picture: ([\w-]+) -->", lines, text)
