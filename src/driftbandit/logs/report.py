"""Results about a log as text and as HTML: one list of parts for the commands, for `print` and for notebooks."""

import html as escaping
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs.blocks import said
from driftbandit.text.layout import layout_table


class ShownTable(NamedTuple):
    """Rows under a head, with a title."""

    title: str
    head: list[str]
    rows: list[list[str]]


Parts = Sequence["str | ShownTable"]


class About(NamedTuple):
    """Which log a result is about, and how its numbers are printed."""

    name: str = "the log"
    events: int = 0
    arms: int = 0
    span: float = 0.0
    unit: bool | str = True  # of lengths of time, for `blocks.said`
    points: bool = True  # rewards are 0 to 1: gains are in points

    def __str__(self) -> str:
        return f"{self.name}: {self.events:,} events, {self.arms} arms, {self.said(self.span)}"

    def said(self, seconds: float) -> str:
        """A length of time."""
        return said(seconds, self.unit)

    def gain(self, estimate: Any) -> str:
        """A gain with its interval: in points if rewards are 0 to 1, else in their own unit."""
        if estimate is None:
            return "-"
        mean, low, high = (signed((100.0 if self.points else 1.0) * value) for value in estimate[:3])
        return f"{mean} [{low}, {high}]"


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign; zero has none.

    >>> signed(0.126), signed(-0.126), signed(-0.001)
    ('+0.13', '-0.13', '0.00')
    """
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def printable(parts: Parts) -> Parts:
    """The parts with escapes for control characters: an arm's name may hold any, and a terminal would obey them."""
    return [
        ShownTable(part.title, [*map(_escaped, part.head)], [[*map(_escaped, row)] for row in part.rows])
        if isinstance(part, ShownTable)
        else _escaped(part)
        for part in parts
    ]


def _escaped(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def text(parts: Parts) -> str:
    """All parts one below the other."""
    lines = []
    for part in parts:
        if isinstance(part, ShownTable):
            lines += [part.title, *(line for _, line in layout_table(part.head, part.rows, None))]
        else:
            lines.append(part)
    return "\n".join(lines)


def html(parts: Parts) -> str:
    """All parts as a notebook shows them."""
    from driftbandit.lab.support.html import table

    return "".join(
        table(*part) if isinstance(part, ShownTable) else f"<p>{escaping.escape(part)}</p>" for part in parts
    )


def drift_parts(found: Any) -> Parts:
    """Gains by time scale, and the verdict."""
    about = found.about
    head = ["scale", "periods", "this period's best", "last period's best", "levels move by", "arms move by"]
    title = "gain over the best fixed arm, 95% intervals (arms chosen on one half of the rows, scored on the other):"
    rows = [_scale(about, scale) for scale in found.scales]
    tables = [ShownTable(title, head, rows)] if rows else []
    return printable([str(about), *tables, found.sentence, found.recommendation, *_warnings(found)])


def _scale(about: About, scale: Any) -> list[str]:
    moved = [
        f"{(100.0 if about.points else 1.0) * size:.2f}{'' if sure else ' (not sure)'}"
        for size, sure in ((scale.level, scale.levels_move), (scale.ranking, scale.ranking_moves))
    ]
    name = scale.name if about.unit is True else f"{scale.name} ({about.said(scale.seconds)})"
    return [name, str(scale.periods), about.gain(scale.current), about.gain(scale.last), *moved]


def replay_parts(result: Any) -> Parts:
    """Values and paired differences, and what could not be estimated."""
    about, good = result.about, [line for line in result.lines if not line.refused]
    head, rows = ["policy", "follower", "effective n"], []
    for line in good:
        rows.append([line.label, _value(line.value), f"{line.effective:.0f}"])
    if any(line.own is not None for line in good):
        head.insert(2, f"own history, {result.share:.3g} times the traffic")
        for row, line in zip(rows, good, strict=True):
            row.insert(2, _value(line.own))
    block = about.said(result.block)
    values = ShownTable(f"value per event; 95% intervals from {result.blocks} blocks of {block}", head, rows)
    head = ["policy", "over ts", f"over the best arm in hindsight, {result.best_arm}", "over the logger"]
    rows = [[line.label, *map(about.gain, (line.over_ts, line.over_best, line.over_logger))] for line in good]
    gains = ShownTable(f"gain of the follower, {'points' if about.points else 'reward'} per event:", head, rows)
    parts: Parts = [
        str(about),
        values,
        gains,
        f"The logger earned {_value(result.logger)}. The best arm in hindsight, {result.best_arm}, would have earned "
        f"{_value(result.best_value)}; it was chosen on the same rows, which flatters it, so its intervals are those "
        "that hold for all arms at once.",
        *(f"no value: {line.refused}" for line in result.lines if line.refused),
        *_warnings(result),
    ]
    return printable(parts)


def _value(estimate: Any) -> str:
    return f"{estimate.mean:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"


def _warnings(result: Any) -> list[str]:
    return [f"warning: {warning}" for warning in result.warnings]


def plain(value: Any) -> Any:
    """A result as JSON can hold it: dicts, lists, numbers; None for what is infinite or unknown."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(getattr(value, name)) for name in value._fields}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
