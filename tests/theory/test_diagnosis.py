import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from driftbandit.paper import theory as diagnosis
from driftbandit.paper.theory import close_rounds, diagnose, pseudo_stationary, separations
from driftbandit.paper.theory import theorem as f
from theory.environments import Phases, Smooth, Table, shows

# Few levels, so that ties and repeated rows are common
SMALL = st.tuples(st.integers(1, 9), st.integers(2, 4)).flatmap(
    lambda shape: arrays(float, shape, elements=st.sampled_from([0.0, 0.25, 0.5, 0.625, 1.0]))
)


@given(SMALL, st.integers(1, 12))
@settings(max_examples=200, deadline=None)
def test_a_diagnosis_agrees_with_the_definitions_written_out(rows, block):
    original = diagnosis.BLOCK_NUMBERS
    diagnosis.BLOCK_NUMBERS = block
    try:
        environment = Table(rows)
        found, distances = diagnose(environment), separations(environment)
    finally:
        diagnosis.BLOCK_NUMBERS = original
    horizon, arms = rows.shape
    best = [int(np.argmax(row)) for row in rows]
    gaps = [row[best[t]] - row[i] for t, row in enumerate(rows) for i in range(arms) if i != best[t]]
    pairs = list(itertools.combinations(range(arms), 2))
    assert found.gap == min(gaps)
    steps = [max(abs(rows[t + 1] - rows[t])) for t in range(horizon - 1)]
    assert found.phases == 1 + sum(step > 0 for step in steps)
    assert found.switches == sum(best[t] != best[t + 1] for t in range(horizon - 1))
    assert found.suboptimal_arms == len({i for t in range(horizon) for i in range(arms) if i != best[t]})
    assert found.crossings == sum(
        any((rows[t, i] - rows[t, j]) * (rows[t + 1, i] - rows[t + 1, j]) < 0 for i, j in pairs)
        for t in range(horizon - 1)
    )
    assert found.drift == max(steps, default=0.0)
    assert found.mu_max == rows.max()
    assert found.uniform_regret == pytest.approx(float((rows.max(axis=1) - rows.mean(axis=1)).sum()), abs=1e-12)
    assert distances.tolist() == [min(abs(row[i] - row[j]) for i, j in pairs) for row in rows]


@pytest.mark.parametrize(
    ("arms", "horizon", "sigma", "switches", "crossings"),
    [(5, 10**4, 1e-3, 13, 23), (5, 10**4, 1e-4, 2, 3), (5, 10**5, 1e-4, 13, 23), (10, 10**5, 1e-4, 29, 55)],
)
def test_the_papers_smooth_environments(arms, horizon, sigma, switches, crossings):
    found = diagnose(Smooth(arms, horizon, sigma))
    assert (found.switches, found.crossings) == (switches, crossings)
    assert found.mu_max <= (arms - 1) / arms
    assert found.drift <= sigma * (arms - 1) / (2 * arms)


def test_counting_rounds_from_zero_starts_ten_arms_with_a_tie():
    # w(0) = (K + 1) / 2 lies midway between the two middle arms when K is even: one switch more, and no bound at all.
    found = diagnose(Smooth(10, 10**5, 1e-4, first=0))
    assert (found.switches, found.gap) == (30, 0.0)


def test_one_f_does_not_serve_every_beta_and_horizon():
    constant = 4 * 5 / (1e-3 * 4)  # 4K / (sigma (K - 1)), said to hold "regardless of beta"
    short = close_rounds(separations(Smooth(5, 10**4, 1e-3)), 0.01)
    assert short == 696 > constant * 0.01 * (10**4) ** 0.0
    long = close_rounds(separations(Smooth(5, 10**6, 1e-3)), 0.01)
    assert long == 66_883 > constant * 0.01 * (10**6) ** 0.5


def test_with_five_smooth_arms_every_round_is_close_above_one_fifth():
    assert close_rounds(separations(Smooth(5, 10**4, 1e-3)), 0.2001) == 10**4


def papers_abrupt_environment():
    """The authors' generator: per phase uniform(0, 0.6, K) and an arm, both unused, then uniform(0, 1, K)."""
    legacy = np.random.RandomState(0)
    levels = []
    for _ in range(10):
        legacy.uniform(0, 0.6, 5)
        legacy.randint(0, 5)
        levels.append(legacy.uniform(0, 1, 5))
    return Phases(levels, 10**4)


def test_the_papers_abrupt_environment():
    environment = papers_abrupt_environment()
    found = diagnose(environment)
    assert np.round(environment.levels[0], 6).tolist() == [0.437587, 0.891773, 0.963663, 0.383442, 0.791725]
    assert environment.levels.argmax(axis=1).tolist() == [2, 1, 0, 1, 4, 3, 0, 3, 1, 2]
    assert (found.phases, found.switches, found.suboptimal_arms) == (10, 9, 5)
    assert shows(found.gap, "0.00025")
    assert shows(found.uniform_regret, "35305")


def test_only_blocks_of_rows_are_asked_for():
    environment = Table(np.random.default_rng(0).random((5000, 200)))
    diagnose(environment)
    assert environment.largest == diagnosis.BLOCK_NUMBERS // 200 + 1 < 5000  # a block repeats the last row before it


@given(st.sets(st.integers(1, 199), max_size=8), st.floats(0.05, 0.36))
def test_pseudo_stationary_rounds_are_those_of_the_definition(changes, eps):
    horizon, starts = 200, [0, *sorted(changes)]
    phase = np.searchsorted(starts, np.arange(horizon), side="right")
    delay = f.D(eps)
    member = []
    for t in range(1, horizon + 1):  # rounds s in (t - D, t], 1-based; before round 1 everything was different
        window = range(math.floor(t - delay) + 1, t + 1)
        member.append(all(s >= 1 and phase[s - 1] == phase[t - 1] for s in window))
    ranges = pseudo_stationary(starts, horizon, eps)
    found = np.zeros(horizon, dtype=bool)
    for start, stop in ranges:
        found[start:stop] = True
    assert found.tolist() == member
    lengths = np.diff([*starts, horizon])
    outside = horizon - int(found.sum())
    assert outside == sum(min(int(length), math.ceil(delay) - 1) for length in lengths)
    assert outside <= len(starts) * delay


def test_an_environment_needs_two_arms():
    with pytest.raises(ValueError, match="2 arms or more"):
        diagnose(Table([[0.5]]))
