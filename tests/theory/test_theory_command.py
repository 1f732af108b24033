"""The theory command at a small scale, and the report behind it."""

import math

import pytest

from driftbandit.cli import main
from driftbandit.environments import AbruptGap, Smooth
from driftbandit.paper.theory import paper_functions as f
from driftbandit.paper.theory.diagnosis import breakpoints, pseudo_stationary
from driftbandit.paper.theory.promise import discount, settled, smallest_beta, theory
from driftbandit.policies.beta_ts import SlidingTS
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.ucb import DiscountedUCB

ABRUPT = "AbruptGap(n_arms=3, horizon=3000, phases=3, gap=0.2, world='1')"


def told(capsys, *words):
    code = main([*words])
    out, err = capsys.readouterr()
    return code, " ".join(out.split()), err


def test_the_report_has_facts_bounds_and_orders(capsys):
    code, out, _ = told(capsys, "theory", "--env", ABRUPT, "ds-ts.tuned")
    assert code == 0
    for part in (
        "B_T 3 phases",
        "Delta_T 0.2 smallest distance",
        "Theorem 1 as proved one arm",
        "vacuous",
        "lower bound for every policy",
        "sqrt(T B_T) / gap^2",
        "gamma 0.968377 discount of Corollary 1",
    ):
        assert part in out


def test_measuring_adds_the_regret(capsys):
    code, out, _ = told(capsys, "theory", "ds-ts.tuned", "--env", ABRUPT, "--runs", "8")
    assert code == 0
    assert "measured over 8 runs: regret" in out


def test_a_drifting_environment_has_no_table_1(capsys):
    _, out, _ = told(capsys, "theory", "ds-ts(gamma=0.9)", "--env", "Smooth(n_arms=5, horizon=10000)")
    assert "at beta = 0.661" in out  # the means move by 0.0004 a round, not by sigma = 0.001
    assert "Table 1" not in out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["ds-ts(gamma=1.0)"], "gamma lies in (1 - 1/e, 1)"),
        (["--env", "AbruptGap(gap=0.0, horizon=1000)", "ds-ts"], "the best arm is never tied"),
        (["--env", "Abrupt(horizon=20, phases=10)", "ds-ts"], "gamma none discount of Corollary 1"),
        (["--env", "Abrupt(horizon=1, phases=1)", "ds-ts"], "lower bound"),
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
        (["theory", "ds-tss"], "did you mean"),
        (["theory", "--runs", "1"], "from 2 to"),
        (["theory", "--growth", "--scale", "0"], "scale needs a number in (0, 100]"),
        (["theory", "ds-ts", "--growth"], "leave POLICY and --env out"),
        (["theory", "--scale", "2"], "add --growth"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(capsys, words, part):
    code, _, err = told(capsys, *words)
    assert code == 2
    assert part in err
    assert err.count("\n") == 1


def test_growth_prints_every_policy_and_sweep(capsys, monkeypatch):
    from driftbandit.paper.theory import growth

    few = [sweep._replace(values=sweep.values[:3]) for sweep in growth.sweeps(0.01)]
    monkeypatch.setattr(growth, "sweeps", lambda scale: few)
    monkeypatch.setitem(growth.growth.__kwdefaults__, "policies", {"ds-ts": DiscountedTS.tuned})
    code, out, _ = told(capsys, "theory", "--growth", "--scale", "0.01", "--runs", "4")
    assert code == 0
    for name in ("horizon T ds-ts", "phases B_T ds-ts", "1 / gap ds-ts", "arms K ds-ts"):
        assert name in out


def test_only_ds_ts_has_bounds():
    environment = AbruptGap(n_arms=3, horizon=3000, phases=3, gap=0.2, world="1")
    assert len(theory(environment, DiscountedTS(0.95)).bounds) == 6
    for policy in (DiscountedUCB(gamma=0.99), SlidingTS(window=50)):
        assert theory(environment, policy).bounds == ()
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
    from driftbandit.paper.theory.bound import beta_interval
    from driftbandit.paper.theory.diagnosis import diagnose

    world = Smooth(n_arms=30, horizon=20_000, sigma=1e-4)
    found = diagnose(world)
    drift_alone = beta_interval(horizon=found.horizon, gap=1.0, drift=found.drift).low
    assert found.crossings > 0
    assert smallest_beta(world, found) >= drift_alone
