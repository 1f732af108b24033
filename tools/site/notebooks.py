"""Every page that runs, as a notebook to download: the same text and code, without outputs."""

import json
import re
from pathlib import Path

from tools.site.pages import FENCE, OUTPUT, runs


def notebook(text: str) -> dict[str, object]:
    """The page as a notebook of version 4.5. Links between pages become words."""
    text = OUTPUT.sub("", text)
    out: list[dict[str, object]] = []
    position = 0

    def prose(part: str) -> None:
        part = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", part)
        part = re.sub(r"^!\[.*?\]\([^)]*\)\n?|<!--.*?-->", "", part, flags=re.MULTILINE | re.DOTALL).strip()
        if part:
            out.append({"cell_type": "markdown", "id": f"cell-{len(out)}", "metadata": {}, "source": _lines(part)})

    for found in FENCE.finditer(text):
        if not runs(found[1], found[2]):
            continue
        prose(text[position : found.start()])
        position = found.end()
        code = ("%%sh\n" if found[1] == "sh" else "") + found[3].rstrip("\n")
        cell = {"cell_type": "code", "id": f"cell-{len(out)}", "metadata": {}, "source": _lines(code)}
        out.append({**cell, "execution_count": None, "outputs": []})
    prose(text[position:])
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": out, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def write(docs: Path, into: Path) -> dict[str, Path]:
    """A notebook for each tutorial and how-to that runs; by the name of its page, as Sphinx knows it."""
    into.mkdir(parents=True, exist_ok=True)
    written = {}
    for page in sorted([*docs.glob("tutorials/*.md"), *docs.glob("how-to/*.md")]):
        text = page.read_text(encoding="utf-8")
        if any(runs(found[1], found[2]) for found in FENCE.finditer(text)):
            path = into / f"{page.stem}.ipynb"
            path.write_text(json.dumps(notebook(text), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            written[f"{page.parent.name}/{page.stem}"] = path
    return written


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
