"""Discounts and windows: from a half-life, from formulas, and from the authors' code; what policies that forget in the
same way share; and the ring of the last rounds."""

import math
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from driftbandit.core.parameters import Domain, add_missing, checked, described, within
from driftbandit.core.primitives import compilable, index, where
from driftbandit.core.state import count_numbers, new_state
from driftbandit.core.validity import ARM, REALS, close, fits, need

T = TypeVar("T")

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
    return cls(gamma=half_life_discount(rounds))


@compilable
def learn_discounted(policy: Any, state: Any, t: int, arm: Any, reward: Any) -> None:
    """`learn` of a policy that discounts: fade all evidence, then take in the reward."""
    policy.fade(state, policy.gamma)
    policy.take(state, arm, reward, 1.0)


def _tune_discount(cls: Any, horizon: int, phases: int, n_arms: int = 0) -> Any:
    """gamma = 1 - sqrt(phases / horizon), borrowed from DS-TS."""
    return cls(gamma=tune_discount(horizon, phases))


def discounting(**facts: Any) -> Callable[[type[T]], type[T]]:
    """Class decorator of policies that discount by `gamma` per round: `described` and `checked`, and the methods that
    the class does not define itself."""

    def attach(cls: type[T]) -> type[T]:
        made = {"half_life": classmethod(_half_life), "tuned": classmethod(_tune_discount)}
        add_missing(cls, {"learn": learn_discounted, **made})
        return described(**{"family": "discounts", "scratch": ("scores",), "cost": "O(K)", **facts})(checked(cls))

    return attach


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


# ---- windows ---------------------------------------------------------------------------------------------------------

WINDOW: Domain = within(">= 1", "tuned(horizon, phases, n_arms) gives a value to start from.")


def window_fields(*believed: str) -> tuple[str, ...]:
    """The fields of a sliding policy's state: `pulls` and `sums`, the number and the sum of each arm's rewards within
    the window; what `believe` derives from these; `scores`, scratch for the indices or samples of the last choice; and
    `arms` and `rewards`, the last rounds of all arms together. Round t lies at t % window, so that runs in lockstep
    find it in the same place."""
    return "pulls", "sums", *believed, "scores", "arms", "rewards"


def sliding(state: Any, **facts: Any) -> Callable[[type[T]], type[T]]:
    """Class decorator of policies that see the last `window` rounds, with this class of states: `described` and
    `checked`, and the methods that the class does not define itself. `believe(state, arm)` derives what a choice needs
    from the sums of an arm."""

    def init(self: Any, n_arms: int) -> Any:
        one = new_state(state, 1, arms=np.zeros(self.window, np.int64), rewards=np.zeros(self.window))
        self.believe(one, 0)
        ring = {"arms": one.arms, "rewards": one.rewards}
        return state(*(ring.get(name, np.repeat(getattr(one, name), n_arms)) for name in state._fields))

    def attach(cls: type[T]) -> type[T]:
        methods = {"init": init, "learn": slide, "validate_state": validate_window, "state_size": window_size}
        add_missing(cls, {**methods, "tuned": classmethod(_tune_window)})
        shared = {"family": "window", "scratch": ("scores",), "cost": "O(K), memory O(window)"}
        return described(**{**shared, **facts})(checked(cls))

    return attach


def validate_window(self: Any, state: Any, t: int, like: Any) -> None:
    """Refuse a state whose sums are not those of its rounds, or whose other numbers are not those of its sums."""
    ring_fits(state, t)
    again = type(state)(*(np.array(field) for field in state))
    for arm in range(len(state.pulls)):
        self.believe(again, arm)
    for name, field, other in zip(state._fields, state, again, strict=True):
        need(name == "scores" or np.array_equal(field, other), f"{name} follows from pulls and sums")


def window_size(self: Any, n_arms: int) -> int:
    """The numbers that the state holds; in the number of arms, and in the window, this is a straight line."""
    least, arm, longer = (count_numbers(self._replace(window=w).init(n)) for n, w in ((1, 1), (2, 1), (1, 2)))
    return int(least + (n_arms - 1) * (arm - least) + (self.window - 1) * (longer - least))


def _tune_window(cls: Any, horizon: int, phases: int, n_arms: int = 0) -> Any:
    """window = 2 sqrt(horizon ln(horizon) / changes), borrowed from SW-UCB."""
    return cls(log_window(horizon, changes(phases)))


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
