"""The probabilistic lemmas: by quadrature where that is exact enough, by simulation with a stated error elsewhere."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from theory import lemmas
from theory import letters as f


def density(x, mean, sd):
    return np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))


MEANS = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=4)


@given(MEANS, st.lists(st.floats(0.05, 1.0), min_size=4, max_size=4), st.floats(-0.5, 1.5))
@settings(max_examples=60, deadline=None)
def test_lemma_5_holds_for_gaussian_draws(means, sds, threshold):
    """Arm 0 is best, arm 1 the rival. Simpson's rule on 4001 points within 9 standard deviations: error below 1e-7."""
    low = min(m - 9 * s for m, s in zip(means, sds, strict=False))
    high = max(max(m + 9 * s for m, s in zip(means, sds, strict=False)), threshold + 1e-3)
    low = min(low, threshold - 1e-3)
    below, above = np.linspace(low, threshold, 4001), np.linspace(threshold, high, 4001)

    def others(x, skip):
        out = np.ones_like(x)
        for arm, (mean, sd) in enumerate(zip(means, sds, strict=False)):
            if arm not in skip:
                out = out * ndtr((x - mean) / sd)
        return out

    rival = simpson(density(below, means[1], sds[1]) * others(below, {1}), x=below)
    capped = ndtr((threshold - means[1]) / sds[1])
    best = simpson(density(below, means[0], sds[0]) * others(below, {0}), x=below) + capped * simpson(
        density(above, means[0], sds[0]) * others(above, {0, 1}), x=above
    )
    p = ndtr((means[0] - threshold) / sds[0])
    assert p * rival <= (1 - p) * best + 1e-7


def stopped_trajectories(eps, horizon, level, first_stop, runs, seed):
    """Play an arm with rewards Bernoulli(1/2) and stop for good once its normalised deviation exceeds `level`.

    Stopping is allowed from round `first_stop` on. Returns the deviation N (mean - mu2) / sqrt(N(gamma^2)) at the end
    and N(gamma^2) there. Each decision uses the past only, as the inequality allows."""
    rng = np.random.default_rng(seed)
    gamma = 1 - eps
    total, squares = np.zeros(runs), np.zeros(runs)
    playing = np.ones(runs, dtype=bool)
    for t in range(horizon):
        total = gamma * total + np.where(playing, (rng.random(runs) < 0.5) - 0.5, 0.0)
        squares = gamma**2 * squares + playing
        if t >= first_stop:
            playing &= total <= level * np.sqrt(squares)
    return total / np.sqrt(squares), squares


def test_the_deviation_inequality_holds_while_the_squared_count_is_at_least_one():
    """20 000 runs; the bound must not be below the frequency by more than 4 standard errors (chance 1 in 30 000)."""
    eps, runs = 0.1, 20_000
    for level in (0.8, 1.2, 1.5):
        # N(gamma^2) falls from 5.26 to 1 in at most 8 rounds of rest, so the adversary may stop in the last 8 rounds.
        deviation, squares = stopped_trajectories(eps, 100, level, 92, runs, seed=11)
        frequency = ((deviation > level) & (squares >= 1)).mean()
        bound = lemmas.deviation_tail(level, (1 - 0.9**100) / eps)
        assert frequency <= bound + 4 * math.sqrt(frequency * (1 - frequency) / runs)
        assert frequency > 0


def test_the_deviation_inequality_fails_for_an_arm_that_stops_at_a_lucky_moment():
    """Stopped at the first lucky moment of 3000 rounds, the ratio stays above 1.5 forever, while the bound stays at
    0.103: n_t never exceeds 1/eps. The statement needs N(gamma^2) >= 1. 400 runs; 4 standard errors."""
    eps, runs, level = 0.1, 400, 1.5
    deviation, _ = stopped_trajectories(eps, 3000, level, 20, runs, seed=12)
    frequency = (deviation > level).mean()
    bound = lemmas.deviation_tail(level, 1 / eps)
    assert round(bound, 3) == 0.103
    assert frequency - 4 * math.sqrt(frequency * (1 - frequency) / runs) > bound


def test_the_deviation_inequality_needs_at_least_one_slice():
    # After one round n_t = 1 and ceil(ln 1 / ln(1 + eta)) = 0: taken literally, a fair coin could not show heads.
    literal = math.ceil(math.log(1.0) / math.log(3.0))
    assert literal == 0
    assert math.isclose(lemmas.deviation_tail(0.4, 1.0), math.exp(-2 * 0.16 * 0.75))


def chernoff_log_tail(weights, mean, excess):
    """ln of the smallest exponential-moment bound on P(sum w (X - mean) > excess sum w), X Bernoulli(mean)."""

    def exponent(scale):
        x = scale * weights
        return float((np.log1p(mean * np.expm1(x)) - x * mean).sum() - scale * excess * weights.sum())

    return minimize_scalar(exponent, bounds=(0.0, 60.0), method="bounded").fun


def test_lemma_7_holds_for_fixed_plays_by_chernoffs_bound():
    """An upper bound on the probability itself, so no sampling error: it is already below eps^48 ln(1/eps)."""
    eps, gap = 1e-4, 0.9
    level = f.A(eps, gap)
    for mean in (0.02, 0.05, 0.1):
        rest = int(math.log(level * eps) / math.log1p(-eps)) - 1  # played always, then rested until N is just above A
        for idle in (0, rest):
            weights = np.exp(math.log1p(-eps) * (idle + np.arange(0, 150_000)))
            assert weights.sum() > level
            assert chernoff_log_tail(weights, mean, gap / 3) <= lemmas.log_lemma7_tail(eps)


def test_lemma_7_meets_no_exception_when_the_arm_is_played_while_it_looks_bad():
    """The lemma's level is below 1e-190, so a single exception in 200 runs x 20 000 rounds would refute it."""
    eps, gap, mean, runs = 1e-4, 0.9, 0.1, 200
    rng = np.random.default_rng(13)
    total, count, exceptions = np.zeros(runs), np.zeros(runs), 0
    level = f.A(eps, gap)
    for _ in range(20_000):
        playing = total <= (mean + 0.005) * count
        total = (1 - eps) * total + (playing & (rng.random(runs) < mean))
        count = (1 - eps) * count + playing
        exceptions += int(((count > level) & (total > (mean + gap / 3) * count)).sum())
    assert count.max() > level
    assert exceptions == 0
