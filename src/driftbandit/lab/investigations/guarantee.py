"""One policy in one world: what the theory knows of the world, what it promises, and what is measured.

The theorems of the paper are about DS-TS; Garivier and Moulines' about D-UCB and SW-UCB. For every other policy the
report says that no bound is at hand, and still gives the facts of the world and the floor that no policy gets below."""

import math
from typing import Any, NamedTuple

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.investigations import search
from driftbandit.lab.stats import selection
from driftbandit.lab.stats.intervals import Interval, interval
from driftbandit.lab.stats.selection import Rival
from driftbandit.lab.theory import (
    Bound,
    Diagnosis,
    Order,
    beta_interval,
    bounds_for,
    breakpoints,
    close_rounds,
    corollary1,
    corollary2,
    d_ucb,
    diagnose,
    in_words,
    lower_bound,
    separations,
    smallest_constant,
    sw_ucb,
    table1,
)
from driftbandit.lab.theory import paper_functions as f
from driftbandit.lab.theory.in_words import drift_gap


class Quantity(NamedTuple):
    """One quantity of the analysis, its letter in the paper, its value here, and what it is in words."""

    letter: str
    value: str
    meaning: str


class Promise(NamedTuple):
    """Everything the report shows."""

    environment: Any
    policy: Any
    found: Diagnosis
    facts: tuple[Quantity, ...]
    bounds: tuple[Bound, ...]  # upper bounds for this policy; empty when there is none for it
    floor: Bound  # what no policy avoids in the worse of two worlds of this length
    orders: dict[str, Order]  # Table 1
    measured: Interval | None  # final regret, if it was asked for
    searched: tuple[Rival, ...]  # DS-TS with other discounts in the same world, if measured
    runs: int
    seed: int
    smallest_beta: float | None = None  # what Corollary 2 admits here, at a gap of 1

    def gap_to(self, bound: Bound) -> float | None:
        """How many orders of magnitude the bound is above the measured regret."""
        if self.measured is None or bound.log10 is None or self.measured.mean <= 0.0:
            return None
        return bound.log10 - math.log10(self.measured.mean)

    def paragraph(self) -> str:
        """What is guaranteed, what is not, which gamma is advised, and what simulation finds best."""
        return " ".join(_sentences(self))


def discount(policy: Any) -> float | None:
    """1 - gamma of a policy that discounts, else None."""
    gamma = getattr(policy, "gamma", None)
    return None if gamma is None else 1.0 - float(gamma)


def upper_bounds(world: Any, policy: Any, found: Diagnosis) -> list[Bound]:
    """The bounds published for this policy, evaluated here; none for most policies."""
    kind = getattr(policy, "short", "")
    eps = discount(policy)
    shared: dict[str, Any] = {"horizon": found.horizon, "changes": found.phases - 1, "gap": found.gap}
    if kind == "ds-ts" and eps is not None:
        return bounds_for(world, eps, policy.tau_max, found)
    if kind == "d-ucb" and eps is not None:
        own: dict[str, Any] = {"xi": policy.xi, "reward_max": policy.reward_max}
        return [d_ucb(**shared, eps=eps, n_arms=found.n_arms, **own)]
    if kind == "sw-ucb":
        return [sw_ucb(**shared, window=policy.window, xi=policy.xi, reward_max=policy.reward_max)]
    return []


def theory(
    environment: Any, policy: Any, runs: int = 0, seed: int = 0, workers: int | None = None, a_decade: int = 2
) -> Promise:
    """What is proved for this policy in this world: diagnose the world and evaluate the bounds. With `runs` > 0 play
    the policy too and, for DS-TS, a grid of discounts.

    A world that is random is diagnosed as run 0 meets it; the regret is over all runs."""
    if environment.n_arms < 2:
        raise ValueError(f"A promise is about regret, which needs 2 arms or more; got {environment.n_arms}.")
    world = environment.realise(stream_key(seed, 0, WORLD))
    found = diagnose(world)
    eps = discount(policy)
    cells: list[Rival] = []
    if runs:
        others = []
        if getattr(policy, "short", "") == "ds-ts":
            grid = search.gammas(environment.horizon, a_decade)
            others = [policy._replace(gamma=gamma) for gamma in grid]
        cells = search.play([policy, *others], environment, runs, seed, workers)
    return Promise(
        environment,
        policy,
        found,
        tuple(facts(world, found, eps)),
        tuple(upper_bounds(world, policy, found)),
        lower_bound(found.horizon),
        table1(found.horizon, found.phases, found.gap),
        interval(cells[0].regret) if cells else None,
        tuple(cells),
        runs,
        seed,
        smallest_beta(world, found),
    )


def facts(world: Any, found: Diagnosis, eps: float | None) -> list[Quantity]:
    """The diagnostics with their letters; those that need a discount only when there is one in (0, 1)."""
    out = [
        Quantity("T", f"{found.horizon}", "rounds"),
        Quantity("K", f"{found.n_arms}", "arms"),
        Quantity("B_T", f"{found.phases}", "phases: runs of rounds with equal means"),
        Quantity("", f"{found.switches}", "times the best arm changes"),
        Quantity("P", f"{found.crossings}", "rounds after which some pair of arms has changed order"),
        Quantity("Delta_T", f"{found.gap:.6g}", "smallest distance of a wrong arm to the best, over all rounds"),
        Quantity("", f"{found.tied_rounds}", "rounds in which the best arm is tied"),
        Quantity("V_T", f"{found.variation:.6g}", "total variation: the largest change of a mean, summed over rounds"),
        Quantity("sigma", f"{found.drift:.6g}", "largest change of a mean in one round (Lipschitz constant)"),
        Quantity("mu_max", f"{found.mu_max:.6g}", f"largest mean (the smallest is {found.mu_min:.6g})"),
        Quantity("", f"{found.uniform_regret:.6g}", "regret of choosing arms at random"),
    ]
    distances = separations(world)
    betas = [0.5]
    low = smallest_beta(world, found)
    if low is not None and 0.0 <= low < 1.0:
        betas.append(low)
    for beta in betas:
        constant = smallest_constant(distances, beta)
        shown = "none" if constant is None else f"{constant:.6g}"
        out.append(Quantity("F", shown, f"smallest constant of Assumption 2 at beta = {beta:.3f}"))
    if eps is None or not 0.0 < eps < f.LARGEST_EPS:
        return out
    wait = f.D(eps)
    gap = drift_gap(found.drift, eps)
    out += [
        Quantity("D", f"{wait:.6g}", "rounds after a change about which Theorem 1 says nothing"),
        Quantity("", f"{settled(world, wait)}", "pseudo-stationary rounds: D or more after the last change"),
        Quantity("H", f"{close_rounds(distances, gap)}", f"rounds in which two arms are closer than {gap:.4g}"),
    ]
    return out


def settled(world: Any, wait: float) -> int:
    """The size of the pseudo-stationary set, counted phase by phase without keeping the breakpoints."""
    delay = max(math.ceil(wait) - 1, 0)
    total, start = 0, 0
    for point in breakpoints(world):
        total += max(0, point - start - delay)
        start = point
    return total + max(0, int(world.horizon) - start - delay)


def _sentences(promise: Promise) -> list[str]:
    found, policy = promise.found, promise.policy
    if getattr(policy, "short", "") == "ds-ts":
        out = [in_words(found, list(promise.bounds))]
    elif promise.bounds:
        useful = [bound for bound in promise.bounds if bound.promises]
        words = f"Guaranteed: {useful[0]}." if useful else f"Nothing is guaranteed: {promise.bounds[0]}."
        out = [f"{words} The constants of this bound are from memory and should be checked before they are quoted."]
    else:
        out = [f"Nothing is guaranteed: no bound with constants is known to this library for {type(policy).__name__}."]
    if promise.floor.log10 is not None:
        out.append(
            f"No policy can promise less than {10.0**promise.floor.log10:.0f} over {found.horizon} rounds in the worse"
            " of two worlds with at most three phases."
        )
    out += _smooth_advice(found, promise.smallest_beta)
    if promise.measured is None:
        out.append("Nothing was measured; --measure 100 plays and shows what regret to expect.")
        return out
    share = 100.0 * promise.measured.mean / found.uniform_regret if found.uniform_regret > 0.0 else math.nan
    out.append(f"Measured over {promise.runs} runs: regret {promise.measured}, {share:.0f} % of uniform play.")
    finite = [bound for bound in promise.bounds if promise.gap_to(bound) is not None and bound.scope != "one arm"]
    finite = finite or [bound for bound in promise.bounds if promise.gap_to(bound) is not None]
    if finite:
        nearest = min(finite, key=lambda bound: bound.log10 or 0.0)
        out.append(f"The nearest bound, {nearest.name}, is 10^{promise.gap_to(nearest):.1f} times that.")
    if len(promise.searched) > 1:
        out.append(_found_best(promise))
    return out


def smallest_beta(world: Any, found: Diagnosis) -> float | None:
    """The smallest beta the remark after Corollary 2 admits in this world at a gap of 1: from its drift, and from its
    crossings with the smallest constant F that Assumption 2 allows there."""
    low = beta_interval(horizon=found.horizon, gap=1.0, drift=found.drift).low
    if low is None or found.crossings == 0:
        return low
    constant = smallest_constant(separations(world), min(max(low, 0.0), 1.0))
    return beta_interval(
        horizon=found.horizon, gap=1.0, drift=found.drift, constant=constant, crossings=found.crossings
    ).low


def _smooth_advice(found: Diagnosis, low: float | None) -> list[str]:
    """What Corollary 2 says, where it is the one to ask: in worlds that move nearly every round."""
    if found.phases < found.horizon // 2 or corollary1(found.horizon, found.phases).holds:
        return []
    tuning = None if low is None or low >= 1.0 else corollary2(found.horizon, max(low, 0.0))
    if tuning is None or tuning.gamma is None or not tuning.holds:
        return ["Corollary 2 admits no beta here, even at a gap of 1: the world moves too fast for its horizon."]
    return [
        f"Corollary 2 admits beta from {max(low or 0.0, 0.0):.3f} at a gap of 1 and then advises"
        f" gamma = {tuning.gamma:.6g}; at beta = 1/2, the paper's choice, its condition fails."
        if (low or 0.0) > 0.5
        else f"Corollary 2 advises gamma = {tuning.gamma:.6g} (beta = {max(low or 0.0, 0.0):.3f}, at a gap of 1)."
    ]


def _found_best(promise: Promise) -> str:
    own, *others = promise.searched
    chosen = selection.best(others)
    good = ", ".join(f"{cell.policy.gamma:.4g}" for cell in selection.as_good(others, chosen))
    text = (
        f"Simulation finds gamma = {chosen.policy.gamma:.4g} best at tau_max = {chosen.policy.tau_max:.3g} (regret"
        f" {chosen.estimate()}, on runs that had no part in the choice; not clearly worse: {good})"
    )
    excess = own.excess(chosen)
    if excess.low > 0.0 or excess.high < 0.0:
        share, *ends = (100.0 * abs(value) / chosen.estimate().mean for value in excess)
        side = "more" if excess.mean > 0.0 else "less"
        text += f"; the gamma given, {own.policy.gamma:.6g}, regrets {share:.0f} % {side}"
        return f"{text} ({min(ends):.0f} to {max(ends):.0f})."
    return f"{text}; the gamma given, {own.policy.gamma:.6g}, is as good within the noise."
