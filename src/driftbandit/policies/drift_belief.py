"""What `DriftTS` believes: each arm's chance of being chosen, and the state of the world in words.

The next choice is a draw from a mixture of hypotheses, under each of which `drift_belief_chances` integrates."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.checks import counted
from driftbandit.policies.drift_bank import HYPOTHESES, LOSSES, RATES, ROOM, RUN_RECORD, RUNS, TIDES
from driftbandit.policies.drift_belief_chances import chances_under
from driftbandit.policies.drift_draw import HASTE, SURE, take_its_word

NEGLIGIBLE = 1e-5  # hypotheses of less weight than this, all together, are left out; it is part of the error
_LIGHT = 0.01  # hypotheses of less weight are integrated less finely


class DriftBelief(NamedTuple):
    """A mixture of hypotheses; each knows two Beta laws of every arm and how likely the first is (1 but for bank S)."""

    weights: np.ndarray  # of the hypotheses kept
    a: np.ndarray  # hypotheses × 2 × arms
    b: np.ndarray
    first: np.ndarray  # hypotheses × arms
    left_out: float  # weight of what was not kept

    def chance_of_largest(self, arms: Any) -> tuple[np.ndarray, float]:
        """The probability that each of these arms is chosen if only they may be, and a bound on its error: a coarser
        rule shows how far the finer one can be off."""
        return self.together([self], [arms])[0]

    @staticmethod
    def together(beliefs: "list[DriftBelief]", arms: list[Any]) -> list[tuple[np.ndarray, float]]:
        """The same for many beliefs, each with as many arms of its own: quicker than one after the other.

        Hypotheses come likeliest first. The light ones are left to the coarser rule; that it is off by as much for them
        as for the worst of the others is part of the error."""
        finely = [max(1, int((one.weights >= _LIGHT).sum())) for one in beliefs]
        pairs = list(zip(beliefs, arms, strict=True))
        a = np.concatenate([one.a[:, :, some] for one, some in pairs])
        b = np.concatenate([one.b[:, :, some] for one, some in pairs])
        first = np.concatenate([one.first[:, some] for one, some in pairs])
        starts = np.cumsum([0, *(len(one.weights) for one in beliefs)])
        rows = np.concatenate([start + np.arange(some) for start, some in zip(starts[:-1], finely, strict=True)])
        coarse, fine = chances_under(a, b, first, 3), np.full_like(first, np.nan)
        fine[rows] = chances_under(a[rows], b[rows], first[rows], 5)
        out = []
        for one, start, exact in zip(beliefs, starts, finely, strict=False):
            w, f, c = one.weights, fine[start : start + exact], coarse[start : start + len(one.weights)]
            off = np.abs(f - c[:exact])
            error = float((w[:exact] @ off).max() + w[exact:].sum() * off.max())
            total = w[:exact] @ f + w[exact:] @ c[exact:]
            out.append((total / total.sum(), error + one.left_out + 1e-12))
        return out


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
        split = ROOM <= hypothesis < RUNS
        sides = []
        for side in (-1.0, 1.0) if split else (-1.0,):
            take_its_word(state, t, _Coin(side), hypothesis, sure, haste)
            sides.append((list(state.a), list(state.b)))
        sides = sides if split else 2 * sides
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
    learnt: int  # rewards so far

    def in_rewards(self, low: float, high: float, names: Iterable[Any]) -> "Explanation":
        """The same of these arms, for rewards between `low` and `high` instead of 0 and 1."""
        width = high - low
        return self._replace(
            arms={name: Expected(low + width * self.arms[name].mean, width * self.arms[name].sd) for name in names}
        )

    def __str__(self) -> str:
        if self.learnt == 0:
            return "Nothing is learnt yet: the first reward is still to come."
        kinds = {
            "stands still": self.still,
            "jumps": self.jumps,
            "drifts": self.drifts,
            "has tides": self.tides,
        }
        told = ", ".join(f"{name} {chance:.0%}" for name, chance in kinds.items())
        last = (
            "no change to be seen"
            if self.last_change is None
            else f"last change about {counted(self.last_change, 'round')} ago"
        )
        arms = [f"  {arm}: {mean:.3f} ± {sd:.3f}" for arm, (mean, sd) in self.arms.items()]
        return "\n".join(
            [f"The world {told}.", f"{last}; memory about {counted(self.memory, 'round')}.".capitalize(), *arms]
        )


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
    return Explanation(still, jumps, drifts, tides, last, int(_median(reach, weights)), arms, t)


def _median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values)
    mass = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(mass, 0.5 * mass[-1])])
