"""What a fold carries along: statistics of the contexts, outcomes that are not learned yet, and what was learned about
columns that stay when the features of a bandit change from now on.

A new column begins with the policy's prior, as if it had been 0 so far. Of a column that goes, the effect at its mean
becomes part of the intercept."""

import base64
import math
from collections.abc import Mapping
from itertools import accumulate, compress
from operator import add, mul
from typing import Any

import numpy as np

from driftbandit.bandit.features import CYCLES, Features, is_context
from driftbandit.bandit.records import LATEST, REWARD, WAYS, Event
from driftbandit.core.primitives import WIDTH
from driftbandit.core.state import to_lists
from driftbandit.policies import linear
from driftbandit.policies.drift.drift_lin_ts import DriftLinTS
from driftbandit.policies.linear.least_squares import renew_all

_MOST_OTHERS, _REST = 20, "(further levels)"  # undeclared levels: so many are counted separately
_SCRATCH = ("root", "x", "u", "draws", "scores", "factor", "own", "gain", "forecast", "spread", "middles", "variances")
_SUMS = {"gram": 2, "second": 2, "target": 1, "rows": 1, "mean": 1, "covariance": 2}  # dimensions of coefficients
_COLUMNS = ("origin", "centre", "variance", "reach", "known")  # of DriftLinTS: a number for each coefficient
_ROW = np.dtype(
    [("decided", "<i8"), ("tie", "<u8"), ("slot", "<i4"), ("how", "<i4"), ("value", "<f8"), ("probability", "<f8")]
)


class Seen:
    """The contexts whose outcomes were learned: the mean of every column, and counts of missing and undeclared
    values."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.learned = 0
        self._widths = [len(feature.columns) for feature in features]
        self._sums = [0.0] * sum(self._widths)  # by column
        self._squares = [0.0] * len(self._sums)
        self._gaps = [0] * len(features)  # contexts without a value, by feature
        self._others: list[dict[str, int]] = [{} for _ in features]  # contexts by level that was not declared

    def learn(self, context: Mapping[str, Any], at: int) -> list[float]:
        """The numbers of a context, which then counts towards the means."""
        out, gaps, others = self.features.numbers(context, at)
        sums, self._squares = list(map(add, self._sums, out)), list(map(add, self._squares, map(mul, out, out)))
        if gaps:
            self.fill(out, gaps)
        self._sums = sums
        self.learned += 1
        for place, _ in gaps:
            self._gaps[place] += 1
        for place in others:
            counts, level = self._others[place], context[self.features[place].name]
            level = level if level in counts or len(counts) < _MOST_OTHERS else _REST
            counts[level] = counts.get(level, 0) + 1
        return out

    def fill(self, numbers: list[float], gaps: list[tuple[int, int]]) -> None:
        """Write the means so far where features are missing."""
        for place, start in gaps:
            count = max(1, self.learned - self._gaps[place])
            for column in range(start, start + self._widths[place]):
                numbers[column] = self._sums[column] / count

    @property
    def means(self) -> list[float]:
        """The mean of every column."""
        out = [0.0] * len(self._sums)
        self.fill(out, list(enumerate(accumulate(self._widths[:-1], initial=0))))
        return out

    def spread(self, column: int) -> float:
        """The standard deviation of a column."""
        place = next(place for place, end in enumerate(accumulate(self._widths)) if column < end)
        count = max(1, self.learned - self._gaps[place])
        return math.sqrt(max(0.0, self._squares[column] / count - (self._sums[column] / count) ** 2))

    @property
    def missing(self) -> dict[str, int]:
        """Contexts without a value, by feature."""
        return {feature.name: count for feature, count in zip(self.features, self._gaps, strict=True) if count}

    @property
    def undeclared(self) -> dict[str, dict[str, int]]:
        """Contexts with a level that was not declared, by feature and level."""
        return {
            feature.name: dict(counts) for feature, counts in zip(self.features, self._others, strict=True) if counts
        }

    def carry(self, before: "Seen") -> None:
        """Continue from the statistics before the features changed; a new feature was missing so far."""
        self.learned, column = before.learned, 0
        known = {feature.name: place for place, feature in enumerate(before.features)}
        for place, feature in enumerate(self.features):
            at = known.get(feature.name)
            same = at is not None and before.features[at]._replace(levels=()) == feature._replace(levels=())
            if at is None or not same:
                self._gaps[place] = 0 if feature.kind in CYCLES else self.learned
            else:
                start, names = sum(before._widths[:at]), before.features[at].columns
                for name in names:
                    if name in feature.columns:
                        here, there = column + feature.columns.index(name), start + names.index(name)
                        self._sums[here], self._squares[here] = before._sums[there], before._squares[there]
                self._gaps[place] = before._gaps[at]
                counts = before._others[at].items()
                self._others[place] = {level: count for level, count in counts if level not in feature.levels}
            column += self._widths[place]

    def plain(self) -> list[Any]:
        """As a snapshot keeps it."""
        return [self.learned, self._sums, self._squares, self._gaps, self._others]

    @classmethod
    def read(cls, data: Any, features: Features) -> "Seen":
        """The inverse of `plain`; a ValueError for anything it cannot have written."""
        out = cls(features)
        learned, sums, squares, gaps, others = data
        sizes = len(sums) == len(squares) == len(out._sums) and len(gaps) == len(others) == len(features)
        if not sizes or not all(map(math.isfinite, sums + squares)) or not all(0 <= count <= learned for count in gaps):
            raise ValueError("the means of the features cannot be read.")
        out.learned, out._sums, out._squares = int(learned), list(map(float, sums)), list(map(float, squares))
        out._gaps = list(map(int, gaps))
        out._others = [{str(level): int(count) for level, count in counts.items()} for counts in others]
        return out


class Waiting:
    """Outcomes that wait until their decision is old enough, 40 bytes each and a context, released in the order of the
    decisions."""

    def __init__(self) -> None:
        self._rows, self._count = np.empty(16, _ROW), 0
        self._contexts: list[str | None] = []

    def __len__(self) -> int:
        return self._count

    def add(self, event: Event, tie: int) -> None:
        """Hold an outcome back. `tie` orders the decisions of one moment; it must not depend on the outcome."""
        if self._count == len(self._rows):
            self._rows = np.resize(self._rows, 2 * self._count)
        probability = float("nan") if event.probability is None else event.probability
        self._rows[self._count] = (event.decided, tie, event.slot, event.how, event.value, probability)
        self._count += 1
        self._contexts.append(event.body)

    def release(self, until: int | None = None) -> list[Event]:
        """Take out the outcomes of decisions made by a time (None: all), in the order of the decisions."""
        rows = self._rows[: self._count]
        due = np.ones(len(rows), bool) if until is None else rows["decided"] <= until
        if not due.any():
            return []
        out, kept = rows[due], rows[~due]
        contexts = list(compress(self._contexts, due))
        self._contexts = list(compress(self._contexts, ~due))
        self._count = len(kept)
        self._rows = np.empty(max(16, 2 * len(kept)), _ROW) if 4 * len(kept) < len(self._rows) else self._rows
        self._rows[: len(kept)] = kept
        order = np.lexsort((out["tie"], out["decided"])).tolist()
        rest = zip(out[order].tolist(), [contexts[place] for place in order], strict=True)
        return [
            Event(0, REWARD, 0, "", slot, how, value, decided, context, None if np.isnan(chance) else chance)
            for (decided, _, slot, how, value, chance), context in rest
        ]

    def plain(self) -> list[Any]:
        """As a snapshot keeps it."""
        contexts = self._contexts if any(self._contexts) else []
        return [base64.b64encode(self._rows[: self._count].tobytes()).decode(), contexts]

    @classmethod
    def read(cls, data: Any, n_arms: int) -> "Waiting":
        """The inverse of `plain`; a ValueError for anything it cannot have written."""
        text, contexts = data
        rows = np.frombuffer(base64.b64decode(text, validate=True), _ROW)
        slots, contexts = rows["slot"], contexts or [None] * len(rows)
        if len(contexts) != len(rows) or not all(context is None or is_context(context) for context in contexts):
            raise ValueError
        if not (np.isfinite(rows["value"]).all() and (slots >= 0).all() and (slots < n_arms).all()):
            raise ValueError
        decided, chance = rows["decided"], rows["probability"]
        in_time = (decided >= 0).all() and (decided <= LATEST).all() and np.isin(rows["how"], list(WAYS)).all()
        if not in_time or not (np.isnan(chance) | ((chance >= 0.0) & (chance <= 1.000001))).all():
            raise ValueError
        out = cls()
        out._rows, out._count = np.resize(rows, max(16, len(rows))), len(rows)
        out._contexts = list(contexts)
        return out


def carry(old: Any, seen: Seen, new: Any, now: Seen, at: int) -> bool:
    """Let a new player, which has learned nothing, and the statistics of its features continue from those before;
    whether their policy allows that. Both are of one policy and have as many arms."""
    policy, before, after = old.policy, seen.features, now.features
    drifts = isinstance(policy, DriftLinTS)
    if not before or not after or not (drifts or type(policy).__module__.startswith(f"{linear.__name__}.")):
        return False
    if old.half_life != new.half_life:
        old.change_half_life(new.half_life, at)
    stay = {key: place for place, key in enumerate(_keys(before))}
    first = int(drifts or not old.joint)  # places before those of the features: the intercept
    move = np.zeros((first + len(after.columns), first + len(stay)))
    move[:first, :first] = 1.0
    for place, key in enumerate(_keys(after)):
        if key in stay:
            move[first + place, first + stay[key]] = 1.0
    state = dict(zip(old.state._fields, map(np.asarray, old.lists()), strict=True))
    fresh = dict(zip(new.state._fields, map(np.asarray, new.lists()), strict=True))
    gone = np.flatnonzero(~move.any(axis=0))
    absorbed = move.copy()
    if first and "gram" not in state:  # sums of squares without a column are those of a regression without it
        absorbed[0, gone] = state["centre"][gone] if drifts else np.array(seen.means)[gone - 1]
    found = {name: fresh[name] if name in _SCRATCH else values for name, values in state.items()}
    (_move_drift if drifts else _move_sums)(found, state, fresh, move, absorbed)
    new._hold(to_lists(tuple.__new__(type(old.state), [found[name] for name in old.state._fields])))
    if not drifts and "gram" in state:
        lists = tuple.__new__(type(old.state), to_lists(new.lists()))
        renew_all(lists, policy.lam)
        new._hold(lists)
    new.learned, new.time = old.learned, old.time
    now.carry(seen)
    return True


def _keys(features: Features) -> list[tuple[Any, ...]]:
    """What makes a column the same column."""
    return [(one.name, one.kind, one.zone, column) for one in features for column in one.columns]


def _move_sums(found: dict[str, Any], state: Any, fresh: Any, move: np.ndarray, absorbed: np.ndarray) -> None:
    """The sums, or the mean and covariance, of linear policies."""
    n_after, n_before = move.shape
    for name, dimensions in _SUMS.items():
        values = state.get(name, np.zeros(0))
        if not len(values):
            continue
        A = absorbed if name in ("mean", "covariance") else move
        if dimensions == 1:
            found[name] = (values.reshape(-1, n_before) @ A.T).ravel()
            continue
        upper = values.reshape(-1, n_before, n_before)
        moved = A @ (np.triu(upper) + np.triu(upper, 1).swapaxes(1, 2)) @ A.T
        begins = ~move.any(axis=1)
        moved[:, begins, begins] = fresh[name].reshape(-1, n_after, n_after)[:, begins, begins]
        found[name] = np.triu(moved).ravel()
    for name in ("factor", "white"):
        if name in fresh:
            found[name] = fresh[name]


def _move_drift(found: dict[str, Any], state: Any, fresh: Any, move: np.ndarray, absorbed: np.ndarray) -> None:
    """The beliefs of DriftLinTS. A column that was always 0 is one of which no reward has shown the effect: the policy
    becomes uncertain of it when it moves for the first time."""
    n = move.shape[1]
    for name in ("mean", "link"):
        found[name] = (absorbed @ state[name].reshape(-1, n, WIDTH)).ravel()
    found["covariance"] = _move_triangles(state["covariance"].reshape(-1, n * (n + 1) // 2, WIDTH), absorbed).ravel()
    for name in ("prior", "wander"):
        found[name] = _move_triangles(state[name].reshape(1, -1, 1), absorbed).ravel()
    found["first_x"] = (state["first_x"].reshape(-1, n) @ move.T).ravel()
    for name in _COLUMNS:
        found[name] = move @ state[name]


def _move_triangles(values: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Lower triangles of covariances, one after the other in the second axis, of coefficients that are moved by A."""
    n, last = A.shape[1], values.shape[2]
    full = np.zeros((len(values), last, n, n))
    rows, columns = np.tril_indices(n)
    full[:, :, rows, columns] = full[:, :, columns, rows] = values.swapaxes(1, 2)
    rows, columns = np.tril_indices(len(A))
    return np.ascontiguousarray((A @ full @ A.T)[:, :, rows, columns].swapaxes(1, 2))
