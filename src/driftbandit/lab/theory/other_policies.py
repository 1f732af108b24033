"""What is published for the policies DS-TS is compared with, in the same form as its own bounds.

`table1` repeats the paper's table of orders; constants and logarithms are left out there, so its numbers compare
growth only. `d_ucb` and `sw_ucb` are the bounds of Garivier and Moulines (2011), with all constants.

UNCONFIRMED: the text of Garivier and Moulines was not at hand. The leading terms (16 B^2 xi and 4 B^2 xi over gap^2,
the pseudo-stationary delay, eta = 4 sqrt(1 - 1/(2 xi))) were derived again and agree; the remaining terms are from
memory and should be checked against the publication before they are quoted."""

import math
from typing import NamedTuple

from driftbandit.lab.theory import paper_functions as f
from driftbandit.lab.theory.bound import (
    Bound,
    Condition,
    gap_condition,
    horizon_condition,
    log10_or_none,
    safe_log,
    show,
)


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


def _common(horizon: float, changes: int, gap: float, xi: float) -> tuple[Condition, ...]:
    return (
        horizon_condition(horizon),
        Condition("the number of changes (phases - 1) is at least 0", changes >= 0, f"changes = {changes}"),
        gap_condition(gap),
        Condition("xi > 1/2", 0.5 < xi < math.inf, f"xi = {xi:.6g}"),
    )


def _peel(xi: float) -> float:
    """ln(1 + eta): the width of one slice when the deviation inequality is summed over the random count."""
    return math.log(1.0 + 4.0 * math.sqrt(1.0 - 1.0 / (2.0 * xi)))


def _log_ceil(log: float) -> float:
    """ln(ceil(e^log)); a rounding error above a whole number does not count as another block."""
    return math.log(max(1, math.ceil(math.exp(log) * (1.0 - 1e-12)))) if log < 30.0 else log


def d_ucb(
    *, horizon: float, changes: int, gap: float, eps: float, n_arms: int, xi: float = 2.0 / 3.0, reward_max: float = 1.0
) -> Bound:
    """Discounted UCB, one arm: B(gamma) T eps ln(1/eps) + changes * D', all constants. See the module: UNCONFIRMED.

    D' = ln(eps xi ln n_K) / ln(gamma) is the delay after a change, n_K = (1 - gamma^K) / eps the discounted number
    of rounds once each arm was played. `changes` counts true changes, one less than the paper's B_T."""
    conditions = (
        *_common(horizon, changes, gap, xi),
        Condition("gamma is in (0, 1)", 0.0 < eps < 1.0, f"1 - gamma = {eps:.6g}"),
        Condition("there are at least 2 arms", n_arms >= 2, f"K = {n_arms}"),
    )
    log_T = safe_log(horizon)
    log = None
    if log_T is not None and all(condition.holds for condition in conditions):
        lam, log_gamma = -math.log(eps), math.log1p(-eps)
        rounds = log_T + math.log(eps)
        blocks = _log_ceil(rounds)
        explore = math.log(16.0 * reward_max**2 * xi * lam) + math.log(f.G(eps)) - 2.0 * math.log(gap) + blocks
        slices = math.ceil(lam / _peel(xi))
        deviate = math.log(2.0 * slices) + rounds - math.log(-math.expm1(log_gamma / eps))
        first_count = -math.expm1(n_arms * log_gamma) / eps
        delay = (math.log(eps) + math.log(xi * math.log(first_count))) / log_gamma
        after_changes = math.log(changes) + math.log(delay) if changes > 0 and delay > 0.0 else -math.inf
        log = f.log_add(explore, deviate, after_changes)
    return Bound("D-UCB (Garivier and Moulines)", log10_or_none(log), log10_or_none(log_T), "one arm", conditions)


def sw_ucb(
    *, horizon: float, changes: int, gap: float, window: int, xi: float = 2.0 / 3.0, reward_max: float = 1.0
) -> Bound:
    """Sliding-window UCB, one arm: C(window) T ln(window) / window + window * changes + ln^2(window).

    C tends to 4 B^2 xi / gap^2 + 2 / ln(1 + eta). See the module: UNCONFIRMED."""
    log_T = safe_log(horizon)
    fits = log_T is not None and window >= 2 and math.log(max(window, 1)) <= log_T
    between = Condition("the window is in [2, T]", fits, f"window = {show(window)}")
    conditions = (*_common(horizon, changes, gap, xi), between)
    log = None
    if log_T is not None and all(condition.holds for condition in conditions):
        log_w = math.log(window)
        share = log_T - log_w
        blocks = _log_ceil(share)
        explore = math.log(4.0 * reward_max**2 * xi * log_w) - 2.0 * math.log(gap) + blocks
        deviate = math.log(2.0 * math.ceil(log_w / _peel(xi))) + share
        after_changes = log_w + math.log(changes) if changes > 0 else -math.inf
        log = f.log_add(explore, deviate, after_changes, 2.0 * math.log(log_w))
    return Bound("SW-UCB (Garivier and Moulines)", log10_or_none(log), log10_or_none(log_T), "one arm", conditions)
