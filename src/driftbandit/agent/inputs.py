"""What an agent is given and writes down: arms by name, ranges, seeds and counts, each checked and refused in one
sentence."""

import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def arm_names(arms: int | Iterable[Hashable]) -> list[Hashable]:
    """Distinct hashable names, from a list of them or from a number of arms."""
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        names: list[Hashable] = list(range(arms))
    elif isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise ValueError(f"arms is a list of names or a number of arms; got {arms!r}.")
    else:
        names = list(arms)
    if not names:
        raise ValueError("An agent needs at least one arm; got none.")
    try:
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"Arms need distinct names; {twice!r} occurs more than once.")
    except TypeError:
        raise ValueError("Arms need hashable names such as texts, numbers or tuples of them.") from None
    return names


def checked_range(reward_range: Any) -> tuple[float, float]:
    """A pair of finite numbers, low before high."""
    try:
        low, high = (math.nan if isinstance(value, str | bytes) else float(value) for value in reward_range)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"reward_range is a pair (low, high) of numbers; got {reward_range!r}.") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"reward_range needs finite low < high; got ({low:g}, {high:g}).")
    return low, high


def as_float(reward: Any) -> float:
    """A reward as a float; a whole number beyond the largest float counts as infinite."""
    if not isinstance(reward, _NUMBERS):
        raise ValueError(f"A reward is a number; got {reward!r:.60} of type {type(reward).__name__}.")
    try:
        return float(reward)
    except OverflowError:
        return math.inf


def checked_seed(seed: Any) -> int:
    """A whole number of 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"A seed is a whole number of 0 or more, or None; got {seed!r}.")
    return int(seed)


def checked_count(value: Any, limit: int) -> int:
    """A whole number from 0 to below the limit."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        raise ValueError(f"{value!r:.40} stands where a number from 0 to {limit - 1} should.")
    return value


def no_number(text: str) -> Any:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(f"{text} is no JSON.")  # Python's reader takes NaN and Infinity, our snapshots never hold them


def listed(arms: list[Hashable]) -> str:
    """The first few arms, for a message."""
    shown = ", ".join(repr(arm) for arm in arms[:8])
    return f"[{shown}{', ...' if len(arms) > 8 else ''}]"


def to_json_arm(arm: Hashable) -> Any:
    """Names that JSON keeps as they are stay so; tuples are marked. Anything else cannot come back the same and is
    refused."""
    if arm is None or isinstance(arm, str | bool | int) or (isinstance(arm, float) and math.isfinite(arm)):
        return arm
    if isinstance(arm, tuple):
        return {"tuple": [to_json_arm(part) for part in arm]}
    raise ValueError(
        f"Arm {arm!r} cannot be written as JSON; a snapshot needs names that are texts, numbers or tuples of them."
    )


def from_json_arm(arm: Any) -> Hashable:
    """The inverse of `to_json_arm`."""
    if isinstance(arm, dict):
        return tuple(from_json_arm(part) for part in arm["tuple"])
    if isinstance(arm, list):
        raise ValueError("an arm is a list")
    return arm  # type: ignore[no-any-return]
