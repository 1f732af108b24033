"""What linear policies share: their state, and the methods that differ in nothing but parameters.

Disjoint form: one context of d features per round; every arm has its own D = d + 1 coefficients, the intercept first.
Joint form: d features per arm; all arms share D = d coefficients."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from driftbandit.core.parameters import Domain, add_missing, checked, described, within
from driftbandit.core.primitives import argmax_fair, compilable
from driftbandit.core.validity import COUNTS, REALS, SCRATCH, close, fits, need
from driftbandit.policies.forgetting import changes, half_life_discount
from driftbandit.policies.linear.least_squares import (
    add,
    discount,
    group_of,
    predict_arm,
    renew,
    renew_all,
    square,
    take_features,
)

T = TypeVar("T")

LAM: Domain = within("> 0", "0.1 to 1 is usual.")
SD: Domain = within("> 0", "0.5 suits rewards in [0, 1].")
ALPHA: Domain = within(">= 0", "0 takes the radius of the theory.")
DELTA: Domain = within("(0, 1)")
MATRIX: Domain = within("[-1e100, 1e100]")  # features and sums of their products, which are multiplied again


class LinearState(NamedTuple):
    """The regressions of G groups of arms with D coefficients each. Matrices hold their upper triangles only."""

    gram: Any  # G x D x D, sum of weight x x'
    target: Any  # G x D, sum of weight reward x; b in the papers
    second: Any  # G x D x D, sum of squared weight x x', for policies that use it
    factor: Any  # G x D x D, R with R'R = lam I + gram; its diagonal holds reciprocals
    white: Any  # G x D, w with R'w = target
    pulls: Any  # G, sum of weights
    weight: Any  # sum of squared weights of all rewards
    root: Any  # scratch: D x D, a second factor, for policies that use one
    x: Any  # scratch: features of the present call, D for all arms or K x D
    u: Any  # scratch: features or coefficients in the coordinates of a factor
    draws: Any  # scratch: normal random numbers
    scores: Any  # scratch: the indices or samples of the last choice


SCRATCH_FIELDS = ("root", "x", "u", "draws", "scores")
FACTS = {
    "never forgets": {
        "forgets": "nothing",
        "knows": "the noise; the theory's radius needs coefficients and features of norm at most 1",
        "cost": "O(K D^2 + D^3)",
    },
    "discounts": {
        "forgets": "discounts every past reward by gamma per round; idle arms return to the prior",
        "knows": "how much the coefficients change, to set gamma; what LinUCB needs",
        "cost": "O(K D^2 + D^3), with coefficients per arm O(K D^3)",
    },
}


def sizes(n_arms: int, n_features: int, joint: bool) -> tuple[int, int]:
    """The number of groups and of coefficients in each."""
    if joint and n_features < 1:
        raise ValueError("The joint form needs n_features >= 1, the number of features per arm; got 0.")
    return (1, n_features) if joint else (n_arms, n_features + 1)


def new_regression(
    kind: Any, lam: float, n_arms: int, n_features: int, joint: bool, draws: str = "", second: bool = False, **more: Any
) -> Any:
    """The first state, of this class: no reward yet. `draws` is how many normals a choice takes: "one", or "sample"
    for those of a sample of all coefficients."""
    groups, size = sizes(n_arms, n_features, joint)
    normals = {"": 0, "one": 1, "sample": size if joint else n_arms}[draws]
    x = np.zeros(n_arms * size if joint else size)
    x[0] = 0.0 if joint else 1.0
    fields = {
        "gram": np.zeros(groups * size * size),
        "target": np.zeros(groups * size),
        "second": np.zeros(groups * size * size if second else 0),
        "factor": np.tile(np.eye(size).ravel() / math.sqrt(lam), groups),
        "white": np.zeros(groups * size),
        "pulls": np.zeros(groups),
        "weight": np.zeros(1),
        "root": np.zeros(size * size if draws == "sample" and second else 0),
        "x": x,
        "u": np.zeros(size),
        "draws": np.zeros(normals),
        "scores": np.zeros(n_arms),
        **more,
    }
    return kind(*(fields[name] for name in kind._fields))


def linear(family: str, draws: str = "", second: bool = False, **facts: Any) -> Callable[[type[T]], type[T]]:
    """Class decorator of linear policies: `described` and `checked`, and the methods that the class does not define
    itself."""

    def init(self: Any, n_arms: int, n_features: int = 0, joint: bool = False) -> Any:
        return new_regression(LinearState, self.lam, n_arms, n_features, joint, draws, second)

    def attach(cls: type[T]) -> type[T]:
        methods: dict[str, Any] = {"init": init, "choose": choose, "choose_in": choose_in, "learn_in": learn_in}
        methods |= {"learn": learn_plain, "validate_state": validate_state, "state_size": state_size}
        methods["tuned"] = classmethod(tuned)
        if "gamma" in cls._fields:  # type: ignore[attr-defined]
            methods |= {"learn": learn, "fade": fade, "take": take, "take_in": take_in}
            methods |= {"discount": discount_rewards, "add": add_reward}
            methods["half_life"] = classmethod(half_life)
        add_missing(cls, methods)
        if vars(cls)["learn"] is learn_plain:
            cls.know_arm = know_arm  # type: ignore[attr-defined]
        shared = {"family": family, "rewards": "any", "scratch": SCRATCH_FIELDS, **FACTS.get(family, {}), **facts}
        return described(**shared)(checked(cls))

    return attach


def choose_in(self: Any, state: Any, t: int, rng: Any, features: Any) -> Any:
    """`choose` in a context."""
    take_features(state, features)
    return self.choose(state, t, rng)


def learn_in(self: Any, state: Any, t: int, arm: Any, reward: Any, features: Any) -> None:
    """`learn` of a choice in a context."""
    take_features(state, features)
    self.learn(state, t, arm, reward)


def choose(self: Any, state: Any, t: int, rng: Any) -> Any:
    """The arm of the highest confidence bound."""
    bound_scores(state, radius(self, state))
    return argmax_fair(state.scores, rng)


def learn_plain(self: Any, state: Any, t: int, arm: Any, reward: Any) -> None:
    """Add this reward."""
    add(state, group_of(state, arm), reward, 1.0)
    renew(state, group_of(state, arm), self.lam)


def know_arm(self: Any, state: Any, t: int, arm: int, mean: float, worth: float, features: Any) -> None:
    """Add this many rewards of this mean in a context."""
    take_features(state, features)
    add(state, group_of(state, arm), mean, worth)
    renew(state, group_of(state, arm), self.lam)


def learn(self: Any, state: Any, t: int, arm: Any, reward: Any) -> None:
    """Discount all past rewards and add this one."""
    self.discount(state, self.gamma)
    self.add(state, group_of(state, arm), reward, 1.0)
    renew_all(state, self.lam)


def fade(self: Any, state: Any, factor: float) -> None:
    """Multiply the weight of all evidence by `factor`: the discount of a round, or of the time that has passed."""
    self.discount(state, factor)
    renew_all(state, self.lam)


def take(self: Any, state: Any, arm: Any, reward: Any, weight: float) -> None:
    """Add one reward of this weight."""
    self.add(state, group_of(state, arm), reward, weight)
    renew(state, group_of(state, arm), self.lam)


def take_in(self: Any, state: Any, arm: Any, reward: Any, weight: float, features: Any) -> None:
    """`take` of a choice in a context."""
    take_features(state, features)
    self.take(state, arm, reward, weight)


def discount_rewards(self: Any, state: Any, factor: float) -> None:
    """Multiply the sums."""
    discount(state, factor)


def add_reward(self: Any, state: Any, group: Any, reward: Any, weight: float) -> None:
    """Add a reward to the sums."""
    add(state, group, reward, weight)


def half_life(cls: Any, rounds: float) -> Any:
    """The policy whose evidence loses half its weight in so many rounds."""
    return cls(half_life_discount(rounds))


def state_size(self: Any, n_arms: int, n_features: int = 0, joint: bool = False) -> int:
    """The numbers that the state holds at most."""
    groups, size = sizes(n_arms, n_features, joint)
    rounds = getattr(self, "window", 0)
    return groups * (3 * size * size + 2 * size + 5) + n_arms * (size + 2) + size * size + rounds * (size + 2) + 4


def validate_state(self: Any, state: Any, t: int, like: Any) -> None:
    """Refuse a state whose derived numbers are not those of its sums."""
    n, groups = len(state.u), len(state.pulls)
    fits(state, gram=MATRIX, second=MATRIX, target=REALS, white=REALS, factor=MATRIX, pulls=COUNTS, weight=COUNTS)
    fits(state, x=MATRIX, u=SCRATCH, draws=SCRATCH, root=SCRATCH)
    need(len(state.x) > n or state.x[0] == like.x[0], "the intercept's feature is 1")
    fields = (np.reshape(field, (groups, n, -1)) for field in (state.gram, state.factor, state.target, state.white))
    for gram, R, b, w in zip(*fields, strict=True):
        need((np.tril(gram, -1) == 0.0).all() and (np.diag(gram) >= 0.0).all(), "gram is a sum of squares")
        need((np.diag(R) > 0.0).all() and (np.tril(R, -1) == 0.0).all(), "the factor is triangular")
        R = np.triu(R, 1) + np.diag(1.0 / np.diag(R))
        V = gram + np.triu(gram, 1).T + self.lam * np.eye(n)
        need(close(R.T @ R / np.trace(V), V / np.trace(V)), "factor is that of gram")
        need(close(R.T @ w / (1.0 + abs(b).max()), b / (1.0 + abs(b).max())), "white is that of target")


@compilable
def radius(policy: Any, state: Any) -> Any:
    """The width of a confidence interval in units of the standard deviation of a prediction: alpha sd, or if alpha is 0
    the radius of the theory for a system of G D coefficients. It assumes that neither the coefficients nor the features
    have a norm above 1."""
    if policy.alpha > 0.0:
        return policy.alpha * policy.sd
    size = len(state.target)
    inside = 1.0 + state.weight[0] / (policy.lam * size)
    noise = math.sqrt(size * math.log(inside) - 2.0 * math.log(policy.delta))
    return math.sqrt(policy.lam) + policy.sd * noise


@compilable
def bound_scores(state: Any, width: Any) -> None:
    """Score every arm by its prediction plus `width` standard deviations."""
    for arm in range(len(state.scores)):
        mean = predict_arm(state, arm)
        state.scores[arm] = mean + width * math.sqrt(square(state.u))


def dimension(n_arms: int, n_features: int, joint: bool) -> int:
    """The number of coefficients of all arms; d in the theory."""
    return max(1, n_features if joint else n_arms * (n_features + 1))


def memory(horizon: int, phases: int, size: int, variation: float, more: float = 0.0) -> float:
    """(d T / B)**(2/3) rounds: the memory that theory requires with d coefficients and a total change B."""
    if not 0.0 <= variation < math.inf:
        raise ValueError(f"variation needs to be >= 0; got {variation!r:.60}. 0 means 1 per change of phase.")
    rounds: float = (size * horizon / ((variation or changes(phases)) + more)) ** (2.0 / 3.0)
    return max(1.0, rounds)


def tuned(
    cls: Any,
    horizon: int,
    phases: int,
    n_arms: int = 0,
    n_features: int = 0,
    joint: bool = False,
    variation: float = 0.0,
) -> Any:
    """A memory of (d horizon / variation)**(2/3) rounds, with d coefficients of all arms together and `variation` the
    sum of the norms of their changes (0: 1 per change of phase).

    The radius gets delta = 0.01 / horizon: it holds for each round, not for all of them together."""
    size = dimension(n_arms, n_features, joint)
    rounds = memory(horizon, phases, size, variation)
    given = {
        "gamma": max(0.5, 1.0 - 1.0 / rounds),
        "window": min(horizon, int(rounds)),
        "period": min(horizon, int(memory(horizon, phases, size, variation, more=1.0))),
        "drift": 1.0 / rounds,
        "delta": 0.01 / horizon,
    }
    return cls(**{name: value for name, value in given.items() if name in cls._fields})
