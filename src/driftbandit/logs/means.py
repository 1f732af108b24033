"""The means of a log's arms over time: an environment like the log, and the figure of `drift`."""

import datetime
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.table import ROUNDS
from driftbandit.lab import plots
from driftbandit.lab.files import save_rows
from driftbandit.logs.log import Log, half_of

_MOST_PERIODS = 512
_MOST_ARMS = 8  # drawn: the most played
_WIDTH = 5.4  # inches: readable on a page 400 pixels wide


class MeansOverTime(NamedTuple):
    """Means, one row per period and one column per arm, and how many events each period had."""

    arms: list[str]
    means: Any
    rounds: Any
    bandwidth: float  # of the smoothing, in periods; infinite if nothing moves

    def environment(self, law: Any = None) -> Phased:
        """An environment with these means."""
        ends = np.cumsum(self.rounds)
        return phased(self.means, np.append(0, ends[:-1]), int(ends[-1]), law)

    def save(self, path: str | Path) -> Path:
        """Write the CSV file that `table("...")` plays."""
        rows = [[int(n), *(f"{mean:.6g}" for mean in row)] for n, row in zip(self.rounds, self.means, strict=True)]
        return save_rows([ROUNDS, *self.arms], rows, path)


def estimate_means(log: Log, periods: int | None = None, seed: int = 0) -> MeansOverTime:
    """The means over time of a log's arms, with rewards mapped to [0, 1].

    Rows are weighted by inverse propensities and smoothed by a Gaussian kernel in time. Its width is the one with
    which each half of the rows predicts the other half best."""
    k, summary, events = log.n_arms, log.summary, log.whole()
    count = periods or int(np.clip(summary.n / (20 * k), 1, _MOST_PERIODS))
    weight, reward = np.zeros((count, k, 2)), np.zeros((count, k, 2))
    place = np.minimum(((events.time - summary.start) / summary.span * count).astype(np.int64), count - 1)
    at = place, events.arm, half_of(events.row, seed + 4)
    np.add.at(weight, at, 1.0 / events.propensity)
    np.add.at(reward, at, events.reward / events.propensity)
    rounds = np.bincount(place, minlength=count)
    widths = [0.25 * 2.0**step for step in range(12) if 0.25 * 2.0**step < count] + [np.inf]
    width = min(widths, key=lambda width: _prediction_error(weight, reward, width))
    means = _smooth(weight.sum(axis=2), reward.sum(axis=2), width)
    return MeansOverTime(log.arms, means[rounds > 0], rounds[rounds > 0], width)


def _smooth(weight: np.ndarray, reward: np.ndarray, width: float) -> np.ndarray:
    count = len(weight)
    distance = np.subtract.outer(np.arange(count), np.arange(count))
    kernel = np.exp(-0.5 * (distance / width) ** 2)
    whole = reward.sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    prior = 1e-3 * weight.mean(axis=0)  # a period without a row of an arm gets the arm's average
    return np.asarray((kernel @ reward + prior * whole) / (kernel @ weight + prior))


def _prediction_error(weight: np.ndarray, reward: np.ndarray, width: float) -> float:
    """The squared error of each half's means for the other half's rows, up to a constant."""
    total = 0.0
    for half in (0, 1):
        means = _smooth(weight[:, :, half], reward[:, :, half], width)
        w, r = weight[:, :, 1 - half], reward[:, :, 1 - half]
        total += float((means * means * w - 2.0 * means * r).sum())
    return total


def draw_drift(log: Log, found: Any, path: str | Path) -> Path:
    """Draw what `drift` found: levels over time, and gains at each time scale."""

    def draw(figure: Any) -> None:
        levels, gains = figure.subplots(2, 1, height_ratios=(1.3, 1.0))
        shown = np.sort(np.argsort(-log.summary.pulls, kind="stable")[:_MOST_ARMS])
        names = [_short(found.arms[arm]) for arm in shown]
        _draw_levels(log, found, levels, shown, names)
        _draw_gains(log, found, gains)
        columns = 3 if max(map(len, names)) <= 12 else 2
        figure.legend(*levels.get_legend_handles_labels(), loc="outside lower left", ncols=columns, handlelength=3.4)
        title = textwrap.fill(found.sentence.replace("$", r"\$"), 68, break_on_hyphens=False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=9.5)

    return plots.save_chart(draw, path, (_WIDTH, 6.2))


def _draw_levels(log: Log, found: Any, axes: Any, shown: np.ndarray, names: list[str]) -> None:
    times = found.mean_times
    if log.summary.dates:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        times = [datetime.datetime.fromtimestamp(float(at), datetime.UTC) for at in times]
        locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    every = max(1, len(times) // 12)
    for number, (arm, name) in enumerate(zip(shown, names, strict=True)):
        style = {**plots.choose_style(number), "markersize": 4, "linewidth": 1.4, "markevery": every}
        axes.plot(times, found.means[:, arm], label=name, **style)
    axes.set_title("mean reward of each arm: do the levels move, does the ranking?", loc="left")
    axes.set_ylabel("mean reward")


def _draw_gains(log: Log, found: Any, axes: Any) -> None:
    points = found.about.points
    unit = 100.0 if points else 1.0
    for number, (name, field) in enumerate(
        (("this period's best, by halves", "current"), ("last period's best", "last"))
    ):
        estimates = unit * np.array([getattr(scale, field)[:3] for scale in found.scales]).reshape(-1, 3)
        mean, low, high = estimates.T
        x = np.arange(len(mean)) + 0.12 * (2 * number - 1)
        style = plots.choose_style(number)
        look = {"fmt": style["marker"], "color": style["color"], "capsize": 3, "markerfacecolor": "white"}
        axes.errorbar(x, mean, [mean - low, high - mean], label=name, **look)
    axes.axhline(0.0, color="0.4", linewidth=0.9, zorder=0)
    axes.set_xticks(range(len(found.scales)), [scale.name for scale in found.scales])
    axes.set_xlabel("" if log.summary.dates else "period, as a part of the log")
    axes.set_ylabel("gain, points per event" if points else "gain, reward per event")
    axes.set_title("gain over the best fixed arm, by time scale", loc="left")
    axes.margins(x=0.2)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.35 * (high - low))  # space for the legend above the intervals
    axes.legend(loc="upper left", ncols=2)


def _short(name: str, most: int = 24) -> str:
    """A name that matplotlib shows as it is: not as a formula, nor hidden because of a leading underscore."""
    short = name if len(name) <= most else f"{name[: most - 1]}…"
    return (" " if short.startswith("_") else "") + short.replace("$", r"\$")
