"""Contextual environments: mean rewards that are linear in features, with coefficients that change."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.environments.rewards import Gaussian, Purchases
from driftbandit.environments.scaled import AnyLaw

DAY = 96  # rounds
POINTS = 500  # at which a walk or a season is computed in each `memory`; between them it rests

# Kinds of contexts; the last two are joint.
NORMAL, UNIFORM, SEGMENT, NEWCOMER, HOUR, CORRELATED, DRIFTING, UNIT, DISC = range(9)
_KINDS = ("normal", "uniform", "segment", "newcomer", "hour", "correlated", "drifting", "unit", "disc")
CONTEXTS = {name: number for number, name in enumerate(_KINDS)}


class LinearRealisation(NamedTuple):
    """A contextual environment of one run, ready to play."""

    n_arms: int
    horizon: int
    n_features: int
    joint: bool
    law: Any
    kind: int  # of contexts
    centre: float
    width: float
    base: float
    least: float  # clipped values before `scale`
    most: float
    scale: float
    row: Any  # of the coefficients in each round
    coefficients: Any  # of arm i in row r, intercept first, at (r * n_arms + i) * (n_features + 1); joint: n_arms is 1

    def features(self, t: int, rng: Any, out: Any) -> None:
        kind, n = self.kind, len(out)
        if kind in (UNIFORM, DISC):
            for j in range(n):
                out[j] = 2.0 * rng.uniform(j) - 1.0
        elif kind in (SEGMENT, NEWCOMER):
            segments = n - 1 if kind == NEWCOMER and 2 * t < self.horizon else n
            segment = int(rng.uniform(0) * segments)
            for j in range(n):
                out[j] = 1.0 if j == segment else 0.0
        elif kind == HOUR:
            for j in range(n):
                angle = 2.0 * math.pi * (1 + j // 2) * (t % DAY) / DAY
                out[j] = math.sin(angle) if j % 2 == 0 else math.cos(angle)
        else:
            rng.normals(out)
        if kind == CORRELATED:
            common = rng.normal(0)
            for j in range(n):
                out[j] = math.sqrt(0.9) * common + math.sqrt(0.1) * out[j]
        elif kind == DRIFTING:
            for j in range(n):
                out[j] += 2.0 * math.sin(2.0 * math.pi * (2.0 * t / self.horizon + j / n))
        for j in range(n):
            out[j] = self.centre + self.width * out[j]
        if self.joint:
            self.shorten(out)

    def shorten(self, out: Any) -> None:
        """Divide the features of each arm by their norm, on the disc only where it is above 1."""
        n = self.n_features
        for first in range(0, len(out), n):
            square = 0.0
            for j in range(first, first + n):
                square += out[j] * out[j]
            norm = math.sqrt(square)
            if self.kind == UNIT or norm > 1.0:
                for j in range(first, first + n):
                    out[j] /= norm

    def mean_in(self, t: int, arm: Any, features: Any) -> Any:
        n = self.n_features
        group = self.row[t] if self.joint else self.row[t] * self.n_arms + arm
        at = group * (n + 1)
        first = arm * n if self.joint else 0
        value = self.base + self.coefficients[at]
        for j in range(n):
            value += self.coefficients[at + 1 + j] * features[first + j]
        return self.scale * min(max(value, self.least), self.most)

    def best_in(self, t: int, features: Any) -> Any:
        best = self.mean_in(t, 0, features)
        for arm in range(1, self.n_arms):
            best = max(best, self.mean_in(t, arm, features))
        return best

    def pull_in(self, t: int, arm: Any, features: Any, rng: Any) -> Any:
        return self.law.draw(self.mean_in(t, arm, features), rng)

    def table(self) -> np.ndarray:
        """Coefficients as rows × arms × (intercept and features); one arm in the joint form."""
        return np.reshape(self.coefficients, (-1, 1 if self.joint else self.n_arms, self.n_features + 1))

    @property
    def breakpoints(self) -> np.ndarray:
        """The rounds in which coefficients change, and round 0."""
        return np.flatnonzero(np.diff(self.row, prepend=-1))

    @property
    def variation(self) -> float:
        """The length of the way that the coefficients of all arms together go: B_T or P_T of the theory."""
        steps = np.diff(self.table()[np.asarray(self.row)[self.breakpoints]], axis=0)
        return float(np.sqrt((steps**2).sum(axis=(1, 2))).sum())

    def realise(self, key: int) -> "LinearRealisation":
        return self


_PER_ARM = ("arm", "cell", "trap", "rising")  # changes of disjoint coefficients only
_JOINT = ("rotation", "turns", "turn")
CHANGES = ("all", "coordinate", "spaced", "bursts", "signs", "walk", "season", *_PER_ARM, *_JOINT)


@described(short="linear")
@checked
class Linear(NamedTuple):
    """Rewards with a mean that is linear in the features of a round, with coefficients that change.

    Contexts: "normal", "uniform" on [-1, 1], "segment" (one of `n_features` is 1), "newcomer" (segments, the last of
    which appears at half time), "hour" (harmonics of a day of 96 rounds), "correlated" (0.9 between any two),
    "drifting" (normal around a mean that moves), and features for each arm: "unit" (random unit vectors) and "disc"
    (uniform on [-1, 1], divided by their norm if above 1). All but these two are multiplied by `width` and moved by
    `centre`.

    Changes: "all" coefficients, those of one "arm" or of one "coordinate", or a single one ("cell") are redrawn at
    `changes` random times; "all" after 500 to 999 rounds ("spaced"), or in "bursts" of five changes 100 rounds apart;
    "signs" turn with probability 0.4 after 2/5 of the time; a "walk" (stationary,
    of this `memory`); a "season" of `memory` rounds; "trap" (the last arm, 1 lower than drawn, gains 2 at half time) or
    "rising" (in the course of time). With features for each arm also "rotation" with a period of `memory`, and Russac's
    "turns" and "turn".

    Laws in [0, 1] and `Purchases` are given the value clipped to [0, 1] or, as the share that buys, to [0.005, 0.6]."""

    contexts: str = "normal"
    change: str = "all"
    n_arms: Annotated[int, within(">= 1")] = 5
    n_features: Annotated[int, within(">= 1")] = 4
    horizon: Annotated[int, within("[2, 1e7]")] = 20_000  # the row of each round is kept
    spread: Annotated[float, within(">= 0")] = 0.45  # standard deviation of coefficients; for each arm: a unit vector
    changes: Annotated[int, within(">= 0")] = 10
    memory: Annotated[int, within(">= 1")] = 4000  # rounds
    level: Annotated[float, within(">= 0")] = 0.0  # standard deviation of a level common to all arms
    level_memory: Annotated[int, within(">= 0")] = 0  # rounds; 0: another level every day
    base: Annotated[float, within("any")] = 0.0  # added to every mean
    centre: Annotated[float, within("any")] = 0.0
    width: Annotated[float, within("> 0")] = 1.0
    useless: Annotated[int, within(">= 0")] = 0  # features without a coefficient
    uniform: bool = False  # coefficients are uniform from 0 to `spread`
    law: Any = Gaussian(0.5)

    def validate(self) -> None:
        for name, value, known in (("contexts", self.contexts, CONTEXTS), ("change", self.change, CHANGES)):
            if value not in known:
                raise ValueError(f"{name} is one of {', '.join(known)}; got {value!r:.60}.")
        if self.change in (_PER_ARM if self.joint else _JOINT):
            fitting = ", ".join(name for name in CHANGES if name not in (_PER_ARM if self.joint else _JOINT))
            raise ValueError(f"With {self.contexts} contexts, change is one of {fitting}; got {self.change!r}.")
        if self.joint and self.n_features < 2:
            raise ValueError(f"Linear needs n_features >= 2 with {self.contexts} contexts; got {self.n_features}.")
        if self.useless > self.n_features - self.joint:
            raise ValueError(f"Linear needs fewer useless features; got {self.useless} of {self.n_features}.")
        if self.changes >= self.horizon:
            raise ValueError(f"Linear needs changes < horizon; got {self.changes} changes in {self.horizon} rounds.")

    @property
    def joint(self) -> bool:
        return CONTEXTS.get(self.contexts, NORMAL) >= UNIT

    @property
    def variation(self) -> float:
        return self.realise(0).variation

    def realise(self, key: int) -> LinearRealisation:
        table, row = _coefficients(self, np.random.default_rng(key))
        kind, least, most, scale = CONTEXTS[self.contexts], -math.inf, math.inf, 1.0
        if isinstance(self.law, Purchases):
            least, most, scale = 0.005, 0.6, self.law.spend
        elif getattr(self.law, "pays", "") == "[0, 1]":
            least, most = 0.0, 1.0
        centre, width = (0.0, 1.0) if self.joint else (self.centre, self.width)
        sizes = self.n_arms, self.horizon, self.n_features, self.joint, AnyLaw.of(self.law), kind
        return LinearRealisation(*sizes, centre, width, self.base, least, most, scale, row, table.ravel())


def _coefficients(spec: Linear, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients as rows × arms × (intercept and features), and the row of each round."""
    rounds, rows, change = np.arange(spec.horizon), np.zeros(spec.horizon, np.int64), spec.change
    step = max(1, spec.memory // POINTS)
    if change in ("all", "arm", "coordinate", "cell", "spaced", "bursts"):
        times = np.sort(rng.integers(1, spec.horizon, spec.changes))
        if change == "spaced":
            times = np.cumsum(rng.integers(500, 1000, spec.horizon // 500))
        elif change == "bursts":
            times = np.sort(times[::5, None] + 100 * np.arange(5), axis=None)[: spec.changes]
        rows = np.searchsorted(times, rounds, side="right")
        table = _draw(spec, rng, rows[-1] + 1)
        for at in range(1, len(table)):
            kept = np.ones(table.shape[1:], bool)
            if change == "arm":
                kept[rng.integers(spec.n_arms)] = False
            elif change == "coordinate":
                kept[:, rng.integers(1 + spec.n_features)] = False
            elif change == "cell":
                kept[rng.integers(spec.n_arms), rng.integers(1 + spec.n_features)] = False
            if change in ("arm", "coordinate", "cell"):
                table[at][kept] = table[at - 1][kept]
    elif change in ("walk", "season", "rotation"):
        rows = rounds // step
        first, second = _draw(spec, rng, 2)
        angle = 2.0 * np.pi * step * np.arange(rows[-1] + 1)[:, None, None] / spec.memory
        if change == "season":
            table = (first != 0.0) * spec.spread * np.sin(angle + rng.uniform(0.0, 2.0 * np.pi, first.shape))
        elif change == "rotation":
            second -= (first * second).sum() * first
            table = np.cos(angle) * first + np.sin(angle) * second / np.sqrt((second**2).sum())
        else:
            table = _remember(_draw(spec, rng, rows[-1] + 1), math.exp(-step / spec.memory))
    elif change in ("trap", "rising"):
        rows = rounds * 2 // spec.horizon if change == "trap" else rounds * POINTS // spec.horizon
        table = np.repeat(_draw(spec, rng, 1), rows[-1] + 1, axis=0)
        table[:, -1, 0] += np.linspace(-1.0, 1.0, len(table))
    elif change == "signs":
        rows = (rounds >= spec.horizon * 2 // 5).astype(np.int64)
        table = np.repeat(_draw(spec, rng, 1), 2, axis=0)
        table[1] *= np.where(rng.uniform(size=table[1].shape) < 0.4, -1.0, 1.0)
    else:
        angles = np.array([0.0, np.pi, np.pi / 2.0, -np.pi / 2.0])
        rows = np.minimum(rounds * 6 // spec.horizon, 3)
        if change == "turn":
            angles = np.linspace(0.0, np.pi / 2.0, spec.horizon // 2)
            rows = np.minimum(rounds, len(angles) - 1)
        table = np.zeros((len(angles), 1, spec.n_features + 1))
        table[:, 0, 1], table[:, 0, 2] = np.cos(angles), np.sin(angles)
    if spec.level > 0.0:
        step = max(1, spec.level_memory // POINTS) if spec.level_memory else DAY
        levels = rng.normal(0.0, spec.level, len(rounds[::step]))
        if spec.level_memory:
            levels = _remember(levels, math.exp(-step / spec.level_memory))
        table, rows = table[rows[::step]], rounds // step
        table[:, :, 0] += levels[:, None]
    return table, rows


def _remember(values: np.ndarray, keep: float) -> np.ndarray:
    """A stationary process that keeps this much of its value in each step, from independent values of its law."""
    for at in range(1, len(values)):
        values[at] = keep * values[at - 1] + math.sqrt(1.0 - keep * keep) * values[at]
    return values


def _draw(spec: Linear, rng: np.random.Generator, count: int) -> np.ndarray:
    """Coefficients of all arms, `count` times. Segments and joint features have no intercept."""
    shape = (count, 1 if spec.joint else spec.n_arms, 1 + spec.n_features)
    drawn = rng.uniform(0.0, spec.spread, shape) if spec.uniform else rng.normal(0.0, 1.0, shape)
    if spec.joint or spec.contexts in ("segment", "newcomer"):
        drawn[:, :, 0] = 0.0
    drawn[:, :, 1 + spec.n_features - spec.useless :] = 0.0
    if spec.joint:
        return np.asarray(drawn / np.sqrt((drawn**2).sum(axis=2, keepdims=True)))
    return drawn if spec.uniform else drawn * spec.spread
