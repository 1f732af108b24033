"""States in their three forms: arrays (as `init` makes them), lists (for the interpreter), JSON (for snapshots)."""

import math
import os
from inspect import signature
from typing import Any, TypeVar

import numpy as np

S = TypeVar("S")


def to_lists(value: Any) -> Any:
    """The same tuple with every array as a plain list, on which interpreted Python is several times faster. The fields
    that a class names in `arrays` are copied, since its methods use NumPy on them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        arrays = getattr(value, "arrays", ())
        fields = zip(value._fields, value, strict=True)
        return tuple.__new__(
            type(value), [np.array(item) if name in arrays else to_lists(item) for name, item in fields]
        )
    return value


def to_arrays(value: Any, like: Any) -> Any:
    """The inverse: lists as arrays with the dtypes of `like`, the state that `init` made."""
    if isinstance(like, np.ndarray):
        return np.array(value, like.dtype)
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return tuple.__new__(type(like), [to_arrays(item, pattern) for item, pattern in zip(value, like, strict=True)])
    return value


def to_json(value: Any) -> Any:
    """A state of lists as JSON can hold it: {field: numbers}; numbers that JSON lacks are written as "inf", "-inf"
    and "nan"."""
    if isinstance(value, tuple):
        return {name: to_json(item) for name, item in zip(value._fields, value, strict=True)}  # type: ignore[attr-defined]
    numbers = value.tolist() if isinstance(value, np.ndarray) else value
    return [number if math.isfinite(number) else str(number) for number in numbers]


def from_json(data: Any, like: Any) -> Any:
    """The inverse of `to_json`; refuses anything without the fields, lengths and kinds of number of `like`."""
    if isinstance(like, tuple):
        names = like._fields  # type: ignore[attr-defined]
        if not isinstance(data, dict) or set(data) != set(names):
            raise ValueError(f"the state needs the fields {', '.join(names)}.")
        return tuple.__new__(
            type(like), [from_json(data[name], field) for name, field in zip(names, like, strict=True)]
        )
    if not isinstance(data, list) or len(data) != len(like):
        raise ValueError(f"a field of the state needs {len(like)} numbers.")
    if like.dtype.kind == "f" and set(map(type, data)) == {float}:  # nearly always, and 20 times as fast
        return list(data)
    return [_number(item, like.dtype.kind) for item in data]


def _number(item: Any, kind: str) -> Any:
    if item in ("inf", "-inf", "nan") and kind == "f":
        return float(item)
    right = isinstance(item, bool) if kind == "b" else isinstance(item, int | float) and not isinstance(item, bool)
    if not right or (kind in "iu" and item != int(item)):
        raise ValueError(f"{item!r:.40} is not a number of the right kind.")
    return float(item) if kind == "f" else item if kind == "b" else int(item)


def new_state(kind: type[S], n_arms: int, **fields: Any) -> S:
    """A state of this class with the given fields; the others are zeros, one per arm."""
    return kind(*(fields[name] if name in fields else np.zeros(n_arms) for name in kind._fields))  # type: ignore[attr-defined]


def init_state(policy: Any, n_arms: int, n_features: int = 0, joint: bool = False) -> Any:
    """The first state of a policy. Features change nothing for a policy that does not use them."""
    if n_features == 0 or not hasattr(policy, "choose_in"):
        return policy.init(n_arms)
    if joint and len(signature(policy.init).parameters) < 3:
        raise ValueError(f"{type(policy).__name__} takes one context per round, not features for each arm.")
    return policy.init(n_arms, n_features, True) if joint else policy.init(n_arms, n_features)


def init_in(policy: Any, environment: Any) -> Any:
    """The first state of a policy in an environment, contextual or not."""
    return init_state(
        policy, environment.n_arms, getattr(environment, "n_features", 0), getattr(environment, "joint", False)
    )


def start_state(policy: Any, n_arms: int, most: int | None = None, n_features: int = 0, joint: bool = False) -> Any:
    """The state before the first round, unless it has more than `most` numbers or does not fit into memory. The size
    is computed before anything is allocated, since an operating system may promise memory that it does not have."""
    sized = hasattr(policy, "state_size") or n_features > 0  # otherwise a few numbers for each arm
    try:
        size = state_size(policy, n_arms, n_features, joint) if sized else 0
    except MemoryError:
        size = 1 << 60
    if most is not None and size > most:
        raise ValueError(f"{policy!r:.80} with {n_arms} arms keeps {size:,} numbers; the limit here is {most:,}.")
    fits_memory(size, f"{policy!r:.80} with {n_arms} arms")
    try:
        return init_state(policy, n_arms, n_features, joint)
    except MemoryError:
        raise ValueError(f"{policy!r:.80} with {n_arms} arms needs more memory than there is.") from None


def state_size(policy: Any, n_arms: int, n_features: int = 0, joint: bool = False) -> int:
    """How many numbers the state has at most. A policy whose state grows with a parameter computes it in
    `state_size(n_arms)`; otherwise, and with features, a state is made and counted."""
    if hasattr(policy, "state_size") and n_features == 0:
        return int(policy.state_size(n_arms))
    return count_numbers(init_state(policy, n_arms, n_features, joint))


def count_numbers(state: Any) -> int:
    """How many numbers a state holds, as arrays or in a snapshot."""
    if isinstance(state, np.ndarray):
        return int(state.size)
    if isinstance(state, dict | tuple):
        return sum(map(count_numbers, state.values() if isinstance(state, dict) else state))
    return len(state) if isinstance(state, list) else 1


def equal_states(state: Any, other: Any) -> bool:
    """Whether two states of arrays hold the same numbers."""
    pairs = zip(state, other, strict=True)
    return all(equal_states(a, b) if isinstance(a, tuple) else np.array_equal(a, b) for a, b in pairs)


def fits_memory(numbers: int, what: str, each: int = 40) -> None:
    """Refuse a state larger than the memory of this machine; a number in a list takes about 40 bytes."""
    if numbers * each > memory():
        raise ValueError(
            f"{what} needs {float(numbers):.2g} numbers, about {numbers * each / 2**30:.3g} GB; "
            f"this machine has {memory() / 2**30:.3g} GB."
        )


def memory() -> int:
    """The memory of this machine in bytes; 64 GB where it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return 64 * 2**30


def add_arm_to(
    state: Any,
    policy: Any,
    n_arms: int,
    t: int,
    n_features: int = 0,
    joint: bool = False,
    past: dict[str, Any] | None = None,
    features: Any = None,
) -> Any:
    """The state of lists with one more arm, without evidence or with a past (`Player.add_arm`), in round t.

    States are arm-major: a field whose length grows with the number of arms has the new arm's numbers at its end. A
    policy for which that is not enough defines `grow(state, after, t)`, which gets the old state, the extended one
    and the round."""
    before, after = (init_state(policy, n, n_features, joint) for n in (n_arms, n_arms + 1))
    larger = to_arrays(_grow(state, before, to_lists(after)), after)
    grow = getattr(policy, "grow", None)
    out = to_lists(larger if grow is None else grow(to_arrays(state, before), larger, t))
    if past is not None and "like" in past:
        copy_arm(policy, out, n_arms, past["like"], before)
    elif past is not None:
        know_arm(policy, out, t, n_arms, past["mean"], past["worth"], features)
    return out


def can_know_arms(policy: Any, features: bool = False) -> bool:
    """Whether a new arm of this policy can begin with something known of it."""
    return hasattr(policy, "know_arm") or hasattr(policy, "take_in" if features else "take")


def know_arm(policy: Any, state: Any, t: int, arm: int, mean: float, worth: float, features: Any = None) -> None:
    """Let the last arm of a state of lists be known as if this many rewards of this mean had come, in a context if
    there are features."""
    if hasattr(policy, "know_arm"):
        policy.know_arm(state, t, arm, mean, worth, features or ())
    elif features:
        policy.take_in(state, arm, mean, worth, features)
    else:
        policy.take(state, arm, mean, worth)


def copy_arm(policy: Any, state: Any, arm: int, like: int, sizes: Any) -> None:
    """Let the last arm of a state of lists be known as another one is; `sizes` is a first state of one arm fewer."""
    if hasattr(policy, "copy_arm"):
        policy.copy_arm(state, arm, like)
        return
    for field, before in zip(state, sizes, strict=True):
        width = len(field) - len(before)
        if width:
            field[-width:] = field[like * width : (like + 1) * width]


def _grow(state: Any, before: Any, after: Any) -> Any:
    if isinstance(state, tuple):
        return tuple.__new__(type(state), [_grow(*fields) for fields in zip(state, before, after, strict=True)])
    return list(state) + list(after[len(before) :])
