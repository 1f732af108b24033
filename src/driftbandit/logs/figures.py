"""Figures about a log: levels and rankings over time, gain by time scale, value against half-life."""

import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.plots.chart import save_chart
from driftbandit.lab.plots.style import look
from driftbandit.logs.drift_check import Drift
from driftbandit.logs.log import Log
from driftbandit.logs.periods import said
from driftbandit.logs.tuned import Tuned

_MOST = 8  # arms drawn in colour: the most played


def save_drift(log: Log, found: Drift, path: str | Path) -> Path:
    """Levels over time, each arm's rank over time, and what forgetting could gain at each time scale."""

    def draw(figure: Any) -> None:
        levels, ranks, gains = figure.subplots(3, 1, height_ratios=(1.25, 1.0, 0.9))
        times = _dates(found.mean_times) if log.summary.dates else found.mean_times
        shown = np.argsort(-log.summary.pulls, kind="stable")[:_MOST]
        smooth = found.means
        for number, arm in enumerate(sorted(shown)):
            style = {**look(number), "markersize": 4, "linewidth": 1.4}
            levels.plot(times, smooth[:, arm], label=found.arms[arm], markevery=max(1, len(times) // 12), **style)
        order = np.argsort(np.argsort(-np.nan_to_num(smooth[:, np.sort(shown)], nan=-1.0), axis=1), axis=1) + 1
        for number in range(len(shown)):
            style = {**look(number), "markersize": 4, "linewidth": 1.4}
            ranks.plot(times, order[:, number], markevery=max(1, len(times) // 12), drawstyle="steps-mid", **style)
        levels.set_title("mean reward of each arm: do the levels move?", loc="left")
        levels.set_ylabel("mean reward")
        ranks.set_title("rank of each arm, 1 the best: does the ranking move, and stay?", loc="left")
        ranks.set_ylabel("rank")
        ranks.invert_yaxis()
        ranks.set_yticks(range(1, len(shown) + 1))
        ranks.set_xlabel("" if log.summary.dates else "time")
        _gains(log, found, gains)
        figure.legend(*levels.get_legend_handles_labels(), loc="outside right center", handlelength=3.5)
        figure.suptitle(_wrapped(found.sentence), x=0.01, ha="left", fontsize=10)

    return save_chart(draw, path, (7.6, 8.2))


def _gains(log: Log, found: Drift, axes: Any, narrow: bool = False) -> None:
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
    axes.set_xlabel("period" if log.summary.dates else "period, as a part of the log")
    axes.set_ylabel(_gain_label(log))
    axes.set_title("gain over the best fixed arm, by time scale", loc="left")
    axes.margins(x=0.2)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.4 * (high - low))  # room for the legend above the intervals
    axes.legend(loc="upper left", ncols=1 if narrow else 2)


def save_tune(log: Log, result: Tuned, path: str | Path) -> Path:
    """Value against half-life as a gain over the best policy that never forgets, with its paired band."""

    def draw(figure: Any) -> None:
        axes, gains = figure.subplots(1, 2, width_ratios=(1.7, 1.0))
        unit = _unit(log)
        families = list(dict.fromkeys(trial.family for trial in result.trials if math.isfinite(trial.half_life)))
        finite = sorted({trial.half_life for trial in result.trials if math.isfinite(trial.half_life)})
        place = {h: at for at, h in enumerate(finite)} | {math.inf: len(finite)}
        for number, family in enumerate(families):
            best: dict[float, Any] = {}
            for trial in result.trials:
                if trial.family == family and (
                    trial.half_life not in best or trial.first > best[trial.half_life].first
                ):
                    best[trial.half_life] = trial
            trials = [best[h] for h in sorted(best)]
            x = [place[trial.half_life] for trial in trials]
            style = look(number)
            axes.plot(x, [unit * t.over_never.mean for t in trials], label=family, markerfacecolor="white", **style)
            axes.fill_between(
                x, [unit * t.over_never.low for t in trials], [unit * t.over_never.high for t in trials],
                color=style["color"], alpha=0.15, linewidth=0,
            )  # fmt: skip
        flat = [trial for trial in result.trials if trial.family not in families]
        for number, trial in enumerate(flat, len(families)):
            axes.plot([place[math.inf]], [unit * trial.over_never.mean], label=trial.label, ls="", **_point(number))
        axes.axhline(0.0, color="0.4", linewidth=0.9, zorder=0)
        names = [said(h, log.summary.dates and result.by_clock) for h in finite]
        axes.set_xticks(range(len(finite) + 1), [*names, "never"], rotation=45, ha="right")
        axes.set_xlabel("half-life" + ("" if result.by_clock else ", rewards"))
        axes.set_ylabel(_gain_label(log))
        axes.set_title(f"gain over {result.never}, last part of the log", loc="left")
        axes.legend(loc="best")
        _gains(log, result.drift, gains, narrow=True)
        gains.set_title("gain by time scale", loc="left")
        figure.suptitle(_wrapped(result.sentence), x=0.01, ha="left", fontsize=10)

    return save_chart(draw, path, (9.6, 4.8))


def _point(number: int) -> dict[str, Any]:
    style = look(number)
    return {"color": style["color"], "marker": style["marker"], "markerfacecolor": "white"}


def _unit(log: Log) -> float:
    return 100.0 if log.reward_range == (0.0, 1.0) else 1.0


def _gain_label(log: Log) -> str:
    return "gain, points per event" if _unit(log) == 100.0 else "gain, reward per event"


def _dates(seconds: np.ndarray) -> list[datetime.datetime]:
    return [datetime.datetime.fromtimestamp(float(value), datetime.UTC) for value in seconds]


def _wrapped(text: str) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, 100))
