"""An agent as JSON text, and back.

Reading a snapshot is reading data: it loads, imports and calls nothing but the library's own policies and the classes
that the caller hands over. Whatever is accepted can be played: the state is checked against what the policy declares
(`validate_state`). The checksum notices accidents, not people: who alters a snapshot on purpose can alter it too."""

import hashlib
import json
import os
from typing import Any, TypeVar

import driftbandit
from driftbandit.agent import clocked
from driftbandit.agent.inputs import arm_name, checked_choice, checked_count, from_json_arm, shown, to_json_arm
from driftbandit.agent.playing import make_player
from driftbandit.draws import Stream
from driftbandit.state import numbers_in, room_of

T = TypeVar("T")
FORMAT = 4  # of snapshots
_MOST = 1 << 50  # decisions never get here


def own_key() -> int:
    """The key of a stream that nobody else has."""
    return int.from_bytes(os.urandom(8), "little")


def taken(agent: Any) -> str:
    """An agent as text; the caller holds its lock."""
    known = agent._player.dump()
    return written(
        {
            "format": FORMAT,
            "driftbandit": driftbandit.__version__,
            "policy": repr(agent.policy),
            "arms": [to_json_arm(arm) for arm in agent._arms],
            "removed": sorted(agent._removed),
            "untried": sorted(agent._untried),
            "reward_range": list(agent.reward_range),
            "outside": agent.outside,
            "first": agent.first,
            "floor": agent.floor,
            "late": agent.late,
            "clipped": agent.clipped,
            "ignored": agent.ignored,
            "decisions": agent.decisions,
            "seeded": agent._seeded,
            "key": str(agent._stream.key),
            "half_life": agent.half_life,
            "rewards_learnt": known["learned"],
            "time": known["time"],
            "state": known["state"],
        }
    )


def revived(cls: type[T], policy: Any, data: dict[str, Any], compiled: bool, fresh: bool) -> T:
    """The agent that a snapshot's content describes; with `fresh` it draws from a stream of its own."""
    with damage_told():
        names = [arm_name(from_json_arm(arm)) for arm in data["arms"]]
        n_arms = len(names)
        removed = {checked_count(slot, n_arms) for slot in data["removed"]}
        live = [slot for slot in range(n_arms) if slot not in removed]
        held = numbers_in(data["state"])
        if room_of(policy, n_arms) > 8 * held + 1000:  # before a state is made; `room` may say a few times too much
            raise ValueError(f"{policy!r:.80} keeps more than the {held} numbers of the state.")
        agent: Any = cls(  # type: ignore[call-arg]
            policy,
            [names[slot] for slot in live],
            seed=0,
            reward_range=tuple(data["reward_range"]),
            outside=data["outside"],
            first=data["first"],
            floor=data["floor"],
            late=data["late"],
            half_life=clocked.restored_half_life(data),
        )
        agent._arms, agent._removed = names, removed
        agent._slot = {names[slot]: slot for slot in [*sorted(removed), *live]}
        agent._untried = {checked_count(slot, n_arms) for slot in data["untried"]}
        if agent._untried & removed or (agent._untried and not agent.first):
            raise ValueError("an arm that is to come first cannot.")
        agent.clipped, agent.ignored, agent.decisions = (
            checked_count(data[name], _MOST) for name in ("clipped", "ignored", "decisions")
        )
        agent._seeded = checked_choice("seeded", data["seeded"], (True, False)) and not fresh
        agent._stream = Stream(own_key() if fresh else checked_count(int(data["key"]), 1 << 64))
        agent._compiled = compiled
        agent._player = make_player(policy, n_arms, agent._stream.key, agent.half_life, 0, compiled)
        agent._player.load({"learned": data["rewards_learnt"], "time": data["time"], "state": data["state"]})
    return agent  # type: ignore[no-any-return]


def read(text: Any) -> dict[str, Any]:
    """The content of a snapshot."""
    try:
        data = json.loads(text, parse_constant=_no_number)
        version = data["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(
            "This is not a snapshot of an agent: it is not complete JSON with a format number. Was the file cut short?"
        ) from None
    if isinstance(version, bool) or version != FORMAT:
        raise ValueError(
            f"This snapshot has format {shown(version, 40)}; this version reads format {FORMAT}. "
            "Read it with the version that made it."
        )
    if data.get("check", checksum(data)) != checksum(data):
        raise ValueError(
            "This snapshot is damaged and was not restored: its checksum does not match what it holds."
        ) from None
    return data  # type: ignore[no-any-return]


class damage_told:  # read as a sentence: with damage_told()
    """Whatever goes wrong while a snapshot's content is read is told in one sentence."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        known = (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError, MemoryError)
        if isinstance(error, known):
            detail = f"{error.args[0]!r} is missing." if isinstance(error, KeyError) else f"{error!s:.300}"
            raise ValueError(f"This snapshot is damaged and was not restored: {detail}") from None


def written(data: dict[str, Any]) -> str:
    """The content as text, with its checksum."""
    return json.dumps({**data, "check": checksum(data)}, allow_nan=False)


def checksum(data: dict[str, Any]) -> str:
    """A digest of everything in a snapshot but itself, however the JSON is laid out: altered numbers are noticed."""
    rest = {name: value for name, value in data.items() if name != "check"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]


def _no_number(text: str) -> Any:
    """Refuse NaN and Infinity, which Python's reader takes and which are not valid JSON."""
    raise ValueError(f"{text} is not valid JSON.")
