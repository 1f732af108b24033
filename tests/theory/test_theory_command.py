"""The theory, advise and rates commands at a small scale, and the report behind the first."""

import math

import pytest

from driftbandit.cli import main
from driftbandit.environments import AbruptGap, Smooth
from driftbandit.lab.investigations.guarantee import discount, settled, theory, upper_bounds
from driftbandit.lab.theory import breakpoints, diagnose, pseudo_stationary
from driftbandit.lab.theory import paper_functions as f
from driftbandit.policies.beta_ts import SlidingTS
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.ucb import DiscountedUCB, SlidingUCB

ABRUPT = "AbruptGap(n_arms=3, horizon=3000, phases=3, gap=0.2, world='1')"


def told(capsys, *words):
    code = main([*words])
    out, err = capsys.readouterr()
    return code, " ".join(out.split()), err


def test_the_report_has_facts_bounds_orders_and_a_paragraph(capsys):
    code, out, _ = told(capsys, "theory", "--env", ABRUPT, "--policy", "ds-ts.tuned")
    assert code == 0
    for part in (
        "B_T 3 phases",
        "Delta_T 0.2 smallest distance",
        "Theorem 1 as proved one arm",
        "vacuous",
        "lower bound for every policy",
        "sqrt(T B_T) / gap^2",
        "Nothing is guaranteed",
        "Corollary 1 advises gamma = 1 - 0.0316",
        "Nothing was measured",
    ):
        assert part in out


def test_measuring_adds_the_regret_and_the_best_gamma(capsys):
    code, out, _ = told(capsys, "theory", "--env", ABRUPT, "--policy", "ds-ts.tuned", "--measure", "8")
    assert code == 0
    assert "Measured over 8 runs: regret" in out
    assert "Simulation finds gamma = " in out
    assert "The nearest bound, Theorem 1 as proved, is 10^" in out


def test_a_drifting_world_is_told_about_corollary_2_and_not_about_table_1(capsys):
    _, out, _ = told(capsys, "theory", "--env", "Smooth(n_arms=5, horizon=10000)", "--policy", "ds-ts(gamma=0.9)")
    assert "Corollary 2 admits beta from 0.661" in out  # the means move by 0.0004 a round, not by sigma = 0.001
    assert "Table 1" not in out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--policy", "ds-ts(gamma=1.0)"], "gamma lies in (1 - 1/e, 1)"),
        (["--env", "AbruptGap(gap=0.0, horizon=1000)", "--policy", "ds-ts"], "the best arm is tied"),
        (["--env", "Abrupt(horizon=20, phases=10)", "--policy", "ds-ts"], "Corollary 1 gives no gamma here"),
        (["--env", "Abrupt(horizon=1, phases=1)", "--policy", "ds-ts"], "over 1 rounds"),
    ],
)
def test_bad_input_is_answered_with_the_condition_that_fails(capsys, words, part):
    code, out, _ = told(capsys, "theory", *words)
    assert code == 0
    assert part in out
    assert "nan" not in out.split("what is proved")[1]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["theory", "--figure", "x.svg"], "--measure"),
        (["theory", "--policy", "ds-tss"], "did you mean"),
        (["theory", "--measure", "2"], "from 4 to"),
        (["advise", "--horizon", "100"], "either phases"),
        (["advise", "--horizon", "100", "--phases", "200"], "phases <= horizon"),
        (["rates", "--scale", "0"], "scale needs a number in (0, 100]"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(capsys, words, part):
    code, _, err = told(capsys, *words)
    assert code == 2
    assert part in err
    assert err.count("\n") == 1


def test_advise_prints_the_table_and_the_paragraph(capsys):
    words = ["advise", "--horizon", "1000", "--phases", "2", "--arms", "2", "--mu-max", "0.5", "--runs", "8"]
    code, out, _ = told(capsys, *words)
    assert code == 0
    assert "Corollary 1 and the paper's text 0.955279" in out
    assert "best gamma and tau_max by simulation" in out


def test_rates_prints_every_policy_and_sweep(capsys, monkeypatch):
    from driftbandit.lab.investigations import rates

    few = [sweep._replace(values=sweep.values[:3]) for sweep in rates.sweeps(0.01)]
    monkeypatch.setattr(rates, "sweeps", lambda scale: few)
    monkeypatch.setattr(rates.measure, "__defaults__", ({"ds-ts": DiscountedTS.tuned}, *rates.measure.__defaults__[1:]))
    code, out, _ = told(capsys, "rates", "--scale", "0.01", "--runs", "4")
    assert code == 0
    for name in ("horizon T ds-ts", "phases B_T ds-ts", "1 / gap ds-ts", "arms K ds-ts"):
        assert name in out


def test_the_figure_comes_with_a_png_and_its_numbers(capsys, tmp_path):
    words = [
        "theory",
        "--env",
        ABRUPT,
        "--policy",
        "ds-ts.tuned",
        "--measure",
        "4",
        "--figure",
        str(tmp_path / "b.svg"),
    ]
    assert told(capsys, *words)[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.csv", "b.png", "b.svg"]
    rows = (tmp_path / "b.csv").read_text().splitlines()
    assert rows[0].startswith("horizon,regret,low,high")
    assert [int(row.split(",")[0]) for row in rows[1:]] == [30, 95, 300, 949, 3000, 9487, 30000]


def test_peers_get_their_own_bounds_and_others_none():
    world = AbruptGap(n_arms=3, horizon=3000, phases=3, gap=0.2, world="1").realise(0)
    found = diagnose(world)
    assert [b.name for b in upper_bounds(world, DiscountedUCB(gamma=0.99), found)] == ["D-UCB (Garivier and Moulines)"]
    assert [b.name for b in upper_bounds(world, SlidingUCB(window=200), found)] == ["SW-UCB (Garivier and Moulines)"]
    assert upper_bounds(world, SlidingTS(window=50), found) == []
    assert discount(SlidingTS(window=50)) is None


def test_the_settled_rounds_are_counted_as_the_pseudo_stationary_set():
    world = AbruptGap(n_arms=3, horizon=5000, phases=4, gap=0.2, world="3").realise(0)
    eps = 0.05
    ranges = pseudo_stationary(list(breakpoints(world)), world.horizon, eps)
    assert settled(world, f.D(eps)) == sum(stop - start for start, stop in ranges)


def test_the_gap_to_a_bound_is_in_orders_of_magnitude():
    report = theory(AbruptGap(n_arms=3, horizon=1000, phases=2, gap=0.3, world="1"), DiscountedTS(0.95), runs=4)
    bound = report.bounds[0]
    assert report.gap_to(bound) == pytest.approx(bound.log10 - math.log10(report.measured.mean))
    assert theory(Smooth(horizon=100), DiscountedTS(0.9)).gap_to(bound) is None


def test_the_smallest_admissible_beta_counts_crossings_as_well_as_drift():
    from driftbandit.environments import Smooth
    from driftbandit.lab.investigations.guarantee import smallest_beta
    from driftbandit.lab.theory import beta_interval, diagnose

    world = Smooth(n_arms=30, horizon=20_000, sigma=1e-4)
    found = diagnose(world)
    drift_alone = beta_interval(horizon=found.horizon, gap=1.0, drift=found.drift).low
    assert found.crossings > 0
    assert smallest_beta(world, found) >= drift_alone
