"""What `DriftTS` believes: the probability that it chooses each arm, and a description of the environment.

The next choice is a draw from a mixture of hypotheses. Given one (and, in bank S, which arms changed) every arm's score
is a Beta draw, but not below its mean; of equal scores the larger draw wins. So the winner's score either lies above
the largest mean, where scores are Beta draws, or is the largest mean itself. Both probabilities are integrals of
products of Beta distribution functions. They are computed panel by panel between points that are dense wherever some
arm's density moves, by Gauss-Legendre quadrature, and so are the distribution functions themselves."""

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.checks import counted
from driftbandit.policies.drift.hypotheses import (
    COMMON,
    HASTE,
    HYPOTHESES,
    LOSSES,
    PLACES,
    RATES,
    RUN_RECORD,
    RUNS,
    SURE,
    write_posteriors,
)

NEGLIGIBLE = 1e-5  # hypotheses of less weight than this, all together, are left out; it is part of the error
_LIGHT = 0.01  # hypotheses of less weight are integrated less finely


class DriftBelief(NamedTuple):
    """A mixture of hypotheses, each with two Beta laws of every arm and the probability of the first (1 except in bank
    S)."""

    weights: np.ndarray  # of the hypotheses kept
    a: np.ndarray  # hypotheses × 2 × arms
    b: np.ndarray
    first: np.ndarray  # hypotheses × arms
    left_out: float  # weight of the hypotheses left out

    def largest_probabilities(self, arms: Any) -> tuple[np.ndarray, float]:
        """The probability that each of these arms is chosen if only they are allowed, and a bound on its error, from a
        coarser rule."""
        return self.together([self], [arms])[0]

    @staticmethod
    def together(beliefs: "list[DriftBelief]", arms: list[Any]) -> list[tuple[np.ndarray, float]]:
        """The same for many beliefs, each with as many arms: quicker than one after the other.

        Hypotheses come heaviest first. The light ones are left to the coarser rule; the error assumes that it is off by
        as much for them as for the worst of the others."""
        finely = [max(1, int((one.weights >= _LIGHT).sum())) for one in beliefs]
        pairs = list(zip(beliefs, arms, strict=True))
        a = np.concatenate([one.a[:, :, some] for one, some in pairs])
        b = np.concatenate([one.b[:, :, some] for one, some in pairs])
        first = np.concatenate([one.first[:, some] for one, some in pairs])
        starts = np.cumsum([0, *(len(one.weights) for one in beliefs)])
        rows = np.concatenate([start + np.arange(some) for start, some in zip(starts[:-1], finely, strict=True)])
        coarse, fine = integrate_hypotheses(a, b, first, 3), np.full_like(first, np.nan)
        fine[rows] = integrate_hypotheses(a[rows], b[rows], first[rows], 5)
        out = []
        for one, start, exact in zip(beliefs, starts, finely, strict=False):
            w, f, c = one.weights, fine[start : start + exact], coarse[start : start + len(one.weights)]
            off = np.abs(f - c[:exact])
            error = float((w[:exact] @ off).max() + w[exact:].sum() * off.max())
            total = w[:exact] @ f + w[exact:] @ c[exact:]
            out.append((total / total.sum(), error + one.left_out + 1e-12))
        return out


class _Fixed(NamedTuple):
    """Random numbers that are all the same."""

    value: float

    def uniform(self, slot: int) -> float:
        return self.value


def count_rewards(state: Any) -> int:
    """How many rewards were learned: wins and losses add up to it."""
    return round(float(sum(state.known.wins) + sum(state.known.losses)))


def mix_hypotheses(
    state: Any, sure: float = SURE, haste: float = HASTE, negligible: float = NEGLIGIBLE
) -> tuple[np.ndarray, DriftBelief]:
    """The positions of the hypotheses worth keeping, heaviest first, and their posteriors of the arms, as the policy
    itself writes them into the scratch of the state. With `sure` 1 and `haste` 0 these are the posteriors as such, not
    sharpened for a choice."""
    weights, t, n_arms = np.array(state.known.shared[:HYPOTHESES]), count_rewards(state), len(state.known.wins)
    weights /= weights.sum()
    order = np.argsort(-weights, kind="stable")
    kept = order[: int(np.searchsorted(np.cumsum(weights[order]), 1.0 - negligible)) + 1]
    a, b, first = [], [], []
    for hypothesis in kept.tolist():
        split = PLACES <= hypothesis < RUNS
        sides = []
        for side in (-1.0, 1.0) if split else (-1.0,):
            write_posteriors(state, t, _Fixed(side), hypothesis, sure, haste)
            sides.append((list(state.a), list(state.b)))
        sides = sides if split else 2 * sides
        a.append([side[0] for side in sides])
        b.append([side[1] for side in sides])
        first.append([state.known.changed[k * PLACES + hypothesis - PLACES] if split else 1.0 for k in range(n_arms)])
    return kept, DriftBelief(
        weights[kept] / weights[kept].sum(), np.array(a), np.array(b), np.array(first), float(1.0 - weights[kept].sum())
    )


STATIONARY, ALL_JUMPED, SOME_JUMPED, DRIFTS, DRIFTS_TOGETHER = range(5)  # kinds of hypotheses
BEGINNING = 64  # a change before this round is not distinguished from none: hardly anything was known to change
VISIBLE = 0.05  # a movement of the means, in standard deviations, that counts as one


def starts_of(state: Any) -> np.ndarray:
    """The rounds in which the runs of both banks started: the pulls of all arms that they remember."""
    runs = np.maximum(0.0, state.known.runs).reshape(-1, RUN_RECORD)  # less than 0 is known of an arm with a past
    return np.tile((runs[:, :PLACES] + runs[:, LOSSES : LOSSES + PLACES]).sum(axis=0).round(), 2)


def classify_hypotheses(state: Any) -> np.ndarray:
    """The kind of each hypothesis.

    In a stationary environment most of the weight is on drifts so slow that they predict the same as a stationary
    hypothesis does, and no reward can decide between them. So a drift counts as stationary if in all rounds so far it
    would have moved a mean by less than VISIBLE: by sqrt(q t) standard deviations of a reward, each at most 1/2. A run
    does if it started at the beginning."""
    early = starts_of(state) < BEGINNING
    runs = np.where(early, STATIONARY, np.repeat([ALL_JUMPED, SOME_JUMPED], PLACES))
    moved = 0.5 * np.sqrt(np.array(state.known.rates) * count_rewards(state))
    drifts = [np.where(moved < VISIBLE, STATIONARY, kind) for kind in (DRIFTS, DRIFTS_TOGETHER)]
    return np.concatenate([runs, *drifts])


class Expected(NamedTuple):
    """The expected reward of an arm."""

    mean: float
    sd: float  # how uncertain that is, all hypotheses together


class Explanation(NamedTuple):
    """What `DriftTS` believes about the environment, printable. Probabilities add up to 1."""

    stationary: float  # stationary: nothing has changed since the first rounds, or too little to see
    jumps: float  # something has changed at once, all arms or some
    drifts: float  # arms drift visibly, each independently
    common_drift: float  # arms drift visibly, but together: the best arm stays the best
    last_change: int | None  # rounds since the last jump, the median; None if stationary is likelier than a jump
    memory: int  # rounds that its evidence goes back, the median
    arms: dict[Any, Expected]
    learned: int  # rewards so far

    def in_rewards(self, low: float, high: float, names: Iterable[Any]) -> "Explanation":
        """The same of these arms, for rewards of `low` and `high` in the place of 0 and 1. Where smaller rewards are
        better, `low` is the larger."""
        width = high - low
        return self._replace(
            arms={name: Expected(low + width * self.arms[name].mean, abs(width) * self.arms[name].sd) for name in names}
        )

    def __str__(self) -> str:
        if self.learned == 0:
            return "Nothing learned yet: no reward has been reported."
        last = (
            "No change visible"
            if self.last_change is None
            else f"Last change about {counted(self.last_change, 'round')} ago"
        )
        arms = [f"  {arm}: {mean:.3f} ± {sd:.3f}" for arm, (mean, sd) in self.arms.items()]
        return "\n".join(
            [
                f"The environment is stationary {self.stationary:.0%}, jumps {self.jumps:.0%}, "
                f"drifts {self.drifts:.0%}, has common drift {self.common_drift:.0%}.",
                f"{last}; memory about {counted(self.memory, 'round')}.",
                *arms,
            ]
        )


def explain_belief(state: Any, names: Iterable[Any]) -> Explanation:
    """What the policy believes in this state."""
    kept, belief = mix_hypotheses(state, sure=1.0, haste=0.0)
    t, weights, kinds = count_rewards(state), belief.weights, classify_hypotheses(state)[kept]
    start = np.concatenate([starts_of(state), np.zeros(2 * RATES)])[kept]
    lasting = np.full(HYPOTHESES, float(t))  # the pulls of a drifting arm that is always played settle near 1 / sqrt(q)
    lasting[RUNS:COMMON] = np.minimum(t, np.array(state.known.rates) ** -0.5)
    reach = np.where(kept < RUNS, t - start, lasting[kept])
    mean = belief.a / (belief.a + belief.b)
    variance = mean * (1.0 - mean) / (belief.a + belief.b + 1.0)
    parts = weights[:, None, None] * np.stack([belief.first, 1.0 - belief.first], axis=1)
    middle = (parts * mean).sum(axis=(0, 1))
    spread = np.sqrt((parts * (variance + (mean - middle) ** 2)).sum(axis=(0, 1)))
    arms = {name: Expected(float(m), float(s)) for name, m, s in zip(names, middle, spread, strict=True)}
    return summarise(weights, kinds, start, reach, t, arms)


def summarise(
    weights: np.ndarray, kinds: np.ndarray, start: np.ndarray, reach: np.ndarray, t: int, arms: dict[Any, Expected]
) -> Explanation:
    """The explanation by hypotheses of these weights and kinds, which start in these rounds and whose evidence reaches
    back so far."""
    shares = [float(weights[kinds == kind].sum()) for kind in (STATIONARY, DRIFTS, DRIFTS_TOGETHER)]
    stationary, drifts, together = shares
    jumped = (kinds == ALL_JUMPED) | (kinds == SOME_JUMPED)
    jumps = float(weights[jumped].sum())
    last = None if jumps <= stationary or t == 0 else int(_median((t - start)[jumped], weights[jumped]))
    return Explanation(stationary, jumps, drifts, together, last, int(_median(reach, weights)), arms, t)


def _median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    mass = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(mass, 0.5 * mass[-1])])


_FAR = 7.0  # standard deviations from its mean beyond which a law has no mass
_DENSE = 1.6  # distance of points, in standard deviations of the narrowest law alive there
_ELEMENTS = 50_000  # numbers in an array at a time


def integrate_hypotheses(a: np.ndarray, b: np.ndarray, first: np.ndarray, nodes: int) -> np.ndarray:
    """The probabilities of all arms under each hypothesis (hypotheses × arms)."""
    out = np.empty_like(first)
    single = (first == 1.0).all(axis=1)
    for rows, laws in ((np.flatnonzero(single), 1), (np.flatnonzero(~single), 2)):
        if len(rows) == 0:
            continue
        p = np.stack([first[rows], 1.0 - first[rows]], axis=1)[:, :laws]
        out[rows] = _integrate_laws(p, a[rows, :laws], b[rows, :laws], nodes)
    return out


def _integrate_laws(p: np.ndarray, a: np.ndarray, b: np.ndarray, nodes: int) -> np.ndarray:
    """The same for hypotheses with equally many laws per arm; arrays are hypotheses × laws × arms."""
    mean = a / (a + b)
    sd = np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    used = p > 0.0
    # Some arm's score is always as high as this, and an arm that cannot reach it does not matter.
    low = np.where(used, mean, 1.0).min(axis=1).max(axis=1)
    able = ((mean + _FAR * sd >= low[:, None, None]) & used).any(axis=1)
    reaching = np.sort(np.where(used & (mean >= low[:, None, None]), mean, np.nan).reshape(len(p), -1), axis=1)
    tied = np.where(np.diff(reaching, axis=1) == 0.0, reaching[:, 1:], np.nan)  # means that several laws have
    begins = np.where(np.isnan(tied).all(axis=1), low, 0.0)  # of equal scores the larger draw wins, however low
    block = max(1, 40 * _ELEMENTS // (2 * p[0].size ** 2))
    parts = [slice(start, start + block) for start in range(0, len(p), block)]
    parted = [_panels(p[part], mean[part], sd[part], begins[part]) for part in parts]
    panels = [np.concatenate(some) for some in zip(*parted, strict=True)]
    many = 4.0 * np.ceil(0.25 * panels[2][:, -1] - 1e-9)
    out = np.zeros((len(p), p.shape[2]))
    for count in np.unique(many).tolist():  # those that ask for about as many panels go together
        whole = np.flatnonzero(many == count)
        size = max(1, int(_ELEMENTS / (p[0].size * nodes * (count + 2.0))))
        for start in range(0, len(whole), size):
            rows = whole[start : start + size]
            arms = np.flatnonzero(able[rows].any(axis=0))
            likely, wins, losses, means = (values[rows][:, :, arms] for values in (p, a, b, mean))
            ends = _panel_ends(likely, means, begins[rows], [values[rows] for values in panels], int(count))
            found = _integrate_block(likely, wins, losses, means, low[rows], tied[rows], ends, nodes)
            out[np.ix_(rows, arms)] = found
    return out


def _integrate_block(
    p: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    tied: np.ndarray,
    ends: np.ndarray,
    nodes: int,
) -> np.ndarray:
    """The same, given the ends of panels and the means (hypotheses × some, NaN for none) that several laws have."""
    count, laws, arms = p.shape
    share, density, below, at_ends = _distribution(a, b, ends, nodes)
    # Above all means of arms: a score beats all others that lie below it.
    if laws == 1 and np.isnan(tied).all():
        lower, winning = below[:, 0], density[:, 0] * share[:, None]
    else:
        above = np.where(ends[:, None, None, :-1] >= mean[..., None], p[..., None], 0.0)[..., None]  # draws are scores
        lower, winning = (above * below).sum(axis=1), (above * density).sum(axis=1) * share[:, None]
    found = (winning * _product_of_others(lower)).sum(axis=(2, 3))
    # At a mean: all other scores are lower. Rows i are the laws whose mean it is, columns j those that must be lower.
    means, weights = mean.reshape(count, -1), p.reshape(count, -1)
    place = (ends[:, None, :] < means[..., None]).sum(axis=-1)
    there = np.take_along_axis(at_ends.reshape(count, laws * arms, -1), place[:, None, :], axis=2)  # j × i
    less = np.where(means[:, :, None] < means[:, None, :], weights[:, :, None] * there, 0.0)
    others = less.reshape(count, laws, arms, laws * arms).sum(axis=1)
    others[:, np.arange(laws * arms) % arms, np.arange(laws * arms)] = 1.0
    own = np.diagonal(there, axis1=1, axis2=2)
    alone = (weights > 0.0) & (means >= low[:, None]) & (means[..., None] != tied[:, None]).all(axis=-1)
    atoms = np.where(alone, weights * own * others.prod(axis=1), 0.0)
    found += atoms.reshape(count, laws, arms).sum(axis=1)
    # At a mean that several have: all other scores are lower, or equal and made from a lower draw.
    for row in np.flatnonzero(~np.isnan(tied).all(axis=1)).tolist():
        for value in np.unique(tied[row][~np.isnan(tied[row])]).tolist():
            upto = int(np.searchsorted(ends[row], value))
            equal = np.where(mean[row] == value, p[row], 0.0)[..., None, None]
            drawn, rivals = ((equal * of[row, :, :, :upto]).sum(axis=0) for of in (density, below))
            rivals += np.where(mean[row] < value, p[row] * at_ends[row, :, :, upto], 0.0).sum(axis=0)[:, None, None]
            found[row] += (drawn * share[row, :upto] * _product_of_others(rivals[None])[0]).sum(axis=(1, 2))
    return np.asarray(found)


def _panel_ends(
    p: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    found: list[np.ndarray],
    many: int,
) -> np.ndarray:
    """The ends of so many panels for each hypothesis, from `low` to 1 and with one at every mean, by `_panels`."""
    count, used, ends = len(p), (p > 0.0).reshape(len(p), -1), low[:, None]
    means, (steps, width, panels) = mean.reshape(count, -1), found
    wanted = panels[:, -1:] * (np.arange(1, many) / many)
    step = np.clip((panels[:, None, :] <= wanted[..., None]).sum(axis=-1) - 1, 0, width.shape[1] - 1)
    begin, passed, wide = (np.take_along_axis(of, step, 1) for of in (steps, panels, width))
    inside = np.clip(begin + (wanted - passed) * wide, ends, 1.0)
    further = np.sort(np.where(used & (means > ends), means, 0.0), axis=1)[:, ::-1]
    further = further[:, : int(np.count_nonzero(further, axis=1).max())]
    further = np.where(further > 0.0, further, inside[:, :1])  # where there are fewer, a panel of no width
    return np.sort(np.concatenate([ends, inside, further, np.ones((count, 1))], axis=1), axis=1)


def _panels(p: np.ndarray, mean: np.ndarray, sd: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where laws begin and cease to be alive. How wide panels may be in between, which is _DENSE standard deviations of
    the narrowest law alive and at most an eighth; and how many panels that makes up to each such place."""
    count, used, ends = len(p), (p > 0.0).reshape(len(p), -1), low[:, None]
    means, sds = mean.reshape(count, -1), sd.reshape(count, -1)
    steps = np.concatenate([means - _FAR * sds, means + _FAR * sds, np.ones((count, 1))], axis=1)
    steps = np.concatenate([ends, np.sort(np.clip(steps, ends, 1.0), axis=1)], axis=1)
    middle, length = 0.5 * (steps[:, 1:] + steps[:, :-1]), np.diff(steps, axis=1)
    alive = used[:, None] & (np.abs(middle[..., None] - means[:, None]) <= _FAR * sds[:, None])
    width = np.minimum(_DENSE * np.where(alive, sds[:, None], 1.0).min(axis=2), 0.125)
    return steps, width, np.concatenate([np.zeros((count, 1)), np.cumsum(length / width, axis=1)], axis=1)


def _distribution(a: np.ndarray, b: np.ndarray, ends: np.ndarray, nodes: int) -> Any:
    """Shares of the Gauss-Legendre nodes of every panel (hypotheses × panels × nodes); of every law (hypotheses × laws
    × arms) the density at the nodes, and the distribution function there and at the ends of panels, which is 1 at the
    last."""
    unit, unit_share, partial = _rule(nodes)
    half = 0.5 * np.diff(ends)[..., None]
    x = ends[:, :-1, None] + half * (1.0 + unit)
    share = half * unit_share
    norm = _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    wide, narrow = (slice(None), None, None), (..., None, None)
    density = (a - 1.0)[narrow] * np.log(x)[wide] + (b - 1.0)[narrow] * np.log1p(-x)[wide]
    density = np.exp(density + norm[narrow])
    parts = (density * share[wide]).sum(axis=-1)
    tail = np.concatenate([np.cumsum(parts[..., ::-1], axis=-1)[..., ::-1], np.zeros((*a.shape, 1))], axis=-1)
    within = (density.reshape(-1, nodes) @ partial.T).reshape(density.shape)
    below = np.clip((1.0 - tail[..., :-1])[..., None] + half[wide] * within, 0.0, 1.0)
    return share, density, below, np.clip(1.0 - tail, 0.0, 1.0)


def _log_gamma(x: np.ndarray) -> np.ndarray:
    """The logarithm of the gamma function for numbers above 0, by Stirling's series eight places further on; within
    1e-13 of `math.lgamma`, or that part of it."""
    product, y = x.copy(), x + 8.0
    for step in range(1, 8):
        product *= x + step
    s = 1.0 / (y * y)
    rest = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))) / y
    return np.asarray((y - 0.5) * np.log(y) - y + 0.5 * math.log(2.0 * math.pi) + rest - np.log(product))


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
    """For every arm (axis 1) the product over all others, by prefix and suffix: no division by 0."""
    before, after = np.ones_like(values), np.ones_like(values)
    np.cumprod(values[:, :-1], axis=1, out=before[:, 1:])
    np.cumprod(values[:, :0:-1], axis=1, out=after[:, -2::-1])
    return np.asarray(before * after)
