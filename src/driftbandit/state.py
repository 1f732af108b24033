"""States between their three forms: arrays (as `init` makes them), plain lists (for the interpreter), JSON (for snapshots)."""

from typing import Any

import numpy as np


def to_lists(value: Any) -> Any:
    """The same tuple with every array as a plain list: one element at a time, Python is several times faster on lists than on arrays."""
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
