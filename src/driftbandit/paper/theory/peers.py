"""Other policies: the orders of Table 1, and a lower bound that holds for every policy.

`table1` repeats the paper's table of orders. Constants and logarithms are left out there, so its numbers compare growth
only.

No policy can do better than about sqrt(T), and the constants of `lower_bound` can be checked.

Garivier and Moulines (2011) prove that a policy good on a stationary world is bad on some world with a change, so that
the worse of the two costs at least of order sqrt(T). The constants below are from our own short proof of the same
kind, because theirs could not be confirmed:

World 0 is stationary; its best arm has mean `best`, arm K has mean `worst`. Cut the T rounds into M blocks of length
t. In world j, arm K alone is raised to `best + rise` during block j (at most two changes). Let x be the expected plays
of arm K in world 0; some block j holds at most x / M of them. By Pinsker's inequality the plays of K inside block j are
at most x/M + t sqrt(kl x / (2 M)) in world j, with kl = KL(worst, best + rise). So

    regret in world 0 >= (best - worst) x,    regret in world j >= rise t (1 - x / (M t) - sqrt(kl x / (2 M))).

The first grows and the second falls with x: a policy can do no better than where they meet, whatever M we pick."""

import math
from typing import NamedTuple

from driftbandit.paper.theory import paper_functions as f
from driftbandit.paper.theory.bound import (
    Bound,
    Condition,
    gap_condition,
    horizon_condition,
    log10_or_none,
    power,
    safe_log,
)
from driftbandit.policies.kl import kl_bernoulli


class Order(NamedTuple):
    """An order of growth: a formula without constants or logarithms, and its size at one problem."""

    policy: str
    formula: str
    log10: float | None  # None when a condition fails, such as a gap of 0
    conditions: tuple[Condition, ...]
    log10_horizon: float | None

    @property
    def failed(self) -> list[Condition]:
        """The conditions that do not hold."""
        return [condition for condition in self.conditions if not condition.holds]

    @property
    def size(self) -> str:
        """The number, for a table."""
        return power(self.log10)

    @property
    def vacuous(self) -> bool:
        """Is even the order, without its constants, no better than T?"""
        return self.log10 is None or self.log10_horizon is None or self.log10 >= self.log10_horizon


def table1(horizon: float, phases: int, gap: float) -> dict[str, Order]:
    """Table 1 of the paper: how the four regret bounds depend on T, B_T and the smallest gap.

    They say that CUSUM suffers least from a small gap, SW-TS less than D-UCB and DS-TS. Orders hide e^25."""
    log_T, log_B, log_gap = safe_log(horizon), safe_log(phases), safe_log(gap)
    if log_T is None or log_B is None or log_gap is None:
        sizes: list[float | None] = [None] * 4
    else:
        root = 0.5 * (log_T + log_B)
        sizes = [f.log_add(log_B - 2.0 * log_gap, root), root - log_gap, root - 2.0 * log_gap, root - 2.0 * log_gap]
    rows = (
        ("cusum-ucb", "B_T / gap^2 + sqrt(T B_T)"),
        ("sw-ts", "sqrt(T B_T) / gap"),
        ("d-ucb", "sqrt(T B_T) / gap^2"),
        ("ds-ts", "sqrt(T B_T) / gap^2"),
    )
    conditions = (
        horizon_condition(horizon),
        Condition("there is at least one phase", phases >= 1, f"B_T = {phases}"),
        gap_condition(gap),
    )
    return {
        name: Order(name, text, log10_or_none(size), conditions, log10_or_none(log_T))
        for (name, text), size in zip(rows, sizes, strict=True)
    }


def floor_with_blocks(horizon: int, blocks: int, gap: float, rise: float, kl: float) -> float:
    """The regret at which the two curves of the module's proof meet, for a given number of blocks.

    With s = sqrt(x) they meet where (gap + rise/M) s^2 + rise t sqrt(kl / (2 M)) s - rise t = 0."""
    length = horizon // blocks
    square, linear, constant = gap + rise / blocks, rise * length * math.sqrt(kl / (2.0 * blocks)), rise * length
    root = 2.0 * constant / (linear + math.sqrt(linear * linear + 4.0 * square * constant))  # no cancellation
    return gap * root * root


def lower_bound(horizon: int, best: float = 0.5, worst: float = 0.4, rise: float = 0.1) -> Bound:
    """Regret that every policy meets in one of two Bernoulli worlds with at most three phases.

    The worlds differ in arm K during one block only; see the module for the proof. The number of blocks is the best of
    a geometric grid: each gives a valid bound, so a coarse search loses a little and is never wrong.

    >>> lower_bound(100_000).value > 30
    True"""
    ordered = 0.0 <= worst < best and rise > 0.0 and best + rise < 1.0
    log_T = safe_log(horizon)
    moderate = log_T is not None and log_T < 600.0
    conditions = (
        horizon_condition(horizon),
        Condition("0 <= worst < best < best + rise < 1", ordered, f"{worst:.6g}, {best:.6g}, {best + rise:.6g}"),
        Condition("the horizon is below 10^260", moderate),
    )
    log = None
    if log_T is not None and log_T >= 0.0 and moderate and ordered:
        rounds, kl = int(horizon), kl_bernoulli(worst, best + rise)
        grid = {max(1, min(rounds, int(math.exp(log_T * step / 400.0)))) for step in range(401)}
        log = math.log(max(floor_with_blocks(rounds, blocks, best - worst, rise, kl) for blocks in grid))
    name = "lower bound for every policy"
    return Bound(name, log10_or_none(log), log10_or_none(log_T), "regret", conditions, lower=True)
