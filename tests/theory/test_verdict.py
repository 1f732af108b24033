import pytest

from driftbandit.paper.theory.diagnosis import diagnose
from driftbandit.paper.theory.promise import bounds_for
from theory.worlds import Phases, Smooth

LEVELS = [[0.9, 0.5, 0.1], [0.5, 0.9, 0.1], [0.1, 0.5, 0.9]]


def test_an_abrupt_world_gets_every_form_of_both_theorems():
    names = [(bound.name, bound.scope) for bound in bounds_for(Phases(LEVELS, 1000), 0.03)]
    assert names == [
        (f"Theorem {theorem}", scope)
        for theorem in ("1 as proved", "1 as printed", "2 as proved")
        for scope in ("one arm", "all arms")
    ]


def conditions(world, eps):
    return [str(condition) for bound in bounds_for(world, eps) for condition in bound.failed]


def test_at_practical_sizes_every_bound_is_vacuous():
    assert not any(bound.promises for bound in bounds_for(Phases(LEVELS, 1000), 0.03))


def test_a_tied_best_arm_is_named():
    assert any("the best arm is never tied" in text for text in conditions(Phases([[0.5, 0.5], [0.5, 0.4]], 500), 0.05))


def test_a_smooth_world_has_no_phases_to_speak_of_but_theorem_2_applies():
    assert [bound.holds for bound in bounds_for(Smooth(5, 10_000, 1e-3), 0.1)[-2:]] == [True, True]


@pytest.mark.parametrize("eps", [0.0, 1.0, -1.0, 7.0])
def test_a_bad_gamma_is_named(eps):
    assert any("gamma lies in (1 - 1/e, 1)" in text for text in conditions(Phases(LEVELS, 100), eps))


def test_a_stationary_environment_with_a_huge_horizon_has_a_guarantee():
    found = diagnose(Phases([[1.0, 0.0]], 10))._replace(horizon=10**45)
    useful = [bound for bound in bounds_for(Phases([[1.0, 0.0]], 10), 10**-22.5, found=found) if bound.promises]
    sharpest = min((bound for bound in useful if bound.scope == "all arms"), key=lambda bound: bound.log10)
    assert sharpest.name == "Theorem 2 as proved"  # without drift it beats Theorem 1 by B_T D
