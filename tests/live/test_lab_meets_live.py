"""A simulation played through a live bandit: the same arms as `Agent` and `simulate` with the same draws."""

import pytest

from driftbandit import Agent
from driftbandit.draws import POLICY, REWARD, Stream, stream_key
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.live import Bandit
from driftbandit.policies.delayed import Delayed
from driftbandit.primitives import learns_by_chance
from driftbandit.state import to_lists
from driftbandit.text.registry import policies
from live.button import Clock

WORLD = Abrupt(n_arms=4, horizon=120, phases=3, world="1")
BASE = {"base": "DiscountedTS"}
SIMULATED = {name for name, cls in policies().items() if getattr(cls, "simulated_only", False)}
NAMES = sorted(set(policies()) - SIMULATED)


def make(name: str):
    cls = policies()[name]
    given = {}
    if "base" in cls._fields:
        given["base"] = policies()["DiscountedTS"]()
    if "horizon" in cls._fields:
        given["horizon"] = WORLD.horizon
    return cls(**given)


@pytest.mark.parametrize("name", NAMES)
def test_a_bandit_with_immediate_rewards_plays_the_simulators_game(name: str, tmp_path) -> None:
    policy = make(name)
    played = simulate(policy, WORLD, runs=1, seed=3, trajectories=True, compiled=False)
    agent = Agent(policy, WORLD.n_arms, seed=3, first=False, floor=0.0)
    world, luck = to_lists(WORLD.realise(stream_key(3, 0, 0))), Stream(stream_key(3, 0, REWARD))
    options = {"seed": 3, "rounds": "number", "floor": 0.0}
    with Bandit.open(tmp_path / "j.db", "lab", policy, WORLD.n_arms, **options) as bandit:
        arms, agents, rewards = [], [], []
        for t in range(WORLD.horizon):
            arms.append(bandit.decide(str(t)).arm)
            agents.append(agent.choose())
            rewards.append(float(world.pull(t, arms[-1], luck.at(t))))
            assert bandit.reward(str(t), rewards[-1]) == "learnt"
            agent.learn(agents[-1], rewards[-1])
    assert rewards == played.rewards[0].tolist()
    assert arms == played.arms[0].tolist()
    assert arms == agents


LATE = [name for name in NAMES if not learns_by_chance(policies()[name])]


@pytest.mark.parametrize("name", LATE)
def test_a_bandit_with_wait_plays_what_the_simulator_plays_with_outcomes_in_the_order_of_decisions(name, tmp_path):
    """One decision per second; successes only are reported, some of them too late. (Policies that draw random numbers
    to learn are left out: the simulator gives them those of the round, a bandit those of the number of outcomes.)"""
    policy, wait, mean = make(name), 15, 6
    late = Delayed(policy, rounds=mean, random=True, wait=wait, order="decision")
    played = simulate(late, WORLD, runs=1, seed=3, trajectories=True, compiled=False)
    world, draws = to_lists(WORLD.realise(stream_key(3, 0, 0))), Stream(stream_key(3, 0, REWARD))
    rule, numbers = late.with_world(world), Stream(stream_key(3, 0, POLICY))
    clock, arms, reports, verdicts = Clock(), [], {}, set()
    options = {"seed": 3, "rounds": "number", "floor": 0.0, "clock": clock, "wait": wait, "default": 0.0}
    with Bandit.open(tmp_path / "j.db", "lab", policy, WORLD.n_arms, durability="none", **options) as bandit:
        for t in range(WORLD.horizon):
            clock.now += 1_000_000
            arms.append(bandit.decide_many([str(t)])[0].arm)
            if world.pull(t, arms[-1], draws.at(t)) > 0.0:
                reports.setdefault(t + rule.delay(numbers.at(t)), []).append((str(t), 1.0))
            verdicts |= set(bandit.reward_many(reports.pop(t, [])))
    assert arms == played.arms[0].tolist()
    assert verdicts == {"waiting", "late"}
