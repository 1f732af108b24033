"""Rewards that a policy cannot bear, and numbers that overflow, are refused before anything is played or learned."""

import math
from typing import Any

import numpy as np
import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.cli._main import main
from driftbandit.core.checks import accepted_rewards, check_rewards, paid_rewards
from driftbandit.core.parameters import parameters
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
from driftbandit.environments.abrupt import Lagged
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.study import loads
from driftbandit.policies import EXP3S, BetaTS, PeriodicRestart
from driftbandit.spec.parse import environments, laws, policies
from live_policies import LIVE, make
from small_policies import play_arm

NOISY = Abrupt(n_arms=3, horizon=300, phases=1, law=Gaussian(sd=1.0))
UNIT = [name for name in LIVE if accepted_rewards(make(name)) == "[0, 1]"]


def test_every_policy_and_law_says_what_it_bears_or_pays():
    for cls in policies().values():
        assert "base" in cls._fields or cls.rewards in ("[0, 1]", "any"), cls
    for cls in laws().values():
        assert cls.pays in ("[0, 1]", "any", "the mean"), cls
    assert accepted_rewards(PeriodicRestart(base=BetaTS())) == "[0, 1]"
    assert accepted_rewards(PeriodicRestart(base=DiscountedTS())) == "any"
    for name, cls in environments().items():
        given = {"means": ((0.5, 0.5),), "starts": (0,), "horizon": 50} if name == "PhaseTable" else {}
        assert paid_rewards(cls(**given).realise(1)) == ("any" if name in ("Linear", "Scaled") else "[0, 1]"), name


@pytest.mark.parametrize(
    ("environment", "paid"),
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
    ],
)
def test_a_environment_knows_what_it_pays(environment, paid):
    assert paid_rewards(environment.realise(0)) == paid
    if paid == "any":
        with pytest.raises(ValueError, match=r"^BetaTS accepts rewards in \[0, 1\] only, and .* pays others; "):
            check_rewards(BetaTS(), environment.realise(0))


@pytest.mark.parametrize("name", UNIT)
def test_a_policy_that_cannot_bear_the_rewards_is_not_played(name):
    for options in ({"compiled": False}, {}):
        with pytest.raises(ValueError, match=r"accepts rewards in \[0, 1\] only, and Gaussian\(sd=1.0\) pays others"):
            simulate(make(name), NOISY, runs=2, **options)
    bandit = Bandit(2, make(name), seed=1)
    assert bandit.config.reward_range == (0, 1)
    with pytest.raises(ValueError, match="outside reward_range"):
        bandit.reward(bandit.decide(), 1.5)
    bandit = Bandit(2, seed=1)
    with pytest.raises(ValueError, match="made without reward_range"):
        bandit.change(policy=make(name), from_now=True)


@pytest.mark.parametrize("name", [name for name in LIVE if name not in UNIT])
def test_a_policy_for_any_rewards_plays_on_whatever_comes(name):
    rewards = [-3.0, 5.0, 0.0, 1e30, -1e30, 1e-300, 17.5, -0.0]
    bandit = Bandit(3, make(name), seed=1, first=False, floor=0.0)
    for n in range(400):
        decision = bandit.decide()
        arm = decision.arm
        assert arm in (0, 1, 2)
        bandit.reward(decision, rewards[n % 8] if n > 40 else rewards[(n * 5) % 3])
    assert sum(bandit.probabilities(draws=20).values()) == pytest.approx(1.0)
    Bandit.restore(bandit.snapshot())
    simulate(make(name), NOISY, runs=2, compiled=False)


def test_the_command_line_says_so_in_one_sentence(capsys):
    status = main(
        ["run", "uniform", "ts", "--env", "abrupt(horizon=200, phases=1, law=Gaussian(sd=1.0))", "--runs", "2"]
    )
    printed = capsys.readouterr()
    assert status != 0
    assert "BetaTS accepts rewards in [0, 1] only" in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""  # uniform was not played either


def test_a_study_is_refused_before_anything_of_it_is_played():
    text = 'policies = ["uniform", "ts"]\nenvironments = ["smooth(law=Gaussian(sd=1.0), horizon=100)"]\n'
    with pytest.raises(ValueError, match=r"BetaTS accepts rewards in \[0, 1\] only"):
        loads(text)


# ---- numbers that leave what a float can hold


@pytest.mark.parametrize(
    "build",
    [
        lambda: Bandit(2, DiscountedTS(), reward_range=(-1e308, 1e308)),
        lambda: Bandit(2, DiscountedTS(), reward_range=(0, 1e-320)),
        lambda: Bandit(2, DiscountedTS(), reward_range=(0, 2**10_000)),
        lambda: DiscountedTS(tau_max=1e-320),
        lambda: BetaTS(prior_wins=1e-320),
        lambda: BetaTS(prior_wins=1e300),
        lambda: Gaussian(sd=5e-324),
        lambda: EXP3S(explore=1e-320),
    ],
)
def test_what_would_overflow_is_refused_when_made(build):
    with pytest.raises(ValueError, match=r"between 1e-100 and 1e\+100|finite low < high|in \(0, 1e15\]"):
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


@pytest.mark.parametrize("reward", [2**63, 2**2000, 1e308, -1e308, 1.1e30])
def test_a_reward_too_large_to_reckon_with_is_refused_and_nothing_is_learnt(reward):
    bandit = Bandit(2, DiscountedTS(), seed=1)
    before = bandit.state
    if reward == 2**63:
        play_arm(bandit, 0, reward)
        assert math.isfinite(bandit.state.mean[0])
        return
    with pytest.raises(ValueError, match=r"[Nn]othing was (learned|written)"):
        play_arm(bandit, 0, reward)
    assert all(np.array_equal(one, other) for one, other in zip(bandit.state, before, strict=True))


@pytest.mark.parametrize("where", ["memory", "file"])
def test_rewards_beyond_1e30_need_a_declared_range(where, tmp_path):
    def made(name, **options):
        return (
            Bandit(2, seed=1, **options)
            if where == "memory"
            else Bandit.open(tmp_path / "a.db", name, arms=2, **options)
        )

    with made("any") as plain, made("declared", reward_range=(0, 1e50)) as declared:
        for reward in (1.1e30, -1e31, 1e100):
            with pytest.raises(ValueError, match=r"A reward is a finite number up to 1e\+30; got -?1"):
                plain.reward(plain.decide(), reward)
            with pytest.raises(ValueError, match=r"up to 1e\+30"):
                plain.reward(plain.decide(), reward, add=True, part="a")
        assert plain.reward(plain.decide(), -1e30) == "learned"
        assert declared.reward(declared.decide(), 1e40) == "learned"
    with pytest.raises(ValueError, match="default"):
        made("late", wait="1 h", default=1e40)


def test_extreme_parameters_that_are_allowed_play():
    for policy in (
        BetaTS(1e-100, 1e-100),
        BetaTS(1e15, 1e15),
        BetaTS(1e-100, 1e15),
        DiscountedTS(tau_max=1e-100, weight=1e100),
        DiscountedTS(tau_max=1e100, weight=1e-100),
    ):
        bandit = Bandit(3, policy, reward_range=(0, 1), seed=1, first=False, floor=0.0)
        for n in range(100):
            bandit.reward(bandit.decide(), n % 2)
        assert np.isfinite(bandit.state.scores).all()
        assert sum(bandit.probabilities().values()) == pytest.approx(1.0)
