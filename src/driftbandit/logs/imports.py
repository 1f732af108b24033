"""The lines that import what a pasted agent names."""

from typing import Any

import driftbandit
from driftbandit import policies


def import_lines(policy: Any) -> list[str]:
    """Where an agent, a policy and the policies within it come from; a class of a script itself comes from nowhere.

    >>> from driftbandit.policies import DiscountedBetaTS
    >>> import_lines(DiscountedBetaTS())
    ['from driftbandit import Agent', 'from driftbandit.policies import DiscountedBetaTS']
    """
    homes: dict[str, set[str]] = {"driftbandit": {"Agent"}}
    for made in _within(policy):
        homes.setdefault(_home(type(made)), set()).add(type(made).__name__)
    return [f"from {home} import {', '.join(sorted(names))}" for home, names in sorted(homes.items()) if home]


def _within(policy: Any) -> list[Any]:
    parts = policy if isinstance(policy, tuple) else ()
    return [policy, *(inner for part in parts if hasattr(part, "choose") for inner in _within(part))]


def _home(kind: type) -> str:
    for home in (driftbandit, policies):
        if kind.__name__ in home.__all__ and getattr(home, kind.__name__) is kind:
            return home.__name__
    return "" if kind.__module__ == "__main__" else kind.__module__
