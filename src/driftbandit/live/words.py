"""A configuration in words: what a bandit's repr, a command and a notebook say about it."""

from typing import Any

from driftbandit.half_life import spelt
from driftbandit.live.records import Change, Config
from driftbandit.live.settings import names_of


def options_told(config: Config) -> dict[str, Any]:
    """The options that are in force, as `Bandit.open` takes them; and the arm that is fixed."""
    names = names_of(config)
    out: dict[str, Any] = {}
    if config.half_life is not None:
        out["half_life"] = spelt(config.half_life)
    out["floor"] = config.floor
    if config.holdback > 0.0:
        out |= {
            "holdback": config.holdback,
            "baseline": "uniform" if config.baseline is None else names[config.baseline],
        }
        if config.learn_holdback:
            out["learn_holdback"] = True
    if config.wait is not None:
        out |= {"wait": spelt(config.wait), "default": config.default}
        if config.learn != "wait":
            out["learn"] = config.learn
    if config.reward_range != (0.0, 1.0):
        out["reward_range"] = config.reward_range
    if config.outside != "refuse":
        out["outside"] = config.outside
    if config.fixed is not None:
        out["fixed"] = names[config.fixed]
    return out


def sentences(config: Config) -> list[str]:
    """The same for people."""
    names, told = names_of(config), []
    if config.fixed is not None:
        told.append(f"fixed: plays {names[config.fixed]} until it is released")
    if config.half_life is not None:
        told.append(f"half-life {spelt(config.half_life)}: older rewards weigh less by the clock")
    if config.floor > 0.0:
        told.append(f"floor {config.floor:g}: this share is drawn evenly")
    if config.holdback > 0.0:
        by = "an even choice" if config.baseline is None else f"the baseline {names[config.baseline]}"
        learnt = "learnt from" if config.learn_holdback else "not learnt from"
        told.append(f"holdback {config.holdback:g}: this share follows {by}, and is {learnt}")
    if config.wait is not None:
        learned = "outcomes are then learned" if config.holds else "rewards are learned on arrival"
        told.append(f"wait {spelt(config.wait)}: then a decision without a reward gets {config.default:g}; {learned}")
    low, high = config.reward_range
    outside = {"refuse": "refused", "clip": "clipped", "allow": "taken as they are"}[config.outside]
    told.append(f"rewards {low:g} to {high:g}: others are {outside}")
    gone = retired_names(config)
    if gone:
        told.append(f"retired: {', '.join(map(str, gone))}")
    return told


def retired_names(config: Config) -> list[Any]:
    """The names of arms that were retired and not added again, each once."""
    names = names_of(config)
    active = [names[slot] for slot in config.active]
    return list(dict.fromkeys(names[slot] for slot in config.retired if names[slot] not in active))


def describe_change(change: Change, before: Config | None) -> str:
    """What a change did, with arms and values: "fix red", "holdback 0.1 -> 0.2"."""
    after = change.config
    if before is None:
        return change.what
    names = names_of(after)
    told = [f"add_arm {names[slot]}" for slot in range(len(before.arms), len(after.arms))]
    told += [f"retire_arm {names[slot]}" for slot in after.retired if slot not in before.retired]
    if after.fixed is not None and (after.fixed != before.fixed or change.what == "fix"):
        told.append(f"fix {names[after.fixed]}")
    elif before.fixed is not None and after.fixed is None:
        told.append(f"release {names[before.fixed]}")
    for field in Config._fields:
        was, now = getattr(before, field), getattr(after, field)
        if was != now and field not in ("arms", "retired", "fixed"):
            name = "clock ahead" if field == "ahead" else field
            told.append(f"{name} {_value(before, field, was)} -> {_value(after, field, now)}")
    return (", ".join(told) or f"{change.what} (no difference)") + (" from now on" if change.from_now else "")


def _value(config: Config, field: str, value: Any) -> str:
    if field in ("half_life", "wait", "ahead"):
        return "none" if value is None else "0" if value == 0 else spelt(value)
    if field == "baseline":
        return "uniform" if value is None else str(names_of(config)[value])
    return f"{value:g}" if isinstance(value, float) else str(value)
