"""What is tried on a log: a policy, and the half-life by the clock it forgets with, if it forgets by the clock."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from driftbandit.half_life import checked_half_life
from driftbandit.logs.periods import duration, said
from driftbandit.policies.beta_ts import BetaTS
from driftbandit.protocols import Policy

_LONGEST = 1e11  # seconds, 3,000 years


class Candidate(NamedTuple):
    """A policy under a label. `half_life` in seconds means forgetting by the clock, infinite means never; None leaves
    forgetting to the policy's own parameters, which count rewards."""

    label: str
    policy: Any
    half_life: float | None = None
    rounds: float | None = None  # the half-life in rewards, where the policy's own discount was made from one

    @property
    def forgets(self) -> float:
        """The half-life, in seconds or rewards; infinite if it never forgets or has none to tell."""
        return next((value for value in (self.half_life, self.rounds) if value is not None), math.inf)

    @property
    def kind(self) -> str:
        """How it forgets: "half-life" by a finite one of the grid, "never", or "itself", by a rule of its own: a
        window, a test for changes, a discount that is not a half-life of the grid."""
        if math.isfinite(self.forgets):
            return "half-life"
        return "never" if self.half_life is not None or _never_forgets(self.policy) else "itself"


def _never_forgets(policy: Any) -> bool:
    """Does a policy, by its own parameters, keep all it knows? If it does not say, it is assumed not to."""
    base = getattr(policy, "base", None)
    if base is not None and hasattr(base, "choose"):
        return bool(getattr(policy, "forgets_as_base", False)) and _never_forgets(base)
    if hasattr(policy, "gamma"):
        return bool(policy.gamma == 1.0)
    return str(getattr(policy, "forgets", "")).startswith("never")


def candidates(given: Any, unit: bool | str) -> list[Candidate]:
    """Candidates from texts such as "ds-ts(tau_max=0.1) @ 6 h", from policies, or from a dict {label: either};
    lengths of time are labelled in this unit, as by `periods.said`."""
    if isinstance(given, str) or hasattr(given, "choose"):
        given = [given]
    pairs: Iterable[tuple[str, Any]] = given.items() if isinstance(given, Mapping) else [("", item) for item in given]
    out = [_candidate(label, item, unit) for label, item in pairs]
    labels = [candidate.label for candidate in out]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is given twice; each policy needs a text of its own.")
    return out


def _candidate(label: str, item: Any, unit: bool | str) -> Candidate:
    if isinstance(item, Candidate):
        return item
    if not isinstance(item, str):
        if isinstance(item, type) or not isinstance(item, Policy):
            raise TypeError(f"A policy such as DiscountedTS(gamma=0.99) is wanted; got {item!r:.60}.")
        return Candidate(label or repr(item), item)
    from driftbandit.text.load import load_policy

    text, _, half_life = item.partition("@")
    policy = load_policy(text.strip())
    if not half_life.strip():
        return Candidate(label or " ".join(item.split()), policy)
    seconds = duration(half_life.strip())
    if not isinstance(policy, BetaTS):  # ts with a half-life is dts, which has its numbers
        checked_half_life(min(seconds, _LONGEST), policy)
    return Candidate(label or f"{text.strip()} @ {said(seconds, unit)}", policy, seconds)
