"""A warning about numbers that mean nothing is for states that a policy cannot be in, and for no others."""

import logging
import math
import time
from typing import Any, NamedTuple

import numpy as np
import pytest

from driftbandit import Bandit
from live_policies import LIVE, make

ARMS = ["red", "green", "blue"]


class WidthState(NamedTuple):
    pulls: Any
    widest: Any
    scores: Any


class Widths(NamedTuple):
    """A policy of a user's, infinite where an arm has no reward, which breaks after `sound` rewards."""

    sound: int = 1000

    def init(self, n_arms):
        return WidthState(np.zeros(n_arms), np.full(1, math.inf), np.zeros(n_arms))

    def choose(self, state, t, rng):
        for arm in range(len(state.scores)):
            state.scores[arm] = 1.0 / state.pulls[arm] if state.pulls[arm] > 0.0 else math.inf
        return int(rng.uniform(1) * len(state.scores))

    def learn(self, state, t, arm, reward):
        state.pulls[arm] += 1.0 if t < self.sound else math.inf


def play(bandit, rewards) -> list[str]:
    for n, reward in enumerate(rewards):
        bandit.reward(bandit.decide(f"d{n}").id, float(reward))
    return bandit.health()["warnings"]


@pytest.mark.parametrize("rewards", [[], [1, 1], [0, 1] * 60, [0, 1, 2.5] * 40], ids=["none", "one", "two", "three"])
def test_the_default_policy_never_warns(store, rewards, caplog):
    with caplog.at_level(logging.WARNING, "driftbandit.bandit"):
        assert play(Bandit(ARMS, seed=1), rewards) == []
        with Bandit.open(store, "button", arms=ARMS, wait="1 h", default=0.0) as bandit:
            assert play(bandit, rewards) == []
        with Bandit.open(store, "button") as bandit:
            assert bandit.health()["warnings"] == []
    assert "out of bounds" not in caplog.text


def test_a_fresh_bandit_of_a_service_does_not_warn(fresh):
    body = {"name": "waiting", "arms": ARMS, "wait": "1 s", "default": 0}
    assert fresh.post("/v1/bandits", body).status_code == 201
    for _ in range(60):  # enough for a look at how rewards are reported
        fresh.post("/v1/bandits/waiting/decisions")
    time.sleep(1.2)
    health = fresh.wait_for("/v1/bandits/waiting/health", lambda found: found["defaults"] == 60)
    assert (health["defaults"], health["warnings"]) == (60, [])
    assert not any("out of bounds" in line for line in fresh.lines)


@pytest.mark.parametrize("name", LIVE)
def test_no_policy_of_the_library_warns(name):
    bandit = Bandit(ARMS, make(name), seed=2, first=False, floor=0.0)
    for n in range(150):
        bandit.reward(bandit.decide().id, float(n % 3 == 0))
        if n % 15 == 0:
            assert bandit.health()["warnings"] == []


def test_numbers_that_mean_nothing_are_reported():
    broken = Bandit(ARMS, seed=1)
    play(broken, [0, 1])
    broken._fold.player.state.two.known.wins[0] = math.nan
    assert ["out of bounds" in text for text in broken.health()["warnings"]] == [True]
    assert play(Bandit(ARMS, Widths(), seed=1), [1] * 30) == []
    assert ["out of bounds" in text for text in play(Bandit(ARMS, Widths(5), seed=1), [1] * 30)] == [True]
