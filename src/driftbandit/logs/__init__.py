"""Learn from a log: does forgetting pay on my data, and how fast should I forget?

`Log` reads and checks, `drift` asks whether the best arm moves, `replay` what other policies would have earned, `tune`
how fast to forget; each says so when the log cannot tell.

>>> from driftbandit.logs import Log
>>> Log({"time": [1, 2], "arm": ["a", "b"], "reward": [0, 1], "propensity": [0.5, 0.5]}).arms
['a', 'b']
"""

import importlib
from typing import Any

_HOMES = {
    "Log": "log",
    "LogError": "faults",
    "drift": "drift_check",
    "replay": "replayed",
    "tune": "tuned",
    "world": "means",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"driftbandit.logs has no {name!r}; it has {', '.join(__all__)}.")
    return getattr(importlib.import_module(f"driftbandit.logs.{_HOMES[name]}"), name)
