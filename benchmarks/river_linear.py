"""Contextual policies of river, pymab, MABWiser and bayesianbandits compared with ours in the same environments.

In an environment with these four libraries from PyPI, and this package on the path:

    python -m benchmarks.river_linear --out docs/field/linear-peers.md

Every arm has its own coefficients. All linear policies have prior precision 1, noise precision 1 and a bound of one
standard deviation, or samples of that width. In river the bound is that of a reward and in the others that of the mean
reward, so river's explores less. Libraries without an intercept are given a feature that is always 1. What forgets has
the discount 0.99 or 0.999 per reward of the arm: none of these libraries forgets an arm that is not played, unless the
program does so by a clock. river's argument `burn_in` is left at 0: in river 0.26.1 it is passed on in the place of
`reward_scaler`, and `update` fails with any other value."""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from bayesianbandits import (
    Arm,
    ContextualAgent,
    ExponentialForgetting,
    NormalRegressor,
    StabilizedForgetting,
    ThompsonSampling,
)
from mabwiser.mab import MAB, LearningPolicy
from pymab.policies import LinearThompsonSamplingPolicy, LinUCBPolicy
from river import bandit

from benchmarks.pages import shown_and_kept
from driftbandit.adapters.river import RiverContextualPolicy
from driftbandit.core.draws import CONTEXT, ENVIRONMENT, REWARD, Stream, stream_key
from driftbandit.spec.parse import parse

ARMS, FEATURES = 5, 4
ENVIRONMENTS = {
    "stationary": f"linear(n_arms={ARMS}, n_features={FEATURES}, horizon={{horizon}}, changes=0)",
    "three changes": f"linear(n_arms={ARMS}, n_features={FEATURES}, horizon={{horizon}}, changes=3)",
}
_ALONE = {"floor": 0.0, "first": False}  # the policy without the rules of a bandit


class OfRiver:
    """A policy of river, or one of ours as such; contexts have names."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.more = {"one": 1.0} if isinstance(policy, bandit.LinUCBDisjoint) else {}

    def named(self, x: list[float]) -> dict[str, float]:
        return {f"x{n}": value for n, value in enumerate(x)} | self.more

    def choose(self, x: list[float]) -> int:
        return int(self.policy.pull(list(range(ARMS)), context=self.named(x)))

    def learn(self, arm: int, x: list[float], reward: float) -> None:
        self.policy.update(arm, self.named(x), reward)


class OfPymab:
    """A policy of pymab; it takes the features of all arms as a matrix."""

    def __init__(self, kind: Any, seed: int) -> None:
        self.policy = kind(n_arms=ARMS, n_features=FEATURES + 1)
        self.rng = np.random.default_rng(seed)

    def choose(self, x: list[float]) -> int:
        return int(self.policy.select_action(context=np.tile([1.0, *x], (ARMS, 1)), rng=self.rng))

    def learn(self, arm: int, x: list[float], reward: float) -> None:
        self.policy.update(action=arm, reward=reward, context=np.tile([1.0, *x], (ARMS, 1)))


class OfMABWiser:
    """A policy of MABWiser; it starts from a batch, here of one reward, and then learns one reward at a time."""

    def __init__(self, policy: Any, seed: int) -> None:
        self.policy, self.begun = MAB(list(range(ARMS)), policy, seed=seed), False

    def choose(self, x: list[float]) -> int:
        return int(self.policy.predict(np.array([[1.0, *x]]))) if self.begun else 0

    def learn(self, arm: int, x: list[float], reward: float) -> None:
        learn = self.policy.partial_fit if self.begun else self.policy.fit
        learn([arm], [reward], np.array([[1.0, *x]]))
        self.begun = True


class OfBayesianBandits:
    """Thompson sampling of bayesianbandits with a Bayesian regression per arm."""

    def __init__(self, forgetting: Any, seed: int) -> None:
        arms = [Arm(arm, learner=NormalRegressor(alpha=1.0, beta=1.0, forgetting=forgetting)) for arm in range(ARMS)]
        self.agent = ContextualAgent(arms, ThompsonSampling(), random_seed=seed)

    def choose(self, x: list[float]) -> int:
        return int(self.agent.pull(np.array([[1.0, *x]]))[0])

    def learn(self, arm: int, x: list[float], reward: float) -> None:
        self.agent.select_for_update(arm).update(np.array([[1.0, *x]]), np.array([reward]))


PLAYERS: dict[str, Callable[[int], Any]] = {
    "driftbandit, the default bandit (DriftLinTS)": lambda seed: OfRiver(RiverContextualPolicy(seed=seed)),
    "driftbandit, DriftLinTS without the bandit's rules": lambda seed: OfRiver(
        RiverContextualPolicy("drift-lin-ts", seed, **_ALONE)
    ),
    "driftbandit, LinUCB": lambda seed: OfRiver(RiverContextualPolicy("lin-ucb(alpha=1)", seed, **_ALONE)),
    "river, LinUCB": lambda seed: OfRiver(bandit.LinUCBDisjoint(seed=seed)),
    "river, LinUCB, smoothing 0.99": lambda seed: OfRiver(bandit.LinUCBDisjoint(smoothing=0.99, seed=seed)),
    "river, LinUCB, smoothing 0.999": lambda seed: OfRiver(bandit.LinUCBDisjoint(smoothing=0.999, seed=seed)),
    "pymab, LinUCB": lambda seed: OfPymab(LinUCBPolicy, seed),
    "pymab, linear Thompson sampling": lambda seed: OfPymab(LinearThompsonSamplingPolicy, seed),
    "MABWiser, LinUCB": lambda seed: OfMABWiser(LearningPolicy.LinUCB(alpha=1.0), seed),
    "MABWiser, LinTS": lambda seed: OfMABWiser(LearningPolicy.LinTS(alpha=1.0), seed),
    "bayesianbandits, Thompson sampling": lambda seed: OfBayesianBandits(None, seed),
    "bayesianbandits, exponential forgetting 0.99": lambda seed: OfBayesianBandits(ExponentialForgetting(0.99), seed),
    "bayesianbandits, stabilised forgetting 0.99": lambda seed: OfBayesianBandits(StabilizedForgetting(0.99), seed),
}


def play(make: Callable[[int], Any], environment: str, run: int) -> tuple[float, float]:
    """Regret and seconds of one run."""
    player, spec = make(run), parse(environment)
    realised = spec.realise(stream_key(0, run, ENVIRONMENT))
    contexts, rewards = Stream(stream_key(0, run, CONTEXT)), Stream(stream_key(0, run, REWARD))
    regret, seconds, features = 0.0, 0.0, np.zeros(FEATURES)
    for t in range(spec.horizon):
        realised.features(t, contexts.at(t), features)
        x = features.tolist()
        began = time.thread_time()
        arm = player.choose(x)
        seconds += time.thread_time() - began
        reward = float(realised.pull_in(t, arm, x, rewards.at(t)))
        began = time.thread_time()
        player.learn(arm, x, reward)
        seconds += time.thread_time() - began
        regret += float(realised.best_in(t, x) - realised.mean_in(t, arm, x))
    return regret, seconds


def lines(runs: int, horizon: int) -> Iterator[str]:
    """The page."""
    names = ("river", "pymab", "mabwiser", "bayesianbandits")
    yield "# Contextual policies of other libraries\n"
    yield f"Regret after {horizon:,} rounds with {ARMS} arms and {FEATURES} features, mean of {runs} runs ± one"
    yield "standard error, and CPU time of a choice and a lesson in Python. All play the same environments and rewards."
    yield f"Versions: {', '.join(f'{name} {version(name)}' for name in names)}. Made by this command, whose docstring"
    yield f"says what is compared: `python -m benchmarks.river_linear --runs {runs} --horizon {horizon}`\n"
    yield f"| policy | {' | '.join(ENVIRONMENTS)} | µs per round |"
    yield f"|---|{'--:|' * (len(ENVIRONMENTS) + 1)}"
    for name, make in PLAYERS.items():
        cells, fastest = [], math.inf
        for environment in ENVIRONMENTS.values():
            runs_played = [play(make, environment.format(horizon=horizon), run) for run in range(runs)]
            regrets = np.array([regret for regret, _ in runs_played])
            fastest = min(fastest, *(seconds for _, seconds in runs_played))
            cells.append(f"{regrets.mean():,.0f} ± {regrets.std(ddof=1) / math.sqrt(runs):.0f}")
        yield f"| {name} | {' | '.join(cells)} | {1e6 * fastest / horizon:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--horizon", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    shown_and_kept(lines(args.runs, args.horizon), args.out)


if __name__ == "__main__":
    main()
