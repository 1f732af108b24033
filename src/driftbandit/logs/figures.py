"""The figure about a log: levels and rankings over time, and gain by time scale."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.plots.style import look, save_chart
from driftbandit.logs.log import Log

_MOST = 8  # arms drawn: the most played
_WIDE = 5.4  # inches: on a page 400 pixels wide the letters are still read


def save_drift(log: Log, found: Any, path: str | Path) -> Path:
    """Levels over time, each arm's rank over time, and what forgetting could gain at each time scale."""

    def draw(figure: Any) -> None:
        levels, ranks, gains = figure.subplots(3, 1, height_ratios=(1.25, 1.0, 0.9))
        times = _dates(found.mean_times) if log.summary.dates else found.mean_times
        shown = np.sort(np.argsort(-log.summary.pulls, kind="stable")[:_MOST])
        means = found.means[:, shown]
        order = np.argsort(np.argsort(-np.nan_to_num(means, nan=-np.inf), axis=1, kind="stable"), axis=1) + 1.0
        order[np.isnan(means)] = np.nan  # an arm without a row has no rank
        for number, arm in enumerate(shown):
            style = {**look(number), "markersize": 4, "linewidth": 1.4, "markevery": max(1, len(times) // 12)}
            levels.plot(times, means[:, number], label=_short(found.arms[arm]), **style)
            ranks.plot(times, order[:, number], drawstyle="steps-mid", **style)
        levels.set_title("mean reward of each arm: do the levels move?", loc="left")
        levels.set_ylabel("mean reward")
        ranks.set_title("rank of each arm, 1 is best: does it stay?", loc="left")
        ranks.set_ylabel("rank")
        ranks.invert_yaxis()
        ranks.set_yticks(range(1, len(shown) + 1))
        for axes in (levels, ranks):
            _time_axis(axes, log.summary.dates)
        _gains(log, found, gains)
        columns = 3 if max(len(_short(found.arms[arm])) for arm in shown) <= 12 else 2
        figure.legend(*levels.get_legend_handles_labels(), loc="outside lower left", ncols=columns, handlelength=3.4)
        figure.suptitle(_wrapped(found.sentence), x=0.01, ha="left", fontsize=9.5)

    return save_chart(draw, path, (_WIDE, 8.4))


def _gains(log: Log, found: Any, axes: Any) -> None:
    unit = _unit(log)
    for number, (name, field) in enumerate(
        (("this period's best, by halves", "current"), ("last period's best", "last"))
    ):
        estimates = [getattr(scale, field) for scale in found.scales]
        x = np.arange(len(estimates)) + 0.12 * (2 * number - 1)
        mean = np.array([unit * e.mean for e in estimates])
        sides = np.array([[unit * (e.mean - e.low), unit * (e.high - e.mean)] for e in estimates]).T
        style = look(number)
        axes.errorbar(
            x, mean, sides, fmt=style["marker"], color=style["color"], capsize=3, label=name, markerfacecolor="white"
        )
    axes.axhline(0.0, color="0.4", linewidth=0.9, zorder=0)
    axes.set_xticks(range(len(found.scales)), [scale.name for scale in found.scales])
    axes.set_xlabel("" if log.summary.dates else "period, as a part of the log")
    axes.set_ylabel(_gain_label(log))
    axes.set_title("gain over the best fixed arm, by time scale", loc="left")
    axes.margins(x=0.2)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.35 * (high - low))  # room for the legend above the intervals
    axes.legend(loc="upper left", ncols=2)


def _time_axis(axes: Any, dates: bool) -> None:
    """A few ticks, in the shortest words that tell them apart."""
    if dates:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _short(name: str, most: int = 24) -> str:
    """A name as it stands: not as a formula between dollar signs, nor hidden for beginning with a dash below."""
    short = name if len(name) <= most else f"{name[: most - 1]}…"
    return (" " if short.startswith("_") else "") + short.replace("$", r"\$")


def _unit(log: Log) -> float:
    return 100.0 if log.reward_range == (0.0, 1.0) else 1.0


def _gain_label(log: Log) -> str:
    return "gain, points per event" if _unit(log) == 100.0 else "gain, reward per event"


def _dates(seconds: np.ndarray) -> list[datetime.datetime]:
    return [datetime.datetime.fromtimestamp(float(value), datetime.UTC) for value in seconds]


def _wrapped(text: str) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text.replace("$", r"\$"), 68, break_on_hyphens=False))
