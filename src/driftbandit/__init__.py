"""Bandits for rewards that change over time.

`Bandit` decides and learns, in memory or with a journal that survives crashes; `driftbandit.policies` and
`driftbandit.environments` hold the policies and the environments; `driftbandit.lab` simulates, compares and reproduces
(needs `pip install '.[lab]'`). `driftbandit.errors` has every exception that is raised on purpose.

The names here are imported when they are first used, so the command line answers at once and responds to Ctrl-C from
the first moment."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftbandit.bandit import Bandit
    from driftbandit.policies.discounted_ts import DiscountedTS
    from driftbandit.policies.drift import DriftTS

__version__ = "0.1.0"
__all__ = ["Bandit", "DiscountedTS", "DriftTS", "__version__"]
_HOMES = {
    "Bandit": "bandit",
    "DiscountedTS": "policies.discounted_ts",
    "DriftTS": "policies.drift",
}


if not TYPE_CHECKING:  # a type checker sees only the names above, so that it finds a misspelt one

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
