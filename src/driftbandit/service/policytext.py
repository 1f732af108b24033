"""A policy named by somebody else: one of the library's, of a size the service can hold.

Text from outside loads nothing. On a command line "mine.py:Mine" loads a file; here it is refused before it is read."""

from typing import Any

import numpy as np

_INTEGER = 1_000_000  # largest whole number a parameter may be; a window of so many rounds is the largest
_HORIZON = 1_000_000_000
_STATE = 4_000_000  # numbers a policy may keep


def library_policy(text: str, n_arms: int) -> Any:
    """The policy that a text names, if it is the library's and its state fits."""
    from driftbandit.text.parse import parse_policy

    if ":" in text:  # the only mark by which a text can name a file or a module
        raise ValueError(f"Over HTTP a policy is one of the library's, such as 'ds-ts(gamma=0.99)'; got {text!r:.60}.")
    policy = parse_policy(text)
    _check_numbers(policy)
    size = _numbers(policy.init(n_arms))
    if size > _STATE:
        raise ValueError(f"{text!r:.60} with {n_arms} arms keeps {size} numbers; the service takes up to {_STATE}.")
    return policy


def _check_numbers(policy: Any) -> None:
    for name, value in zip(policy._fields, policy, strict=True):
        if hasattr(value, "_fields"):
            _check_numbers(value)
        elif isinstance(value, int) and abs(value) > (_HORIZON if name == "horizon" else _INTEGER):
            raise ValueError(f"{name} of a policy named over HTTP is at most {_INTEGER}; got {value}.")


def _numbers(state: Any) -> int:
    if isinstance(state, np.ndarray):
        return state.size
    return sum(_numbers(part) for part in state) if isinstance(state, tuple) else 1
