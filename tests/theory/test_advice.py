"""Advice at a small scale: which rows there are, that choosing and estimating are apart, and what is refused."""

import html
import itertools
import math

import numpy as np
import pytest

from driftbandit.environments import Smooth, phased
from driftbandit.environments.scaled import scaled
from driftbandit.lab.investigations import search
from driftbandit.lab.investigations.advice import advise, off_by, times
from driftbandit.lab.stats import selection
from driftbandit.lab.stats.selection import Rival
from driftbandit.policies.discounted_ts import DiscountedTS


@pytest.fixture(scope="module")
def abrupt():
    return advise(4_000, phases=4, n_arms=3, runs=40, a_decade=2)


@pytest.fixture(scope="module")
def smooth():
    return advise(4_000, drift=0.001, n_arms=3, runs=40, a_decade=2)


def test_a_notebook_shows_the_rows_and_the_line_to_take(abrupt):
    page = abrupt._repr_html_()
    assert page.count("<tr>") == 1 + len(abrupt.rows)
    assert f"<pre>{html.escape(abrupt.line())}</pre>" in page


def test_sudden_changes_get_corollary_1_the_code_and_two_simulated_bests(abrupt):
    assert [row.source for row in abrupt.rows] == [
        "Corollary 1 and the paper's text",
        "the authors' code",
        "best gamma by simulation",
        "best gamma and tau_max by simulation",
    ]
    assert abrupt.row("Corollary 1").policy.gamma == pytest.approx(1 - math.sqrt(4 / 4000), rel=1e-12)
    assert abrupt.row("the authors' code").policy.gamma == pytest.approx(1 - 10 * math.sqrt(3 / 4000), rel=1e-12)
    assert abrupt.row("the authors' code").policy.forget_below == 1e-8


def test_drift_gets_corollary_2_at_one_half_and_at_the_smallest_admissible_beta(smooth):
    half, least = smooth.rows[:2]
    assert half.policy.gamma == pytest.approx(1 - 4000**-0.5, rel=1e-12)
    assert half.note == "beta = 1/2 is not admissible here"
    # 1 - log_T(1 / (12 sigma ln T)) with T = 4000, sigma = 0.001
    beta = 1 - math.log(1 / (12 * 0.001 * math.log(4000))) / math.log(4000)
    assert least.policy.gamma == pytest.approx(1 - 4000 ** (beta - 1), rel=1e-9)
    assert smooth.row("the paper's text").policy.gamma == pytest.approx(1 - 10 / math.sqrt(4000), rel=1e-12)


def test_a_drift_too_fast_for_every_beta_is_said(smooth):
    row = advise(500, drift=0.2, n_arms=3, runs=4, a_decade=1).row("Corollary 2, smallest")
    assert row.policy is None
    assert "no beta is admissible" in row.note
    assert "gives no gamma here" in off_by(row, smooth.best)


def test_every_row_has_a_regret_inside_its_interval_and_the_best_is_as_good_as_itself(abrupt):
    for row in abrupt.rows:
        assert row.regret.low <= row.regret.mean <= row.regret.high
    assert abrupt.best.policy.gamma in abrupt.as_good
    assert abrupt.best.excess is None


def test_the_text_has_the_table_and_says_how_far_off_theory_is(abrupt):
    text = str(abrupt)
    assert text.splitlines()[0].startswith("chosen by")
    assert "half chose, half gave the numbers" in " ".join(text.split())
    assert "Corollary 1 and the paper's text takes gamma = 0.968377" in " ".join(text.split())


def test_the_line_to_paste_is_the_recommended_policy_with_its_half_life(abrupt):
    scope = {"DiscountedTS": DiscountedTS}
    exec(abrupt.line(), scope)
    row = abrupt.recommended
    assert scope["policy"].gamma == pytest.approx(row.policy.gamma, rel=1e-5)
    assert DiscountedTS.half_life(row.half_life).gamma == pytest.approx(row.policy.gamma, rel=1e-12)
    assert f"half-life: {row.half_life:.3g} rounds" in abrupt.line()
    assert abrupt.line() in str(abrupt)


def test_an_end_of_the_grid_is_never_recommended_without_saying_so(abrupt):
    low, high = abrupt.grid[0][0], abrupt.grid[-1][0]
    for gamma, says in ((low, "shortest memory tried"), (high, "forgets nothing")):
        best = abrupt.best._replace(policy=DiscountedTS(gamma, 0.2))
        edge = abrupt._replace(rows=(*abrupt.rows[:-2], best, abrupt.rows[-1]))
        assert edge.at_edge
        if edge.recommended is best:
            assert says in edge.line()
        assert says in edge.paragraph()
    # Better by far, but at the end of both grids: said in words, and not what is to be pasted.
    gain = abrupt.best.regret._replace(mean=-50.0, low=-60.0, high=-40.0)
    far = abrupt.rows[-1]._replace(policy=DiscountedTS(low, min(abrupt.tau_maxes)), excess=gain)
    edge = abrupt._replace(rows=(*abrupt.rows[:-1], far))
    assert edge.recommended is edge.best
    assert "tau_max is the smallest tried: a better one may lie beyond" in edge.paragraph()
    # The same within what was tried is recommended.
    inside = far._replace(policy=DiscountedTS(abrupt.grid[2][0], abrupt.tau_maxes[1]))
    assert abrupt._replace(rows=(*abrupt.rows[:-1], inside)).recommended is inside


def test_the_same_seed_gives_the_same_advice(abrupt):
    again = advise(4_000, phases=4, n_arms=3, runs=40, a_decade=2, workers=1)
    assert str(again) == str(abrupt)


def test_choosing_looks_at_the_first_half_of_the_runs_only():
    lucky = Rival("lucky", np.array([0.0, 0.0, 9.0, 9.0]))
    steady = Rival("steady", np.array([1.0, 1.0, 1.0, 1.0]))
    assert selection.best([steady, lucky]) is lucky
    assert lucky.estimate().mean == 9.0
    assert lucky.excess(steady).mean == 8.0


def test_the_best_of_equal_policies_is_not_made_better_by_being_picked():
    # Twenty copies of pure noise around 10: the picked one's reported mean is unbiased. Its error over 2000 repeats of
    # 5 held-out values has sd 1/sqrt(10000) = 0.01; five of those are passed by chance once in 1.7 million.
    rng = np.random.default_rng(1)
    reported = []
    for _ in range(2000):
        cells = [Rival(k, values) for k, values in enumerate(rng.normal(10.0, 1.0, (20, 10)))]
        reported.append(selection.best(cells).held_out.mean())
    assert abs(np.mean(reported) - 10.0) < 0.05


def test_a_difference_within_the_noise_is_called_so(abrupt):
    row = abrupt.row("Corollary 1")
    noise = row._replace(excess=row.excess._replace(mean=1.0, low=-1.0, high=3.0))
    assert "within the noise" in off_by(noise, abrupt.best)
    worse = row._replace(excess=row.excess._replace(mean=50.0, low=40.0, high=60.0))
    assert "% more" in off_by(worse, abrupt.best)


def test_ratios_of_memories_are_said_both_ways():
    assert times(16.0) == "16 times longer"
    assert times(0.25) == "4 times shorter"


def test_the_grid_of_discounts_runs_from_a_memory_of_two_rounds_to_never_forgetting():
    grid = search.gammas(10_000)
    assert grid[0] == 0.5
    assert grid[-2] == pytest.approx(1 - 1e-4, rel=1e-12)
    assert grid[-1] == 1.0
    assert all(a < b for a, b in itertools.pairwise(grid))


def test_a_scaled_world_has_scaled_means_and_keeps_its_phases():
    world = scaled(phased([[0.2, 0.8], [0.6, 0.4]], [0, 5], 10), 0.5).realise(0)
    assert world.means(4, 6).tolist() == [[0.1, 0.4], [0.3, 0.2]]
    assert [world.best(4), world.best(5)] == [0.4, 0.3]
    drifting = scaled(Smooth(n_arms=3, horizon=50), 0.25)
    assert np.allclose(drifting.means(0, 50), 0.25 * Smooth(n_arms=3, horizon=50).means(0, 50))
    assert drifting.realise(7) is drifting


def test_scaled_drift_is_simulated_the_same_compiled_and_interpreted():
    from driftbandit.lab.engine.simulate import simulate

    world = scaled(Smooth(n_arms=3, horizon=400), 0.25)
    fast = simulate(DiscountedTS(0.9), world, 3, 1, checkpoints=4).regret
    assert np.allclose(fast, simulate(DiscountedTS(0.9), world, 3, 1, checkpoints=4, compiled=False).regret)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({}, "either phases"),
        ({"phases": 2, "drift": 0.1}, "not both"),
        ({"phases": 2, "mu_max": 0.0}, "mu_max"),
        ({"phases": 2, "n_arms": 1}, "2 arms"),
        ({"phases": 2, "runs": 3}, "4 runs"),
        ({"drift": 0.0}, "sigma"),
        ({"phases": 101}, "phases"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(wrong, word):
    with pytest.raises(ValueError, match=word):
        advise(100, **wrong)
