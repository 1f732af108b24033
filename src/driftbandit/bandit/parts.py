"""Rewards that accumulate: parts of a reward, whose sum is learned as one outcome.

A part is a separate PART event. In the place of an id it has that of its decision, "+" and a hash of both ids, so
that erasing the decision's id leaves nothing of the part's. The fold learns nothing from it. When the decision is
`wait` old, its outcome is written: a REWARD with the sum of all parts, where others get the default. From there on it
is a reward like any other. In PostgreSQL, those who add, reward or settle hold a lock of the bandit, so a sum contains
exactly the parts that come before it in the order of events. Parts after it are LATE events.

`fsum` rounds once, so the sum does not depend on the order of the parts."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from driftbandit.bandit.asks import DecisionState, Found
from driftbandit.bandit.ids import check_id, make_ids
from driftbandit.bandit.records import PART, REWARD, Event
from driftbandit.errors import DamagedJournal

_TOGETHER = 500  # times of decisions in one statement
_LENGTH = 17  # of what follows the decision's id
# SQL for the id of the decision that an event @e belongs to.
OWNER = (
    f"CASE WHEN substr(e.decision, length(e.decision) - {_LENGTH - 1}, 1) = '+' "
    f"THEN substr(e.decision, 1, length(e.decision) - {_LENGTH}) ELSE e.decision END"
)


def check_part(add: Any, part: Any) -> str | None:
    """The id of a part, made if none is given; None for a whole reward."""
    if add is not True and add is not False:
        raise ValueError(f"add is True or False; got {add!r:.60}.")
    if not add and part is not None:
        raise ValueError("part is the id of one part of a reward; give add=True with it.")
    if not add:
        return None
    return make_ids(1)[0] if part is None else check_id(part, "part")


def hash_part(id: str, part: str | None) -> str | None:
    """What the journal keeps of the id of a part."""
    return None if part is None else hashlib.blake2b(f"{id}+{part}".encode(), digest_size=8).hexdigest()


def read_parts(rows: Callable[..., list[Any]], found: Found) -> Found:
    """The same decisions with the parts of their rewards."""
    out, times = dict(found), dict[int, set[int]]()
    for (bandit, _), state in found.items():
        if not isinstance(state, DamagedJournal):
            times.setdefault(bandit, set()).add(state.row.at)
    for bandit, every in times.items():
        for decision, kind, value in _select(rows, bandit, sorted(every)):
            owner, plus, _ = decision.partition("+")
            if plus and isinstance(one := out.get((bandit, owner)), DecisionState):
                out[bandit, owner] = one.add(Event(0, kind, 0, decision, value=value))
    return out


def _select(rows: Callable[..., list[Any]], bandit: int, times: list[int]) -> Iterator[tuple[str, int, float]]:
    """Parts, and late rewards, of decisions of these times."""
    where = "@event WHERE bandit = ? AND kind IN (3, 6) AND decided BETWEEN"  # for "=" SQLite would not use the index
    if not rows(f"SELECT 1 FROM {where} ? AND ? LIMIT 1", bandit, times[0], times[-1]):
        return
    for first in range(0, len(times), _TOGETHER):
        some = times[first : first + _TOGETHER]
        asked = f"(VALUES {', '.join(['(CAST(? AS bigint))'] * len(some))}) AS asked"
        sql = f"SELECT decision, kind, value FROM {asked} CROSS JOIN {where} asked.column1 AND asked.column1"
        yield from rows(sql, *some, bandit)


class PartSums:
    """Compares every sum with its parts, for an audit."""

    def __init__(self, since: int) -> None:
        self._since = since  # parts of earlier decisions may have been dropped
        self._open: dict[str, list[float]] = {}

    def compare(self, events: Iterable[Event], wait: int | None) -> list[str]:
        """How outcomes among these events differ from the sums of their parts, in words."""
        wrong = []
        for event in events:
            if event.kind == PART and event.decided >= self._since:
                self._open.setdefault(event.decision.partition("+")[0], []).append(event.value)
            elif event.kind < PART and event.decision in self._open:
                total = math.fsum(self._open.pop(event.decision))
                whole = event.kind == REWARD and wait is not None and event.at <= event.decided + wait
                if (event.kind, event.value) != (REWARD, total) and not whole:
                    wrong.append(f"the reward of decision {event.decision} is not {total:g}, the sum of its parts")
        return wrong
