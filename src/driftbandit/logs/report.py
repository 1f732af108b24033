"""Answers about a log as text: what the commands print, and what `print` shows of a result in Python."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from driftbandit.logs.periods import said
from driftbandit.text.layout import laid_out


class ShownTable(NamedTuple):
    """Rows under a head, with a title."""

    title: str
    head: list[str]
    rows: list[list[str]]


class About(NamedTuple):
    """Which log an answer is about, and how its numbers are said."""

    name: str = "the log"
    events: int = 0
    arms: int = 0
    span: float = 0.0
    unit: bool | str = True  # of lengths of time, for `said`
    points: bool = True  # rewards are 0 to 1: gains are said in points

    def __str__(self) -> str:
        return f"{self.name}: {self.events:,} events, {self.arms} arms, {said(self.span, self.unit)}"

    def gain(self, estimate: Any) -> str:
        """A gain with its interval: in points if rewards are 0 to 1, else in their own unit."""
        mean, low, high = (signed((100.0 if self.points else 1.0) * value) for value in estimate[:3])
        return f"{mean} [{low}, {high}]"


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign; nothing has no sign.

    >>> signed(0.126), signed(-0.126), signed(-0.001)
    ('+0.13', '-0.13', '0.00')
    """
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def text(parts: Sequence["str | ShownTable"]) -> str:
    """All parts one below the other."""
    lines = []
    for part in parts:
        if isinstance(part, ShownTable):
            lines += [part.title, *(line for _, line in laid_out(part.head, part.rows, None))]
        else:
            lines.append(part)
    return "\n".join(lines)


def drift_parts(found: Any) -> list["str | ShownTable"]:
    """Gains by time scale, and the verdict."""
    about = found.about
    head = ["scale", "periods", "oracle by halves", "last period's best", "levels move by", "arms move by"]
    rows = [_scale(about, scale) for scale in found.scales]
    return [
        str(about),
        ShownTable("gain over the best fixed arm, 95 % intervals:", head, rows),
        found.sentence,
        f"Use {found.family}.",
        *_warnings(found),
    ]


def _scale(about: About, scale: Any) -> list[str]:
    moved = [
        f"{(100.0 if about.points else 1.0) * size:.2f}{'' if sure else ' (not sure)'}"
        for size, sure in ((scale.level, scale.levels_move), (scale.ranking, scale.ranking_moves))
    ]
    name = scale.name if about.unit is True else f"{scale.name} ({said(scale.seconds, about.unit)})"
    return [name, str(scale.periods), about.gain(scale.oracle), about.gain(scale.last), *moved]


def replay_parts(result: Any) -> list["str | ShownTable"]:
    """Values, gains, and what could not be told."""
    about, good = result.about, [line for line in result.lines if not line.refused]
    head = ["policy", "follower [in this log]", "snips", "effective n"]
    rows = [[line.label, _value(line.value), f"{line.snips:.4f}", f"{line.effective:.0f}"] for line in good]
    if any(line.own is not None for line in good):
        head += [f"own history: value at {result.share:.3g} times your traffic", "accepted"]
        for row, line in zip(rows, good, strict=True):
            row += [_value(line.own), str(line.accepted)]
    block = said(result.block, about.unit)
    values = ShownTable(f"value per event; 95 % intervals from {result.blocks} blocks of {block}", head, rows)
    head = ["policy", "over ts", "in blocks like these", f"over the best arm, {result.best_arm}", "over the logger"]
    rows = [
        [line.label, *map(about.gain, (line.over_ts.here, line.over_ts.like, line.over_best.here,
                                       line.over_logger.here))]
        for line in good
    ]  # fmt: skip
    gains = ShownTable(f"gain of the follower, {'points' if about.points else 'reward'} per event:", head, rows)
    best = f"the best fixed arm, {result.best_arm}, {_value(result.best_value)}"
    return [
        str(about),
        values,
        gains,
        f"the logger earned {result.logger:.4f}; {best} (each half of the rows chooses for the other)",
        *(f"no value: {line.refused}" for line in result.lines if line.refused),
        *_warnings(result),
    ]


def tune_parts(result: Any, every: bool = False) -> list["str | ShownTable"]:
    """The candidates (every one of them, or the best of each half-life), the sentence, and the lines to paste."""
    about, shown = result.about, result.trials if every else _best_of_each(result)
    rows = [
        [trial.label, f"{trial.first:.4f}", f"{trial.last:.4f}", about.gain(trial.over_never)]
        for trial in sorted(shown, key=lambda trial: -trial.first)
    ]
    block = said(result.block, about.unit)
    head = ["policy", "value, first part", "value, last part", f"over {result.never}, last part"]
    title = f"followers; the first part chooses, the last judges; {result.blocks} blocks of {block}"
    return [
        str(about),
        result.drift.sentence,
        ShownTable(title, head, rows),
        *_warnings(result),
        result.sentence,
        result.paste,
    ]


def _best_of_each(result: Any) -> list[Any]:
    """The best spread of each family and half-life."""
    best: dict[tuple[str, float], Any] = {}
    for trial in result.trials:
        held = best.get((trial.family, trial.half_life))
        if held is None or trial.first > held.first:
            best[trial.family, trial.half_life] = trial
    return list(best.values())


def _value(estimate: Any) -> str:
    return f"{estimate.mean:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"


def _warnings(result: Any) -> list[str]:
    return [f"beware: {warning}" for warning in result.warnings]
