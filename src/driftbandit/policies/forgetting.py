"""Discounts and windows: from a half-life, from formulas, and from the authors' code; and the ring of the last rounds.

A sliding policy's state has four fields that belong here: `arms` and `rewards` hold the last rounds (all arms
together), `pulls` and `sums` each arm's totals within the window. Round t lies at t % window, so that runs in
lockstep find it in the same place."""

import math
import warnings
from typing import Any

import numpy as np

from driftbandit.core.parameters import Domain, within
from driftbandit.core.primitives import compilable, index, where
from driftbandit.core.validity import ARM, REALS, close, fits, need

DISCOUNT: Domain = within(
    "(0, 1]", "tuned(horizon, phases) gives the theory's value, half_life(rounds) one from a half-life."
)
_THEORY_MIN = 1.0 - 1.0 / math.e  # below this no theorem of the paper applies


def half_life_discount(rounds: float) -> float:
    """2 ** (-1 / rounds): evidence loses half its weight every `rounds` rounds.

    >>> round(half_life_discount(69.0), 6)
    0.990005
    """
    number = isinstance(rounds, int | float | np.integer | np.floating)
    if not (number and rounds > 0 and math.isfinite(rounds)):
        raise ValueError(f"A half-life needs a positive number of rounds; got {rounds!r}.")
    return float(2.0 ** (-1.0 / rounds))


def _half_life(cls: Any, rounds: float) -> Any:
    """The policy whose evidence loses half its weight in so many rounds."""
    return cls(half_life_discount(rounds))


@compilable
def learn_discounted(policy: Any, state: Any, t: int, arm: Any, reward: Any) -> None:
    """`learn` of a policy that discounts: fade all evidence, then take in the reward."""
    policy.fade(state, policy.gamma)
    policy.take(state, arm, reward, 1.0)


HALF_LIFE = classmethod(_half_life)  # `half_life` of a policy whose first parameter is gamma


def tune_discount(horizon: int, phases: int) -> float:
    """Corollary 1 of the paper, for `phases` stationary phases (changes + 1): 1 - sqrt(phases / horizon)."""
    return _clip(1.0 - math.sqrt(phases / horizon))


def tune_smooth_discount(horizon: int, beta: float) -> float:
    """Corollary 2, for drift in which the arms are close in at most about horizon**beta rounds: 1 - horizon ** (beta -
    1)."""
    if not isinstance(beta, int | float) or not 0.0 <= beta < 1.0:
        raise ValueError(
            f"beta needs to be in [0, 1); got {beta!r}. `driftbandit theory` shows which values an environment admits."
        )
    return _clip(1.0 - horizon ** (beta - 1.0))


def text_smooth_discount(horizon: int) -> float:
    """The paper's experiments in smooth environments, in text and code: 1 - 10 / sqrt(horizon)."""
    return _clip(1.0 - 10.0 / math.sqrt(horizon))


def code_discount(horizon: int, phases: int) -> float:
    """The authors' code in abrupt environments, 1 - 10 sqrt((phases - 1) / horizon): a memory ten times shorter than in
    the text."""
    return _clip(1.0 - 10.0 * math.sqrt((phases - 1) / horizon))


def _clip(gamma: float) -> float:
    """The formulas leave the theory's domain when the horizon is short for the number of phases."""
    if gamma < _THEORY_MIN:
        warnings.warn(
            f"The formula gives gamma = {gamma:.4g}, below 1 - 1/e where the theory ends; using {_THEORY_MIN:.4g}. "
            "The horizon is short for so many phases.",
            stacklevel=4,
        )
        return _THEORY_MIN
    return gamma


WINDOW: Domain = within(">= 1", "tuned(horizon, phases, n_arms) gives a value to start from.")


@compilable
def slide(policy: Any, state: Any, t: int, arm: Any, reward: Any) -> None:
    """Add round t, remove the oldest if the window is full, and let the policy update the numbers it derives from the
    arms that changed, by `policy.believe(state, arm)`.

    Adding and subtracting real numbers leaves rounding errors. An arm that has left the window therefore gets the
    sum 0 exactly, and all sums are recomputed each time the ring comes round."""
    arms, rewards, pulls, sums = state.arms, state.rewards, state.pulls, state.sums
    here = index(t % len(arms))
    gone = index(arms[here])
    if t >= len(arms):
        pulls[gone] -= 1.0
        sums[gone] = where(pulls[gone] == 0.0, 0.0, sums[gone] - rewards[here])
    arms[here] = arm
    rewards[here] = reward
    pulls[arm] += 1.0
    sums[arm] += reward
    if here + 1 < len(arms):
        policy.believe(state, arm)
        if t >= len(arms):
            policy.believe(state, gone)
        return
    for i in range(len(sums)):
        sums[i] = 0.0
    for j in range(len(arms)):
        sums[index(arms[j])] += rewards[j]
    for i in range(len(sums)):
        policy.believe(state, i)


def ring_fits(state: Any, t: int) -> None:
    """Refuse a state whose counts and sums are not those of the rounds in its window."""
    n_arms = len(state.pulls)
    fits(state, n_arms, arms=ARM, rewards=REALS, sums=REALS)
    held = min(t, len(state.arms))
    arms, rewards = state.arms[:held], state.rewards[:held]
    need(np.array_equal(state.pulls, np.bincount(arms, minlength=n_arms)), "pulls counts the rounds in the window")
    scale = max(1.0, float(np.abs(rewards).sum()))
    sums = np.bincount(arms, rewards, minlength=n_arms)
    need(close(state.sums / scale, sums / scale), "sums adds up the rewards in the window")


def root_window(horizon: int, phases: int) -> int:
    """sqrt(horizon / phases): Trovò and others' T**((1 - α)/2), where T**α is the number of phases."""
    return max(1, int(math.sqrt(horizon / phases)))


def log_window(horizon: int, count: int, factor: float = 2.0) -> int:
    """factor * sqrt(horizon ln(horizon) / count): Garivier and Moulines' with the number of changes as `count`.

    >>> log_window(100_000, 10)
    678
    """
    return max(1, int(factor * math.sqrt(horizon * math.log(horizon) / count)))


def changes(phases: int) -> int:
    """One fewer than phases; formulas that divide by changes use at least one."""
    return max(1, phases - 1)
