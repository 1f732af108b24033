"""The policy that the lab measures the agent's exploration by decides as the agent does."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from driftbandit import Agent, DiscountedTS
from driftbandit.agent.exploration import DEFAULT_FLOOR
from driftbandit.draws import REWARD, Stream, stream_key
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import EXP3S, SlidingTS


def measured():
    path = Path(__file__).parents[1] / "benchmarks" / "safe_agent.py"
    spec = importlib.util.spec_from_file_location("safe_agent", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("base", [DiscountedTS(gamma=0.97), SlidingTS(window=50), EXP3S(explore=0.3)], ids=repr)
@pytest.mark.parametrize("options", [{}, {"first": False, "floor": 0.2}, {"first": True, "floor": 0.0}], ids=repr)
def test_the_measured_policy_chooses_the_agents_arms(base, options):
    world = Abrupt(n_arms=4, horizon=600, phases=3, world="1")
    policy = measured().Explored(base, **{"first": True, "floor": DEFAULT_FLOOR, **options})
    done = simulate(policy, world, runs=1, seed=3, trajectories=True, compiled=False)
    agent, real, reward_rng = Agent(base, 4, seed=3, **options), world.realise(0), Stream(stream_key(3, 0, REWARD))
    arms = []
    for t in range(world.horizon):
        arms.append(agent.choose())
        agent.learn(arms[-1], float(real.pull(t, arms[-1], reward_rng.at(t))))
    assert np.array_equal(arms, done.arms[0])
