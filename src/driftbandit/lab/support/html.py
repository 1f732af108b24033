"""How results show themselves in a notebook: small tables and curves, whole in themselves, nothing fetched."""

import base64
import html
import io
from collections.abc import Sequence
from typing import Any

_CELL = "padding:0.1em 0.8em;text-align:"


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers.

    >>> table("a < b", ["x", "y"], [["1 & 2", "3"]])[:32]
    '<div><p>a &lt; b</p><table><thea'
    """

    def line(kind: str, cells: Sequence[str]) -> str:
        sides = ["left", *["right"] * (len(cells) - 1)]
        return "".join(
            f'<{kind} style="{_CELL}{side}">{html.escape(cell)}</{kind}>'
            for side, cell in zip(sides, cells, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    inside = f"<thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody>"
    return f"<div><p>{html.escape(caption)}</p><table>{inside}</table></div>"


def curve(x: Any, low: Any, mean: Any, high: Any, label: str, width: int = 320, height: int = 120) -> str:
    """A line within a band as a small SVG, in the colour of the text around it, so that it is seen on any ground.

    >>> curve([1, 2], [0, 1], [1, 2], [2, 3], "regret")[:36]
    '<svg role="img" aria-label="regret" '
    """
    left, right = float(x[0]), float(x[-1])
    bottom, top = min(0.0, float(min(low))), float(max(high))

    def places(values: Any) -> list[str]:
        return [
            f"{width * (float(a) - left) / ((right - left) or 1.0):.1f},"
            f"{height - height * (float(b) - bottom) / ((top - bottom) or 1.0):.1f}"
            for a, b in zip(x, values, strict=True)
        ]

    band = " ".join([*places(low), *reversed(places(high))])
    return (
        f'<svg role="img" aria-label="{html.escape(label)}" width="{width}" height="{height}" '
        f'viewBox="0 -4 {width} {height + 8}"><polygon points="{band}" fill="currentColor" fill-opacity="0.2"/>'
        f'<polyline points="{" ".join(places(mean))}" fill="none" stroke="currentColor" stroke-width="1.6"/></svg>'
    )


def picture(figure: Any) -> str:
    """A matplotlib figure as an image inside the page."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=80, metadata={"Software": None})
    data = base64.b64encode(out.getvalue()).decode()
    return f'<img alt="regret curves" style="max-width:100%" src="data:image/png;base64,{data}">'
