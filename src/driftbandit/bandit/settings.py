"""The options of a bandit, checked and brought into the form that the journal keeps."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from driftbandit.bandit import inputs, records
from driftbandit.bandit.candidates import ARM, check_has_arms
from driftbandit.bandit.features import Features
from driftbandit.bandit.inputs import Config, Options
from driftbandit.bandit.records import DAY, ROUNDS
from driftbandit.bandit.records import StoredConfig as Stored
from driftbandit.core.checks import UNIT, accepted_rewards
from driftbandit.core.protocols import Policy
from driftbandit.core.state import can_know_arms
from driftbandit.policies.drift import DriftAuto, DriftLinTS
from driftbandit.spec.half_life import checked_half_life, duration, format_duration

MOST_WORTH = 1e9  # observations that the past of an arm may count for
FLOOR = 0.005  # the default: the least mean regret over all kinds of environments in docs/drift-ts/floor.md


def public_config(stored: Stored, policy: Any) -> Config:
    """A stored configuration as its user sees it: arms by name, durations as timedeltas."""
    names = names_of(stored)
    active = [names[slot] for slot in stored.active]
    retired = dict.fromkeys(names[slot] for slot in stored.retired if names[slot] not in active)  # each once
    return Config(
        arms=None if stored.candidates else active, policy=policy, retired=tuple(retired),
        fixed=None if stored.fixed is None else names[stored.fixed],
        **{name: public_option(stored, name) for name in Options.__annotations__},
    )  # fmt: skip


def public_option(config: Stored, name: str) -> Any:
    """An option's value as a caller gives it: the inverse of `read_option`."""
    value = getattr(config, name)
    if name == "baseline" and config.holdback > 0.0:
        return "uniform" if value is None else names_of(config)[value]
    if value is None or name == "baseline":
        return None
    return (
        timedelta(microseconds=value)
        if name in inputs.TIMES
        else dict(value)
        if name in ("features", "labels")
        else value
    )


def checked_policy(policy: Any, policies: Mapping[str, type] | None = None, features: Any = None) -> Any:
    """A policy that can decide live, be written down and made again; if None is given, DriftAuto, or DriftLinTS where
    there are features. A text such as "ds-ts(gamma=0.99)" is read; `policies` are the user's classes that it may name.
    Every policy of a live bandit passes through here, whether it comes from a program, over HTTP or from a journal."""
    if policy is None:
        return DriftLinTS() if features else DriftAuto()
    if isinstance(policy, str):
        from driftbandit.spec.parse import parse_policy

        policy = parse_policy(policy, extra=policies)
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise TypeError(f"A bandit needs a policy such as DriftAuto(); got {policy!r:.60}.")
    inner: Any = policy
    while inner is not None:
        if getattr(inner, "simulated_only", False):
            raise ValueError(
                f"{type(inner).__name__} only plays in simulations; a live bandit needs another policy, such as "
                "DriftAuto()."
            )
        inner = getattr(inner, "base", None)
    return policy


def names_of(config: Stored) -> list[Hashable]:
    """The arms' names by slot."""
    return [inputs.from_json_arm(name) for name in config.arms]


def slot_of(config: Stored, names: list[Hashable], arm: Any) -> int:
    """The slot of an active arm."""
    check_has_arms(config)
    for slot in range(len(names) - 1, -1, -1):
        if names[slot] == arm and type(names[slot]) is type(arm) and slot not in config.retired:
            return slot
    active = [names[slot] for slot in config.active]
    known = "was retired" if any(name == arm for name in names) else "is unknown"
    raise ValueError(f"Arm {arm!r:.60} {known}; the arms are {inputs.list_arms(active)}.")


def slots_of(config: Stored, available: Any) -> list[int]:
    """The slots of the arms that a call is limited to, in order."""
    if isinstance(available, str | bytes) or not isinstance(available, Iterable):
        raise ValueError(f"available is a list of arms; got {available!r:.60}.")
    names = names_of(config)
    slots = sorted({slot_of(config, names, arm) for arm in available})
    if not slots:
        raise ValueError("available needs at least one arm; got none.")
    return slots


def first_config(policy: Any, arms: Any, key: int, rounds: str, options: dict[str, Any]) -> Stored:
    """The configuration a bandit begins with."""
    policy, candidates = checked_policy(policy, features=options.get("features")), options.get("candidates") is True
    if candidates == (arms is not None):
        raise ValueError(
            "A bandit with candidates=True has no arms: leave arms out." if candidates else "A bandit needs arms: "
            "distinct names, or a number of arms; or features and candidates=True, if every request brings its own."
        )  # fmt: skip
    config = Stored(
        policy=repr(policy), arms=inputs.checked_arms([ARM] if candidates else arms), retired=[], reward_range=None,
        goal="maximise", half_life=None,
        floor=FLOOR, holdback=0.0, baseline=None, learn_holdback=False, wait=None, default=0.0, learn="wait",
        fixed=None, key=str(key), rounds=rounds,
    )  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    made = {name: read_option(config, name, given.pop(name)) for name in inputs.FIXED_OPTIONS if name in given}
    if accepted_rewards(policy) == UNIT:
        made.setdefault("reward_range", (0.0, 1.0))
    low, high = made.get("reward_range", (0.0, 0.0))
    config = config._replace(**made, default=min(max(0.0, low), high))
    return change_config(config, policy, {"features": None, **given})


def change_config(config: Stored, policy: Any, options: dict[str, Any]) -> Stored:
    """The configuration after a change of these options; None takes half_life, wait, features, retention and labels
    away."""
    out = config
    if "policy" in options:
        policy = checked_policy(options["policy"])
        out = out._replace(policy=repr(policy))
        if config.reward_range is None and accepted_rewards(policy) == UNIT:
            raise ValueError(
                f"{type(policy).__name__} needs rewards in a range, and this bandit was made without reward_range; "
                "DriftAuto() and DriftLinTS() take any rewards."
            )
    out = out._replace(**{name: read_option(config, name, options[name]) for name in options if name != "policy"})
    if "policy" in options or "features" in options:
        features = Features.stored(out.features)
        if out.candidates and not features.given:
            raise ValueError("With candidates, features describe each of them: features={'price': 'number'}.")
        inputs.check_state(policy, len(out.arms), len(features.columns), out.candidates)
    if out.adds and out.wait is None:
        raise ValueError(
            "Rewards of this bandit are added up until their decision is `wait` old (add=True), so it needs a wait."
        )
    if out.half_life is not None and ("policy" in options or "half_life" in options):
        checked_half_life(timedelta(microseconds=out.half_life), policy)
    if out.half_life is not None and out.features is not None and not hasattr(policy, "take_in"):
        raise ValueError(f"{type(policy).__name__} cannot use features with a half-life; StableLinTS() can.")
    if "baseline" not in options and out.holdback > 0.0 and config.holdback == 0.0:
        raise ValueError('holdback needs a baseline: the name of an arm, or "uniform" for a uniform choice.')
    if options.get("wait") is not None and config.goal == "minimise" and options.get("default") is None:
        raise ValueError(
            'With goal="minimise", wait needs a default: the reward of a decision without one, such as the longest '
            "time."
        )
    if out.retention is not None and out.retention < DAY + (out.wait or 0):
        raise ValueError("retention is at least 1 day, and at least 1 day longer than wait.")
    return out


def read_option(config: Stored, name: str, value: Any) -> Any:
    """An option's value as the journal keeps it; one that is not allowed is refused."""
    if name in inputs.TIMES:
        return None if value is None else duration(value, name)
    if name in ("floor", "holdback"):
        number = inputs.as_float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        if not 0.0 <= number < 1.0:
            raise ValueError(f"{name} is a share of all decisions in [0, 1); got {value!r:.60}.")
        return number
    if name == "baseline":
        names = names_of(config)
        return None if value == "uniform" and "uniform" not in names else slot_of(config, names, value)
    if name == "reward_range":
        return inputs.checked_range(value)
    if name == "features":
        declared = {} if value is None else Features.declare(value).declaration()
        return [list(pair) for pair in declared.items()] or None
    if name == "labels":
        return inputs.checked_labels({} if value is None else value) or None
    if name == "default":
        return _check_in_range(config, value, "default")
    allowed = {"goal": ("maximise", "minimise"), "learn": ("wait", "arrival")}.get(name, (True, False))
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        listing = " or ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in allowed)
        raise ValueError(f"{name} is {listing}; got {value!r:.60}.")
    return value


def _check_in_range(config: Stored, value: Any, name: str) -> float:
    """A value that rewards can have; -0.0 becomes 0.0, as it does in SQLite."""
    number = inputs.as_float(value) + 0.0
    low, high = config.bounds
    if not low <= number <= high:
        raise ValueError(f"{name} is a reward from {low:g} to {high:g}; got {value!r:.60}.")
    return number


def checked_config(data: Any, make: Callable[[str], Any]) -> None:
    """Refuse a configuration that no bandit can have."""
    config = Stored(**data)
    names, slots = names_of(config), range(len(config.arms))
    active = config.active
    gone = [slot for slot in config.retired if type(slot) is int and slot in slots]
    if gone != config.retired or len(set(gone)) < len(gone):
        raise ValueError("an arm is retired that is not there.")
    if any(
        slot is not None and (type(slot) is not int or slot not in active) for slot in (config.fixed, config.baseline)
    ):
        raise ValueError("the fixed arm or the baseline is not there.")
    if not config.key.isdigit() or int(config.key) >= 1 << 64 or config.rounds not in ROUNDS:
        raise ValueError("the key of the random numbers cannot be read.")
    inputs.check_whole(config.ahead, "ahead", 0, records.LATEST)
    if (config.archived, config.erased) != (None, None) or (config.adds is not None and config.adds is not True):
        raise ValueError("archived, erased or adds has a value that no bandit in memory has.")
    if not isinstance(config.arithmetic, str):
        raise ValueError("the version of the arithmetic is not a text.")
    options = {name: public_option(config, name) for name in Options.__annotations__}
    arms = None if config.candidates else [names[slot] for slot in active]
    made = first_config(make(config.policy), arms, 0, config.rounds, options)
    for name in Options.__annotations__:
        found = list(value) if isinstance(value := getattr(made, name), tuple) else value
        if name != "baseline" and found != getattr(config, name):
            raise ValueError(f"{name} is {getattr(config, name)!r:.60}.")


def with_arm(config: Stored, arm: Any) -> Stored:
    """The configuration with one more arm."""
    check_has_arms(config)
    names = [name for slot, name in enumerate(names_of(config)) if slot not in config.retired]
    inputs.checked_arms([*names, arm])
    return config._replace(arms=[*config.arms, inputs.checked_arms([arm])[0]])


def read_past(config: Stored, player: Any, like: Any, mean: Any, worth: Any) -> dict[str, Any] | None:
    """What is known of a new arm, as the journal keeps it (`Player.add_arm`); None if nothing is."""
    given = tuple(value is not None for value in (like, mean, worth))
    if not any(given):
        return None
    if given not in ((True, False, False), (False, True, True)):
        raise ValueError("The past of an arm is like=..., another arm, or mean=... and worth=..., two numbers.")
    policy = player.policy
    if not can_know_arms(policy, player.n_features > 0):
        raise ValueError(
            f"{type(policy).__name__} cannot take an arm with a past; DriftAuto() and policies with a discount can; "
            "add_arm(name) adds it with nothing known."
        )
    if hasattr(policy, "units_known") and not policy.units_known(player.state, player.learned):
        raise ValueError(
            f"{type(policy).__name__} takes the unit of rewards from the first 16, and {player.learned} have been "
            "learned; add the arm later, or with nothing known."
        )
    if like is not None:
        return {"like": slot_of(config, names_of(config), like)}
    value, count = _check_in_range(config, mean, "mean"), inputs.as_float(worth)
    if not 0.0 < count <= MOST_WORTH:
        raise ValueError(f"worth is a number of observations above 0, and at most {MOST_WORTH:g}; got {worth!r:.60}.")
    return {"mean": value, "worth": count}


def without_arm(config: Stored, arm: Any) -> Stored:
    """The configuration with an arm retired."""
    slot = slot_of(config, names_of(config), arm)
    if len(config.active) == 1:
        raise ValueError(f"Arm {arm!r:.60} is the last one; add another before retiring it.")
    if slot == config.fixed:
        raise ValueError(f"Arm {arm!r:.60} is fixed; release() it before retiring it.")
    if slot == config.baseline:
        raise ValueError(
            f"Arm {arm!r:.60} is the baseline of what is held back; change(baseline=...) before retiring it."
        )
    return config._replace(retired=[*config.retired, slot])


def differences(config: Stored, wanted: dict[str, Any], policy: Any, arms: Any) -> list[str]:
    """Where a program asks for something else than the journal holds, in words."""
    out = []
    if policy is not None and repr(policy) != config.policy:
        out.append(f"policy {config.policy}")
    if arms is not None:
        asked = inputs.checked_arms(arms)
        if asked not in (config.arms[: len(asked)], [config.arms[slot] for slot in config.active]):
            out.append(f"arms {inputs.list_arms([names_of(config)[slot] for slot in config.active])}")
    for name, value in wanted.items():
        if value is None:
            continue
        found, stored = read_option(config, name, value), getattr(config, name)
        if name == "features":  # in any order
            found, stored = dict(found or ()), dict(stored or ())
        if found != stored:
            out.append(f"{name} {describe_option(config, name)}")
    return out


def describe_option(config: Stored, name: str) -> str:
    """The value of an option as text."""
    value = getattr(config, name)
    if value is None:
        return {"baseline": "uniform", "archived": "no", "erased": "0"}.get(name, "none")
    if name in (*inputs.TIMES, "ahead"):
        return "0" if value == 0 else format_duration(value)
    if name == "baseline":
        return str(names_of(config)[value])
    if name == "archived":
        return f"{records.as_datetime(value):%Y-%m-%d %H:%M}"
    if name in ("features", "labels"):
        return str(dict(value))
    return f"{value:g}" if isinstance(value, float) else str(value)
