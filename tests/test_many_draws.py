"""A policy may ask for more numbers than it has arms: all ways to play it still agree."""

from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba")

from driftbandit import Agent
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.primitives import argmax


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


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_more_draws_than_arms_are_the_same_interpreted_alone_and_in_lockstep(policy):
    world = Abrupt(n_arms=9, horizon=120, phases=2)
    lanes = simulate(policy, world, runs=8, progress=False)
    alone = simulate(policy, world, runs=8, lockstep=False, progress=False)
    plain = simulate(policy, world, runs=3, compiled=False, progress=False)
    assert np.array_equal(lanes.regret, alone.regret)
    assert np.array_equal(plain.regret, alone.regret[:3])


@pytest.mark.parametrize("policy", POLICIES[2:], ids=str)
def test_more_draws_than_arms_are_the_same_in_a_compiled_agent(policy):
    agents = [Agent(policy, arms=9, seed=3, compiled=compiled) for compiled in (False, True)]
    assert agents[0].choose(50) == agents[1].choose(50)
    assert [agents[0].choose() for _ in range(20)] == [agents[1].choose() for _ in range(20)]
