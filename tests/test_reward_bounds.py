"""Rewards that a policy cannot bear, and numbers that overflow, are refused before anything is played or learnt."""

import math
from typing import Any

import numpy as np
import pytest

from agent_crew import LIVE, make
from driftbandit import Agent, DiscountedTS
from driftbandit.cli import main
from driftbandit.environments import (
    Abrupt,
    AbruptFinite,
    BetaLaw,
    Constant,
    Gaussian,
    Smooth,
    TruncatedGaussian,
    phased,
)
from driftbandit.environments.lagged import Lagged
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.experiments.study_file import loads
from driftbandit.lab.jobs.drift import Still
from driftbandit.parameters import parameters
from driftbandit.policies import EXP3S, BetaTS, PeriodicRestart
from driftbandit.rewards import bears, check_rewards, pays
from driftbandit.text.registry import environments, laws, policies

NOISY = Abrupt(n_arms=3, horizon=300, phases=1, law=Gaussian(sd=1.0))
UNIT = [name for name in LIVE if bears(make(name)) == "[0, 1]"]


def test_every_policy_and_law_says_what_it_bears_or_pays():
    for cls in policies().values():
        assert "base" in cls._fields or cls.rewards in ("[0, 1]", "any"), cls
    for cls in laws().values():
        assert cls.pays in ("[0, 1]", "any", "the mean"), cls
    assert bears(PeriodicRestart(base=BetaTS())) == "[0, 1]"
    assert bears(PeriodicRestart(base=DiscountedTS())) == "any"
    for name, cls in environments().items():
        given = {"means": ((0.5, 0.5),), "starts": (0,), "horizon": 50} if name == "PhaseTable" else {}
        assert pays(cls(**given).realise(1)) == "[0, 1]", name


@pytest.mark.parametrize(
    ("world", "paid"),
    [
        (NOISY, "any"),
        (Smooth(law=Gaussian()), "any"),
        (Smooth(law=Constant()), "[0, 1]"),
        (Smooth(law=BetaLaw()), "[0, 1]"),
        (Smooth(law=TruncatedGaussian()), "[0, 1]"),
        (AbruptFinite(horizon=100), "[0, 1]"),
        (phased([[0.5, 2.0]], [0], 10, Constant()), "any"),
        (phased([[0.5, 1.0]], [0], 10, Constant()), "[0, 1]"),
        (Lagged(NOISY), "any"),
        (Still(NOISY), "any"),
    ],
)
def test_a_world_knows_what_it_pays(world, paid):
    assert pays(world.realise(0)) == paid
    if paid == "any":
        with pytest.raises(ValueError, match=r"^BetaTS can bear rewards in \[0, 1\] only, and .* pays others; "):
            check_rewards(BetaTS(), world.realise(0))


@pytest.mark.parametrize("name", UNIT)
def test_a_policy_that_cannot_bear_the_rewards_is_not_played(name):
    for options in ({"compiled": False}, {}):
        with pytest.raises(ValueError, match=r"can bear rewards in \[0, 1\] only, and Gaussian\(sd=1.0\) pays others"):
            simulate(make(name), NOISY, runs=2, **options)
    with pytest.raises(ValueError, match=r"can bear rewards in \[0, 1\] only, and outside=\"allow\" lets others in"):
        Agent(make(name), 2, outside="allow")


@pytest.mark.parametrize("name", [name for name in LIVE if name not in UNIT])
def test_a_policy_for_any_rewards_plays_on_whatever_comes(name):
    rewards = [-3.0, 5.0, 0.0, 1e99, -1e99, 1e-300, 17.5, -0.0]
    agent = Agent(make(name), 3, seed=1, outside="allow", first=False, floor=0.0)
    for n in range(400):
        arm = agent.choose()
        assert arm in (0, 1, 2)
        agent.learn(arm, rewards[n % 8] if n > 40 else rewards[(n * 5) % 3])
    assert sum(agent.probabilities(draws=20).values()) == pytest.approx(1.0)
    Agent.restore(agent.snapshot())
    simulate(make(name), NOISY, runs=2, compiled=False)


def test_the_command_line_says_so_in_one_sentence(capsys):
    status = main(
        ["run", "uniform", "ts", "--env", "abrupt(horizon=200, phases=1, law=Gaussian(sd=1.0))", "--runs", "2"]
    )
    told = capsys.readouterr()
    assert status != 0
    assert "BetaTS can bear rewards in [0, 1] only" in told.err
    assert "Traceback" not in told.err
    assert told.out == ""  # uniform was not played either


def test_a_study_is_refused_before_anything_of_it_is_played():
    text = 'policies = ["uniform", "ts"]\nenvironments = ["smooth(law=Gaussian(sd=1.0), horizon=100)"]\n'
    with pytest.raises(ValueError, match=r"BetaTS can bear rewards in \[0, 1\] only"):
        loads(text)


# ---- numbers that leave what a float can hold


@pytest.mark.parametrize(
    "build",
    [
        lambda: Agent(DiscountedTS(), 2, reward_range=(-1e308, 1e308)),
        lambda: Agent(DiscountedTS(), 2, reward_range=(0, 1e-320)),
        lambda: Agent(DiscountedTS(), 2, reward_range=(0, 2**10_000)),
        lambda: DiscountedTS(tau_max=1e-320),
        lambda: BetaTS(prior_wins=1e-320),
        lambda: BetaTS(prior_wins=1e300),
        lambda: Gaussian(sd=5e-324),
        lambda: EXP3S(explore=1e-320),
    ],
)
def test_what_would_overflow_is_refused_when_made(build):
    with pytest.raises(
        ValueError, match=r"(width|of a size) between 1e-100 and 1e\+100|finite low < high|in \(0, 1e15\]"
    ):
        build()


def test_every_float_parameter_of_everything_refuses_what_would_overflow():
    looked = 0
    for cls in [*policies().values(), *environments().values(), *laws().values()]:
        for p in parameters(cls):
            if p.kind is not float:
                continue
            for bad in (1e-320, 1e308, -1e308):
                looked += 1
                with pytest.raises(ValueError, match=cls.__name__):
                    cls(**{**made_of(cls), p.name: bad})
    assert looked > 100


def made_of(cls: type) -> dict[str, Any]:
    needed = {"means": ((0.1, 0.2),), "starts": (0,), "horizon": 5, "base": DiscountedTS()}
    return {name: value for name, value in needed.items() if name in cls._fields and name not in cls._field_defaults}


@pytest.mark.parametrize("reward", [2**63, 2**2000, 1e308, -1e308, 1e101])
def test_a_reward_too_large_to_reckon_with_is_refused_and_nothing_is_learnt(reward):
    agent = Agent(DiscountedTS(), 2, seed=1, outside="allow")
    before = agent.snapshot()
    if reward == 2**63:
        agent.learn(0, reward)
        assert math.isfinite(agent.state.mean[0])
        return
    with pytest.raises(ValueError, match=r"Nothing was learnt|nothing was learnt"):
        agent.learn(0, reward)
    assert agent.snapshot() == before


def test_extreme_parameters_that_are_allowed_play():
    for policy in (
        BetaTS(1e-100, 1e-100),
        BetaTS(1e15, 1e15),
        BetaTS(1e-100, 1e15),
        DiscountedTS(tau_max=1e-100, weight=1e100),
        DiscountedTS(tau_max=1e100, weight=1e-100),
    ):
        agent = Agent(policy, 3, seed=1, first=False, floor=0.0)
        for n in range(100):
            agent.learn(agent.choose(), n % 2)
        assert np.isfinite(agent.state.scores).all()
        assert sum(agent.probabilities().values()) == pytest.approx(1.0)
