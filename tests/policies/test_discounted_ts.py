"""DS-TS against its twin, its invariants (section 2.1 of the specification) and numbers one can check by hand."""

import pytest

from driftbandit.policies.discounted_ts import DiscountedTS
from harness import assert_same_as_twin


@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("world", ["abrupt", "smooth"])
@pytest.mark.parametrize("n_arms", [1, 2, 5, 30])
@pytest.mark.parametrize(
    "policy",
    [DiscountedTS(gamma=0.97), DiscountedTS(gamma=0.9, forget_below=1e-8), DiscountedTS(gamma=1.0, tau_max=2.0, weight=3.0)],
)
def test_ds_ts_chooses_the_arms_of_its_twin(policy, n_arms, world, kind):
    assert_same_as_twin(policy, n_arms, 3000, seed=n_arms, world=world, kind=kind)
