"""Which states a policy can be in: a snapshot is checked before it is played.

Compiled code uses the numbers of a state unchecked: a position beyond the end of an array crashes the process. So a
policy declares in `validate_state(state, t, like)` what each field may hold (`fits`) and how fields are related
(`need`), after t rewards and given its first state `like`. A user's class without `validate_state` is not checked."""

from typing import Any

import numpy as np

from driftbandit.core.parameters import Domain, within

COUNTS = within("[0, 1e15]")  # discounted or not, beyond this adding 1 changes nothing
REALS = within("[-1e150, 1e150]")  # sums and means of rewards, which may be squared and added up
ROUNDS = within("[0, 4e18]")  # below the largest 64-bit integer
SHARE = within("[0, 1.000001]")  # probabilities and weights, rounding included
FLAG = within("[0, 1]")
SCRATCH = within("[-inf, inf]")  # overwritten before it is read: anything but NaN
ARM = within("arm")  # the number of an arm
ARM_OR_NONE = within("arm or -1")


def check_state(policy: Any, state: Any, t: int, like: Any) -> None:
    """Refuse a state that the policy cannot be in after t rewards. `like` is its first state."""
    check = getattr(policy, "validate_state", None)
    if check is None:
        return
    check(state, t, like)
    if hasattr(like, "scores"):
        fits(state, scores=SCRATCH)


def need(condition: Any, what: str) -> None:
    """Refuse the state unless the condition, described by `what`, holds."""
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
            inside, right = domain.holds(values), domain.describe()
        if not inside.all():
            wrong = values[~inside][0]
            raise ValueError(f"in the state, {name} needs numbers {right}; got {wrong:g}.")


def same(state: Any, like: Any, *names: str) -> None:
    """Refuse the state unless these fields, which play never changes, are those of the first state."""
    for name in names:
        need(np.array_equal(getattr(state, name), getattr(like, name)), f"{name} is not what the policy sets it to")


def close(values: Any, others: Any, slack: float = 1e-6) -> bool:
    """Whether these are equal up to rounding, relative to the larger of 1 and the numbers themselves."""
    a, b = np.asarray(values, np.float64), np.asarray(others, np.float64)
    return bool((np.abs(a - b) <= slack * np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))).all())
