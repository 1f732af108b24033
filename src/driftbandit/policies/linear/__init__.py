"""Policies with context: one linear regression, with several ways to forget and several ways to explore."""

from driftbandit.policies.linear.linear_recent import CusumLinUCB, RestartLinUCB, SlidingLinUCB
from driftbandit.policies.linear.linear_ts import DiscountedLinTS, DiscountedLogisticTS, KalmanTS, LinTS, StableLinTS
from driftbandit.policies.linear.linear_ucb import DiscountedLinUCB, DiscountedRandLinUCB, LinUCB, WeightedLinUCB

__all__ = [
    "CusumLinUCB", "DiscountedLinTS", "DiscountedLinUCB", "DiscountedLogisticTS", "DiscountedRandLinUCB", "KalmanTS",
    "LinTS", "LinUCB", "RestartLinUCB", "SlidingLinUCB", "StableLinTS", "WeightedLinUCB",
]  # fmt: skip
