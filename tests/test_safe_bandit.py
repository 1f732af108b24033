"""The policy that the lab measures the bandit's exploration by decides as the bandit does."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.bandit.settings import FLOOR
from driftbandit.core.draws import REWARD, Stream, stream_key
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import EXP3S, SlidingTS


def measured():
    path = Path(__file__).parents[1] / "benchmarks" / "safe_bandit.py"
    spec = importlib.util.spec_from_file_location("safe_bandit", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("base", [DiscountedTS(gamma=0.97), SlidingTS(window=50), EXP3S(explore=0.3)], ids=repr)
@pytest.mark.parametrize("options", [{}, {"first": False, "floor": 0.2}, {"first": True, "floor": 0.0}], ids=repr)
def test_the_measured_policy_chooses_the_bandits_arms(base, options):
    environment = Abrupt(n_arms=4, horizon=600, phases=3, instance="1")
    policy = measured().Explored(base, **{"first": True, "floor": FLOOR, **options})
    done = simulate(policy, environment, runs=1, seed=3, trajectories=True, compiled=False)
    bandit, real, reward_rng = (
        Bandit(4, base, reward_range=(0, 1), seed=3, **options),
        environment.realise(0),
        Stream(stream_key(3, 0, REWARD)),
    )
    arms = []
    for t in range(environment.horizon):
        decision = bandit.decide()
        arms.append(decision.arm)
        bandit.reward(decision, float(real.pull(t, arms[-1], reward_rng.at(t))))
    assert np.array_equal(arms, done.arms[0])
