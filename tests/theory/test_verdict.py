import pytest

from driftbandit.paper.theory import bounds_for, diagnose, in_words
from theory.worlds import Phases, Smooth

LEVELS = [[0.9, 0.5, 0.1], [0.5, 0.9, 0.1], [0.1, 0.5, 0.9]]


def words(world, eps, **parameters):
    return in_words(diagnose(world), bounds_for(world, eps, **parameters))


def test_an_abrupt_world_gets_every_form_of_both_theorems():
    names = [(bound.name, bound.scope) for bound in bounds_for(Phases(LEVELS, 1000), 0.03)]
    assert names == [
        (f"Theorem {theorem}", scope)
        for theorem in ("1 as proved", "1 as printed", "2 as proved")
        for scope in ("one arm", "all arms")
    ]


def test_the_paragraph_admits_that_nothing_is_guaranteed():
    text = words(Phases(LEVELS, 1000), 0.03)
    assert "3 arms over 3000 rounds in 3 phases; the best arm changes 2 times" in text
    assert "Nothing is guaranteed" in text
    assert "Theorem 1 as proved, is 10^15 times larger" in text
    assert "gamma = 1 - 0.0316" in text


def test_a_tied_best_arm_is_named():
    text = words(Phases([[0.5, 0.5], [0.5, 0.4]], 500), 0.05)
    assert "In 500 rounds the best arm is tied" in text
    assert "the best arm is never tied" in text


def test_a_smooth_world_has_no_phases_to_speak_of_but_theorem_2_applies():
    world = Smooth(5, 10_000, 1e-3)
    bounds = bounds_for(world, 0.1)
    assert [bound.holds for bound in bounds[-2:]] == [True, True]
    assert "the phases are too short" in in_words(diagnose(world), bounds)


@pytest.mark.parametrize("eps", [0.0, 1.0, -1.0, 7.0])
def test_a_bad_gamma_is_explained_in_the_paragraph(eps):
    assert "gamma lies in (1 - 1/e, 1)" in words(Phases(LEVELS, 100), eps)


def test_a_world_that_moves_not_at_all_and_lasts_for_ever_has_a_guarantee():
    found = diagnose(Phases([[1.0, 0.0]], 10))._replace(horizon=10**45)
    text = in_words(found, bounds_for(Phases([[1.0, 0.0]], 10), 10**-22.5, found=found))
    assert "Guaranteed: Theorem 2 as proved, all arms" in text  # without drift it beats Theorem 1 by B_T D
