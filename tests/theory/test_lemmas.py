"""The deterministic lemmas on random and adversarial trajectories: what holds, and counterexamples to the rest."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit.paper.theory import pseudo_stationary
from theory import lemmas
from theory import letters as f

EPS = st.floats(0.02, 0.36)
HORIZON = st.integers(1, 250)


@st.composite
def plays_of_one_arm(draw, horizon):
    """In which rounds an arm is played: at random, in bursts, or by an adversary who keeps its count near a level."""
    kind = draw(st.sampled_from(["random", "bursts", "below a level", "always", "until a round"]))
    if kind == "random":
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        return rng.random(horizon) < draw(st.floats(0.01, 1.0))
    t = np.arange(horizon)
    if kind == "bursts":
        return (t // draw(st.integers(1, 60))) % draw(st.integers(2, 4)) == 0
    if kind == "always":
        return np.ones(horizon, dtype=bool)
    if kind == "until a round":
        return t < draw(st.integers(0, horizon))
    level, gamma, count = draw(st.floats(1.0, 20.0)), 1 - draw(EPS), 0.0
    plays = np.zeros(horizon, dtype=bool)
    for round_ in range(horizon):
        plays[round_] = gamma * count + 1 < level
        count = gamma * count + float(plays[round_])
    return plays


@given(st.data(), HORIZON, st.floats(0.005, 0.9), st.floats(1e-3, 50.0))
@settings(max_examples=150, deadline=None)
def test_lemma_6_holds_after_the_update(data, horizon, eps, level):
    plays = data.draw(plays_of_one_arm(horizon))
    assert lemmas.rare_plays(plays, level, eps) <= lemmas.rare_plays_limit(horizon, level, eps) + 1e-9


@given(st.data(), HORIZON, st.floats(0.005, 0.9), st.floats(1e-3, 50.0))
@settings(max_examples=100, deadline=None)
def test_lemma_6_before_the_update_holds_with_gamma_a_plus_one(data, horizon, eps, level):
    plays = data.draw(plays_of_one_arm(horizon))
    seen = lemmas.rare_plays(plays, level, eps, after=False)
    assert seen <= lemmas.rare_plays_limit(horizon, level, eps, after=False) + 1e-9


def test_lemma_6_is_false_before_the_update():
    # The first play meets a count of 0, below any level; the right side goes to 0 with the level.
    plays = np.array([True])
    assert lemmas.rare_plays(plays, 1e-3, 0.1, after=False) == 1
    assert lemmas.rare_plays_limit(1, 1e-3, 0.1) < 0.003


@given(st.data(), st.integers(60, 250), EPS)
@settings(max_examples=150, deadline=None)
def test_lemma_1_holds_after_the_update_in_pseudo_stationary_rounds(data, horizon, eps):
    changes = sorted(data.draw(st.sets(st.integers(1, horizon - 1), max_size=4)))
    starts = [0, *changes]
    levels = data.draw(st.lists(st.floats(0.0, 1.0), min_size=len(starts), max_size=len(starts)))
    means = np.repeat(levels, np.diff([*starts, horizon]))
    plays = data.draw(plays_of_one_arm(horizon))
    for after in (True, False):
        bias, weight = lemmas.bias(plays, means, eps, after)
        limit = lemmas.bias_limit(weight, eps, after=after)  # before the update: gamma^(-1/2) U
        for start, stop in pseudo_stationary(starts, horizon, eps):
            known = weight[start:stop] > 0
            assert (bias[start:stop][known] <= limit[start:stop][known] * (1 + 1e-9) + 1e-12).all()


def test_lemma_1_is_false_before_the_update():
    # Played always until the means jump from 0 to 1 at row 300, then never: all evidence is stale. At gamma = 0.9,
    # D = 35.79, so row 335 is pseudo-stationary and U there is 0.959, below the bias of 1.
    eps, horizon = 0.1, 340
    means, plays = np.arange(horizon) >= 300, np.arange(horizon) < 300
    bias, weight = lemmas.bias(plays, means.astype(float), eps, after=False)
    (start, _) = pseudo_stationary([0, 300], horizon, eps)[1]
    assert start == 335
    assert bias[start] == 1.0
    assert bias[start] / f.U(eps, weight[start]) == pytest.approx(1.0427, abs=1e-4)
    stale, count = lemmas.bias(plays, means.astype(float), eps)
    assert stale[start] <= f.U(eps, count[start])


@given(st.data(), HORIZON, EPS, st.floats(1e-4, 0.05))
@settings(max_examples=150, deadline=None)
def test_lemma_3_holds_in_every_round_of_a_drifting_environment(data, horizon, eps, drift):
    kind = data.draw(st.sampled_from(["walk", "ramp", "wave"]))
    if kind == "walk":
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        path = 0.5 + np.cumsum(rng.uniform(-drift, drift, horizon))
    elif kind == "ramp":
        path = drift * np.arange(horizon)
    else:
        path = 0.5 + 0.5 * np.sin(2 * drift * np.arange(horizon))
    means = np.clip(path, 0.0, 1.0)
    plays = data.draw(plays_of_one_arm(horizon))
    bias, weight = lemmas.bias(plays, means, eps)
    limit = lemmas.bias_limit(weight, eps, drift)
    known = weight > 0
    assert (bias[known] <= limit[known] * (1 + 1e-9) + 1e-12).all()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200), st.floats(0.005, 0.9))
@settings(max_examples=100, deadline=None)
def test_discounted_counts_are_ordered_and_add_up(arms, eps):
    sequence = np.array(arms)
    once = [lemmas.counts(sequence == arm, eps) for arm in range(4)]
    squared = [lemmas.counts(sequence == arm, 1 - (1 - eps) ** 2) for arm in range(4)]
    for a, b in zip(once, squared, strict=True):
        assert (b <= a * (1 + 1e-12)).all()
        assert (a <= 1 / eps * (1 + 1e-12)).all()
    t = np.arange(1, len(arms) + 1)
    assert np.allclose(sum(once), -np.expm1(t * math.log1p(-eps)) / eps, rtol=1e-9)


@given(st.integers(2, 5), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_regret_is_at_most_the_sub_optimal_plays_and_they_at_most_the_horizon(arms, horizon, seed):
    rng = np.random.default_rng(seed)
    means, chosen = rng.random((horizon, arms)), rng.integers(0, arms, horizon)
    best = means.argmax(axis=1)
    regret = (means.max(axis=1) - means[np.arange(horizon), chosen]).sum()
    assert regret <= (chosen != best).sum() <= horizon
