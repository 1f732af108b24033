"""Results about a log as text, as HTML for notebooks, and the figure of `drift`."""

import datetime
import html as escaping
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.checks import as_plain
from driftbandit.lab import plots
from driftbandit.logs.periods import format_duration
from driftbandit.spec.layout import layout_table

_ESTIMATORS = ("doubly robust", "IPS", "SNIPS")
_MOST = 8  # arms drawn: the most played
_WIDTH = 5.4  # inches: readable on a page 400 pixels wide


class ShownTable(NamedTuple):
    """A table with a title."""

    title: str
    head: list[str]
    rows: list[list[str]]


Parts = Sequence["str | ShownTable"]


class Report:
    """A result about a log, as text, HTML and plain data. Its class has `parts`, the printed tables."""

    def parts(self) -> Parts:
        raise NotImplementedError

    def __str__(self) -> str:
        return text(self.parts())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html(self.parts())

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists and numbers, with None for infinite and unknown values."""
        return dict(as_plain(vars(self)))


class About(NamedTuple):
    """Which log a result is about, and how its numbers are printed."""

    name: str = "the log"
    events: int = 0
    arms: int = 0
    span: float = 0.0
    unit: bool | str = True  # of durations, as `periods.format_duration` takes it
    points: bool = True  # rewards are 0 to 1, and gains are printed in points

    def __str__(self) -> str:
        return f"{self.name}: {self.events:,} events, {self.arms} arms, {self.duration(self.span)}"

    def duration(self, seconds: float) -> str:
        return format_duration(seconds, self.unit)

    def gain(self, estimate: Any) -> str:
        """A gain with its interval, in points if rewards are 0 to 1."""
        if estimate is None:
            return "-"
        mean, low, high = (format_signed((100.0 if self.points else 1.0) * value) for value in estimate[:3])
        return f"{mean} [{low}, {high}]"


def format_signed(value: float, digits: int = 2) -> str:
    """A number with its sign; zero has none.

    >>> format_signed(0.126), format_signed(-0.126), format_signed(-0.001)
    ('+0.13', '-0.13', '0.00')
    """
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def _printable(parts: Parts) -> Parts:
    """The parts with control characters escaped: an arm's name may hold them, and a terminal would obey them."""
    return [
        ShownTable(part.title, [*map(_escape, part.head)], [[*map(_escape, row)] for row in part.rows])
        if isinstance(part, ShownTable)
        else _escape(part)
        for part in parts
    ]


def _escape(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def text(parts: Parts) -> str:
    """All parts as text."""
    lines = []
    for part in parts:
        if isinstance(part, ShownTable):
            lines += [part.title, *(line for _, line in layout_table(part.head, part.rows, None))]
        else:
            lines.append(part)
    return "\n".join(lines)


def html(parts: Parts) -> str:
    """All parts as HTML, for a notebook."""
    return "".join(
        plots.html_table(*part) if isinstance(part, ShownTable) else f"<p>{escaping.escape(part)}</p>" for part in parts
    )


def drift_parts(found: Any) -> Parts:
    """Gains by time scale, the verdict and the recommendation."""
    about = found.about
    head = ["scale", "periods", "this period's best", "last period's best", "levels move by", "arms move by"]
    title = "gain over the best fixed arm, 95% intervals (arms chosen on one half of the rows, scored on the other):"
    rows = [_scale(about, scale) for scale in found.scales]
    tables = [ShownTable(title, head, rows)] if rows else []
    if found.context:
        title = "gain of the best arm by context over the best single arm, 95% intervals for all lines at once:"
        rows = [[gain.feature, str(gain.cells), about.gain(gain.gain)] for gain in found.context]
        tables.append(ShownTable(title, ["by", "cells", "gain"], rows))
    sentences = filter(None, [found.sentence, found.context_sentence, found.recommendation])
    return _printable([str(about), *tables, *sentences, *_warnings(found)])


def _scale(about: About, scale: Any) -> list[str]:
    moved = [
        f"{(100.0 if about.points else 1.0) * size:.2f}{'' if sure else ' (not sure)'}"
        for size, sure in ((scale.level, scale.levels_move), (scale.ranking, scale.ranking_moves))
    ]
    name = scale.name if about.unit is True else f"{scale.name} ({about.duration(scale.seconds)})"
    return [name, str(scale.periods), about.gain(scale.current), about.gain(scale.last), *moved]


def replay_parts(result: Any) -> Parts:
    """Values, paired differences and warnings."""
    about, good = result.about, [line for line in result.lines if not line.refused]
    head, rows = ["policy", "follower", "effective n"], []
    for line in good:
        rows.append([line.label, _value(line.value), f"{line.effective:.0f}"])
    if any(line.own is not None for line in good):
        head.insert(2, f"own history, {result.share:.3g} times the traffic")
        for row, line in zip(rows, good, strict=True):
            row.insert(2, _value(line.own))
    block = about.duration(result.block)
    values = ShownTable(f"value per event; 95% intervals from {result.blocks} blocks of {block}", head, rows)
    head = ["policy", "over ts", f"over the best arm in hindsight, {result.best_arm}", "over the logger"]
    rows = [[line.label, *map(about.gain, (line.over_ts, line.over_best, line.over_logger))] for line in good]
    gains = ShownTable(f"gain of the follower, {'points' if about.points else 'reward'} per event:", head, rows)
    tables = [values, gains]
    if result.features:
        rows = [[line.label, *map(_value, (line.value, line.ips, line.snips))] for line in good]
        tables.append(ShownTable("value of the follower by three estimators:", ["policy", *_ESTIMATORS], rows))
    parts: Parts = [
        str(about),
        *tables,
        f"The logger earned {_value(result.logger)}. The best arm in hindsight, {result.best_arm}, would have earned "
        f"{_value(result.best_value)}; it was chosen on the same rows, which flatters it, so its intervals are those "
        "that hold for all arms at once.",
        *(f"no value: {line.refused}" for line in result.lines if line.refused),
        *_warnings(result),
    ]
    return _printable(parts)


def _value(estimate: Any) -> str:
    return f"{estimate.mean:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"


def _warnings(result: Any) -> list[str]:
    return [f"warning: {warning}" for warning in result.warnings]


def save_drift(log: Any, found: Any, path: str | Path) -> Path:
    """Draw levels over time, and gains at each time scale."""

    def draw(figure: Any) -> None:
        levels, gains = figure.subplots(2, 1, height_ratios=(1.3, 1.0))
        times = found.mean_times
        if log.summary.dates:
            times = [datetime.datetime.fromtimestamp(float(at), datetime.UTC) for at in times]
        shown = np.sort(np.argsort(-log.summary.pulls, kind="stable")[:_MOST])
        means = found.means[:, shown]
        for number, arm in enumerate(shown):
            style = {
                **plots.choose_style(number),
                "markersize": 4,
                "linewidth": 1.4,
                "markevery": max(1, len(times) // 12),
            }
            levels.plot(times, means[:, number], label=_short(found.arms[arm]), **style)
        levels.set_title("mean reward of each arm: do the levels move, does the ranking?", loc="left")
        levels.set_ylabel("mean reward")
        if log.summary.dates:
            _set_date_axis(levels)
        _gains(log, found, gains)
        columns = 3 if max(len(_short(found.arms[arm])) for arm in shown) <= 12 else 2
        figure.legend(*levels.get_legend_handles_labels(), loc="outside lower left", ncols=columns, handlelength=3.4)
        title = textwrap.fill(found.sentence.replace("$", r"\$"), 68, break_on_hyphens=False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9.5)

    return plots.save_chart(draw, path, (_WIDTH, 6.2))


def _gains(log: Any, found: Any, axes: Any) -> None:
    points = log.reward_range == (0.0, 1.0)
    unit = 100.0 if points else 1.0
    for number, (name, field) in enumerate(
        (("this period's best, by halves", "current"), ("last period's best", "last"))
    ):
        estimates = [getattr(scale, field) for scale in found.scales]
        x = np.arange(len(estimates)) + 0.12 * (2 * number - 1)
        mean = np.array([unit * e.mean for e in estimates])
        sides = np.array([[unit * (e.mean - e.low), unit * (e.high - e.mean)] for e in estimates]).T
        style = plots.choose_style(number)
        axes.errorbar(
            x, mean, sides, fmt=style["marker"], color=style["color"], capsize=3, label=name, markerfacecolor="white"
        )
    axes.axhline(0.0, color="0.4", linewidth=0.9, zorder=0)
    axes.set_xticks(range(len(found.scales)), [scale.name for scale in found.scales])
    axes.set_xlabel("" if log.summary.dates else "period, as a part of the log")
    axes.set_ylabel("gain, points per event" if points else "gain, reward per event")
    axes.set_title("gain over the best fixed arm, by time scale", loc="left")
    axes.margins(x=0.2)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.35 * (high - low))  # space for the legend above the intervals
    axes.legend(loc="upper left", ncols=2)


def _set_date_axis(axes: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _short(name: str, most: int = 24) -> str:
    """A name that matplotlib shows as it is: not as a formula, nor hidden because of a leading underscore."""
    short = name if len(name) <= most else f"{name[: most - 1]}…"
    return (" " if short.startswith("_") else "") + short.replace("$", r"\$")
