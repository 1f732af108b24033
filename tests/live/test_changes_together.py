"""Several options in one call of `change`: whatever is accepted can be folded, here and when the bandit is opened
again."""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest

from driftbandit import Bandit
from live.button import HOUR, Clock, assert_proved

PIECES: list[dict[str, Any]] = [
    {"features": None}, {"features": {"y": "flag", "x": "number"}}, {"add_arm": "new"}, {"retire_arm": "a"},
    {"policy": "drift-auto"}, {"policy": "stable-lin-ts"}, {"wait": None}, {"wait": "1 min"}, {"half_life": "1 h"},
]  # fmt: skip
TOGETHER = [{**one, **other} for one, other in combinations(PIECES, 2) if one.keys() != other.keys()] + PIECES
CONTEXTUAL: dict[str, Any] = {"features": {"x": "number"}}
WAITING = {**CONTEXTUAL, "wait": "1 h", "default": 0.0}


def made(store, name, clock, **options) -> Bandit:
    if store is None:
        return Bandit(["a", "b"], seed=1, clock=clock, **options)
    return Bandit.open(store, name, arms=["a", "b"], seed=1, clock=clock, **options)


def play(bandit: Bandit, clock: Clock, rounds: int) -> None:
    for n in range(rounds):
        clock.now += 7_000_000
        declared = bandit.config.features
        context = {name: {"x": 1.5, "y": True}[name] for name in declared} if declared else None
        bandit.reward(bandit.decide(context=context), float(n % 2))


@pytest.mark.parametrize(
    ("kind", "options"), [("memory", {}), ("memory", CONTEXTUAL), ("memory", WAITING), ("sqlite", WAITING)]
)
def test_whatever_is_accepted_can_be_folded(kind, options, tmp_path):
    store = None if kind == "memory" else str(tmp_path / "journal.db")
    accepted = 0
    for place, change in enumerate(TOGETHER):
        for from_now in (True, False):
            clock = Clock()
            with made(store, f"b{place}-{from_now}", clock, **options) as bandit:
                play(bandit, clock, 2)
                before, events = bandit.config, bandit.events
                try:
                    bandit.change(from_now=from_now, **change)
                    accepted += 1
                except ValueError:
                    assert (bandit.config, bandit.events) == (before, events)
                play(bandit, clock, 2)
                clock.now += 2 * HOUR
                bandit.settle()
                play(bandit, clock, 1)
                if store is None:
                    assert Bandit.restore(bandit.snapshot()).fingerprint() == bandit.fingerprint()
    assert accepted > 20
    if store is not None:
        for place in range(len(TOGETHER)):
            with Bandit.open(store, f"b{place}-True", clock=Clock(clock.now + HOUR)) as bandit:
                bandit.refresh()
        assert_proved(store)


class Pulls(NamedTuple):
    pulls: Any


class Two(NamedTuple):
    """A policy of the user's for two arms only."""

    def init(self, n_arms):
        if n_arms > 2:
            raise ValueError("Two has two arms.")
        return Pulls(np.zeros(n_arms))

    def choose(self, state, t, rng):
        return t % 2

    def learn(self, state, t, arm, reward):
        state.pulls[arm] += 1.0


def test_a_change_that_cannot_be_folded_is_not_written(target):
    clock = Clock()
    with made(target, "b", clock, policy=Two()) as bandit:
        play(bandit, clock, 3)
        bandit.refresh()
        before = bandit.events
        with pytest.raises(ValueError, match=r"Two has two arms.*nothing was written"):
            bandit.add_arm("c")
        play(bandit, clock, 3)
        bandit.refresh()
        assert (bandit.arms, bandit.events) == (["a", "b"], before + 3)
