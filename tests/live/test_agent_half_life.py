"""An agent that forgets by the clock."""

import copy
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from driftbandit import Agent, DiscountedTS
from driftbandit.policies import DiscountedBetaTS, DiscountedUCB, SlidingTS

START = 1_700_000_000.0


def agent(policy=None, **options) -> Agent:
    return Agent(policy or DiscountedBetaTS(), ["a", "b"], seed=1, **{"half_life": "1 h", **options})


def test_a_reward_weighs_by_the_age_of_its_decision() -> None:
    made = agent()
    made.learn("a", 1.0, now=START)
    made.learn("b", 1.0, at=START - 3600, now=START + 1800)
    made.learn("a", 0.0, at=START + 3600, now=START + 3600)
    seen = made._player.arrays(int((START + 3600) * 1e6))
    assert np.allclose(seen.wins, [0.5, 0.25])
    assert np.allclose(seen.losses, [1.0, 0.0])
    seen = made._player.arrays(int((START + 7200) * 1e6))
    assert np.allclose(seen.wins, [0.25, 0.125])


def test_the_order_of_arrival_does_not_matter() -> None:
    rewards = [("a", 1.0, 0), ("b", 0.5, 900), ("a", 0.25, 1800), ("b", 1.0, 5000)]
    states = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]):
        made = agent(DiscountedTS())
        for n in order:
            arm, reward, at = rewards[n]
            made.learn(arm, reward, at=START + at, now=START + 6000)
        seen = made._player.arrays(int((START + 6000) * 1e6))
        states.append(seen)
    for state in states[1:]:
        assert np.allclose(state.mean, states[0].mean, rtol=1e-12)
        assert np.allclose(state.pulls, states[0].pulls, rtol=1e-12)


@pytest.mark.parametrize("policy", [DiscountedTS(), DiscountedBetaTS(), DiscountedUCB()])
def test_snapshots_and_copies_continue_exactly(policy) -> None:
    made = agent(policy)
    for n in range(40):
        made.learn(made.choose(now=START + 60 * n), float(n % 3 == 0), now=START + 60 * n)
    others = [Agent.restore(made.snapshot()), copy.deepcopy(made)]
    for n in range(40, 80):
        arm = made.choose(now=START + 60 * n)
        made.learn(arm, float(n % 4 == 0), at=START + 60 * n - 30, now=START + 60 * n)
        for other in others:
            assert other.choose(now=START + 60 * n) == arm
            other.learn(arm, float(n % 4 == 0), at=START + 60 * n - 30, now=START + 60 * n)
    for other in others:
        assert other.snapshot() == made.snapshot()


def test_asking_changes_nothing_and_arms_may_come() -> None:
    made = agent(floor=0.0, first=False)
    made.learn("a", 1.0, now=START)
    before = made.snapshot()
    made.probabilities(now=START + 1e6)
    assert made.snapshot() == before
    made.add_arm("c")
    assert made.choose(available=["c"], now=START) == "c"
    made.learn("c", 1.0, now=datetime.fromtimestamp(START + 3600, UTC))
    seen = made._player.arrays(int((START + 3600) * 1e6))
    assert np.allclose(seen.wins, [0.5, 0.0, 1.0])
    chances = made.probabilities(now=START + 3600)
    assert sum(chances.values()) == pytest.approx(1.0)
    later = made.probabilities(now=START + 3600 * 50)
    assert max(later.values()) - min(later.values()) < 1e-6


def test_bad_times_and_policies_get_one_sentence() -> None:
    made = agent()
    before = made.snapshot()
    for given, words in [
        ({"at": "now"}, "at is a time"),
        ({"at": float("nan")}, "at is a time"),
        ({"now": datetime(2026, 1, 1)}, "now is a time"),
        ({"at": START + 1, "now": START}, "in the future"),
        ({"at": True}, "at is a time"),
    ]:
        with pytest.raises(ValueError, match=words) as caught:
            made.learn("a", 1.0, **given)
        assert "\n" not in str(caught.value)
    assert made.snapshot() == before
    with pytest.raises(ValueError, match="counts rewards"):
        Agent(DiscountedTS(), 2).learn(0, 1.0, at=START)
    with pytest.raises(ValueError, match="counts rewards"):
        Agent(DiscountedTS(), 2).choose(now=START)
    with pytest.raises(ValueError, match=r"these can: DiscountedBetaTS \(dts, dots\), Disc"):
        agent(SlidingTS())
    for bad in (0, "0 h", -1, "soon", timedelta(0)):
        with pytest.raises(ValueError, match="half_life is a positive time"):
            agent(half_life=bad)


@pytest.mark.parametrize("policy", [DiscountedBetaTS(binarize=True), DiscountedUCB()])
def test_machine_code_forgets_by_the_same_clock(policy) -> None:
    pytest.importorskip("numba")
    plain, fast = agent(policy), agent(policy, compiled=True)
    rng = np.random.default_rng(8)
    for n in range(60):
        now = START + 200.0 * n
        arm = plain.choose(now=now)
        assert fast.choose(now=now) == arm
        reward, at = float(rng.random()), now - 3600.0 * float(rng.random())
        plain.learn(arm, reward, at=at, now=now)
        fast.learn(arm, reward, at=at, now=now)
        if n == 30:
            plain.add_arm("c")
            fast.add_arm("c")
    assert fast.snapshot() == plain.snapshot()
    assert Agent.restore(plain.snapshot(), compiled=True).choose(now=START + 1e5) == plain.choose(now=START + 1e5)


def test_an_agent_shows_its_half_life_and_not_the_discount_that_it_does_not_use() -> None:
    made = Agent(DiscountedTS(), ["a", "b"], half_life="6 h", floor=0.02)
    assert "half_life='6 h', floor=0.02, rewards_learnt=0)" in repr(made)
    assert "gamma" not in repr(made)
    assert "half-life 6 h" in made._repr_html_()
    assert "gamma=0.99" in repr(Agent(DiscountedTS(), 2))
