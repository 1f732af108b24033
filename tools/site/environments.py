"""Three small environments that every policy is shown in, and the policy as its own theory sets it there."""

import inspect
import math
from typing import Any, NamedTuple

from driftbandit.core.parameters import parameters
from driftbandit.environments import PhaseTable, Smooth
from driftbandit.field.suite import find_facts
from driftbandit.policies import BetaTS

ARMS = "ABCD"
HORIZON, QUICK_HORIZON = 3_000, 200
RUNS, QUICK_RUNS = 16, 2

# A falls while C rises; then nothing happens but that D, which is not played by now, becomes the best; then A returns.
_PHASES = ((0.70, 0.50, 0.35, 0.20), (0.35, 0.50, 0.70, 0.20), (0.35, 0.50, 0.70, 0.90), (0.75, 0.50, 0.30, 0.20))
_STILL = ((0.40, 0.55, 0.70, 0.25),)


class SmallEnvironment(NamedTuple):
    """An environment with what a reader should know of it."""

    name: str
    about: str
    environment: Any


def small_environments(quick: bool = False) -> tuple[SmallEnvironment, ...]:
    """The three environments: one that changes at once, one that drifts, one that is stationary."""
    horizon = QUICK_HORIZON if quick else HORIZON
    starts = tuple(phase * horizon // len(_PHASES) for phase in range(len(_PHASES)))
    return (
        SmallEnvironment("abrupt", "three sudden changes", PhaseTable(_PHASES, starts, horizon)),
        SmallEnvironment("smooth", "the best arm wanders", Smooth(len(ARMS), horizon, 2 * math.pi / horizon)),
        SmallEnvironment("still", "nothing changes", PhaseTable(_STILL, (0,), horizon)),
    )


def as_its_theory_says(cls: Any, environment: Any) -> Any:
    """The policy by its `tuned` constructor, given all facts of the environment that it needs; by its defaults where it
    has no such constructor. A policy that wraps another is given Thompson sampling."""
    facts = find_facts(environment)
    offered = {**facts._replace(variation=max(facts.variation, 0.1))._asdict(), "base": BetaTS()}
    maker = getattr(cls, "tuned", None)
    wanted = list(inspect.signature(maker).parameters) if maker else _needed(cls)
    return (maker or cls)(**{name: offered[name] for name in wanted if name in offered})


def _needed(cls: Any) -> list[str]:
    defaults = getattr(cls, "_field_defaults", {})
    return [parameter.name for parameter in parameters(cls) if parameter.name not in defaults]


def brief(policy: Any) -> str:
    """A policy as one would type it: its short name, and what is not as it is by default, without digits that mean
    nothing.

    >>> from driftbandit.policies import DiscountedTS, PeriodicRestart
    >>> brief(DiscountedTS(gamma=0.99683772)), brief(PeriodicRestart(BetaTS(), period=50))
    ('ds-ts(gamma=0.99684)', 'periodic-restart(base=ts, period=50)')
    """
    defaults = getattr(policy, "_field_defaults", {})
    given = [
        f"{name}={brief(value) if hasattr(value, 'choose') else _short(value)}"
        for name, value in policy._asdict().items()
        if name not in defaults or value != defaults[name]
    ]
    return getattr(policy, "short", type(policy).__name__) + (f"({', '.join(given)})" if given else "")


def _short(value: Any) -> str:
    """Three digits of a number, counted from 1 where it is close to 1."""
    if not isinstance(value, float) or not math.isfinite(value) or value == 0.0:
        return repr(value)
    small = 1.0 - value if 0.9 <= value < 1.0 else abs(value)
    digits = max(2 - math.floor(math.log10(small)), 0)
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"
