"""Figures about a log: levels and rankings over time, gain by time scale, value against half-life."""

import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.plots.chart import save_chart
from driftbandit.lab.plots.style import look, looks
from driftbandit.logs.advice import Tuned
from driftbandit.logs.drift_check import Drift
from driftbandit.logs.log import Log
from driftbandit.logs.periods import said

_MOST = 8  # arms drawn: the most played
_WIDE = 5.4  # inches: on a page 400 pixels wide the letters are still read


def save_drift(log: Log, found: Drift, path: str | Path) -> Path:
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


def _gains(log: Log, found: Drift, axes: Any) -> None:
    unit = _unit(log)
    for number, (name, field) in enumerate((("oracle, split halves", "oracle"), ("last period's best arm", "last"))):
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


def save_tune(log: Log, result: Tuned, path: str | Path) -> Path:
    """Value against half-life as a gain over the best policy that never forgets, with its paired band; and the gain by
    time scale."""

    def draw(figure: Any) -> None:
        axes, gains = figure.subplots(2, 1, height_ratios=(1.5, 1.0))
        unit = _unit(log)
        families = list(dict.fromkeys(trial.family for trial in result.trials if trial.kind == "half-life"))
        alone = [trial for trial in result.trials if trial.family not in families]
        drawn = [*families, *(trial.label for trial in alone)]
        styles = dict(zip(drawn, looks(drawn), strict=True))
        finite = sorted({trial.half_life for trial in result.trials if trial.kind == "half-life"})
        for family in families:
            best: dict[float, Any] = {}
            for trial in result.trials:
                held = best.get(trial.half_life)
                if trial.family == family and (held is None or trial.first > held.first):
                    best[trial.half_life] = trial
            x = range(len(finite) + 1)  # no line over half-lives that were not tried
            tried = [best.get(h) for h in (*finite, math.inf)]
            mean, low, high = (
                [math.nan if t is None else unit * getattr(t.over_never, side) for t in tried]
                for side in ("mean", "low", "high")
            )
            style = styles[family]
            axes.plot(x, mean, label=family, markerfacecolor="white", **style)
            axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
        names = [*(said(h, result.by_clock and log.summary.said_in) for h in finite), "never"]
        own = [trial for trial in alone if trial.kind == "itself"]
        names += ["by itself"] if len(own) == 1 else [f"by itself, {number}" for number in range(1, len(own) + 1)]
        for trial in alone:
            x_at = len(finite) + (own.index(trial) + 1 if trial in own else 0)
            style = {**styles[trial.label], "linestyle": ""}
            at = unit * trial.over_never.mean
            sides = [[at - unit * trial.over_never.low], [unit * trial.over_never.high - at]]
            axes.errorbar(
                [x_at],
                [at],
                sides,
                label=_short(trial.label),
                markerfacecolor="white",
                capsize=3,
                elinewidth=1.0,
                **style,
            )
        axes.axhline(0.0, color="0.4", linewidth=0.9, zorder=0)
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_xlabel("half-life" + ("" if result.by_clock else ", rewards") + ", judged on the last part of the log")
        axes.set_ylabel(_gain_label(log))
        axes.set_title(f"gain over {_short(result.never, 48)}", loc="left")
        _gains(log, result.drift, gains)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2, handlelength=3.4)
        figure.suptitle(_wrapped(result.sentence), x=0.01, ha="left", fontsize=9.5)

    return save_chart(draw, path, (_WIDE, 7.6))


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
