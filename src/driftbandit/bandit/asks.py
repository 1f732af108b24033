"""The requests of a bandit to its store, and how a store checks a reward.

A store writes groups of asks, each group in one transaction: all of them are on disk when `commit` returns, or none is.
The request to write a decision is its `DecisionRow`.

Rewards that accumulate have parts, each a PART event: in the place of an id it has that of its decision, "+" and a hash
of both ids, so that erasing the decision's id leaves nothing of the part's. The fold learns nothing from it. When the
decision is `wait` old, its outcome is written: a REWARD with the sum of all parts, where others get the default. Parts
after it are LATE events. `fsum` rounds once, so the sum does not depend on their order."""

import hashlib
import math
from typing import Any, NamedTuple

from driftbandit.bandit import records
from driftbandit.bandit.candidates import forget_features
from driftbandit.bandit.records import DecisionRow, Event, StoredConfig
from driftbandit.errors import DamagedJournal, NotFound, RecordConflict


class NamedDecision(DecisionRow):
    """A decision under an id that the caller gave, for a store in which another process may have erased that id."""

    hidden: str = ""  # what stands in the place of the id if it was erased


class AddReward(NamedTuple):
    """Write the outcome of a decision, or a part of it, by a configuration. Answered with "learned", "waiting" (to be
    learned when its decision is old enough), "again" (it was there already) or "late"."""

    bandit: int
    id: str
    value: float
    at: int
    config: StoredConfig
    row: DecisionRow | None = None  # the decision, where the caller has it: a store may then write before it looks
    part: str | None = None  # of the part, what `hash_part` makes of its id
    hidden: str | None = None  # what stands in the place of the id if it was erased


class Settle(NamedTuple):
    """Give the default to decisions made until `until` that have no outcome, and write a SETTLED event behind them, all
    in one transaction. About `limit` decisions at a time: the event then has the time of the last of them. It is
    written where there are decisions after `settled`, the time of the last one settled. A `deep` look also finds
    decisions that another process stored long after their own time. Answered with `Settled`."""

    bandit: int
    settled: int
    until: int
    at: int
    default: float
    deep: bool = False
    limit: int = 5000

    def events(self, states: "list[DecisionState]", until: int | None) -> list[Event]:
        """The sums or defaults of these decisions in their order, and the event that ends the settled ones."""
        ordered = sorted(states, key=lambda state: (state.row.at, state.row.id))
        out = [state.settle(self.at, self.default) for state in ordered]
        if until is not None:
            out.append(Event(0, records.SETTLED, self.at, f"!{until}", decided=until))  # never the id of a decision
        return out


class Settled(NamedTuple):
    """How many defaults were written, whether all decisions were looked at, and until when all are settled now (None:
    as before)."""

    written: int
    done: bool
    until: int | None


class AddChange(NamedTuple):
    """Write change number `serial` of the configuration, unless another change has that number. One that `relearns`
    everything from the first event on is refused where old events were dropped. Answered with None or an error."""

    bandit: int
    serial: int
    at: int
    body: str
    relearns: bool = False
    labels: dict[str, str] | None = None  # to be listed by from now on; None: as before

    def event(self) -> Event:
        """The change as an event; the text in the place of a decision's id is never one."""
        return Event(0, records.CHANGE, self.at, f"#{self.serial}", slot=self.serial, body=self.body)


class Within(NamedTuple):
    """Do something about a bandit that only `retention`, `moving`, snapshots and erasing need: a method of `Commit` by
    its name. Answered with what that returns."""

    bandit: int
    method: str
    given: tuple[Any, ...] = ()


class AddCell(NamedTuple):
    """Write a cell of a chart, a summary of the events of a stretch of time. The first one written stays. It is a cache
    like a snapshot. Answered with None."""

    bandit: int
    width: int
    start: int
    body: str


class SetNote(NamedTuple):
    """Keep a text under a name for the whole journal; with `first`, a text that is there already stays. Answered with
    None."""

    name: str
    text: str
    first: bool


# The beginnings of the names of notes about bandits, whose texts are the bandits' names; of `ARCHIVED`, no text if that
# was undone.
UPKEEP = "upkeep "  # it has a retention, or was archived once: rows are to be dropped now and then
PURGE = "purge "  # it is being deleted


def upkeep_notes(name: str, before: StoredConfig | None, after: StoredConfig) -> list[SetNote]:
    """What to note with a change of a bandit's configuration, so that it can be read without opening all bandits."""
    out = []
    if after.retention is not None or after.archived is not None:
        out.append(SetNote(UPKEEP + name, name, first=True))
    if before is not None and before.archived != after.archived:
        out.append(SetNote(records.ARCHIVED + name, "" if after.archived is None else name, first=False))
    return out


Ask = DecisionRow | AddReward | Settle | AddChange | AddCell | SetNote | Within


class DecisionState(NamedTuple):
    """A decision, its outcome, a reward that came after the default, and when the outcome was written."""

    row: DecisionRow
    kind: int | None = None
    value: float | None = None
    late: float | None = None
    came: int | None = None
    parts: dict[str, tuple[float, bool]] | None = None  # values, and whether they were late

    @property
    def added(self) -> float | None:
        """The sum of the parts that came in time."""
        return self._sum(False)

    def _sum(self, late: bool) -> float | None:
        found = [value for value, came_late in (self.parts or {}).values() if came_late == late]
        return math.fsum(found) if found else None

    def settle(self, at: int, default: float) -> Event:
        """The outcome of a decision that is old enough and had no whole reward."""
        added = self.added
        return outcome(self.row, *((records.DEFAULT, at, default) if added is None else (records.REWARD, at, added)))

    def add(self, event: Event) -> "DecisionState":
        """The same decision after one more event."""
        _, plus, part = event.decision.partition("+")
        if plus:
            state = self._replace(parts={**(self.parts or {}), part: (event.value, event.kind == records.LATE)})
            return state._replace(late=state._sum(True))
        if event.kind == records.LATE:
            return self._replace(late=event.value)
        return DecisionState(self.row, event.kind, event.value, self.late, event.at, self.parts)


Place = tuple[int, str]  # a bandit's number and a decision's id
Found = dict[Place, DecisionState | DamagedJournal]  # a damaged decision affects no other


def read_states(rows: list[tuple[Any, ...]]) -> Found:
    """Decisions from rows with their checksum and the four columns of their outcome."""
    found: Found = {}
    for row in rows:
        place = row[DecisionRow._fields.index("bandit")], row[0]
        try:
            found[place] = DecisionState(records.read_decision(row[:-4]), *row[-4:])
        except DamagedJournal as error:
            found[place] = error
    return found


def judge(ask: AddReward, state: DecisionState | DamagedJournal | None) -> tuple[list[Event], Any]:
    """The events a reward adds (their numbers left to the store) and its answer, so that a reward counts once in every
    store."""
    if isinstance(state, DamagedJournal):
        return [], state
    if state is None:
        return [], NotFound(f"There is no decision {ask.id!r:.140} to reward; ids come from decide().")
    if ask.part is not None:
        return _judge_part(ask, ask.part, state)
    row, kind, value, late, *_ = state
    if state.parts:
        return [], RecordConflict(
            f"The reward of decision {row.id!r:.140} is added up from parts; give add=True. {ask.value!r} was "
            "not written."
        )
    came = outcome(row, records.REWARD, ask.at, ask.value)
    if kind == records.REWARD or late is not None:
        first = value if kind == records.REWARD else late
        if first == ask.value:
            return [], "again"
        return [], RecordConflict(
            f"Decision {row.id!r:.140} already has the reward {first!r}; {ask.value!r} was not written."
        )
    if kind == records.DEFAULT:
        return [came._replace(kind=records.LATE)], "late"
    if ask.config.wait is not None and ask.at > row.at + ask.config.wait:
        default = came._replace(kind=records.DEFAULT, value=ask.config.default)
        return [default, came._replace(kind=records.LATE)], "late"
    return [came], "waiting" if ask.config.holds else "learned"


def _judge_part(ask: AddReward, part: str, state: DecisionState) -> tuple[list[Event], Any]:
    """The same for a part of a reward."""
    row, kind, _, late, _, parts = state
    first = (parts or {}).get(part)
    if first is not None and first[0] != ask.value:
        return [], RecordConflict(
            f"This part of the reward of decision {row.id!r:.140} is already {first[0]!r}; {ask.value!r} was "
            "not written."
        )
    if first is not None:
        return [], "again"
    if (kind == records.REWARD and state.added is None) or (late is not None and not parts):
        return [], RecordConflict(
            f"Decision {row.id!r:.140} already has a whole reward, to which nothing is added; {ask.value!r} was not "
            "written."
        )
    came = outcome(row, records.PART, ask.at, ask.value)._replace(decision=f"{row.id}+{part}")
    if kind is not None:
        return [came._replace(kind=records.LATE)], "late"
    if ask.config.wait is not None and ask.at > row.at + ask.config.wait:
        return [state.settle(ask.at, ask.config.default), came._replace(kind=records.LATE)], "late"
    total, (low, high) = math.fsum((state.added or 0.0, ask.value)), ask.config.bounds
    if not low <= total <= high:
        return [], ValueError(
            f"The parts of the reward of decision {row.id!r:.140} would add up to {total:g}, outside "
            f"reward_range=({low:g}, {high:g}); {ask.value!r} was not written."
        )
    return [came._replace(body=None, probability=None)], "waiting"


def outcome(row: DecisionRow, kind: int, at: int, value: float) -> Event:
    """The outcome of a decision as an event."""
    return Event(0, kind, at, row.id, row.slot, row.how, value, row.at, row.context, row.probability)


def match_decision(asked: DecisionRow, state: DecisionState | DamagedJournal) -> Any:
    """The decision that stands under an id, if it was made among the same arms: an id sent again is the same decision,
    also where its context is another one by now."""
    if isinstance(state, DamagedJournal):
        return state
    available = asked.available
    if state.row.id[0] == "=":  # erased
        available = forget_features(available, None)[0]
    if available != state.row.available:
        return RecordConflict(
            f"Decision {asked.id!r:.140} was made among other available arms; use a new id for a new decision."
        )
    return state.row


def check_part(add: Any, part: Any) -> str | None:
    """The id of a part, made if none is given; None for a whole reward."""
    if add is not True and add is not False:
        raise ValueError(f"add is True or False; got {add!r:.60}.")
    if not add and part is not None:
        raise ValueError("part is the id of one part of a reward; give add=True with it.")
    if not add:
        return None
    return records.make_ids(1)[0] if part is None else records.check_id(part, "part")


def hash_part(id: str, part: str | None) -> str | None:
    """What the journal keeps of the id of a part."""
    return None if part is None else hashlib.blake2b(f"{id}+{part}".encode(), digest_size=8).hexdigest()


def hide_id(config: StoredConfig, id: str) -> str:
    """What stands in the place of an id that was erased: its round, from which the decision's random numbers come, and
    a hash with the bandit's key, so that the id is found when it is sent again. No decision can be given such an id."""
    key = int(config.key).to_bytes(8, "little")
    return f"={records.hash_round(id):016x}{hashlib.blake2b(id.encode(), key=key, digest_size=16).hexdigest()}"
