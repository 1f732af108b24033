"""Durations, what is left after some half-lives, and the two halves of learning."""

import inspect
import math
import re
from datetime import timedelta

import numpy as np
import pytest

from driftbandit.core.draws import Stream
from driftbandit.core.state import to_lists
from driftbandit.player import Player
from driftbandit.policies import (
    DiscountedBetaTS,
    DiscountedKLUCB,
    DiscountedTS,
    DiscountedUCB,
    EpsilonGreedy,
)
from driftbandit.spec.half_life import checked_half_life, duration, format_duration, half_to_the
from driftbandit.spec.parse import policies

FADING = [
    DiscountedTS(0.97, weight=2.0),
    DiscountedBetaTS(0.97),
    DiscountedBetaTS(0.97, optimistic=True),
    DiscountedUCB(0.97),
    DiscountedKLUCB(0.97),
    EpsilonGreedy(0.1, 0.97),
]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6 h", 21600), ("6h", 21600), ("15 min", 900), ("15 m", 900), ("2 days", 172800), ("1 week", 604800),
        ("1.5 s", 1.5), ("250 ms", 0.25), ("1e3 seconds", 1000), ("90 Minutes", 5400), (timedelta(hours=2), 7200),
        (30, 30), (0.5, 0.5), (np.float64(2.0), 2), ("10 µs", 1e-5),
    ],
)  # fmt: skip
def test_durations_are_read_as_people_write_them(text, seconds) -> None:
    assert duration(text, "wait") == round(seconds * 1e6)
    assert duration(format_duration(duration(text, "wait")), "wait") == duration(text, "wait")


@pytest.mark.parametrize(
    "bad", ["", "h", "6", "6 parsecs", "-1 h", "0 s", 0, -1, math.nan, math.inf, True, None, [], "1 h 30 min", "1e40 h"]
)
def test_other_durations_are_refused_in_one_sentence(bad) -> None:
    with pytest.raises(ValueError, match="wait is a positive time such as '6 h'"):
        duration(bad, "wait")


def test_what_is_left_is_right_to_the_last_places_and_never_nothing() -> None:
    for x in np.random.default_rng(1).random(2000) * 200.0:
        assert half_to_the(float(x)) == pytest.approx(2.0 ** -float(x), rel=4e-16 * max(1.0, x / 8.0))
    assert [half_to_the(float(n)) for n in range(5)] == [1.0, 0.5, 0.25, 0.125, 0.0625]
    assert half_to_the(0.0) == 1.0
    assert half_to_the(1e9) == 2.0**-1000


def test_what_is_left_is_the_same_bits_compiled() -> None:
    numba = pytest.importorskip("numba")
    compiled = numba.njit(half_to_the, error_model="numpy")
    for x in np.random.default_rng(2).random(2000) * 1100.0:
        assert compiled(float(x)) == half_to_the(float(x))


@pytest.mark.parametrize("policy", FADING, ids=lambda policy: type(policy).__name__)
def test_learning_is_fading_and_taking(policy) -> None:
    rng = np.random.default_rng(3)
    whole, halves = to_lists(policy.init(4)), to_lists(policy.init(4))
    for t in range(500):
        arm, reward = int(rng.integers(4)), float(rng.random())
        chance = (Stream(1).at(t),) if "rng" in inspect.signature(policy.learn).parameters else ()
        policy.learn(whole, t, arm, reward, *chance)
        policy.fade(halves, policy.gamma)
        policy.take(halves, arm, reward, 1.0)
    assert whole == halves


@pytest.mark.parametrize("policy", FADING, ids=lambda policy: type(policy).__name__)
def test_taking_a_weight_is_taking_all_of_it_and_letting_it_fade(policy) -> None:
    """A reward taken late at weight w leaves what it would have left had it come at once."""
    early, late = to_lists(policy.init(3)), to_lists(policy.init(3))
    for state in (early, late):
        policy.take(state, 0, 0.25, 1.0)
        policy.take(state, 1, 0.5, 1.0)
    policy.take(early, 1, 1.0, 1.0)
    policy.fade(early, 0.3)
    policy.fade(late, 0.3)
    policy.take(late, 1, 1.0, 0.3)
    for name in early._fields:
        assert np.allclose(getattr(early, name), getattr(late, name), rtol=1e-12)


@pytest.mark.parametrize("policy", FADING, ids=lambda policy: type(policy).__name__)
def test_a_half_life_in_rounds_halves_the_weight_in_so_many(policy) -> None:
    made = type(policy).half_life(50)
    assert made.gamma**50 == pytest.approx(0.5)
    with pytest.raises(ValueError, match="positive number of rounds"):
        type(policy).half_life(0)


def test_an_age_of_many_half_lives_keeps_states_valid() -> None:
    for policy in FADING:
        state = to_lists(policy.init(3))
        policy.take(state, 1, 1.0, 1.0)
        for _ in range(5):
            policy.fade(state, half_to_the(1e6))
        policy.take(state, 1, 0.5, half_to_the(1e6))
        policy.take(state, 2, 0.5, 1.0)
        for field in state:
            assert not any(math.isnan(number) for number in field)


def test_policies_that_discount_can_forget_by_the_clock_and_others_refuse() -> None:
    """Over all policies there are: one with a discount has both halves and a named constructor."""
    can = [cls for cls in policies().values() if "gamma" in cls._fields]
    assert can
    for cls in can:
        assert all(hasattr(cls, name) for name in ("fade", "take", "half_life")), cls.__name__
        assert cls.half_life(50).gamma ** 50 == pytest.approx(0.5)
        assert checked_half_life("6 h", cls()) == 21_600_000_000
    for cls in policies().values():
        if cls not in can:
            with pytest.raises(ValueError, match=rf"{cls.__name__} \({re.escape(cls.short)}\W") as caught:
                checked_half_life("6 h", _some(cls))
            listed = str(caught.value).split("these can: ")[1]
            assert all(f"{one.__name__} ({one.short}" in listed for one in can)
            assert "DiscountedBetaTS (dts, dots)" in listed
            assert listed.count("(") == len(can)


def _some(cls):
    """One of these policies; a wrapper wraps DS-TS."""
    try:
        return cls()
    except (TypeError, ValueError):
        return cls(base=DiscountedTS()) if "base" in cls._fields else cls((DiscountedTS(), DiscountedUCB()))


def test_a_coin_is_tossed_for_each_reward_as_it_is_without_a_clock() -> None:
    """All rewards at one moment: nothing fades, so the clock and gamma = 1 know the same, coins included."""
    policy = DiscountedBetaTS(1.0, binarise=True)
    rounds, clock = Player(policy, 3, key=4), Player(policy, 3, key=4, half_life=3_600_000_000)
    rng = np.random.default_rng(6)
    for _ in range(60):
        arm, reward = int(rng.integers(3)), float(rng.random())
        rounds.learn(arm, reward)
        clock.learn(arm, reward)
    assert clock.dump()["state"] == rounds.dump()["state"]
    assert set(map(float.is_integer, clock.state.wins)) == {True}
