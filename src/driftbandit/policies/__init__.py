"""What to play."""

from driftbandit.policies.discounted_ts import DiscountedTS
