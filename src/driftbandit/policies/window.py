"""Sliding windows: the ring buffer of the last rounds, and the window lengths that theory suggests.

A sliding policy's state has four fields that belong here: `arms` and `rewards` hold the last rounds (all arms
together), `pulls` and `sums` each arm's totals within the window. Round t lies at t % window, so that runs in
lockstep find it in the same place."""

import math
from typing import Any

import numpy as np

from driftbandit.core.parameters import Domain, within
from driftbandit.core.primitives import compilable, index, where
from driftbandit.core.validity import ARM, REALS, close, fits, need

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
