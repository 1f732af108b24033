"""Formulas as MathML, which browsers draw themselves: no script, no font to load, nothing asked of another host."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def inline(translator: Any, node: nodes.math) -> None:
    """A formula in a sentence."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """A formula on separate lines: each `\\\\` outside an environment begins a new one."""
    text = node.astext()
    lines = [text] if r"\begin" in text else re.split(r"\\\\\s*", text)
    for line in lines:
        translator.body.append(f'<div class="math-block">{convert(line, display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """For Sphinx: our renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
