"""A world like mine: the arms' means over time from a log, smoothed by the amount that predicts best."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments.phased import Phased, phased
from driftbandit.environments.table import ROUNDS
from driftbandit.logs.log import Log, half_of

_ROWS = 512  # the most rows of a table


class MeansOverTime(NamedTuple):
    """Means, one row per period and one column per arm, and how many events each period had."""

    arms: list[str]
    means: Any
    rounds: Any
    bandwidth: float  # of the smoothing, in periods; infinite if nothing moves

    def world(self, law: Any = None) -> Phased:
        """To be played at once."""
        ends = np.cumsum(self.rounds)
        return phased(self.means, np.append(0, ends[:-1]), int(ends[-1]), law)

    def save(self, path: str | Path) -> Path:
        """As the CSV file that `table("...")` plays."""
        path = Path(path)
        rows = [[int(n), *(f"{mean:.6g}" for mean in row)] for n, row in zip(self.rounds, self.means, strict=True)]
        text: list[list[Any]] = [[ROUNDS, *self.arms], *rows]
        draft = path.with_name(f".{path.name}.part")
        with open(draft, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(text)
        draft.replace(path)
        return path


def world(log: Log, periods: int | None = None, seed: int = 0) -> MeansOverTime:
    """The means over time of a log's arms, rewards mapped to [0, 1].

    Rows are weighted by inverse propensities and smoothed by a bell curve in time. How wide it is, is decided by the
    rows themselves: smoothed on one half of them, it should predict the other half best."""
    k, summary = log.n_arms, log.summary
    count = periods or int(np.clip(summary.n / (20 * k), 1, _ROWS))
    weight, reward, events = np.zeros((count, k, 2)), np.zeros((count, k, 2)), np.zeros(count, np.int64)
    for piece in log.pieces():
        place = np.minimum(((piece.time - summary.start) / summary.span * count).astype(np.int64), count - 1)
        half = half_of(piece.row, seed + 4)
        events += np.bincount(place, minlength=count)
        np.add.at(weight, (place, piece.arm, half), 1.0 / piece.propensity)
        np.add.at(reward, (place, piece.arm, half), piece.reward / piece.propensity)
    widths = [0.25 * 2.0**step for step in range(12) if 0.25 * 2.0**step < count] + [np.inf]
    width = min(widths, key=lambda width: _missed(weight, reward, width))
    means = _smooth(weight.sum(axis=2), reward.sum(axis=2), width)
    there = events > 0
    return MeansOverTime(log.arms, means[there], events[there], width)


def _smooth(weight: np.ndarray, reward: np.ndarray, width: float) -> np.ndarray:
    count = len(weight)
    away = np.subtract.outer(np.arange(count), np.arange(count))
    bell = np.exp(-0.5 * (away / width) ** 2)
    whole = reward.sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    lean = 1e-3 * weight.mean(axis=0)  # a period without a row of an arm has the arm's average
    return np.asarray((bell @ reward + lean * whole) / (bell @ weight + lean))


def _missed(weight: np.ndarray, reward: np.ndarray, width: float) -> float:
    """Squared error of each half's means for the other half's rows, up to what no smoothing changes."""
    total = 0.0
    for half in (0, 1):
        means = _smooth(weight[:, :, half], reward[:, :, half], width)
        w, r = weight[:, :, 1 - half], reward[:, :, 1 - half]
        total += float((means * means * w - 2.0 * means * r).sum())
    return total
