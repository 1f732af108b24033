"""An agent as JSON text, and back.

Reading a snapshot is reading data: it loads, imports and calls nothing but the library's own policies and the classes
that the caller hands over. Whatever is accepted can be played: the state is checked against what the policy declares
(`validate_state`). The checksum notices accidents, not people: who alters a snapshot on purpose can alter it too."""

import hashlib
import json
from typing import Any

from driftbandit.agent.inputs import shown

FORMAT = 3  # of snapshots written
_FORMAT_2 = {  # what an agent of format 2, which knew none of these, did
    "first": False,
    "floor": 0.0,
    "untried": [],
    "late": "refuse",
    "ignored": 0,
    "seeded": True,
}


def read(text: Any) -> dict[str, Any]:
    """The content of a snapshot, of this format or the one before."""
    try:
        data = json.loads(text, parse_constant=_no_number)
        version = data["format"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(
            "This is no snapshot of an agent: it is not complete JSON with a format number. Was the file cut short?"
        ) from None
    if isinstance(version, bool) or version not in (2, FORMAT):
        raise ValueError(
            f"This snapshot has format {shown(version, 40)}; this version reads formats 2 and {FORMAT}. "
            + ("Read it with the version that made it." if version == 1 else "Update driftbandit to read it.")
        )
    if data.get("check", checksum(data)) != checksum(data):
        raise ValueError(
            "This snapshot is damaged and was not restored: its checksum does not match what it holds."
        ) from None
    return {**_FORMAT_2, **data} if version == 2 else data


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
