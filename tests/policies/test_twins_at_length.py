"""Every policy next to its twin over thousands of rounds and more seeds: one abrupt and one smooth environment each."""

import pytest

from driftbandit.spec.parse import policies
from harness import assert_same_as_twin
from naive.plays import PARAMETERS

WRAPS = {"Oracle", "PeriodicRestart"}  # their twins take functions: tests/policies/test_restart.py
NAMES = [name for name in sorted(policies()) if name in PARAMETERS and name not in WRAPS and name != "LBSDA"]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_two_thousand_rounds_with_other_seeds_follow_the_twin(name: str) -> None:
    policy = policies()[name](**PARAMETERS[name])
    if "horizon" in policy._fields:
        policy = policy._replace(horizon=2000)
    assert_same_as_twin(policy, 5, 2000, seed=101, environment="abrupt", kind="binary")
    assert_same_as_twin(policy, 3, 2000, seed=102, environment="smooth", kind="real")
