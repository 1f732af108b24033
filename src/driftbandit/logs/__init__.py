"""Learn from a log: does forgetting pay on my data, and how fast should I forget?

`Log` reads and checks, `drift` asks whether the best arm moves, `replay` what other policies would have earned, `tune`
how fast to forget; each says so when the log cannot tell.

>>> from driftbandit.logs import Log
>>> Log({"time": [1, 2], "arm": ["a", "b"], "reward": [0, 1], "propensity": [0.5, 0.5]}).arms
['a', 'b']
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftbandit.logs.drift_check import drift
    from driftbandit.logs.faults import LogError
    from driftbandit.logs.log import Log
    from driftbandit.logs.means import world
    from driftbandit.logs.replayed import replay
    from driftbandit.logs.tuned import tune

__all__ = ["Log", "LogError", "drift", "replay", "tune", "world"]
_HOMES = {
    "Log": "log",
    "LogError": "faults",
    "drift": "drift_check",
    "replay": "replayed",
    "tune": "tuned",
    "world": "means",
}


if not TYPE_CHECKING:  # a type checker knows the names above and no others, so that it finds a misspelt one

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"driftbandit.logs has no {name!r}; it has {', '.join(__all__)}.")
        return getattr(importlib.import_module(f"driftbandit.logs.{_HOMES[name]}"), name)
