"""HTML built from elements: every text is escaped, because there is no way to put one in that is not."""

from html import escape
from typing import Any

_VOID = {"meta", "link", "input", "br", "img", "hr"}


class Markup(str):
    """Text that is HTML already: what `element` makes."""


def element(tag: str, attributes: dict[str, Any] | None = None, *children: Any) -> Markup:
    """An element; None and False leave an attribute or a child out, True gives an attribute without value."""
    inside = "".join(
        f" {name}" if value is True else f' {name}="{escape(str(value), quote=True)}"'
        for name, value in (attributes or {}).items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Markup(f"<{tag}{inside}>")
    return Markup(f"<{tag}{inside}>{joined(children)}</{tag}>")


def joined(children: Any) -> Markup:
    """Children one after the other."""
    out = []
    for child in children:
        if child is None or child is False:
            continue
        if isinstance(child, list | tuple):
            out.append(joined(child))
        else:
            out.append(child if isinstance(child, Markup) else Markup(escape(str(child), quote=False)))
    return Markup("".join(out))
