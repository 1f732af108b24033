"""DriftTS's probabilities, for many hypotheses together, against one hypothesis at a time with many nodes."""

import math

import numpy as np
import pytest

from driftbandit.policies.drift.belief import DriftBelief, _log_gamma
from naive.drift_probabilities import probabilities


def _some_belief(rng: np.random.Generator, arms: int, kind: str) -> DriftBelief:
    """Fourteen hypotheses, some with two laws per arm: like those of a state, and worse."""
    count = 14
    weights = np.sort(rng.dirichlet(np.full(count, 0.3)))[::-1]
    n = rng.choice([2.0, 20.0, 400.0, 5000.0] if kind == "sharp" else [2.0, 10.0, 60.0], (count, 2, arms))
    mean = rng.uniform(0.02, 0.98 if kind != "rare" else 0.08, (count, 2, arms))
    a, b = 1.0 + n * mean, 1.0 + n * (1.0 - mean)
    first = np.where(rng.random((count, arms)) < 0.3, 1.0, rng.random((count, arms)))
    first[rng.random((count, arms)) < 0.1] = 0.0
    first[: count // 2] = 1.0
    if kind in ("tied", "rare"):  # arms of which nothing is known, as after a jump
        fresh = rng.random((count, arms)) < 0.5
        a[:, 1][fresh] = b[:, 1][fresh] = 1.002
        a[:4, 0][fresh[:4]] = b[:4, 0][fresh[:4]] = 1.002
    single = (first == 1.0).all(axis=1)
    a[single, 1], b[single, 1] = a[single, 0], b[single, 0]
    return DriftBelief(weights, a, b, first, 1e-6)


def _slowly(belief: DriftBelief, arms: list[int]) -> np.ndarray:
    rows = zip(belief.weights, belief.a, belief.b, belief.first, strict=True)
    total = sum(w * probabilities(a[:, arms], b[:, arms], first[arms]) for w, a, b, first in rows)
    return total / total.sum()


@pytest.mark.parametrize("kind", ["plain", "tied", "rare", "sharp"])
def test_many_hypotheses_together_are_one_at_a_time_within_the_stated_error(kind: str) -> None:
    rng = np.random.default_rng(5)
    beliefs = [_some_belief(rng, 6, kind) for _ in range(4)]
    arms = [[0, 1, 2, 3], [5, 2, 1, 0], [0, 3, 4, 5], [1, 2, 3, 4]]
    together = DriftBelief.together(beliefs, arms)
    for belief, some, (fast, error) in zip(beliefs, arms, together, strict=True):
        alone, same = belief.largest_probabilities(some)
        assert fast == pytest.approx(alone, abs=1e-8)
        assert error == pytest.approx(same, abs=1e-8)
        assert fast.sum() == pytest.approx(1.0)
        assert error < 2e-3
        assert np.abs(fast - _slowly(belief, some)).max() <= error + 1e-7


def test_the_logarithm_of_the_gamma_function_is_that_of_the_standard_library() -> None:
    x = np.concatenate([np.linspace(0.01, 3.0, 50), np.geomspace(1.0, 1e8, 50)])
    expected = np.array([math.lgamma(value) for value in x])
    assert np.abs(_log_gamma(x) - expected).max() <= 1e-13 * np.abs(expected).max()
    assert _log_gamma(x) == pytest.approx(expected, rel=1e-12, abs=1e-13)
