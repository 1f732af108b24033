"""What to play: every policy of the paper's story. `driftbandit list policies` shows them as a table.

A policy is found by standing in a module of this folder; nothing is listed here, and nothing is loaded before it is
asked for.

>>> from driftbandit.policies import SlidingTS
>>> SlidingTS(window=678).window
678
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    from driftbandit.text.registry import policies

    try:
        return policies()[name]
    except KeyError:
        raise AttributeError(f"There is no policy {name!r}; `driftbandit list policies` shows what there is.") from None


def __dir__() -> list[str]:
    from driftbandit.text.registry import policies

    return sorted(policies())
