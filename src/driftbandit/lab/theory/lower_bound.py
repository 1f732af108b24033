"""No policy can do better than about sqrt(T): a lower bound with constants that can be checked.

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

from driftbandit.lab.theory.bound import Bound, Condition, horizon_condition, log10_or_none, safe_log
from driftbandit.policies.kl import kl_bernoulli


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
