"""What callers give: the options of a bandit, as one value and as keywords; arms, labels, ranges, rewards and seeds.
Each is checked, and refused in one sentence."""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import timedelta
from inspect import signature
from itertools import islice
from typing import Any, NamedTuple, TypedDict

import numpy as np

from driftbandit.core.checks import nearest
from driftbandit.core.parameters import LARGEST
from driftbandit.core.state import start_state, state_size
from driftbandit.player import JOINT

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)
MOST_ARMS = 1000
MOST_NUMBERS = 4_000_000  # in the state of a policy
MOST_LABELS, LONGEST_LABEL = 16, 64


class Options(TypedDict, total=False):
    """What can be chosen about a bandit when it is made, and all but the last three also later with `change`.

    `half_life` makes it forget by the clock; without it, forgetting counts rewards. With `first`, an arm of which no
    outcome has been learned is drawn before the policy is asked, until twice as many outcomes as there are arms have
    been learned. With probability `floor` the arm is drawn uniformly. A share `holdback` of decisions follows the
    `baseline` (an arm, or "uniform") and is not learned from, unless `learn_holdback`; `uplift` compares the two.

    With `wait`, a decision's outcome is learned when the decision is that old, in the order of the decisions: its
    reward, or `default` if none came. This is for programs that report successes only. learn="arrival" learns rewards
    when they come, for programs that report failures just as soon. A reward after `wait` is stored, not learned.
    Without `wait`, rewards are learned when they come, and every decision needs one.

    With goal="minimise" smaller rewards are better, such as times and costs. Any finite reward up to 1e30 is accepted.
    If a `reward_range` is declared, a reward outside it is refused, and policies learn rewards scaled to [0, 1] by it,
    which some need. Durations are texts ("6 h"), timedeltas or seconds.

    `features` declares what a decision's context may hold: {"device": ["mobile", "desktop"], "basket": "number"}. A
    kind is a list of levels, "number", "log number" (for long tails), "flag", or "hour of day" and "day of week", which
    the clock gives, also "hour of day in Europe/Berlin". With candidates=True there are no `arms`: every request brings
    its candidates, and `features` describe each of them.

    With a journal and `retention`, decisions and events that are older may be dropped: `prune`. `labels`, at most 16
    names with values, as {"country": "de"}, change no choice: `Bandit.names` finds bandits by them."""

    half_life: str | timedelta | float | None
    first: bool
    floor: float
    holdback: float
    baseline: Any
    learn_holdback: bool
    wait: str | timedelta | float | None
    default: float
    learn: str
    features: Mapping[str, Any] | None
    retention: str | timedelta | float | None
    labels: Mapping[str, str] | None
    reward_range: tuple[float, float] | None
    goal: str
    candidates: bool


FIXED_OPTIONS = ("reward_range", "goal", "candidates")  # chosen when a bandit is made
TIMES = ("half_life", "wait", "retention")


class Config(NamedTuple):
    """What configures a bandit, as one value: `Bandit(config=...)` and `Bandit.open(..., config=...)` take it, and
    `bandit.config` returns it with every field filled in. The fields are described in `Options`; None is the default.
    A policy is an object or a text. Durations are texts, timedeltas or seconds, and come back as timedeltas."""

    arms: Any = None
    policy: Any = None
    half_life: str | timedelta | float | None = None
    first: bool | None = None
    floor: float | None = None
    holdback: float | None = None
    baseline: Any = None
    learn_holdback: bool | None = None
    wait: str | timedelta | float | None = None
    default: float | None = None
    learn: str | None = None
    reward_range: tuple[float, float] | None = None
    goal: str | None = None
    fixed: Hashable = None  # what `fix` and `retire_arm` did; not for a new bandit
    retired: tuple[Hashable, ...] = ()
    features: Mapping[str, Any] | None = None
    retention: str | timedelta | float | None = None
    candidates: bool | None = None
    labels: Mapping[str, str] | None = None


class StoreOptions(TypedDict, total=False):
    """How a bandit is stored, for `Bandit.open`. With durability="none", `decide` returns before its record is on disk.
    A snapshot of the state is written every `snapshot_every` events. `clock` gives microseconds, for simulations.
    For a service there are `key`, `timeout` (seconds for one attempt) and `patience` (seconds after which a request
    is given up, with all its attempts)."""

    durability: str
    snapshot_every: int
    clock: Callable[[], int] | None
    key: str | None
    timeout: float | None
    patience: float | None


class OpenOptions(Options, StoreOptions, total=False):
    """The keywords of `Bandit.open`."""


_OF_SERVICES = ("key", "timeout", "patience")


def split_options(
    store: StoreOptions | None, options: Mapping[str, Any], service: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keywords of `Bandit.open`: how the bandit is stored, and what configures it. None counts as not given."""
    keys = StoreOptions.__annotations__
    given = {**(store or {}), **{word: value for word, value in options.items() if word in keys}}
    check_names(given, keys, Options.__annotations__)
    how = {word: value for word, value in given.items() if value is not None}
    if wrong := [word for word in how if (word in _OF_SERVICES) != service]:
        place = "a journal; a service has its own." if service else "a service, http://... or https://..."
        raise ValueError(f"{wrong[0]} is for {place}")
    if how.get("durability", "disk") not in ("disk", "none"):
        raise ValueError(f'durability is "disk" or "none"; got {how["durability"]!r:.60}.')
    every = how.get("snapshot_every", 1)
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError(f"snapshot_every is a whole number of 1 or more; got {every!r:.60}.")
    return how, {word: value for word, value in options.items() if word not in keys}


def join_options(
    config: Config | None, policy: Any, arms: Any, options: Mapping[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """The policy, the arms and the options, from a `Config` and from keywords, which come first."""
    check_names(options)
    if config is None:
        return policy, arms, dict(options)
    if not isinstance(config, Config) or config.fixed is not None or config.retired:
        raise ValueError(f"config is a Config without fixed or retired arms; got {config!r:.60}.")
    given = {name: value for name in Options.__annotations__ if (value := getattr(config, name)) is not None}
    return (
        config.policy if policy is None else policy,
        config.arms if arms is None else arms,
        {**given, **{name: value for name, value in options.items() if value is not None}},
    )


def check_names(options: Mapping[str, Any], also: Iterable[str] = (), less: Iterable[str] = ()) -> None:
    """Refuse options that do not exist."""
    known = [name for name in (*also, *Options.__annotations__) if name not in less]
    for name in options:
        if name not in known:
            raise TypeError(
                f"Unknown option {name!r:.60}{nearest(name, known) or '.'} The options are {', '.join(known)}."
            )


# ---- values ----------------------------------------------------------------------------------------------------------


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
