"""States between their three forms: arrays (as `init` makes them), plain lists (for the interpreter), JSON (for
snapshots)."""

import math
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


def grown(state: Any, policy: Any, n_arms: int) -> Any:
    """The state with room for one more arm, of which nothing is known.

    States are arm-major: a field whose length grows with the number of arms has the new arm's numbers at its end."""
    return _grown(state, policy.init(n_arms), to_lists(policy.init(n_arms + 1)))


def _grown(state: Any, before: Any, after: Any) -> Any:
    if isinstance(state, tuple):
        return tuple.__new__(type(state), [_grown(*fields) for fields in zip(state, before, after, strict=True)])
    return list(state) + list(after[len(before) :])
