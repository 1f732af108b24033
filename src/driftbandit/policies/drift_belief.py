"""What `DriftTS` believes: each arm's chance of being chosen, and the state of the world in words.

The next choice is a draw from a mixture. Given a hypothesis (and, in bank S, a coin for each arm) every arm's score is
a Beta draw, but not below its mean; of equal scores the larger draw wins. So the winner's score either lies above the
largest mean, where scores are Beta draws, or is the largest mean itself; both chances are integrals of products of Beta
distribution functions. They are taken panel by panel between points that are dense wherever some arm's density moves,
by Gauss and Legendre's rule, and with it the distribution functions themselves."""

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from driftbandit.policies.drift_bank import HYPOTHESES, LOSSES, RATES, ROOM, RUN_RECORD, RUNS, TIDES
from driftbandit.policies.drift_draw import HASTE, SURE, take_its_word

NEGLIGIBLE = 1e-5  # hypotheses of less weight than this, all together, are left out; it is part of the error
_HEAVY = 0.05  # hypotheses of this weight tell how exact the integrals are
_FAR = 7.0  # standard deviations from its mean beyond which a law has nothing
_DEVIATIONS = np.arange(-_FAR, _FAR + 0.1, 1.0)
_DENSE = 1.6  # least distance of points, in standard deviations of the narrowest law alive there


class DriftBelief(NamedTuple):
    """A mixture of hypotheses; each knows two Beta laws of every arm and how likely the first is (1 but for bank S)."""

    weights: np.ndarray  # of the hypotheses kept
    a: np.ndarray  # hypotheses × 2 × arms
    b: np.ndarray
    first: np.ndarray  # hypotheses × arms
    left_out: float  # weight of what was not kept

    def chance_of_largest(self, arms: Any) -> tuple[np.ndarray, float]:
        """The probability that each of these arms is chosen if only they may be, and a bound on its error: a coarser
        rule for the heavier hypotheses shows how far the finer one can be off."""
        total, off, compared = np.zeros(len(arms)), np.zeros(len(arms)), 0.0
        for weight, a, b, first in zip(self.weights, self.a, self.b, self.first, strict=True):
            fine = _chances(a[:, arms], b[:, arms], first[arms], 5)
            total += weight * fine
            if weight >= _HEAVY or compared == 0.0:
                off += weight * np.abs(fine - _chances(a[:, arms], b[:, arms], first[arms], 3))
                compared += weight
        return total / total.sum(), float(off.max() / compared) + self.left_out + 1e-12


def _chances(a: np.ndarray, b: np.ndarray, first: np.ndarray, nodes: int) -> np.ndarray:
    """The chances of all arms under one hypothesis."""
    laws = 1 if (first == 1.0).all() else 2
    p = np.stack([first, 1.0 - first])[:laws]  # laws × arms, as everything below
    a, b = a[:laws], b[:laws]
    mean = a / (a + b)
    sd = np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    # Some arm's score is always as high as this, and who cannot reach it does not matter.
    low = np.where(p > 0.0, mean, 1.0).min(axis=0).max()
    chances = np.zeros(len(first))
    able = ((mean + _FAR * sd >= low) & (p > 0.0)).any(axis=0)
    p, a, b, mean, sd = (values[:, able] for values in (p, a, b, mean, sd))
    if able.sum() == 1:
        return np.where(able, 1.0, 0.0)
    ties = len(np.unique(mean[(p > 0.0) & (mean >= low)])) < np.count_nonzero((p > 0.0) & (mean >= low))
    ends = _panel_ends(mean, sd, p > 0.0, 0.0 if ties else low)
    share, density, below, at_ends = _distribution(a, b, ends, nodes)
    above = (ends[:-1] >= mean[..., None])[..., None]  # draws in such a panel are scores
    here = p[..., None, None]
    # Above all means of arms: a score beats all others that lie below it.
    lower = (here * below * above).sum(axis=0)
    winning = (here * density * above).sum(axis=0) * share
    found = (winning * _product_of_others(lower)).sum(axis=(1, 2))
    # At a mean: all other scores are lower, or equal and made from a lower draw.
    for law, arm in zip(*np.nonzero((p > 0.0) & (mean >= low)), strict=True):
        place = int(np.searchsorted(ends, mean[law, arm]))
        less = np.where(mean < mean[law, arm], p * at_ends[..., place], 0.0).sum(axis=0)
        tied = (mean == mean[law, arm]) & (p > 0.0)
        others = np.arange(len(less)) != arm
        if not tied[:, others].any():
            found[arm] += p[law, arm] * at_ends[law, arm, place] * less[others].prod()
        else:
            equal = np.where(tied[..., None, None], here * below[:, :, :place], 0.0).sum(axis=0)
            rivals = (less[:, None, None] + equal)[others].prod(axis=0)
            found[arm] += (p[law, arm] * density[law, arm, :place] * share[:place] * rivals).sum()
    chances[able] = found
    return chances


def _panel_ends(mean: np.ndarray, sd: np.ndarray, used: np.ndarray, low: float) -> np.ndarray:
    """`low`, 1, every mean between them, and points as dense as the narrowest law that is alive there asks for."""
    near = (mean[used][:, None] + sd[used][:, None] * _DEVIATIONS).ravel()
    inside = np.concatenate([near, np.linspace(0.0, 1.0, 9)])
    inside = np.sort(inside[(inside > low) & (inside < 1.0)])
    alive = np.abs(inside[:, None] - mean[used]) <= _FAR * sd[used]
    width = _DENSE * np.where(alive, sd[used], 1.0).min(axis=1)
    kept, last = [low, 1.0], low
    for point, least in zip(inside.tolist(), width.tolist(), strict=True):
        if point - last >= least:
            kept.append(point)
            last = point
    return np.unique(np.concatenate([kept, mean[used & (mean >= low)]]))


def _distribution(a: np.ndarray, b: np.ndarray, ends: np.ndarray, nodes: int) -> Any:
    """Shares of the Gauss-Legendre nodes of every panel; of every law the density at the nodes, and the distribution
    function there and at the ends of panels, which is 1 at the last."""
    unit, unit_share, partial = _rule(nodes)
    half = 0.5 * np.diff(ends)[:, None]
    x = ends[:-1, None] + half * (1.0 + unit)
    share = half * unit_share
    norm = np.array([math.lgamma(p + q) - math.lgamma(p) - math.lgamma(q) for p, q in zip(a.flat, b.flat, strict=True)])
    density = (a - 1.0)[..., None, None] * np.log(x) + (b - 1.0)[..., None, None] * np.log1p(-x)
    density = np.exp(density + norm.reshape(a.shape)[..., None, None])
    parts = (density * share).sum(axis=-1)
    tail = np.concatenate([np.cumsum(parts[..., ::-1], axis=-1)[..., ::-1], np.zeros((*a.shape, 1))], axis=-1)
    below = np.clip((1.0 - tail[..., :-1])[..., None] + half * (density @ partial.T), 0.0, 1.0)
    return share, density, below, np.clip(1.0 - tail, 0.0, 1.0)


@cache
def _rule(nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and shares on [-1, 1], and the matrix that integrates from -1 to each node."""
    x, share = np.polynomial.legendre.leggauss(nodes)
    basis = np.polynomial.legendre.legvander(x, nodes)
    integrals = np.column_stack(
        [x + 1.0] + [(basis[:, k + 1] - basis[:, k - 1]) / (2 * k + 1) for k in range(1, nodes)]
    )
    return x, share, integrals @ np.linalg.inv(basis[:, :nodes])


def _product_of_others(values: np.ndarray) -> np.ndarray:
    """For every arm the product over all others, by prefix and suffix: no division by 0."""
    before, after = np.ones_like(values), np.ones_like(values)
    for i in range(1, len(values)):
        before[i] = before[i - 1] * values[i - 1]
        after[-1 - i] = after[-i] * values[-i]
    return np.asarray(before * after)


class _Coin(NamedTuple):
    """All coins of a round on one side."""

    side: float

    def uniform(self, slot: int) -> float:
        return self.side


def rounds_of(state: Any) -> int:
    """The rewards learnt: every one is a win, a loss or a part of each."""
    return round(float(sum(state.known.wins) + sum(state.known.losses)))


def mixture(
    state: Any, sure: float = SURE, haste: float = HASTE, negligible: float = NEGLIGIBLE
) -> tuple[np.ndarray, DriftBelief]:
    """The hypotheses worth keeping, likeliest first, by their positions, and what they say of the arms: in the policy's
    own words, which writes into the scratch of the state. With `sure` 1 and `haste` 0, what they know, not what a
    choice makes of it."""
    weights, t, n_arms = np.array(state.known.world[:HYPOTHESES]), rounds_of(state), len(state.known.wins)
    weights /= weights.sum()
    order = np.argsort(-weights, kind="stable")
    kept = order[: int(np.searchsorted(np.cumsum(weights[order]), 1.0 - negligible)) + 1]
    a, b, first = [], [], []
    for hypothesis in kept.tolist():
        sides = []
        for side in (-1.0, 1.0):
            take_its_word(state, t, _Coin(side), hypothesis, sure, haste)
            sides.append((list(state.a), list(state.b)))
        split = ROOM <= hypothesis < RUNS
        a.append([side[0] for side in sides])
        b.append([side[1] for side in sides])
        first.append([state.known.changed[k * ROOM + hypothesis - ROOM] if split else 1.0 for k in range(n_arms)])
    return kept, DriftBelief(
        weights[kept] / weights[kept].sum(), np.array(a), np.array(b), np.array(first), float(1.0 - weights[kept].sum())
    )


STILL, ALL_JUMPED, SOME_JUMPED, DRIFTS, HAS_TIDES = range(5)  # what a hypothesis says of the world
_BEGINNING = 64  # a change before this round is not told from none: hardly anything was known to change
_VISIBLE = 0.05  # a movement of the means, in standard deviations, that counts as one


def births_of(state: Any) -> np.ndarray:
    """The rounds in which the runs of both banks were born: the pulls of all arms that they remember."""
    runs = np.array(state.known.runs).reshape(-1, RUN_RECORD)
    return np.tile((runs[:, :ROOM] + runs[:, LOSSES : LOSSES + ROOM]).sum(axis=0).round(), 2)


def kinds_of(state: Any) -> np.ndarray:
    """What each hypothesis says of the world.

    Most of the weight in a world at rest is on drifters and tides so slow that they predict the same as rest does, and
    no reward can decide between them. So a mover says that the world stands still if in all rounds so far it would
    have moved a mean by less than _VISIBLE: by sqrt(q t) standard deviations of a reward, of which none has more than
    1/2. A run does if it was born at the beginning."""
    early = births_of(state) < _BEGINNING
    runs = np.where(early, STILL, np.repeat([ALL_JUMPED, SOME_JUMPED], ROOM))
    moved = 0.5 * np.sqrt(np.array(state.known.rates) * rounds_of(state))
    movers = [np.where(moved < _VISIBLE, STILL, kind) for kind in (DRIFTS, HAS_TIDES)]
    return np.concatenate([runs, *movers])


class Expected(NamedTuple):
    """What is expected from an arm."""

    mean: float
    sd: float  # how uncertain that is, all hypotheses together


class Explanation(NamedTuple):
    """What `DriftTS` believes about the world, printable. Probabilities add up to 1."""

    still: float  # nothing has changed since the first rounds, or too little to see
    jumps: float  # something has changed at once, all arms or some
    drifts: float  # arms wander visibly, each for itself
    tides: float  # arms wander visibly, but together: who is best stays so
    last_change: int | None  # rounds since the last jump, the likeliest middle; None if rest is likelier than a jump
    memory: int  # rounds that what it knows goes back, the median
    arms: dict[Any, Expected]

    def __str__(self) -> str:
        kinds = {
            "stands still": self.still,
            "jumps": self.jumps,
            "drifts": self.drifts,
            "has tides": self.tides,
        }
        told = ", ".join(f"{name} {chance:.0%}" for name, chance in kinds.items())
        last = (
            "no change to be seen" if self.last_change is None else f"last change about {self.last_change} rounds ago"
        )
        arms = [f"  {arm}: {mean:.3f} ± {sd:.3f}" for arm, (mean, sd) in self.arms.items()]
        return "\n".join([f"The world {told}.", f"{last}; memory about {self.memory} rounds.".capitalize(), *arms])


def explained(state: Any, names: Iterable[Any]) -> Explanation:
    """What the policy believes."""
    kept, belief = mixture(state, sure=1.0, haste=0.0)
    t, weights, kinds = rounds_of(state), belief.weights, kinds_of(state)[kept]
    born = np.concatenate([births_of(state), np.zeros(2 * RATES)])[kept]
    still, drifts, tides = (float(weights[kinds == kind].sum()) for kind in (STILL, DRIFTS, HAS_TIDES))
    jumped = (kinds == ALL_JUMPED) | (kinds == SOME_JUMPED)
    jumps = float(weights[jumped].sum())
    lasting = np.full(HYPOTHESES, float(t))  # a drifter's pulls settle near 1 / sqrt(q) if it is played all the time
    lasting[RUNS:TIDES] = np.minimum(t, np.array(state.known.rates) ** -0.5)
    reach = np.where(kept < RUNS, t - born, lasting[kept])
    mean = belief.a / (belief.a + belief.b)
    variance = mean * (1.0 - mean) / (belief.a + belief.b + 1.0)
    parts = weights[:, None, None] * np.stack([belief.first, 1.0 - belief.first], axis=1)
    middle = (parts * mean).sum(axis=(0, 1))
    spread = np.sqrt((parts * (variance + (mean - middle) ** 2)).sum(axis=(0, 1)))
    last = None if jumps <= still or t == 0 else int(_median((t - born)[jumped], weights[jumped]))
    arms = {name: Expected(float(m), float(s)) for name, m, s in zip(names, middle, spread, strict=True)}
    return Explanation(still, jumps, drifts, tides, last, int(_median(reach, weights)), arms)


def _median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    mass = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(mass, 0.5 * mass[-1])])
