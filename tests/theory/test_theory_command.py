"""The command `theory`."""

import json

import pytest

from driftbandit.cli._main import main
from driftbandit.environments import AbruptGap
from driftbandit.paper.theory import growth, theory
from driftbandit.policies.beta_ts import SlidingTS
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.ucb import DiscountedUCB

ABRUPT = "AbruptGap(n_arms=3, horizon=3000, phases=3, gap=0.2, instance='1')"


def call(capsys, *words):
    code = main([*words])
    out, err = capsys.readouterr()
    return code, " ".join(out.split()), err


def test_the_command_prints_quantities_and_bounds(capsys):
    code, out, _ = call(capsys, "theory", "--env", ABRUPT, "ds-ts.tuned")
    assert code == 0
    for part in ("B_T 3 phases", "Delta_T 0.2 smallest distance", "Theorem 1, one arm", "vacuous"):
        assert part in out


def test_the_same_as_json(capsys):
    code = main(["theory", "--env", ABRUPT, "ds-ts.tuned", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert found["quantities"][0] == ["T", "3000", "rounds"]
    assert found["bounds"][0]["log10"] > 10


def test_the_smallest_beta_follows_from_the_drift(capsys):
    _, out, _ = call(capsys, "theory", "ds-ts(gamma=0.9)", "--env", "Smooth(n_arms=5, horizon=10000)")
    assert "beta 0.661" in out  # the means move by 0.0004 a round, not by sigma = 0.001


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["ds-ts(gamma=1.0)"], "gamma is in (1 - 1/e, 1)"),
        (["--env", "AbruptGap(gap=0.0, horizon=1000)", "ds-ts"], "the best arm is never tied"),
        (["--env", "Abrupt(horizon=20, phases=10)", "ds-ts"], "Theorem 1"),
        (["--env", "Abrupt(horizon=1, phases=1)", "ds-ts"], "Theorem 1"),
        (["ts"], "no bound for this policy"),
    ],
)
def test_odd_settings_are_answered_without_nan(capsys, words, part):
    code, out, _ = call(capsys, "theory", *words)
    assert code == 0
    assert part in out
    assert "nan" not in out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["theory", "ds-tss"], "did you mean"),
        (["theory", "--growth", "--runs", "1"], "from 2 to"),
        (["theory", "ds-ts", "--growth"], "remove POLICY and --env"),
        (["theory", "--runs", "2"], "add --growth"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(capsys, words, part):
    code, _, err = call(capsys, *words)
    assert code == 2
    assert part in err
    assert err.count("\n") == 1


def test_growth_prints_every_policy_and_sweep(capsys, monkeypatch):
    small = AbruptGap(n_arms=3, horizon=2000, phases=4, gap=0.4)
    few = [sweep._replace(values=sweep.values[:3], base=small) for sweep in growth.SWEEPS[1:]]
    monkeypatch.setattr(growth.growth, "__defaults__", (4, 0, None, False, few, {"ds-ts": DiscountedTS.tuned}))
    code, out, _ = call(capsys, "theory", "--growth", "--runs", "4")
    assert code == 0
    for name in ("phases B_T ds-ts", "1 / gap ds-ts", "arms K ds-ts"):
        assert name in out


def test_only_ds_ts_has_bounds():
    environment = AbruptGap(n_arms=3, horizon=3000, phases=3, gap=0.2, instance="1")
    assert len(theory(environment, DiscountedTS(0.95)).bounds) == 4
    for policy in (DiscountedUCB(gamma=0.99), SlidingTS(window=50)):
        assert theory(environment, policy).bounds == []
