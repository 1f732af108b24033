"""Durations, what is left after some half-lives, and the two halves of learning."""

import inspect
import math
from datetime import timedelta

import numpy as np
import pytest

from driftbandit.draws import Stream
from driftbandit.half_life import checked_half_life, duration, half_to_the, spelt
from driftbandit.policies import (
    DiscountedBetaTS,
    DiscountedGaussianTS,
    DiscountedKLUCB,
    DiscountedTS,
    DiscountedUCB,
    SlidingTS,
)
from driftbandit.state import to_lists

FADING = [
    DiscountedTS(0.97, weight=2.0),
    DiscountedBetaTS(0.97),
    DiscountedBetaTS(0.97, optimistic=True),
    DiscountedGaussianTS(0.97, 0.5),
    DiscountedUCB(0.97),
    DiscountedKLUCB(0.97),
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
    assert duration(spelt(duration(text, "wait")), "wait") == duration(text, "wait")


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


def test_an_age_of_many_half_lives_harms_no_state() -> None:
    for policy in FADING:
        state = to_lists(policy.init(3))
        policy.take(state, 1, 1.0, 1.0)
        for _ in range(5):
            policy.fade(state, half_to_the(1e6))
        policy.take(state, 1, 0.5, half_to_the(1e6))
        policy.take(state, 2, 0.5, 1.0)
        for field in state:
            assert not any(math.isnan(number) for number in field)


def test_policies_that_cannot_forget_by_the_clock_say_who_can() -> None:
    with pytest.raises(ValueError, match="sw-ts cannot; these can: d-gts, d-klucb, d-ucb, ds-ts, dts"):
        checked_half_life("6 h", SlidingTS())
