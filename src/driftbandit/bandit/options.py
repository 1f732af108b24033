"""The options of a bandit: their names and types, as one value, and as the keywords of a call."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple, TypedDict

from driftbandit.core.checks import nearest


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

    With goal="minimise" smaller rewards are better, such as times and costs. Any finite reward is accepted; if a
    `reward_range` is declared, a reward outside it is refused, and policies learn rewards scaled to [0, 1] by it, which
    some need. Durations are texts ("6 h"), timedeltas or seconds.

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
