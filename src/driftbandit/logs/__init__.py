"""Learn from a log: `Log` reads and checks it, `drift` finds out whether the best arm changes and recommends a policy,
`replay` estimates what policies would have earned, and `estimate_means` makes an environment of it.

>>> from driftbandit.logs import Log
>>> Log({"time": [1, 2], "arm": ["a", "b"], "reward": [0, 1], "propensity": [0.5, 0.5]}).arms
['a', 'b']
"""

from driftbandit.errors import LogError
from driftbandit.logs.drift import Drift, drift
from driftbandit.logs.log import Log
from driftbandit.logs.means import MeansOverTime, estimate_means
from driftbandit.logs.replay import Replay, replay

__all__ = ["Drift", "Log", "LogError", "MeansOverTime", "Replay", "drift", "estimate_means", "replay"]
