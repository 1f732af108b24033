"""A copy of a bandit in memory that waits for rewards continues exactly where it was taken."""

import copy
import random

import pytest

from driftbandit import Bandit
from live.button import Clock


def play(bandits: list[Bandit], clock: Clock, rounds: int, chance: random.Random) -> list[list[tuple]]:
    """The same calls of all bandits, with rewards that come at once, later or never."""
    made: list[list[tuple]] = [[] for _ in bandits]
    unpaid: list[str] = []
    for _ in range(rounds):
        clock.now += chance.randrange(1, chance.choice([3_000_000, 100_000]))
        when, value, change = chance.random(), float(chance.random() < 0.5), chance.random()
        for out, bandit in zip(made, bandits, strict=True):
            if change < 0.03:
                bandit.change(wait=None if change < 0.01 else "2 min")
            decision = bandit.decide()
            out.append((decision.arm, decision.known))
            if when < 0.4:
                bandit.reward(decision, value)
            elif when < 0.6 and unpaid:
                bandit.reward(unpaid[0], value)
        unpaid = unpaid[0.4 <= when < 0.6 :] + [decision.id] * (when >= 0.4)
    return made


@pytest.mark.parametrize("learn", ["wait", "arrival"])
def test_a_copy_learns_the_rewards_that_waited(learn) -> None:
    for seed in range(15):
        chance, clock = random.Random(seed), Clock()
        wait = {"wait": chance.choice(["1 min", "10 min"]), "default": 0.0, "learn": learn}
        bandit = Bandit(["a", "b", "c"], "ds-ts", seed=seed, reward_range=(0, 1), clock=clock, **wait)
        play([bandit], clock, chance.randrange(1, 150), chance)
        one, other = copy.deepcopy(bandit), Bandit.restore(bandit.snapshot(), clock=clock)
        made = play([bandit, one, other], clock, 100, chance)
        assert made[0] == made[1] == made[2]
        clock.now += 1_300_000_000
        assert bandit.settle() == one.settle() == other.settle()
        assert bandit.health()["waiting"] == 0
        assert bandit.fingerprint() == one.fingerprint() == other.fingerprint()
