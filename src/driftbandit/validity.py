"""Which states a policy can be in: what a snapshot is checked by before it is played.

Compiled code follows the numbers of a state without asking: a position beyond the end of an array ends the process. So
a policy declares in `validate_state(state, t, like)` what each field may hold (`fits`) and how fields hang together
(`need`), after t rewards and given the state `like` that it began with. What passes can be played; what no play can
lead to is refused with a sentence. A class without `validate_state` is taken at its word: it is the user's own."""

from functools import cache
from typing import Any

import numpy as np

from driftbandit.parameters import Domain, within

COUNTS = within("[0, 1e15]")  # discounted or not, beyond this adding 1 changes nothing
REALS = within("[-1e150, 1e150]")  # sums and means of rewards, with room to be squared and added up
ROUNDS = within("[0, 4e18]")  # what an integer of 64 bits holds, with room for a lifetime of rounds
SHARE = within("[0, 1.000001]")  # probabilities and weights, rounding included
FLAG = within("[0, 1]")
SCRATCH = within("[-inf, inf]")  # overwritten before it is read: anything but NaN
ARM = within("arm")  # the number of an arm
ARM_OR_NONE = within("arm or -1")


def check_state(policy: Any, state: Any, t: int, like: Any) -> None:
    """Refuse a state that the policy cannot be in after t rewards. `like` is the state it began with."""
    check = getattr(policy, "validate_state", None)
    if check is None:
        return
    check(state, t, like)
    if hasattr(like, "scores"):
        fits(state, scores=SCRATCH)


def need(condition: Any, what: str) -> None:
    """Refuse the state unless the condition holds; `what` says what must be."""
    if not condition:
        raise ValueError(f"in the state, {what}.")


def fits(state: Any, n_arms: int = 0, **fields: Domain) -> None:
    """Refuse the state unless every number of each field lies in the field's domain."""
    for name, domain in fields.items():
        values = np.asarray(getattr(state, name))
        if domain.text.startswith("arm"):
            low = -1 if domain is ARM_OR_NONE else 0
            inside = (values >= low) & (values < n_arms)
            right = f"from {low} to {n_arms - 1}"
        else:
            inside, right = _inside(values, domain), f"{'in ' if domain.text[0] in '([' else ''}{domain.text}"
        if not inside.all():
            wrong = values[~inside][0]
            raise ValueError(f"in the state, {name} needs numbers {right}; got {wrong:g}.")


def same(state: Any, like: Any, *names: str) -> None:
    """Refuse the state unless these fields, which play never changes, are as they were in the beginning."""
    for name in names:
        need(np.array_equal(getattr(state, name), getattr(like, name)), f"{name} is not what the policy sets it to")


def close(values: Any, others: Any, slack: float = 1e-6) -> bool:
    """Are these equal up to rounding, measured by the larger of 1 and the numbers themselves?"""
    a, b = np.asarray(values, np.float64), np.asarray(others, np.float64)
    return bool((np.abs(a - b) <= slack * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))).all())


def _inside(values: np.ndarray, domain: Domain) -> np.ndarray:
    low, high, open_low, open_high = _bounds(domain.text)
    above = values > low if open_low else values >= low
    below = values < high if open_high else values <= high
    return np.asarray(above & below)  # NaN is neither


@cache
def _bounds(text: str) -> tuple[float, float, bool, bool]:
    if text[0] in "([":
        low, high = (float(part) for part in text[1:-1].split(","))
        return low, high, text[0] == "(", text[-1] == ")"
    sign, bound = text.split()
    return float(bound), np.inf, sign == ">", False
