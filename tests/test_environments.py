"""Environments have the means of the paper and its code, rewards have their means, and bad tables are refused."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.draws import REWARD, Stream, stream_key
from driftbandit.environments import (
    Abrupt,
    AbruptFinite,
    AbruptGap,
    AbruptLimited,
    Bernoulli,
    BetaLaw,
    Constant,
    Gaussian,
    PhaseTable,
    Smooth,
    TruncatedGaussian,
    from_means,
    phased,
)
from driftbandit.policies import DriftTS, Uniform


def rows(environment, stride: int = 1) -> np.ndarray:
    return environment.means(0, environment.horizon)[::stride]


def phase_rows(environment) -> np.ndarray:
    return np.array(
        [[environment.mean(int(t), arm) for arm in range(environment.n_arms)] for t in environment.breakpoints]
    )


# ---- anchors of the authors' generator (specification, section 3)


def test_the_authors_abrupt_environment_of_five_arms():
    environment = Abrupt(n_arms=5, horizon=100_000, phases=10, instance="authors").realise(0)
    table = phase_rows(environment)
    assert table[0] == pytest.approx([0.437587, 0.891773, 0.963663, 0.383442, 0.791725], abs=1e-6)
    assert table[1] == pytest.approx([0.368242, 0.957155, 0.140351, 0.870087, 0.473608], abs=1e-6)
    assert [environment.best_arm(int(t)) for t in environment.breakpoints] == [2, 1, 0, 1, 4, 3, 0, 3, 1, 2]
    assert environment.breakpoints.tolist() == list(range(0, 100_000, 10_000))
    uniform_play = sum(10_000 * (row.max() - row.mean()) for row in table)
    assert round(uniform_play) == 35_305


@pytest.mark.parametrize(("n_arms", "gap"), [(5, 0.00025), (10, 0.0151), (20, 0.0003), (30, 0.0030)])
def test_the_smallest_gap_of_the_authors_abrupt_environments(n_arms, gap):
    table = np.sort(phase_rows(Abrupt(n_arms=n_arms, instance="authors").realise(0)), axis=1)
    assert (table[:, -1] - table[:, -2]).min() == pytest.approx(gap, abs=5e-5 if n_arms > 5 else 5e-6)


def test_the_authors_limited_environment():
    environment = AbruptLimited(n_arms=10, instance="authors").realise(0)
    assert phase_rows(environment)[0] == pytest.approx(
        [0.329288, 0.429114, 0.361658, 0.32693, 0.254193, 0.387536, 0.7, 0.535064, 0.578198, 0.230065], abs=1e-6
    )


@pytest.mark.parametrize("environment", ["authors", "fresh", "3"])
def test_limited_means_have_one_best_arm_of_seven_tenths_and_the_others_below_six(environment):
    for key in range(20):
        table = phase_rows(AbruptLimited(n_arms=6, horizon=1000, instance=environment).realise(key))
        assert (table.max(axis=1) == 0.7).all()
        assert (np.sort(table, axis=1)[:, :-1] <= 0.6).all()


@pytest.mark.parametrize(
    ("n_arms", "phases", "best"),
    [
        (2, 5, [1, 1, 1, 0, 0]),
        (2, 10, [1, 1, 1, 0, 0, 0, 0, 0, 1, 0]),
        (5, 5, [0, 3, 3, 4, 0]),
        (5, 10, [0, 3, 3, 4, 0, 2, 0, 1, 1, 0]),
    ],
)
def test_best_arms_and_level_of_the_authors_gap_environments(n_arms, phases, best):
    for gap in (0.01, 0.29):
        environment = AbruptGap(n_arms=n_arms, phases=phases, gap=gap, instance="authors").realise(0)
        assert [environment.best_arm(int(t)) for t in environment.breakpoints] == best
        assert environment.best(0) == pytest.approx(0.774407, abs=1e-6)
        table = np.sort(phase_rows(environment), axis=1)
        assert np.allclose(table[:, -1:] - table[:, :-1], gap, atol=1e-15)


# ---- random environments


def test_fresh_environments_differ_between_runs_and_numbered_ones_do_not():
    fresh, fixed = Abrupt(horizon=100), Abrupt(horizon=100, instance="7")
    assert not np.array_equal(phase_rows(fresh.realise(1)), phase_rows(fresh.realise(2)))
    assert np.array_equal(phase_rows(fresh.realise(1)), phase_rows(fresh.realise(1)))
    assert np.array_equal(phase_rows(fixed.realise(1)), phase_rows(fixed.realise(2)))
    assert not np.array_equal(phase_rows(fixed.realise(1)), phase_rows(Abrupt(horizon=100, instance="8").realise(1)))


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 6))
def test_phases_cover_all_rounds_and_differ_by_at_most_one_in_length(horizon, phases, n_arms):
    if phases > horizon:
        with pytest.raises(ValueError, match="needs phases <= horizon"):
            Abrupt(n_arms=n_arms, horizon=horizon, phases=phases)
        return
    environment = Abrupt(n_arms=n_arms, horizon=horizon, phases=phases, instance="1").realise(0)
    lengths = np.diff(np.append(environment.breakpoints, horizon))
    assert lengths.sum() == horizon
    assert lengths.max() - lengths.min() <= 1
    changes = [t for t in range(1, horizon) if environment.phase(t) != environment.phase(t - 1)]
    assert changes == environment.breakpoints[1:].tolist()


ENVIRONMENTS = {
    "abrupt": Abrupt(n_arms=4, horizon=2000, phases=7, instance="2").realise(0),
    "one arm": Abrupt(n_arms=1, horizon=50, phases=3, instance="2").realise(0),
    "limited": AbruptLimited(n_arms=4, horizon=1000, phases=3, instance="2").realise(0),
    "gap": AbruptGap(n_arms=3, horizon=1000, phases=3, instance="2").realise(0),
    "finite": AbruptFinite(n_arms=3, horizon=1000, phases=4, instance="2").realise(0),
    "smooth": Smooth(n_arms=5, horizon=8000),
    "smooth from 0": Smooth(n_arms=10, horizon=8000, start=0, sigma=0.01),
    "rescaled": Smooth(n_arms=4, horizon=8000, rescaled=True),
    "every round new": from_means(np.random.default_rng(1).random((700, 3))),
    "written out": PhaseTable(means=((0.2, 0.8), (0.9, 0.1)), starts=(0, 500), horizon=1000).realise(0),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_rows_of_means_equal_the_means_and_the_best_is_their_maximum(name):
    environment = ENVIRONMENTS[name]
    table = environment.means(0, environment.horizon)
    assert table.shape == (environment.horizon, environment.n_arms)
    for t in [*range(0, environment.horizon, 3), environment.horizon - 1]:
        row = [environment.mean(t, arm) for arm in range(environment.n_arms)]
        assert table[t].tolist() == row
        assert environment.best(t) == max(row)
        assert row[environment.best_arm(t)] == max(row)
    part = environment.means(40, 47)
    assert np.array_equal(part, table[40:47])
    assert len(environment.means(5, 5)) == 0


# ---- smooth


def test_the_smooth_environment_is_the_papers_formula():
    k, sigma = 5, 1e-3
    for start in (0, 1):
        environment = Smooth(n_arms=k, horizon=100, sigma=sigma, start=start)
        for u in (0, 1, 99):
            w = 1 + (k - 1) * (1 + math.sin(sigma * (u + start))) / 2
            for i in range(1, k + 1):
                assert environment.mean(u, i - 1) == pytest.approx((k - 1) / k - abs(w - i) / k, abs=1e-15)


def test_the_code_starts_at_the_centre_and_the_text_one_round_later():
    code, text = Smooth(start=0), Smooth(start=1)
    assert code.mean(0, 2) == 0.8  # w = (K + 1) / 2 = 3, the middle one of five arms
    assert [code.mean(8, arm) for arm in range(5)] == [text.mean(7, arm) for arm in range(5)]


@pytest.mark.parametrize(
    ("n_arms", "horizon", "sigma", "switches", "crossings"),
    [(5, 10_000, 1e-3, 13, 23), (5, 10_000, 1e-4, 2, 3), (5, 100_000, 1e-4, 13, 23), (10, 100_000, 1e-4, 29, 55)],
)
@pytest.mark.parametrize("start", [0, 1])
def test_switches_and_crossings_of_the_papers_smooth_environments(n_arms, horizon, sigma, switches, crossings, start):
    environment = Smooth(n_arms=n_arms, horizon=horizon, sigma=sigma, start=start)
    table = rows(environment)
    best = table.argmax(axis=1)
    # The code's environment starts with two or four arms level up to rounding, which may look like one event more.
    more = (0, 1) if start == 0 else (0,)
    assert (np.diff(best) != 0).sum() - switches in more
    crossed = np.zeros(horizon - 1, bool)
    for i in range(n_arms):
        for j in range(i):
            gap = table[:, i] - table[:, j]
            crossed |= gap[1:] * gap[:-1] < 0
    assert crossed.sum() - crossings in more


@given(st.integers(2, 30), st.floats(1e-6, 0.5), st.integers(0, 1), st.booleans(), st.integers(0, 10_000_000))
def test_smooth_means_stay_in_range_move_slowly_and_have_one_peak(n_arms, sigma, start, rescaled, first):
    environment = Smooth(n_arms=n_arms, horizon=10_000_100, sigma=sigma, start=start, rescaled=rescaled)
    table = environment.means(first, first + 50)
    top = 0.5 if rescaled else (n_arms - 1) / n_arms
    assert table.min() >= -1e-12
    assert table.max() <= top + 1e-12
    speed = sigma / 4 if rescaled else sigma * (n_arms - 1) / (2 * n_arms)
    assert np.abs(np.diff(table, axis=0)).max() <= speed + 1e-9
    for row in table[::10]:
        signs = np.sign(np.diff(row))
        assert (np.diff(signs) <= 0).all()  # up, then down


def test_rescaled_means_reach_one_half():
    environment = Smooth(n_arms=5, horizon=10_000, rescaled=True)
    assert rows(environment).max() == pytest.approx(0.5, abs=1e-4)
    assert environment.mean(7, 3) == pytest.approx(Smooth(n_arms=5, horizon=10_000).mean(7, 3) * 5 / 8)


def test_ten_million_smooth_rounds_need_no_table():
    tracemalloc.start()
    environment = Smooth(n_arms=10, horizon=10_000_000).realise(0)
    stream = Stream(1)
    for t in (0, 5_000_000, 9_999_999):
        environment.pull(t, 3, stream.at(t))
        environment.best(t)
    environment.means(9_999_000, 9_999_100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6


# ---- rewards


LAWS = [
    Bernoulli(),
    Constant(),
    Gaussian(sd=0.3),
    BetaLaw(4.0),
    BetaLaw(0.5),
    TruncatedGaussian(0.1),
    TruncatedGaussian(2.0),
]


@pytest.mark.long
@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("mean", [0.02, 0.15, 0.5, 0.9])
def test_every_law_has_the_mean_it_is_given(law, mean):
    n, stream = 4000, Stream(stream_key(31, 0, REWARD))
    x = np.array([law.draw(mean, stream.at(t)) for t in range(n)])
    # 4.9 standard errors: a probability of one in a million of a false alarm in each of the 28 cases.
    assert abs(x.mean() - mean) <= 4.9 * x.std(ddof=1) / math.sqrt(n) + 1e-12
    if not isinstance(law, Gaussian):
        assert x.min() >= 0.0
        assert x.max() <= 1.0
    expected = {Bernoulli: mean * (1 - mean), Constant: 0.0, Gaussian: 0.09}.get(type(law))
    if isinstance(law, BetaLaw):
        expected = mean * (1 - mean) / (law.concentration + 1)
    if expected is not None:
        fourth = ((x - mean) ** 4).mean()
        assert abs(((x - mean) ** 2).mean() - expected) <= 4.9 * math.sqrt(max(fourth - expected**2, 0) / n) + 1e-12


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_at_the_ends_bounded_laws_pay_the_mean_itself(law):
    if isinstance(law, Gaussian):
        return
    for t in range(50):
        assert law.draw(0.0, Stream(1).at(t)) == 0.0
        assert law.draw(1.0, Stream(1).at(t)) == 1.0


def test_the_random_numbers_of_a_round_do_not_depend_on_the_arm():
    # One uniform number decides for all arms: a better arm never pays less in the same round.
    environment, stream = from_means([[0.2, 0.5, 0.8]] * 300), Stream(7)
    for t in range(300):
        paid = [environment.pull(t, arm, stream.at(t)) for arm in range(3)]
        assert paid == sorted(paid)
        assert paid == [environment.pull(t, arm, stream.at(t)) for arm in range(3)]


@pytest.mark.parametrize("shared", [True, False])
def test_finite_support_pays_its_few_amounts_with_the_mean_it_claims(shared):
    spec = AbruptFinite(n_arms=3, horizon=30_000, phases=3, points=5, shared_probabilities=shared, instance="4")
    environment, stream = spec.realise(0), Stream(stream_key(32, 0, REWARD))
    for phase in range(3):
        for arm in range(3):
            first = phase * 10_000
            x = np.array([environment.pull(t, arm, stream.at(t)) for t in range(first, first + 5000)])
            amounts = np.unique(x)
            assert len(amounts) == 5
            assert set(amounts) <= set(environment.payer.support.tolist())
            assert ((amounts >= 0) & (amounts <= 1)).all()
            # one in a million of a false alarm each
            assert abs(x.mean() - environment.mean(first, arm)) < 4.9 * x.std(ddof=1) / math.sqrt(5000)
    widths = np.diff(environment.payer.cumulative.reshape(3, 3, 5), axis=2, prepend=0)
    assert np.allclose(widths.sum(axis=2), 1.0)
    assert widths.min() >= 1 / (1 + 4 * 10) - 1e-12  # weights between 1 and 10
    assert bool((widths == widths[:, :1]).all()) == shared


def test_rewards_change_in_the_very_round_the_means_do():
    # A simulator that looks at the last completed round pays the old reward once more.
    environment = phased([[0.0, 1.0], [1.0, 0.0]], starts=[0, 5], horizon=10, law=Constant())
    stream = Stream(1)
    assert [environment.pull(t, 0, stream.at(t)) for t in range(10)] == [0.0] * 5 + [1.0] * 5
    assert [float(environment.best(t) - environment.mean(t, 1)) for t in range(10)] == [0.0] * 5 + [1.0] * 5


# ---- from tables


@given(st.lists(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=2, max_size=2), min_size=1, max_size=600))
def test_an_environment_from_an_array_of_means_has_exactly_these_means(table):
    environment = from_means(table)
    assert environment.means(0, environment.horizon).tolist() == table
    assert environment.horizon == len(table)
    assert [t for t in range(len(table)) if t == 0 or table[t] != table[t - 1]] == environment.breakpoints.tolist()


def test_a_table_of_phases_may_be_written_with_lists_tuples_or_arrays():
    means = [[0.2, 0.8], [0.9, 0.1]]
    for form in (list, tuple, np.array):
        environment = PhaseTable(means=form(means), starts=form([0, 500]), horizon=1000).realise(0)
        assert [float(environment.mean(t, 0)) for t in (0, 499, 500, 999)] == [0.2, 0.2, 0.9, 0.9]


GOOD = [[0.1, 0.9], [0.9, 0.1]]


@pytest.mark.parametrize(
    "build",
    [
        lambda: from_means([[0.1, math.nan]]),
        lambda: from_means([[0.1, math.inf]]),
        lambda: from_means([[0.1, 1.2]]),
        lambda: from_means([[-0.1, 0.2]]),
        lambda: from_means([0.1, 0.2]),
        lambda: from_means([]),
        lambda: from_means([[], []]),
        lambda: from_means([[0.1, 0.2], [0.3]]),
        lambda: from_means("table"),
        lambda: from_means([["a", "b"]]),
        lambda: from_means(np.zeros((2, 2, 2))),
        lambda: from_means(None),
        lambda: from_means(GOOD, law=3),
        lambda: from_means([[0.5, 1.5]], law=BetaLaw()),
        lambda: from_means([[0.5, 1.5]], law=TruncatedGaussian()),
        lambda: phased(GOOD, starts=[0], horizon=10),
        lambda: phased(GOOD, starts=[1, 5], horizon=10),
        lambda: phased(GOOD, starts=[0, 0], horizon=10),
        lambda: phased(GOOD, starts=[0, 10], horizon=10),
        lambda: phased(GOOD, starts=[0, -3], horizon=10),
        lambda: phased(GOOD, starts=[0, math.nan], horizon=10),
        lambda: phased(GOOD, starts=5, horizon=10),
        lambda: PhaseTable(means=((0.1, 0.9), (0.9,)), starts=(0, 5), horizon=10),
        lambda: PhaseTable(means=[[0.1, math.nan]], starts=[0], horizon=10),
        lambda: PhaseTable(means=3, starts=(0, 5), horizon=10),
        lambda: Abrupt(n_arms=0),
        lambda: Abrupt(horizon=0),
        lambda: Abrupt(horizon=math.inf),
        lambda: Abrupt(phases=11, horizon=10),
        lambda: Abrupt(instance="bogus"),
        lambda: Abrupt(instance=""),
        lambda: Abrupt(instance=7),
        lambda: AbruptGap(gap=0.6),
        lambda: AbruptLimited(best=math.nan),
        lambda: Smooth(n_arms=1),
        lambda: Smooth(sigma=0.0),
        lambda: Smooth(sigma=math.nan),
        lambda: Smooth(start=2),
        lambda: Smooth(law="Bernoulli"),
        lambda: Gaussian(sd=0.0),
        lambda: BetaLaw(concentration=-1.0),
        lambda: TruncatedGaussian(sd=math.nan),
    ],
)
def test_a_bad_environment_is_refused_in_one_sentence(build):
    with pytest.raises(ValueError, match=r"\.( |$)") as error:
        build()
    message = str(error.value)
    assert "\n" not in message
    assert message[0].isupper()
    assert len(message) < 300


def test_the_authors_finite_environment_is_drawn_phase_by_phase_from_their_legacy_generator():
    # Their generator: amounts and unused weights as uniform(0, 1, (K, 2, 5)), then shared weights as uniform(1, 10, 5).
    legacy = np.random.RandomState(0)
    environment = AbruptFinite(n_arms=3, horizon=40, phases=2, instance="authors").realise(0)
    for phase in range(2):
        amounts, weights = legacy.uniform(0, 1, (3, 2, 5))[:, 0], legacy.uniform(1, 10, 5)
        np.testing.assert_allclose(environment.means(20 * phase, 20 * phase + 1)[0], amounts @ weights / weights.sum())


def test_laws_without_parameters_are_distinguished_in_any_order():
    """Empty tuples are equal to Python, and environments are remembered by what they are made of."""
    for law in (Bernoulli(), Constant(), Bernoulli()):
        for environment in (
            Abrupt(3, 100, 2, law=law),
            AbruptGap(3, 100, 2, law=law),
            AbruptLimited(3, 100, 2, law=law),
        ):
            assert type(environment.realise(5).law) is type(law)
    assert Bernoulli() != Constant()
    assert len({Bernoulli(), Constant()}) == 2
    assert Abrupt(3, 100, 2) != Abrupt(3, 100, 2, law=Constant())
    assert Abrupt(3, 100, 2) == Abrupt(3, 100, 2, law=Bernoulli())


def test_policies_without_parameters_are_distinguished():
    assert DriftTS() != Uniform()
    assert DriftTS() == DriftTS()
    assert len({DriftTS(), Uniform()}) == 2
