"""States between their three forms: arrays (as `init` makes them), plain lists (for the interpreter), JSON (for
snapshots); and how they begin and grow."""

import math
import os
from typing import Any

import numpy as np


def to_lists(value: Any) -> Any:
    """The same tuple with every array as a plain list: one element at a time, Python is several times faster on lists
    than on arrays."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return tuple.__new__(type(value), [to_lists(item) for item in value])
    return value


def to_arrays(value: Any, like: Any) -> Any:
    """The inverse: lists as arrays of the dtypes of `like`, the state that `init` made."""
    if isinstance(like, np.ndarray):
        return np.array(value, like.dtype)
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return tuple.__new__(type(like), [to_arrays(item, pattern) for item, pattern in zip(value, like, strict=True)])
    return value


def to_plain(value: Any) -> Any:
    """A state of lists as JSON can hold it: {field: numbers}; numbers JSON lacks are written as "inf", "-inf" and
    "nan"."""
    if isinstance(value, tuple):
        return {name: to_plain(item) for name, item in zip(value._fields, value, strict=True)}  # type: ignore[attr-defined]
    return [number if math.isfinite(number) else str(number) for number in value]


def from_plain(data: Any, like: Any) -> Any:
    """The inverse of `to_plain`: a state of lists with the fields, lengths and kinds of number of `like`; anything else
    is refused."""
    if isinstance(like, tuple):
        names = like._fields  # type: ignore[attr-defined]
        if not isinstance(data, dict) or set(data) != set(names):
            raise ValueError(f"the state needs the fields {', '.join(names)}.")
        return tuple.__new__(
            type(like), [from_plain(data[name], field) for name, field in zip(names, like, strict=True)]
        )
    if not isinstance(data, list) or len(data) != len(like):
        raise ValueError(f"a field of the state needs {len(like)} numbers.")
    return [_number(item, like.dtype.kind) for item in data]


def _number(item: Any, kind: str) -> Any:
    if item in ("inf", "-inf", "nan") and kind == "f":
        return float(item)
    right = isinstance(item, bool) if kind == "b" else isinstance(item, int | float) and not isinstance(item, bool)
    if not right or (kind in "iu" and item != int(item)):
        raise ValueError(f"{item!r:.40} stands where a number should.")
    return float(item) if kind == "f" else item if kind == "b" else int(item)


def started(policy: Any, n_arms: int, most: int | None = None) -> Any:
    """The state before the first round, unless it has more than `most` numbers or no memory holds it. The size is
    computed before anything is allocated, since an operating system may promise memory that it does not have."""
    size = room_of(policy, n_arms) if hasattr(policy, "room") else 0  # without it, a few numbers for each arm
    if most is not None and size > most:
        raise ValueError(f"{policy!r:.80} with {n_arms} arms keeps {size:,} numbers; the limit here is {most:,}.")
    fits_memory(size, f"{policy!r:.80} with {n_arms} arms")
    try:
        return policy.init(n_arms)
    except MemoryError:
        raise ValueError(f"{policy!r:.80} with {n_arms} arms needs more memory than there is.") from None


def room_of(policy: Any, n_arms: int) -> int:
    """How many numbers the state has at most. A policy whose state grows with a parameter computes it in
    `room(n_arms)`; of any other a state is made and counted."""
    room = getattr(policy, "room", None)
    return int(room(n_arms)) if room is not None else numbers_in(policy.init(n_arms))


def numbers_in(state: Any) -> int:
    """How many numbers a state holds, as arrays or as a snapshot has it."""
    if isinstance(state, np.ndarray):
        return int(state.size)
    if isinstance(state, dict | tuple):
        return sum(map(numbers_in, state.values() if isinstance(state, dict) else state))
    return len(state) if isinstance(state, list) else 1


def fits_memory(numbers: int, what: str, each: int = 40) -> None:
    """Refuse what takes more than all the memory of this machine; a number in a list takes some 40 bytes."""
    if numbers * each > memory():
        raise ValueError(
            f"{what} needs room for {float(numbers):.2g} numbers, about {numbers * each / 2**30:.3g} GB; "
            f"this machine has {memory() / 2**30:.3g} GB."
        )


def memory() -> int:
    """The memory of this machine, in bytes; where it cannot be asked, 64 GB."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return 64 * 2**30


def grown(state: Any, policy: Any, n_arms: int, t: int) -> Any:
    """The state of lists with room for one more arm, of which nothing is known in round t.

    States are arm-major: a field whose length grows with the number of arms has the new arm's numbers at its end.
    Where that is not enough, because numbers of all arms lie by turns or something is counted over all arms, the policy
    puts it right: `grow(state, after, t)` gets the old state, the one grown by rule, and the round."""
    before, after = policy.init(n_arms), policy.init(n_arms + 1)
    larger = to_arrays(_grown(state, before, to_lists(after)), after)
    grow = getattr(policy, "grow", None)
    return to_lists(larger if grow is None else grow(to_arrays(state, before), larger, t))


def _grown(state: Any, before: Any, after: Any) -> Any:
    if isinstance(state, tuple):
        return tuple.__new__(type(state), [_grown(*fields) for fields in zip(state, before, after, strict=True)])
    return list(state) + list(after[len(before) :])
