"""Arms by name, ranges, rewards and seeds, each checked and refused in one sentence."""

import json
import math
from collections.abc import Hashable, Iterable, Mapping
from inspect import signature
from itertools import islice
from typing import Any

import numpy as np

from driftbandit.core.parameters import LARGEST
from driftbandit.core.state import start_state, state_size
from driftbandit.player import JOINT

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)
MOST_ARMS = 1000
MOST_NUMBERS = 4_000_000  # in the state of a policy
MOST_LABELS, LONGEST_LABEL = 16, 64


def format_value(value: Any, length: int = 60) -> str:
    """The value as a message shows it: its repr, cut where it is long."""
    try:
        text = repr(value)
    except Exception:  # a repr of the user's own may do anything, and values may be nested too deep for it
        text = f"a {type(value).__name__}"
    return text if len(text) <= length else f"{text[: length - 3]}..."


def checked_arms(arms: int | Iterable[Hashable]) -> list[Any]:
    """Distinct names as JSON holds them, from a list of them or from a number of arms. NumPy's numbers become Python's,
    which are equal to them."""
    names: list[Any]
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        names = list(range(min(int(arms), MOST_ARMS + 1)))
    elif isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise ValueError(f"arms is a list of names or a number of arms; got {format_value(arms)}.")
    else:
        names = list(islice(arms, MOST_ARMS + 1))
    if len(names) > MOST_ARMS:
        raise ValueError(f"A bandit has at most {MOST_ARMS} arms; got more.")
    names = [name.item() if isinstance(name, np.generic) else name for name in names]
    found = [to_json_arm(name) for name in names]
    if not names:
        raise ValueError("A bandit needs at least one arm; got none.")
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"Arms need distinct names; {format_value(twice)} occurs more than once.")
    for name in found:
        if not writable(name):
            raise ValueError(f"Arm {name!a:.60} is not a text that a file can hold: half a character.")
    return found


def checked_labels(labels: Any) -> dict[str, str]:
    """Names with values, in order. A name has no ":" and no "=", which divide it from its value in a query."""
    if not isinstance(labels, Mapping) or len(labels) > MOST_LABELS:
        raise ValueError(f"labels maps at most {MOST_LABELS} names to values; got {format_value(labels)}.")
    for text in (*labels, *labels.values()):
        if not isinstance(text, str) or not text.isprintable() or not 1 <= len(text) <= LONGEST_LABEL:
            raise ValueError(
                f"A label's name and value are printable texts of 1 to {LONGEST_LABEL} characters; "
                f"got {format_value(text)}."
            )
    if wrong := [name for name in labels if ":" in name or "=" in name]:
        raise ValueError(f"A label's name has no : and no =; got {format_value(wrong[0])}.")
    return dict(sorted(labels.items()))


def split_labels(texts: Iterable[str], between: str) -> dict[str, str]:
    """Labels from texts such as "country:de"."""
    found: dict[str, str] = {}
    for name, _, value in (text.partition(between) for text in texts):
        if not name or not value or name in found:
            raise ValueError(
                f"A label is given once and as name{between}value, such as country{between}de; "
                f"got {format_value(name)}."
            )
        found[name] = value
    return checked_labels(found)


def checked_range(reward_range: Any) -> tuple[float, float]:
    """A pair of finite numbers, low before high, with a width that arithmetic can bear."""
    pair = isinstance(reward_range, tuple | list | np.ndarray) and len(reward_range) == 2
    numbers = pair and all(isinstance(v, _NUMBERS) and not isinstance(v, bool | np.bool_) for v in reward_range)
    if not numbers:
        raise ValueError(f"reward_range is a pair (low, high) of numbers; got {format_value(reward_range)}.")
    low, high = (as_float(value) for value in reward_range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"reward_range needs finite low < high; got ({low:g}, {high:g}).")
    if not 1.0 / LARGEST <= high - low <= LARGEST:
        raise ValueError(
            f"reward_range needs a width between {1.0 / LARGEST:g} and {LARGEST:g}; got ({low:g}, {high:g})."
        )
    return low, high


def as_float(reward: Any) -> float:
    """A reward as a float; a whole number beyond the largest float counts as infinite."""
    if not isinstance(reward, _NUMBERS):
        raise ValueError(f"A reward is a number; got {format_value(reward)} of type {type(reward).__name__}.")
    try:
        return float(reward)
    except OverflowError:
        return math.inf


def check_seed(seed: Any) -> int:
    """A whole number of 0 or more."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"A seed is a whole number of 0 or more, or None; got {format_value(seed)}.")
    return int(seed)


def check_whole(value: Any, name: str, low: int, high: int) -> int:
    """A whole number from low to high."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} is a whole number from {low} to {high:,}; got {format_value(value)}.")
    return value


def writable(value: Any) -> bool:
    """Whether a file can hold the texts in this: half a character, which Python allows, it cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def list_arms(arms: list[Hashable]) -> str:
    """The first few arms, for a message."""
    names = ", ".join(format_value(arm, 30) for arm in arms[:8])
    return f"[{names}{', ...' if len(arms) > 8 else ''}]"


def to_json_arm(arm: Hashable) -> Any:
    """Names that JSON keeps as they are stay so; tuples are marked. Anything else cannot come back the same and is
    refused."""
    if _is_plain(arm):
        return arm
    if isinstance(arm, tuple) and all(map(_is_plain, arm)):
        return {"tuple": list(arm)}
    raise ValueError(f"An arm's name is a text, a finite number, None, or a tuple of them; got {format_value(arm)}.")


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def from_json_arm(arm: Any) -> Hashable:
    """The inverse of `to_json_arm`; a ValueError for anything it cannot have written."""
    name = tuple(arm["tuple"]) if isinstance(arm, dict) else arm
    to_json_arm(name)
    return name


def check_own(policy: Any, n_arms: int, n_features: int = 0, joint: bool = False) -> None:
    """Look at a user's own policy before it decides, as a simulation does: once for each policy and number of arms."""
    if _holds_own(policy):
        from driftbandit.spec import policy_check  # with all that reads programs: most bandits have no need of it

        policy_check.check(policy, n_arms, compiled=False, n_features=n_features, joint=joint)


def check_state(policy: Any, n_arms: int, columns: int = 0, joint: bool = False) -> None:
    """Refuse a policy that cannot use this many columns of features, of each arm if `joint`, or whose state is too
    large."""
    if columns and not hasattr(policy, "choose_in"):
        raise ValueError(
            f"{type(policy).__name__} cannot use features; name a policy that can in the same call, such as "
            "DriftLinTS()."
        )
    size = count_state(policy, n_arms, columns, joint) if columns else 0
    if size > MOST_NUMBERS:
        raise ValueError(
            f"{policy!r:.80} with {n_arms} arms and {columns} columns of features keeps {size:,} numbers, and at most "
            f"{MOST_NUMBERS:,} are allowed; declare fewer features or arms."
        )
    n_arms = max(n_arms, JOINT) if joint else n_arms
    check_own(policy, n_arms, columns, joint)
    start_state(policy, n_arms, MOST_NUMBERS, columns, joint)


def count_state(policy: Any, n_arms: int, columns: int = 0, joint: bool = False) -> int:
    """How many numbers the state of a policy has; where the policy declares it, before a state is made."""
    sized = getattr(policy, "state_size", None)
    if columns and sized is not None and len(signature(sized).parameters) > 1:
        return int(sized(n_arms, columns, joint) if joint else sized(n_arms, columns))
    return state_size(policy, n_arms, columns, joint)


def _holds_own(value: Any) -> bool:
    if not isinstance(value, tuple):
        return False
    own = hasattr(value, "_fields") and not type(value).__module__.startswith("driftbandit.")
    return own or any(map(_holds_own, value))
