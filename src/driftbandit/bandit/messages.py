"""What the client sends and receives, as Python and as JSON have it."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from driftbandit.bandit.effects import BelievedGain, BestArms, Effects, FeatureEffect
from driftbandit.bandit.features import as_mapping, plain_value
from driftbandit.bandit.inputs import as_float, from_json_arm, to_json_arm
from driftbandit.bandit.interface import Outcome, Pairs
from driftbandit.bandit.options import TIMES
from driftbandit.bandit.records import Decision, as_datetime
from driftbandit.bandit.sending import error_for
from driftbandit.bandit.settings import checked_policy
from driftbandit.policies.drift.belief import Expected
from driftbandit.spec.half_life import duration, format_duration

_STATUS = {"conflict": 409, "unknown": 404, "store": 503}


def write_context(context: Any, candidates: Any = None) -> dict[str, Any]:
    """A context, or candidates, of one decision or of each, as a message has them."""
    if context is not None and candidates is not None:
        raise ValueError("Give a context or candidates, not both.")
    if context is None and candidates is None:
        return {}
    given, write = (context, _to_plain) if candidates is None else (candidates, _each_plain)
    name = "context" if candidates is None else "candidates"
    return {name: [write(one) for one in given] if isinstance(given, list | tuple) else write(given)}


def _each_plain(candidates: Any) -> dict[str, Any]:
    if not isinstance(candidates, Mapping):
        raise ValueError(f"candidates maps names to features; got {candidates!r:.60}.")
    return {name: _to_plain({} if values is None else values) for name, values in candidates.items()}


def _to_plain(context: Any) -> dict[str, Any]:
    values = {name: plain_value(value) for name, value in as_mapping(context).items()}
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | None):
            raise ValueError(f"A context maps names of features to texts, numbers and flags; got {name!r:.60}.")
    return values


def write_available(available: Any) -> dict[str, Any]:
    """Available arms as a message has them."""
    if available is None:
        return {}
    if isinstance(available, str | bytes) or not isinstance(available, Iterable):
        raise ValueError(f"available is a list of arms; got {available!r:.60}.")
    return {"available": [to_json_arm(arm) for arm in available]}


def write_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a bandit as a message has them."""
    out = dict(options)
    for word in TIMES:
        if out.get(word) is not None:
            out[word] = format_duration(duration(out[word], word))
    if not isinstance(out.get("policy"), str | None):
        out["policy"] = repr(checked_policy(out["policy"]))
    for word in ("baseline", "add_arm", "retire_arm"):
        if out.get(word) is not None:
            out[word] = to_json_arm(out[word])
    return out


def write_reward(id: str, value: float, part: str | None) -> dict[str, Any]:
    """A reward, or a part of one, as a message has it."""
    return {"id": id, "reward": value} | ({} if part is None else {"add": True, "part": part})


def write_rewards(pairs: Pairs) -> dict[str, Any]:
    """Rewards, or parts of rewards, as a message has them."""
    parts = any(part is not None for *_, part in pairs)
    names = ("id", "reward", "part") if parts else ("id", "reward")
    return {"rewards": [dict(zip(names, pair, strict=False)) for pair in pairs]} | ({"add": True} if parts else {})


def read_decisions(found: dict[str, Any]) -> list[Decision]:
    """The decision of an answer, or its decisions."""
    return [read_decision(one) for one in found.get("decisions", [found])]


def read_decision(found: dict[str, Any]) -> Decision:
    """A decision of an answer."""
    arm = from_json_arm(found["arm"])
    return Decision(found["id"], arm, found["at"], found["known"], found["how"], found.get("probability"))


def read_outcome(found: dict[str, Any]) -> Outcome:
    """A decision of an answer with its outcome."""
    came = None if found["came"] is None else as_datetime(found["came"])
    return Outcome(
        read_decision(found["decision"]), found["outcome"], found["reward"], found["late"], came,
        found["waiting"], found["context"], found["added"],
    )  # fmt: skip


def read_expected(mean: float | None, sd: float | None) -> Expected:
    """An expected reward of an answer; JSON has no NaN and no infinity."""
    return Expected(math.nan if mean is None else mean, math.inf if sd is None else sd)


def read_effects(found: dict[str, Any]) -> Effects:
    """The effects of features of an answer."""
    gain, best = found["gain"], found["best"]
    if gain is not None:
        gain = BelievedGain(**{**gain, "arm": from_json_arm(gain["arm"])})
    features = [FeatureEffect(**one) for one in found["features"]]
    return Effects([from_json_arm(arm) for arm in found["arms"]], features, best and BestArms(**best), gain)


def check_finite(value: Any) -> float:
    """A reward that can be sent."""
    number = as_float(value)
    if not math.isfinite(number):
        raise ValueError(f"A reward is a finite number; got {number}. Nothing was sent.")
    return number


def read_verdicts(found: dict[str, Any]) -> list[str | Exception]:
    """The verdicts on rewards, or the errors they met."""
    return [
        error_for(_STATUS.get(one.get("kind", ""), 422), one["error"]) if one.get("error") else str(one["verdict"])
        for one in found["verdicts"]
    ]
