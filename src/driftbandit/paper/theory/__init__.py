"""The paper's analysis: the facts about an environment that the theorems need, and their bounds.

Means are read in blocks of rows, so a realised environment of ten million rounds needs no table of T x K numbers."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.core.protocols import Environment, Realisation
from driftbandit.lab.summaries import Contents, Report, ShownTable
from driftbandit.paper.theory import theorem

Table = NDArray[np.float64]
BLOCK_NUMBERS = 1 << 18  # means held at a time: 2 MB


class Diagnosis(NamedTuple):
    """Facts about one realised environment."""

    horizon: int  # T
    n_arms: int  # K
    phases: int  # B_T: runs of equal rows of means, the first included
    switches: int  # rounds after which the best arm (lowest index if tied) is another
    crossings: int  # P: rounds after which some pair of arms has changed order strictly
    gap: float  # Delta_T: smallest distance of a sub-optimal arm to the best; 0 if the best arm is ever tied
    drift: float  # sigma: largest change of a mean in one round
    mu_max: float
    uniform_regret: float  # regret of choosing arms uniformly

    @property
    def suboptimal_arms(self) -> int:
        """Arms that are sub-optimal at some time: K once the best arm changes, else K - 1."""
        return self.n_arms if self.switches else self.n_arms - 1


def blocks(environment: Realisation, overlap: bool = False) -> Iterator[tuple[int, Table]]:
    """(first row, rows) over the whole horizon; with `overlap`, blocks begin with the last row of the one before."""
    size = max(1, BLOCK_NUMBERS // environment.n_arms)
    for start in range(0, environment.horizon, size):
        first = start - 1 if overlap and start else start
        yield first, np.asarray(environment.means(first, min(start + size, environment.horizon)), dtype=np.float64)


def _find_crossings(before: Table, after: Table) -> NDArray[np.bool_]:
    """For each row: is there a pair with before_i < before_j and after_i > after_j?

    With each row sorted by (before, after), such a pair exists exactly if `after` falls between two neighbours."""
    order = np.lexsort((after, before), axis=-1)
    return np.asarray((np.diff(np.take_along_axis(after, order, axis=-1), axis=-1) < 0.0).any(axis=-1))


def diagnose(environment: Realisation) -> Diagnosis:
    """Read the means of a realised environment once."""
    if environment.n_arms < 2:
        raise ValueError(f"The theorems need 2 arms or more; got {environment.n_arms}.")
    phases, switches, crossings = 1, 0, 0
    gap, drift, mu_max = math.inf, 0.0, -math.inf
    uniform = []
    for number, (_, rows) in enumerate(blocks(environment, overlap=True)):
        new = rows[1:] if number else rows  # the first row of a later block was counted in the one before
        top = np.partition(new, -2, axis=1)[:, -2:]
        gap = min(gap, float((top[:, 1] - top[:, 0]).min()))
        mu_max = max(mu_max, float(new.max()))
        uniform.append(float((top[:, 1] - new.mean(axis=1)).sum()))
        if len(rows) > 1:
            steps = np.abs(np.diff(rows, axis=0)).max(axis=1)
            moved = np.flatnonzero(steps)
            phases += len(moved)
            drift = max(drift, float(steps.max()))
            before, after = rows[moved], rows[moved + 1]
            switches += int((before.argmax(axis=1) != after.argmax(axis=1)).sum())
            crossings += int(_find_crossings(before, after).sum())
    sizes = environment.horizon, environment.n_arms
    return Diagnosis(*sizes, phases, switches, crossings, gap, drift, mu_max, math.fsum(uniform))


def separations(environment: Realisation) -> Table:
    """For each round the distance of the two closest arms."""
    return np.concatenate([np.diff(np.sort(rows, axis=1), axis=1).min(axis=1) for _, rows in blocks(environment)])


def close_rounds(distances: Table, gap: float) -> int:
    """|H(gap, T)|: rounds in which two arms are closer than `gap` (strictly)."""
    return int((distances < gap).sum())


def pseudo_stationary(starts: list[int], horizon: int, eps: float) -> list[tuple[int, int]]:
    """The rounds that Theorem 1 does not give up, as half-open ranges of rows.

    A row belongs to them once D(gamma) rounds of its phase have passed, itself included. `starts` are the first rows
    of the phases. The first phase waits too, because the paper counts round 1 as a change."""
    wait = max(math.ceil(theorem.D(eps)) - 1, 0)
    return [(start + wait, end) for start, end in itertools.pairwise([*starts, horizon]) if start + wait < end]


# ---- bounds ----------------------------------------------------------------------------------------------------------

Quantity = tuple[str, str, str]  # letter in the paper, value, meaning


@dataclass(frozen=True, repr=False)
class Analysis(Report):
    """The quantities of one environment, and the bounds for one policy in it."""

    environment: str
    policy: str
    quantities: list[Quantity]
    bounds: list[theorem.Bound]  # empty unless the policy is DS-TS

    def _contents(self) -> Contents:
        """The quantities, the bounds, and the conditions that do not hold."""
        title = "the environment, as run 0 realises it"
        quantities = ShownTable(title, ["letter", "value", "meaning"], list(map(list, self.quantities)))
        about: list[str | ShownTable] = [self.environment, self.policy, "", quantities, ""]
        if not self.bounds:
            return [*about, "The paper's theorems are about DS-TS; they have no bound for this policy."]
        rows = [[bound.name, f"<= {theorem.show_power(bound.log10)}", bound.verdict] for bound in self.bounds]
        head = ["theorem", "plays of sub-optimal arms", "verdict"]
        failed = dict.fromkeys(condition for bound in self.bounds for condition in bound.failed)
        return [
            *about,
            ShownTable("bounds (vacuous: not below T)", head, rows),
            *(f"  fails: {condition.text} ({condition.found})" for condition in failed),
        ]


def theory(environment: Environment, policy: Any, seed: int = 0) -> Analysis:
    """The quantities of an environment, as run 0 realises it, and the theorems' bounds if the policy is DS-TS."""
    if getattr(environment, "n_features", 0):
        raise ValueError("The paper's theorems are about means that do not depend on features.")
    realised = environment.realise(stream_key(seed, 0, ENVIRONMENT))
    found = diagnose(realised)
    quantities, bounds = _quantities(found), []
    if getattr(policy, "short", "") == "ds-ts":
        eps = 1.0 - policy.gamma
        bounds = bounds_for(realised, eps, policy.tau_max, found)
        if 0.0 < eps < theorem.LARGEST_EPS:
            quantities.append(("D", f"{theorem.D(eps):.6g}", "rounds after a change that Theorem 1 gives up"))
    return Analysis(repr(environment), repr(policy), quantities, bounds)


def bounds_for(realised: Realisation, eps: float, tau_max: float, found: Diagnosis) -> list[theorem.Bound]:
    """Both theorems for DS-TS with discount 1 - eps: each for one arm and summed over the sub-optimal arms.

    The gap of Theorem 2 is twice the least it admits (6 sigma D). Near the least its second term explodes; above, more
    rounds are given up as too close."""
    gap = 1.0
    if found.drift and 0.0 < eps < 1.0:
        gap = min(1.0, 12.0 * found.drift * math.exp(min(theorem.log_D(eps), 700.0)))
    shared: dict[str, Any] = {"horizon": found.horizon, "eps": eps, "mu_max": found.mu_max, "tau_max": tau_max}
    close = close_rounds(separations(realised), gap)
    counts = sorted({1, found.suboptimal_arms})
    return [
        *(theorem.theorem1(phases=found.phases, gap=found.gap, arms=arms, **shared) for arms in counts),
        *(theorem.theorem2(gap=gap, drift=found.drift, close_rounds=close, arms=arms, **shared) for arms in counts),
    ]


def _quantities(found: Diagnosis) -> list[Quantity]:
    useful = theorem.first_useful_horizon(found.phases, found.gap, found.mu_max, arms=found.suboptimal_arms)
    horizon = f"10^{useful:.1f}" if useful < math.inf else "none"
    drifts = found.horizon > 1 and found.drift > 0.0
    beta = f"{theorem.smallest_beta(found.horizon, 1.0, found.drift):.3f}" if drifts else "any"
    return [
        ("T", f"{found.horizon}", "rounds"),
        ("K", f"{found.n_arms}", "arms"),
        ("B_T", f"{found.phases}", "phases: runs of rounds with equal means"),
        ("", f"{found.switches}", "times the best arm changes"),
        ("P", f"{found.crossings}", "rounds after which some pair of arms has changed order"),
        ("Delta_T", f"{found.gap:.6g}", "smallest distance of another arm to the best, over all rounds"),
        ("sigma", f"{found.drift:.6g}", "largest change of a mean in one round"),
        ("mu_max", f"{found.mu_max:.6g}", "largest mean"),
        ("", f"{found.uniform_regret:.6g}", "regret of choosing arms uniformly"),
        ("beta", beta, "smallest beta that this drift admits in Corollary 2; none if above 1"),
        ("", horizon, "horizon from which Theorem 1, with Corollary 1's gamma, is below T"),
    ]
