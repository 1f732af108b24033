"""What a bandit can be told, checked and brought into the form the journal keeps."""

import json
import math
from collections.abc import Hashable, Iterable
from typing import Any

from driftbandit.agent.inputs import arm_names, as_float, check_own, checked_range, from_json_arm, listed, to_json_arm
from driftbandit.half_life import checked_half_life, duration, spelt
from driftbandit.live.records import Config
from driftbandit.policies.drift_ts import DriftTS
from driftbandit.protocols import Policy
from driftbandit.rewards import bears, refused_rewards
from driftbandit.state import started

MOST_ARMS = 1000
MOST_NUMBERS = 4_000_000  # in the state of a policy
FLOOR = 0.01  # of even play, where nothing else is said


def share(value: Any, name: str) -> float:
    """A probability below 1."""
    number = as_float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not 0.0 <= number < 1.0:
        raise ValueError(f"{name} is a share of all decisions in [0, 1); got {value!r:.60}.")
    return number


def checked_policy(policy: Any) -> Any:
    """A policy that can decide live, be written down and made again; DriftTS if None is given. Every policy of a live
    bandit passes through here, whether it comes from a program, over HTTP or from a journal."""
    if policy is None:
        policy = DriftTS()
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise TypeError(f"A bandit needs a policy such as DriftTS(); got {policy!r:.60}.")
    inner: Any = policy
    while inner is not None:
        if getattr(inner, "simulated_only", False):
            raise ValueError(
                f"{type(inner).__name__} only plays in simulations; a live bandit needs another policy, such as "
                "DriftTS()."
            )
        inner = getattr(inner, "base", None)
    return policy


def checked_arms(arms: Any) -> list[Any]:
    """Distinct names as JSON holds them."""
    names = [to_json_arm(name) for name in arm_names(arms)]
    if len(names) > MOST_ARMS:
        raise ValueError(f"A bandit has at most {MOST_ARMS} arms; got {len(names)}.")
    for name in names:
        if not writable(name):
            raise ValueError(f"Arm {name!a:.60} is not a text that a file can hold: half a character.")
    return names


def writable(value: Any) -> bool:
    """Whether a file can hold the texts in this: half a character, which Python allows, it cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def names_of(config: Config) -> list[Hashable]:
    """The arms' names by slot."""
    return [from_json_arm(name) for name in config.arms]


def slot_of(config: Config, names: list[Hashable], arm: Any) -> int:
    """The slot of an active arm."""
    for slot in range(len(names) - 1, -1, -1):
        if names[slot] == arm and type(names[slot]) is type(arm) and slot not in config.retired:
            return slot
    active = [names[slot] for slot in config.active]
    known = "was retired" if any(name == arm for name in names) else "is unknown"
    raise ValueError(f"Arm {arm!r:.60} {known}; the arms are {listed(active)}.")


def baseline_slot(config: Config, names: list[Hashable], baseline: Any) -> int | None:
    """The slot of the baseline, or None for an even choice."""
    return None if baseline == "uniform" and "uniform" not in names else slot_of(config, names, baseline)


def slots_of(config: Config, available: Any) -> list[int]:
    """The slots of the arms that a call is limited to, in order."""
    if isinstance(available, str | bytes) or not isinstance(available, Iterable):
        raise ValueError(f"available is a list of arms; got {available!r:.60}.")
    names = names_of(config)
    slots = sorted({slot_of(config, names, arm) for arm in available})
    if not slots:
        raise ValueError("available needs at least one arm; got none.")
    return slots


def first_config(policy: Any, arms: int | Iterable[Hashable], key: int, rounds: str, options: dict[str, Any]) -> Config:
    """The configuration a bandit begins with."""
    policy = checked_policy(policy)
    low, high = checked_range(options.get("reward_range") or (0.0, 1.0))
    outside = options.get("outside") or "refuse"
    if outside not in ("refuse", "clip", "allow"):
        raise ValueError(f'outside is "refuse", "clip" or "allow"; got {outside!r:.60}.')
    config = Config(
        policy=repr(policy), arms=checked_arms(arms), retired=[], reward_range=(low, high),
        outside=outside, half_life=None, floor=FLOOR, holdback=0.0, baseline=None, learn_holdback=False, wait=None,
        default=low, learn="wait", fixed=None, key=str(key), rounds=rounds,
    )  # fmt: skip
    if outside == "allow" and bears(policy) == "[0, 1]":
        raise ValueError(refused_rewards(policy, 'outside="allow"', 'outside="clip" keeps them inside'))
    if options.get("default") is None and low <= 0.0 <= high:
        config = config._replace(default=0.0)
    check_own(policy, len(config.arms))
    started(policy, len(config.arms), MOST_NUMBERS)
    return changed(config, policy, {name: value for name, value in options.items() if value is not None})


def changed(config: Config, policy: Any, options: dict[str, Any]) -> Config:
    """The configuration after a change of these options; None takes half_life and wait away."""
    names = names_of(config)
    out = config
    if "policy" in options:
        policy = checked_policy(options["policy"])
        out = out._replace(policy=repr(policy))
        check_own(policy, len(config.arms))
        started(policy, len(config.arms), MOST_NUMBERS)
        if config.outside == "allow" and bears(policy) == "[0, 1]":
            raise ValueError(refused_rewards(policy, 'outside="allow"', "this bandit was made so"))
        if out.half_life is not None and options.get("half_life", 0) is not None:
            checked_half_life(out.half_life / 1e6, policy)
    if "half_life" in options:
        value = options["half_life"]
        out = out._replace(half_life=None if value is None else checked_half_life(value, policy))
    if "floor" in options:
        out = out._replace(floor=share(options["floor"], "floor"))
    if "holdback" in options:
        out = out._replace(holdback=share(options["holdback"], "holdback"))
    if "learn_holdback" in options:
        out = out._replace(learn_holdback=bool(options["learn_holdback"]))
    if "baseline" in options:
        out = out._replace(baseline=baseline_slot(config, names, options["baseline"]))
    elif out.holdback > 0.0 and config.holdback == 0.0:
        raise ValueError('holdback needs a baseline: the name of an arm, or "uniform" for an even choice.')
    if "wait" in options:
        out = out._replace(wait=None if options["wait"] is None else duration(options["wait"], "wait"))
    if "default" in options:
        value = as_float(options["default"]) + 0.0  # -0.0 becomes 0.0, as it does in SQLite
        low, high = config.reward_range
        if not low <= value <= high:
            raise ValueError(f"default is a reward within ({low:g}, {high:g}); got {value!r:.60}.")
        out = out._replace(default=value)
    if "learn" in options:
        if options["learn"] not in ("wait", "arrival"):
            raise ValueError(f'learn is "wait" or "arrival"; got {options["learn"]!r:.60}.')
        out = out._replace(learn=options["learn"])
    return out


def with_arm(config: Config, arm: Any) -> Config:
    """The configuration with one more arm."""
    names = [name for slot, name in enumerate(names_of(config)) if slot not in config.retired]
    checked_arms([*names, arm])
    return config._replace(arms=[*config.arms, checked_arms([arm])[0]])


def without_arm(config: Config, arm: Any) -> Config:
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


def differences(config: Config, wanted: dict[str, Any], policy: Any, arms: Any) -> list[str]:
    """Where a program asks for something else than the journal holds, in words."""
    out = []
    if policy is not None and repr(checked_policy(policy)) != config.policy:
        out.append(f"policy {config.policy}")
    if arms is not None:
        asked = checked_arms(arms)
        if asked not in (config.arms[: len(asked)], [config.arms[slot] for slot in config.active]):
            out.append(f"arms {listed([names_of(config)[slot] for slot in config.active])}")
    for name, value in wanted.items():
        if value is None:
            continue
        held = getattr(config, name)
        if name in ("half_life", "wait"):
            if duration(value, name) != held:
                out.append(f"{name} {None if held is None else spelt(held)}")
        elif name == "reward_range":
            if checked_range(value) != held:
                out.append(f"{name} {held}")
        elif name == "baseline":
            if baseline_slot(config, names_of(config), value) != held:
                out.append(f"baseline {'uniform' if held is None else names_of(config)[held]}")
        elif value != held:
            out.append(f"{name} {held}")
    return out
