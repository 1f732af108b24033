"""Rewards as functions of the context: a ridge regression per arm, and what choosing by context gains.

Slopes are those that all arms share plus the arm's own, which cross-validation may shrink to 0: then the ranking does
not depend on the context. The gain of context is that of the arm with the largest predicted reward over the best single
arm, both chosen on four fifths of the blocks of time and scored on the rest."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.bandit.features import Feature, Features
from driftbandit.logs.estimates import FEWEST_BLOCKS, Estimate, block_mean, period_of
from driftbandit.logs.log import Log

FOLDS = 5
STRENGTHS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 1e12)  # of the ridge, in plays
_COMMON = 10.0  # ridge of the slopes that arms share
SHOWN = 0.1  # a gain of this many standard deviations of the rewards is found with the events asked for
_EVENTS = 30.0  # that it takes if the gain is a standard deviation and each arm always played; by simulation
_ROWS = 1 << 14  # events scored together
_CELLS = {"hour of day": 8, "day of week": 7}
_BINS = 4  # of numbers, by quantiles
_OTHER = "\0"  # stands for a level that was not declared


def encode(features: Features, values: np.ndarray) -> np.ndarray:
    """Events × columns: the numbers that a policy learns from, as in `Bandit`. A missing value has the mean of the
    events before, 0 without any."""
    parts = [np.zeros((len(values), 0))]
    for at, feature in enumerate(features):
        distinct, which = np.unique(values[:, at], return_inverse=True)
        rows = [_numbers(feature, value) or [math.nan] * len(feature.columns) for value in distinct]
        part = np.array(rows)[which]
        missing = np.isnan(part[:, :1])
        if missing.any():
            before = np.maximum(np.cumsum(~missing), 1)[:, None]
            part = np.where(missing, np.cumsum(np.where(missing, 0.0, part), axis=0) / before, part)
        parts.append(part)
    return np.concatenate(parts, axis=1)


def contexts(log: Log) -> np.ndarray:
    """Events × columns: the features of a log as numbers."""
    return encode(log.features, log.whole().context)


def _numbers(feature: Feature, value: float) -> list[float] | None:
    if math.isnan(value):
        return None
    if feature.kind == "levels":
        return feature.encode((*feature.levels, _OTHER)[int(value)], 0)
    return feature.encode(value, round(value * 1e6) if feature.kind in _CELLS else 0)


def cells(feature: Feature, values: np.ndarray, encoded: np.ndarray) -> np.ndarray:
    """The cell of each event: its level, its quarter of the numbers, its three hours of the day or its weekday; missing
    values are a cell too. `encoded` are the feature's own columns."""
    if feature.kind in _CELLS:
        phase = np.arctan2(encoded[:, 0], encoded[:, 1]) / (2.0 * math.pi) % 1.0
        values = np.floor(phase * _CELLS[feature.kind] + 1e-9) % _CELLS[feature.kind]
    elif feature.kind in ("number", "log number"):
        known = values[~np.isnan(values)]
        edges = np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS)) if len(known) else known
        values = np.where(np.isnan(values), np.nan, np.searchsorted(edges, values))
    return np.asarray(np.unique(values, return_inverse=True)[1])


class Sums(NamedTuple):
    """Sums over events by fold and arm; each column of features comes after a column of ones."""

    gram: Any  # folds × arms × columns × columns
    target: Any  # folds × arms × columns

    @classmethod
    def empty(cls, folds: int, n_arms: int, columns: int) -> "Sums":
        return cls(np.zeros((folds, n_arms, columns, columns)), np.zeros((folds, n_arms, columns)))

    def add(self, fold: int, x: np.ndarray, arm: np.ndarray, reward: np.ndarray, weight: np.ndarray) -> None:
        """Add events to a fold."""
        for a in np.unique(arm):
            here = arm == a
            weighted = x[here] * weight[here, None]
            self.gram[fold, a] += weighted.T @ x[here]
            self.target[fold, a] += weighted.T @ reward[here]

    def fit(self, folds: Any) -> np.ndarray:
        """Arms × coefficients from these folds, shrunk as strongly as predicts each of them best from the others."""
        folds = np.asarray(folds)
        parts = [(folds[folds != fold], fold) for fold in folds] if len(folds) > 1 else []
        errors = np.zeros(len(STRENGTHS))
        for rest, fold in parts:
            gram, target = self.gram[fold], self.target[fold]
            for at, found in enumerate(self._solve(rest, STRENGTHS)):
                errors[at] += ((gram @ found[:, :, None])[:, :, 0] * found - 2.0 * target * found).sum()
        best = len(STRENGTHS) - 1 - int(errors[::-1].argmin())
        return self._solve(folds, STRENGTHS[best : best + 1])[0]

    def _solve(self, folds: np.ndarray, strengths: Any) -> list[np.ndarray]:
        gram, target = self.gram[folds].sum(axis=0), self.target[folds].sum(axis=0)
        n = np.maximum(gram[:, 0, 0], 1e-300)
        level = target[:, 0].sum() / max(gram[:, 0, 0].sum(), 1e-300)
        mean_x, mean_y = gram[:, 0, 1:] / n[:, None], np.where(gram[:, 0, 0] > 0, target[:, 0] / n, level)
        spread = gram[:, 1:, 1:] - n[:, None, None] * mean_x[:, :, None] * mean_x[:, None, :]
        cross = target[:, 1:] - n[:, None] * mean_x * mean_y[:, None]
        one = np.eye(spread.shape[1])
        common = np.linalg.solve(spread.sum(axis=0) + _COMMON * one, cross.sum(axis=0))
        rest = cross - spread @ common
        out = []
        for strength in strengths:
            slopes = common + np.linalg.solve(spread + strength * one, rest[:, :, None])[:, :, 0]
            out.append(np.column_stack([mean_y - (mean_x * slopes).sum(axis=1), slopes]))
        return out


class ContextGuesses:
    """How far each arm's reward in a context is expected to lie from its average, learned from events that came
    before. `x` are the `contexts` of the log."""

    def __init__(self, log: Log, x: np.ndarray) -> None:
        x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
        self.events, self.x = log.whole(), np.column_stack([np.ones(log.n), x])
        self.sums = Sums.empty(FOLDS, log.n_arms, self.x.shape[1])
        self.times = 0

    def learn(self, which: np.ndarray) -> None:
        """Learn these events' rewards, one more fold in turn."""
        if len(which):
            events = self.events.take(which)
            self.sums.add(self.times % FOLDS, self.x[which], events.arm, events.reward, np.ones(len(which)))
            self.times += 1

    def guess(self, here: slice) -> np.ndarray:
        """Events × arms."""
        if self.times < FOLDS:
            return np.zeros(())
        coefficients = self.sums.fit(np.arange(FOLDS))
        plays, rewards = self.sums.gram[:, :, 0, 0].sum(axis=0), self.sums.target[:, :, 0].sum(axis=0)
        average = np.where(plays > 0, rewards / np.maximum(plays, 1.0), coefficients[:, 0])
        return np.asarray(self.x[here] @ coefficients.T - average)


class ContextGain(NamedTuple):
    """What choosing by a feature gains over the best single arm, in the unit of the rewards."""

    feature: str
    cells: int
    gain: Estimate

    @property
    def pays(self) -> bool:
        return self.gain.low > 0.0


ALL_TOGETHER = "all together"


def context_gains(log: Log, length: float) -> list[ContextGain]:
    """The gain by each feature, then by all together if there are several; none if the log has too few blocks. The
    intervals hold for all of them at once."""
    summary, events, features = log.summary, log.whole(), log.features
    period = period_of(events.time, summary.start, length, summary.dates)
    block = np.unique(period, return_inverse=True)[1]
    if not features or block[-1] + 1 < FEWEST_BLOCKS:
        return []
    tables = {}
    for at, feature in enumerate(features):
        values = events.context[:, at]
        tables[feature.name] = _one_hot(cells(feature, values, encode(Features((feature,)), values[:, None])))
    if len(features) > 1:
        tables[ALL_TOGETHER] = np.concatenate(list(tables.values()), axis=1)
    level = 1.0 - 0.05 / len(tables)
    width = log.reward_range[1] - log.reward_range[0]
    out = []
    for name, table in tables.items():
        gain = np.bincount(block, score_choices(log, table, block % FOLDS))
        estimate = block_mean(gain, np.bincount(block), level, log.n).clipped(-1.0, 1.0).scaled(width)
        out.append(ContextGain(name, table.shape[1], estimate))
    return out


def _one_hot(cell: np.ndarray) -> np.ndarray:
    return np.asarray(cell[:, None] == np.arange(cell.max() + 1), np.float64)


def score_choices(log: Log, table: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """For each event the doubly robust score of the arm chosen by the table's columns, minus that of the best single
    arm; both are chosen on the other folds."""
    events = log.whole()
    x = np.column_stack([np.ones(log.n), table])
    weight = 1.0 / events.propensity
    weight *= (log.summary.pulls / np.maximum(np.bincount(events.arm, weight, minlength=log.n_arms), 1e-300))[
        events.arm
    ]
    whole = Sums.empty(FOLDS, log.n_arms, x.shape[1])
    for f in range(FOLDS):
        here = fold == f
        whole.add(f, x[here], events.arm[here], events.reward[here], weight[here])
    out = np.zeros(log.n)
    for f in range(FOLDS):
        others = np.delete(np.arange(FOLDS), f)
        coefficients = whole.fit(others)
        single = whole.target[others, :, 0].sum(axis=0) / np.maximum(whole.gram[others, :, 0, 0].sum(axis=0), 1e-300)
        there = np.flatnonzero(fold == f)
        for begin in range(0, len(there), _ROWS):
            at = there[begin : begin + _ROWS]
            offered = log.menus[events.menu[at]]
            q = x[at] @ coefficients.T
            chosen = np.where(offered, q, -np.inf).argmax(axis=1)
            fixed = np.where(offered, single, -np.inf).argmax(axis=1)
            out[at] = _score(q, chosen, events.take(at)) - _score(q, fixed, events.take(at))
    return out


def _score(q: np.ndarray, chosen: np.ndarray, events: Any) -> np.ndarray:
    guess = q[np.arange(len(q)), chosen]
    return np.asarray(guess + (events.arm == chosen) / events.propensity * (events.reward - guess))


def events_needed(log: Log) -> int:
    """About how many events it takes to find a gain of `SHOWN` standard deviations. They are as many times more as the
    variance of an arm's value is larger than if it were always played, on average over the arms."""
    times = (1.0 / log.whole().propensity ** 2).mean() / log.n_arms
    return int(np.ceil(_EVENTS * times / SHOWN**2 / 1000.0)) * 1000


def describe_gains(log: Log, found: list[ContextGain], show: Any) -> str:
    """Does context pay? In one sentence; `show` prints a gain."""
    if not found:
        return "This log cannot show whether context pays: it has events in too few blocks of time."
    single = [gain for gain in found if gain.feature != ALL_TOGETHER]
    by = [gain.feature for gain in single if gain.pays]
    not_by = [gain.feature for gain in single if not gain.pays]
    if by or found[-1].pays:
        best = max((gain for gain in found if gain.pays), key=lambda gain: gain.gain.mean)
        differs = f"the ranking differs by {_list(by, 'and')}" if by else "the ranking differs by all features together"
        but = f", not by {_list(not_by, 'or')}" if not_by and by else ""
        how = f"by {best.feature}" if best.feature != ALL_TOGETHER else "by all features together"
        return f"Context pays: {differs}{but}. Choosing {how} gains {show(best.gain.mean)} over the best single arm."
    needed = events_needed(log)
    seen = f"The ranking is not seen to differ by {_list(not_by, 'or')}"
    gain = show(SHOWN * log.summary.sd * (log.reward_range[1] - log.reward_range[0]))
    if log.n >= needed:
        return f"{seen}; context that gains {gain} would most likely have been found."
    return f"{seen}, but the log is short: finding context that gains {gain} takes about {needed:,} events."


def _list(names: list[str], word: str) -> str:
    return f" {word} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
