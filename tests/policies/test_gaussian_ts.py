"""Thompson sampling with normal beliefs against its twins, and numbers checkable by hand."""

import pytest

from driftbandit.core.draws import Stream
from driftbandit.core.state import to_lists
from driftbandit.policies.gaussian_ts import DiscountedGaussianTS, SlidingGaussianTS
from harness import SITUATIONS, assert_compiled_as_interpreted, assert_same_as_twin, taught

QUICK = [DiscountedGaussianTS(gamma=0.97, noise=0.3), SlidingGaussianTS(window=60, noise=0.2, prior_mean=0.1)]


@pytest.mark.parametrize(("n_arms", "environment", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", QUICK, ids=repr)
def test_normal_beliefs_choose_the_arms_of_their_twins(policy, n_arms, environment, kind):
    assert_same_as_twin(policy, n_arms, 600, seed=n_arms, environment=environment, kind=kind)


@pytest.mark.long
@pytest.mark.parametrize("policy", QUICK, ids=repr)
def test_compiled_and_interpreted_normal_beliefs_choose_the_same_arms(policy):
    assert_compiled_as_interpreted(policy)


def test_two_rewards_give_the_posterior_one_computes_by_hand():
    policy = DiscountedGaussianTS(gamma=0.5, noise=1.0, prior_mean=2.0, prior_sd=1.0)
    state = taught(policy, [(0, 4.0), (0, 6.0)], 2)
    assert (state.pulls, state.sums) == ([1.5, 0.0], [8.0, 0.0])
    belief = policy.belief(state)
    assert belief.mean == pytest.approx([(2.0 + 8.0) / 2.5, 2.0])
    assert belief.sd == pytest.approx([2.5**-0.5, 1.0])


@pytest.mark.parametrize("policy", QUICK, ids=repr)
def test_choices_do_not_change_when_rewards_and_what_is_known_of_them_are_scaled_and_shifted(policy):
    """By powers of two, so that nothing is rounded: 4 x - 2."""
    other = policy._replace(noise=4 * policy.noise, prior_mean=4 * policy.prior_mean - 2, prior_sd=4 * policy.prior_sd)
    stream, arms = Stream(3), []
    for one, scale, shift in ((policy, 1.0, 0.0), (other, 4.0, -2.0)):
        state = to_lists(one.init(3))
        arms.append([])
        for t in range(300):
            arms[-1].append(one.choose(state, t, stream.at(t)))
            one.learn(state, t, arms[-1][-1], scale * ((t * 7 + arms[-1][-1]) % 8 / 8) + shift)
    assert arms[0] == arms[1]
