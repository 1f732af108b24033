"""Our estimates beside those of pymab and obp on the same log: the same numbers to rounding, and the time beside.

Run it where the peers are installed, in an environment of its own (their dependencies are not ours):

    python -m venv peers && peers/bin/pip install pymab numba platformdirs scipy scikit-learn pandas && \\
        peers/bin/pip install --no-deps obp==0.4.1
    PYTHONPATH=src peers/bin/python benchmarks/log_peers.py > docs/logs/peers.md

A policy that learns is no fixed policy, which is all their estimators know: they are handed the chances and guesses of
our follower event by event, and must then find the same doubly robust and self-normalised values. Replay is compared on
a policy without chance, so that both must accept the same rows."""

import importlib
import importlib.util
import math
import sys
import time
import types
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments import phased
from driftbandit.logs import machine
from driftbandit.logs.candidates import Candidate, candidates
from driftbandit.logs.families import believe, family, take
from driftbandit.logs.follow import _Guesses, follow
from driftbandit.logs.largest import chances_into, room
from driftbandit.logs.replayed import effective_size
from driftbandit.logs.simulated import adaptive_log, uniform_log
from driftbandit.primitives import argmax

EVENTS, ARMS = 20_000, 5


class LeaderState(NamedTuple):
    """Pulls and sums of each arm."""

    pulls: Any
    sums: Any
    scores: Any


class Leader(NamedTuple):
    """Plays the largest smoothed average, the first of equal ones: no chance anywhere."""

    prior: float = 1.0

    def init(self, n_arms: int) -> LeaderState:
        """Nothing known."""
        return LeaderState(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state: LeaderState, t: int, rng: Any) -> Any:
        """The leader."""
        for arm in range(len(state.scores)):
            bonus = math.sqrt(2.0 * math.log(t + 2.0) / (state.pulls[arm] + 1.0))
            state.scores[arm] = (state.sums[arm] + self.prior) / (state.pulls[arm] + 1.0) + bonus
        return argmax(state.scores)

    def learn(self, state: LeaderState, t: int, arm: Any, reward: Any) -> None:
        """Count and add."""
        state.pulls[arm] += 1.0
        state.sums[arm] += reward


def chances_and_guesses(log: Any, candidate: Candidate) -> tuple[np.ndarray, np.ndarray]:
    """Every event's chances and guesses, as our follower has them."""
    events, k = log.whole(), log.n_arms
    order = np.arange(events.n)
    q, pi = np.zeros((events.n, k)), np.zeros((events.n, k))
    _Guesses(k, True).write(events, order, 0, q)
    members, scratch = family([candidate], k, 0.0, False, [0]), room(k)
    chances = machine.compiled(chances_into, scratch)
    for e in range(events.n):
        believe(members, 0, k, events.time[e])
        chances(members.kind[0], members.p, members.q, scratch, pi[e])
        take(members, 0, k, events.time[e], events.arm[e], events.reward[e])
    return pi, q


def line(what: str, ours: float, theirs: float, our_time: float, their_time: float) -> None:
    print(
        f"| {what} | {ours:.10f} | {theirs:.10f} | {abs(ours - theirs):.1e} | {our_time:.4f} s | {their_time:.4f} s |"
    )


def with_pymab(log: Any, candidate: Candidate, pi: np.ndarray, q: np.ndarray) -> None:
    pymab = importlib.import_module("pymab")
    config, boot = (importlib.import_module(name) for name in ("pymab.offline.estimators", "pymab.statistics"))
    events = log.whole()
    data = pymab.LoggedBanditDataset(
        actions=events.arm, rewards=events.reward, propensities=events.propensity, n_arms=log.n_arms
    )

    class Target:
        def probabilities_batch(self, contexts: Any, *, n_events: int) -> np.ndarray:
            return pi / pi.sum(axis=1, keepdims=True)

        def probabilities(self, context: Any) -> np.ndarray:
            raise NotImplementedError

    class Guesses:
        def predict_event(self, event_index: int, context: Any) -> np.ndarray:
            return q[event_index]

    began = time.perf_counter()
    ours = follow(log, [candidate], workers=1)
    mine = time.perf_counter() - began
    values = {
        "dr": ours.value.sum() / log.n,
        "snips": ours.weighted.sum() / ours.weight.sum(),
    }
    few = (
        boot.BootstrapConfig(n_resamples=100)
        if "n_resamples" in boot.BootstrapConfig.__init__.__annotations__
        else None
    )
    for method, value in values.items():
        settings = config.EstimatorConfig(method=method, **({"bootstrap": few} if few else {}))
        began = time.perf_counter()
        theirs = pymab.estimate_policy_value(data, Target(), config=settings, reward_model=Guesses())
        took = time.perf_counter() - began
        line(f"pymab {method}, {log.name}", float(value), theirs.estimate, mine, took)
    line("pymab effective sample size", effective_size(ours, 0), theirs.weights.raw_effective_sample_size, mine, took)


def with_pymab_replay(log: Any) -> None:
    pymab = importlib.import_module("pymab")
    from pymab.policies.policy import Policy as PeerPolicy

    from driftbandit import Agent

    class Wrapped(PeerPolicy):
        def __init__(self) -> None:
            self.n_arms = ARMS
            self.agent = Agent(Leader(), ARMS, seed=0, first=False, floor=0.0)

        def select_action(self, *, rng: Any) -> int:
            return int(self.agent.choose())

        def update(self, *, action: int, reward: float) -> None:
            self.agent.learn(action, reward)

        def reset(self) -> None:
            self.agent = Agent(Leader(), ARMS, seed=0, first=False, floor=0.0)

        def clone(self) -> Any:
            return Wrapped()

    events = log.whole()
    began = time.perf_counter()
    theirs = pymab.sequential_replay(
        Wrapped(), logged_actions=events.arm, logged_rewards=events.reward, logging_scheme="uniform"
    )
    took = time.perf_counter() - began
    tried = [Candidate("leader", Leader())]
    follow(log, tried, own=True, workers=1)  # compiled once
    began = time.perf_counter()
    ours = follow(log, tried, own=True, workers=1)
    mine = time.perf_counter() - began
    line("pymab sequential_replay, accepted", ours.accepted.sum(), len(theirs.accepted_rewards), mine, took)
    mean = float(np.mean(theirs.accepted_rewards))
    line("pymab sequential_replay, mean reward", ours.earned.sum() / ours.accepted.sum(), mean, mine, took)


def with_obp(log: Any, candidate: Candidate, pi: np.ndarray, q: np.ndarray) -> None:
    root = next((Path(place) / "obp" for place in sys.path if (Path(place) / "obp" / "ope").is_dir()), None)
    if root is None:
        print("obp is not installed", file=sys.stderr)
        return
    if (
        "torch" not in sys.modules and importlib.util.find_spec("torch") is None
    ):  # named in annotations and used for tensors, which we do not give it
        sys.modules["torch"] = types.ModuleType("torch")
        sys.modules["torch"].Tensor = type("Tensor", (), {})
    for name, place in (("obp", root), ("obp.ope", root / "ope")):  # past its front door, which loads everything
        module = types.ModuleType(name)
        module.__path__ = [str(place)]
        sys.modules[name] = module
    found = importlib.import_module("obp.ope.estimators")
    events = log.whole()
    given = {
        "reward": events.reward, "action": events.arm, "pscore": events.propensity,
        "action_dist": (pi / pi.sum(axis=1, keepdims=True))[:, :, None], "position": np.zeros(log.n, int),
        "estimated_rewards_by_reg_model": q[:, :, None],
    }  # fmt: skip
    began = time.perf_counter()
    ours = follow(log, [candidate], workers=1)
    mine = time.perf_counter() - began
    for name, value in (
        ("DoublyRobust", ours.value.sum() / log.n),
        ("SelfNormalizedInverseProbabilityWeighting", ours.weighted.sum() / ours.weight.sum()),
    ):
        wanted = {key: value for key, value in given.items() if name == "DoublyRobust" or not key.startswith("est")}
        began = time.perf_counter()
        theirs = getattr(found, name)().estimate_policy_value(**wanted)
        line(f"obp {name}, {log.name}", float(value), float(theirs), mine, time.perf_counter() - began)


def main() -> None:
    world = phased(np.random.default_rng(0).uniform(0.2, 0.7, (8, ARMS)), np.arange(8) * (EVENTS // 8), EVENTS)
    candidate = candidates(["ds-ts(gamma=0.998)"], False)[0]
    print("| what | ours | theirs | difference | our time | their time |\n| --- | --- | --- | --- | --- | --- |")
    for name, logger in (("even log", uniform_log), ("adaptive log", adaptive_log)):
        log = logger(world, seed=1)
        log.name = name
        follow(log, [candidate], workers=1)  # compiled once
        pi, q = chances_and_guesses(log, candidate)
        with_pymab(log, candidate, pi, q)
        with_obp(log, candidate, pi, q)
    with_pymab_replay(uniform_log(world, seed=2))


if __name__ == "__main__":
    main()
