"""A policy may ask for more numbers than it has arms: all ways to play it still agree."""

from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba")

from driftbandit import Bandit
from driftbandit.core.primitives import argmax
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from small_policies import chosen


class Sums(NamedTuple):
    a: Any
    b: Any
    drawn: Any
    scores: Any


class Greedy(NamedTuple):
    """Adds up `each` draws per arm and plays the largest sum."""

    each: int = 20
    shape: float = 0.5
    normal: bool = False

    def init(self, n_arms):
        shapes = np.full(self.each * n_arms, self.shape)
        return Sums(shapes, shapes.copy(), np.zeros(self.each * n_arms), np.zeros(n_arms))

    def choose(self, state, t, rng):
        if self.normal:
            rng.normals(state.drawn)
        else:
            rng.betas(state.a, state.b, state.drawn)
        for arm in range(len(state.scores)):
            state.scores[arm] = state.drawn[self.each * arm]
            for i in range(1, self.each):
                state.scores[arm] = state.scores[arm] + state.drawn[self.each * arm + i]
        return argmax(state.scores)

    def learn(self, state, t, arm, reward):
        state.a[self.each * arm] += reward


Greedy.lockstep = True
POLICIES = [Greedy(), Greedy(shape=1.2), Greedy(each=2, shape=1.0), Greedy(normal=True), Greedy(each=3, normal=True)]


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_more_draws_than_arms_are_the_same_interpreted_single_and_in_lockstep(policy):
    environment = Abrupt(n_arms=9, horizon=120, phases=2)
    lanes = simulate(policy, environment, runs=8, progress=False)
    single = simulate(policy, environment, runs=8, lockstep=False, progress=False)
    plain = simulate(policy, environment, runs=3, compiled=False, progress=False)
    assert np.array_equal(lanes.regret, single.regret)
    assert np.array_equal(plain.regret, single.regret[:3])


@pytest.mark.parametrize("policy", POLICIES[2:], ids=str)
def test_more_draws_than_arms_are_the_same_in_a_compiled_agent(policy):
    bandits = [Bandit(9, policy, seed=3, compiled=compiled) for compiled in (False, True)]
    assert chosen(bandits[0], 50) == chosen(bandits[1], 50)
    assert [bandits[0].decide().arm for _ in range(20)] == [bandits[1].decide().arm for _ in range(20)]
