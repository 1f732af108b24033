"""Bandits for rewards that change over time.

`Agent` plays a policy live; `driftbandit.policies` and `driftbandit.environments` hold what to play and where;
`driftbandit.lab` simulates, compares and reproduces (needs `pip install 'driftbandit[lab]'`)."""

__version__ = "0.1.0"

from driftbandit.agent import Agent
from driftbandit.forgetting import Forgetting
from driftbandit.policies.discounted_ts import DiscountedTS

__all__ = ["Agent", "DiscountedTS", "Forgetting", "__version__"]
