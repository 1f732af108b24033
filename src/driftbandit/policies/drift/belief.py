"""What `DriftTS` believes: the probability that it chooses each arm, and a description of the environment.

The next choice is a draw from a mixture of hypotheses; `arm_probabilities` integrates under each of them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.checks import counted
from driftbandit.policies.drift.arm_probabilities import integrate_hypotheses
from driftbandit.policies.drift.draw import HASTE, SURE, write_posteriors
from driftbandit.policies.drift.hypotheses import COMMON, HYPOTHESES, LOSSES, PLACES, RATES, RUN_RECORD, RUNS

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
