"""Arms tried on purpose: each once before any is left, and a floor of even play, for any policy."""

import math
from typing import Any

import numpy as np
import pytest

from agent_crew import LIVE, make
from driftbandit import Agent, DiscountedTS
from driftbandit.agent.exploration import EVEN, FLOOR, explored, mixed
from driftbandit.draws import Stream


def life(agent: Agent, means: Any, rounds: int, seed: int) -> list[int]:
    """The arms of an agent in a world of 0/1 rewards; `means(t)` gives the means of round t."""
    reward_rng, arms = np.random.default_rng(seed), []
    for t in range(rounds):
        arm = agent.choose()
        arms.append(arm)
        agent.learn(arm, float(reward_rng.random() < means(t)[arm]))
    return arms


# ---- what once went wrong, with the defaults


def test_the_best_arm_is_always_tried():
    """Means .8, .85, .95: alone the policy never tried the best arm in 31 of 60 runs."""
    for seed in range(60):
        arms = life(Agent(DiscountedTS.half_life(200), 3, seed=seed), lambda t: (0.8, 0.85, 0.95), 30, seed)
        assert set(arms[:3]) == {0, 1, 2}


def test_the_best_arm_gets_most_of_the_play_in_the_end():
    shares = []
    for seed in range(20):
        arms = life(Agent(DiscountedTS.half_life(200), 3, seed=seed), lambda t: (0.5, 0.6, 0.95), 3000, seed)
        shares.append(arms[1500:].count(2) / 1500)
    assert min(shares) > 0.5


def test_an_arm_that_becomes_best_while_nobody_looks_is_found():
    """A at .85, B rising from .1 to .98: alone, B had under 1 % of the next 5000 rounds in 18 of 20 runs."""
    found = 0
    for seed in range(20):
        agent = Agent(DiscountedTS.half_life(200), 2, seed=seed)
        arms = life(agent, lambda t: (0.85, 0.1 if t < 2000 else 0.98), 7000, seed)
        found += arms[2000:].count(1) / 5000 > 0.2
    assert found == 20


def test_the_readmes_example_tries_all_its_arms():
    agent = Agent(DiscountedTS.half_life(200), arms=["small", "medium", "large"], seed=1)
    seen = set()
    for _ in range(1000):
        arm = agent.choose()
        seen.add(arm)
        agent.learn(arm, reward=0.9 if arm == "large" else 0.3)
    assert seen == {"small", "medium", "large"}


# ---- the rule


@pytest.mark.parametrize("name", LIVE)
def test_each_arm_comes_first_once_in_random_order(name):
    orders = set()
    for seed in range(30):
        agent, arms = Agent(make(name), list("abc"), seed=seed), []
        for _ in range(3):
            chances = agent.probabilities(draws=5)
            assert chances.error == 0.0
            left = [arm for arm in "abc" if arm not in arms]
            assert chances == {arm: 1 / len(left) if arm in left else 0.0 for arm in "abc"}
            arms.append(agent.choose())
            agent.learn(arms[-1], 1.0)
        assert sorted(arms) == ["a", "b", "c"]
        orders.add(tuple(arms))
    assert len(orders) == 6  # all are seen but for a chance of 6 * (5/6)**30 = 0.025; the seeds are fixed


def test_first_looks_at_the_available_arms_and_at_new_ones():
    agent = Agent(DiscountedTS(), list("abcd"), seed=1, floor=0.0)
    assert sorted(agent.choose(available=["b", "c"]) for _ in range(2)) == ["b", "c"]
    agent.learn("d", 1.0)  # known from elsewhere: tried already
    assert agent.choose() == "a"
    agent.add_arm("e")
    assert agent.probabilities()["e"] == 1.0
    assert agent.choose() == "e"
    assert agent.probabilities()["e"] < 1.0


def test_batches_decide_as_single_choices_do():
    for options in ({}, {"floor": 0.3}, {"first": False, "floor": 0.3}, {"first": False, "floor": 0.0}):
        for available in (None, [0, 2, 3]):
            one, many = (Agent(DiscountedTS(), 4, seed=9, **options) for _ in range(2))
            assert many.choose(200, available=available) == [one.choose(available=available) for _ in range(200)]
            assert many.snapshot() == one.snapshot()


@pytest.mark.parametrize("policy", [DiscountedTS(), make("EXP3S"), make("DiscountedUCB")], ids=repr)
def test_chances_count_the_floor_and_agree_with_play(policy):
    agent = Agent(policy, 3, seed=2, floor=0.3)
    for t in range(100):
        agent.learn(t % 3, float(t % 3 == 1))
    agent.remove_arm(0)
    chances, n = agent.probabilities(), 6000
    assert min(chances.values()) >= 0.15 - 1e-12
    arms = agent.choose(n)
    for arm, chance in chances.items():
        slack = 4.9 * math.sqrt(chance * (1 - chance) / n) + chances.error  # false alarm: one in a million per arm
        assert abs(arms.count(arm) / n - chance) < slack


def test_the_floor_is_additive_and_its_numbers_disturb_no_others():
    assert mixed(np.array([0.7, 0.3, 0.0]), 0.3) == pytest.approx([0.59, 0.31, 0.1])
    plain = Agent(DiscountedTS(), 3, seed=4, first=False, floor=0.0).choose(500)
    floored = Agent(DiscountedTS(), 3, seed=4, first=False, floor=0.2).choose(500)
    stream = Stream(Agent(DiscountedTS(), 3, seed=4)._stream.key)
    for j in range(500):
        rng = stream.at(j)
        even = rng.uniform(FLOOR) < 0.2
        assert floored[j] == (int(rng.uniform(EVEN) * 3) if even else plain[j])
        assert explored(rng, 0.2, (), range(3)) == (floored[j] if even else None)


def test_both_rules_survive_a_snapshot():
    agent = Agent(DiscountedTS(), list("abc"), seed=1, floor=0.25)
    agent.choose()
    twin = Agent.restore(agent.snapshot())
    assert (twin.first, twin.floor) == (True, 0.25)
    assert twin.choose(50) == agent.choose(50)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "0.1", None, True, [0.1]])
def test_a_floor_that_is_no_probability_is_refused(bad):
    with pytest.raises(ValueError, match=r"^floor is a probability, a number from 0 to 1; got "):
        Agent(DiscountedTS(), 2, floor=bad)


def test_first_is_yes_or_no():
    for bad in (1, "yes", None):
        with pytest.raises(ValueError, match=r"^first is True or False; got "):
            Agent(DiscountedTS(), 2, first=bad)
