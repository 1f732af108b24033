"""What an agent is given and writes down: arms by name, ranges, seeds and counts, each checked and refused in one
sentence."""

import json
import math
from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any

import numpy as np

from driftbandit.parameters import LARGEST
from driftbandit.state import fits_memory

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)
_MOST_ARMS = 10_000_000
_DEEPEST = 20  # tuples within tuples; Python itself ends the process over names nested some ten thousand deep


def shown(value: Any, length: int = 60) -> str:
    """The value as a message shows it: its repr, cut where it is long."""
    if _depth(value) > _DEEPEST:
        return f"a {type(value).__name__} nested more than {_DEEPEST} deep"
    try:
        text = repr(value)
    except Exception:  # a repr of the user's own may do anything; a message about bad input still has to come out
        text = f"a {type(value).__name__}"
    return text if len(text) <= length else f"{text[: length - 3]}..."


def too_deep(value: Any) -> bool:
    """Is this nested so deeply that even hashing it might end the process?"""
    return isinstance(value, tuple) and _depth(value) > _DEEPEST


def _depth(value: Any) -> int:
    """How deep tuples lie within tuples, without recursion; beyond the deepest allowed nobody counts."""
    level, depth = [value], 0
    while depth <= _DEEPEST:
        level = [part for item in level if isinstance(item, tuple | list) for part in item]
        if not level:
            return depth
        depth += 1
    return depth


def arm_names(arms: int | Iterable[Hashable]) -> list[Hashable]:
    """Distinct names that a snapshot can hold, from a list of them or from a number of arms. NumPy's numbers become
    Python's, which are equal to them."""
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        if arms > _MOST_ARMS:
            raise ValueError(f"An agent has at most {_MOST_ARMS} arms; got {shown(arms)}.")
        names: list[Any] = list(range(arms))
    elif isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise ValueError(f"arms is a list of names or a number of arms; got {shown(arms)}.")
    else:
        names = list(islice(arms, _MOST_ARMS + 1))
        if len(names) > _MOST_ARMS:
            raise ValueError(f"An agent has at most {_MOST_ARMS} arms; got more.")
        names = [arm_name(name) for name in names]
    if not names:
        raise ValueError("An agent needs at least one arm; got none.")
    if len(set(names)) < len(names):
        seen: set[Any] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"Arms need distinct names; {shown(twice)} occurs more than once.")
    return names


def arm_name(name: Any) -> Hashable:
    """One name, if JSON can hold it."""
    if isinstance(name, np.integer | np.floating | np.bool_ | np.str_):
        name = name.item()
    if _depth(name) <= _DEEPEST:
        try:
            json.dumps(to_json_arm(name))
            return name  # type: ignore[no-any-return]
        except (ValueError, TypeError):  # TypeError: what a text or number of the user's own kind may raise
            pass
    raise ValueError(
        f"Arms need names that JSON can hold: texts, finite numbers, None, or tuples of them, at most {_DEEPEST} deep; "
        f"got {shown(name)}."
    )


def checked_range(reward_range: Any) -> tuple[float, float]:
    """A pair of finite numbers, low before high, with a width that arithmetic can bear."""
    pair = isinstance(reward_range, tuple | list | np.ndarray) and len(reward_range) == 2
    numbers = pair and all(isinstance(v, _NUMBERS) and not isinstance(v, bool | np.bool_) for v in reward_range)
    if not numbers:
        raise ValueError(f"reward_range is a pair (low, high) of numbers; got {shown(reward_range)}.")
    low, high = (as_float(value) for value in reward_range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"reward_range needs finite low < high; got ({low:g}, {high:g}).")
    if not 1.0 / LARGEST <= high - low <= LARGEST:
        raise ValueError(
            f"reward_range needs a width between {1.0 / LARGEST:g} and {LARGEST:g}; got ({low:g}, {high:g})."
        )
    return low, high


def checked_share(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, _NUMBERS) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} is a probability, a number from 0 to 1; got {shown(value)}.")
    return float(value)


def checked_probability(value: Any) -> float:
    """The probability of an arm that was played; what adds up to 1 may be above it by rounding."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, _NUMBERS) or not 0.0 < value <= 1.000001:
        raise ValueError(
            f"probability is what the arm had when it was chosen, above 0 and at most 1; got {shown(value)}. "
            "Nothing was learnt."
        )
    return float(value)


def checked_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """One of a few values."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        *most, last = (f'"{c}"' if isinstance(c, str) else str(c) for c in choices)
        raise ValueError(f"{name} is {', '.join(most)} or {last}; got {shown(value)}.")
    return value


def as_float(reward: Any) -> float:
    """A reward as a float; a whole number beyond the largest float counts as infinite."""
    if not isinstance(reward, _NUMBERS):
        raise ValueError(f"A reward is a number; got {shown(reward)} of type {type(reward).__name__}.")
    try:
        return float(reward)
    except OverflowError:
        return math.inf


def checked_seed(seed: Any) -> int:
    """A whole number of 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"A seed is a whole number of 0 or more, or None; got {shown(seed)}.")
    return int(seed)


def checked_n(n: Any) -> int:
    """How many decisions to take at once."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ValueError(f"choose(n) needs a whole number of 0 or more; got {shown(n)}.")
    fits_memory(int(n), f"choose(n={shown(n)})")
    return int(n)


def checked_draws(draws: Any) -> int:
    """How often to ask a policy that has no chances to compute."""
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"probabilities needs draws of 1 or more; got {shown(draws)}.")
    return int(draws)


def checked_count(value: Any, limit: int) -> int:
    """A whole number from 0 to below the limit."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        raise ValueError(f"{shown(value, 40)} stands where a number from 0 to {limit - 1} should.")
    return value


def listed(arms: list[Hashable]) -> str:
    """The first few arms, for a message."""
    names = ", ".join(shown(arm, 30) for arm in arms[:8])
    return f"[{names}{', ...' if len(arms) > 8 else ''}]"


def to_json_arm(arm: Hashable) -> Any:
    """Names that JSON keeps as they are stay so; tuples are marked. Anything else cannot come back the same and is
    refused."""
    if arm is None or isinstance(arm, str | bool | int) or (isinstance(arm, float) and math.isfinite(arm)):
        return arm
    if isinstance(arm, tuple):
        return {"tuple": [to_json_arm(part) for part in arm]}
    raise ValueError(f"Arm {shown(arm)} cannot be written as JSON.")


def from_json_arm(arm: Any) -> Hashable:
    """The inverse of `to_json_arm`."""
    if isinstance(arm, dict):
        return tuple(from_json_arm(part) for part in arm["tuple"])
    if isinstance(arm, list):
        raise ValueError("an arm is a list")
    return arm  # type: ignore[no-any-return]


def check_own(policy: Any, n_arms: int) -> None:
    """Look at a user's own policy before it decides, as a simulation does: once for each policy and number of arms."""
    if _holds_own(policy):
        from driftbandit.text import policy_check  # with all that reads programs: most agents have no need of it

        policy_check.check(policy, n_arms, compiled=False)


def _holds_own(value: Any) -> bool:
    if not isinstance(value, tuple):
        return False
    own = hasattr(value, "_fields") and not type(value).__module__.startswith("driftbandit.")
    return own or any(map(_holds_own, value))
