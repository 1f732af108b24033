"""Learn from a log: does anything change, does forgetting pay, and what would other policies have earned?

`Log` reads and checks, `drift` finds out whether the best arm moves and recommends a policy, `replay` estimates what
policies would have earned.

>>> from driftbandit.logs import Log
>>> Log({"time": [1, 2], "arm": ["a", "b"], "reward": [0, 1], "propensity": [0.5, 0.5]}).arms
['a', 'b']
"""

from driftbandit.logs.drift import Drift, drift
from driftbandit.logs.log import Log
from driftbandit.logs.means import world
from driftbandit.logs.read import LogError
from driftbandit.logs.replay import Replay, replay

__all__ = ["Drift", "Log", "LogError", "Replay", "drift", "replay", "world"]
