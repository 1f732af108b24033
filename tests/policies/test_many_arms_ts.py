"""DS-TS that skips arms: other numbers, the same law. Held to DS-TS itself and to the exact chances of its belief."""

import math
from itertools import pairwise

import numpy as np
import pytest

from driftbandit.beliefs import chance_of_largest
from driftbandit.draws import POLICY, Stream, stream_key
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.many_arms_ts import ManyArmsTS, normal_above, upper_tail
from driftbandit.state import to_lists


def both_after(rounds: int, n_arms: int, gamma: float, tau_max: float, seed: int):
    """DS-TS and its skipping form after the same plays and rewards."""
    exact, skipping = DiscountedTS(gamma=gamma, tau_max=tau_max), ManyArmsTS(gamma=gamma, tau_max=tau_max)
    states = to_lists(exact.init(n_arms)), to_lists(skipping.init(n_arms))
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        arm = int(min(rng.geometric(0.2) - 1, n_arms - 1)) if t % 3 else int(rng.integers(n_arms))
        reward = float(rng.random() < 0.2 + 0.6 * arm / n_arms)
        exact.learn(states[0], t, arm, reward)
        skipping.learn(states[1], t, arm, reward)
    return exact, states[0], skipping, states[1]


@pytest.mark.parametrize(("gamma", "tau_max"), [(0.99, 0.2), (0.9, 0.2), (0.999, 0.5), (0.97, 1.5)])
@pytest.mark.parametrize("n_arms", [1, 2, 7, 40])
def test_means_and_spreads_are_those_of_ds_ts(gamma, tau_max, n_arms):
    exact, one, skipping, two = both_after(600, n_arms, gamma, tau_max, seed=n_arms)
    ours, theirs = skipping.belief(two), exact.belief(one)
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.sd, theirs.sd, rtol=1e-9)


@pytest.mark.parametrize("n_arms", [2, 7, 40])
def test_the_two_groups_hold_every_arm_once_and_the_line_is_in_order(n_arms):
    _, _, _, state = both_after(900, n_arms, 0.99, 0.3, seed=3)
    sharp, line = state.sharp[: state.n_sharp[0]], state.order[: n_arms - state.n_sharp[0]]
    assert sorted(sharp + line) == list(range(n_arms))
    assert all(state.place[arm] == i for i, arm in enumerate(sharp))
    assert all(state.place[arm] == i for i, arm in enumerate(line))
    assert all(state.mean[a] >= state.mean[b] for a, b in pairwise(line))


@pytest.mark.parametrize(("gamma", "tau_max"), [(0.99, 0.2), (0.9, 0.2), (0.999, 0.5)])
def test_arms_are_chosen_with_the_exact_chances_of_the_belief(gamma, tau_max):
    """Chi-square over 40 000 choices from one state: a chance failure once in 100 000 tries a case."""
    _, _, skipping, state = both_after(700, 12, gamma, tau_max, seed=5)
    chance, error = chance_of_largest(skipping.belief(state))
    assert error < 1e-3
    stream, n = Stream(stream_key(8, 0, POLICY)), 40_000
    counts = np.bincount([skipping.choose(state, 700, stream.at(t)) for t in range(n)], minlength=12)
    seen = chance * n > 5
    rest = ~seen
    observed, expected = list(counts[seen]), list(chance[seen] * n)
    if rest.any():
        observed.append(counts[rest].sum())
        expected.append(max(chance[rest].sum() * n, 1.0))
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    freedom = len(observed) - 1
    # Wilson and Hilferty's approximation of the chi-square quantile at 1 - 1e-5 (z = 4.265).
    limit = freedom * (1 - 2 / (9 * freedom) + 4.265 * math.sqrt(2 / (9 * freedom))) ** 3
    assert statistic < limit


def test_regret_equals_ds_ts_within_sampling_error():
    """Four standard errors of the difference: a chance failure once in 15 000 tries."""
    world = Abrupt(n_arms=60, horizon=20_000, phases=5, world="3")
    finals = [
        simulate(policy, world, runs=64, seed=seed, checkpoints=1).regret[:, 0]
        for seed, policy in enumerate((DiscountedTS(gamma=0.99), ManyArmsTS(gamma=0.99)))
    ]
    error = math.sqrt(sum(final.var(ddof=1) / len(final) for final in finals))
    assert abs(finals[0].mean() - finals[1].mean()) < 4 * error


@pytest.mark.parametrize("floor", [-1.0, 0.3, 0.5, 3.0])
def test_the_tail_of_the_normal_has_the_mean_it_should(floor):
    """E[Z | Z > c] = phi(c) / Q(c); 20 000 draws, five standard errors."""
    stream = Stream(4)
    values = np.array([normal_above(floor, stream.at(t), 0) for t in range(20_000)])
    density = math.exp(-floor * floor / 2) / math.sqrt(2 * math.pi)
    assert values.min() > floor
    assert abs(values.mean() - density / upper_tail(floor)) < 5 * values.std() / math.sqrt(len(values))
