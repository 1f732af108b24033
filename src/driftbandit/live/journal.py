"""The journal's protocol: what a bandit asks of its store, and how a store judges a reward.

A store writes groups of asks, each group in one transaction: all of them are on disk when `commit` returns, or none is.
`SQLite` (in `sqlite`) and `PostgreSQL` (in `postgres`) pass one test suite, `tests/live/test_journal.py`."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from driftbandit.live.errors import Conflict, Damaged, Unknown
from driftbandit.live.records import DEFAULT, LATE, REWARD, SETTLED, DecisionRow, Event


class Decide(NamedTuple):
    """Write a decision, or find the one that has its id. Answered with the decision that stands."""

    bandit: int
    row: DecisionRow


class Pay(NamedTuple):
    """Write the outcome of a decision. Answered with "learnt", "waiting" (where `waits`), "again" (it was there
    already) or "late"."""

    bandit: int
    id: str
    value: float
    at: int
    wait: int | None
    default: float
    row: DecisionRow | None = None  # the decision, where the asker knows it: a store may then write before it looks
    waits: bool = False  # whether it is learned when its decision is old enough


class Settle(NamedTuple):
    """Give the default to decisions made until `until` that have no outcome, going on from `after`, and write a SETTLED
    event behind them: all in one transaction. About `limit` decisions at a time: the event then has the time of the
    last of them. It is written where there are decisions after `settled`, the time of the last one known. A `deep` look
    also finds decisions that were stored long after their own time. Answered with `Settled`."""

    bandit: int
    after: tuple[int, str]
    until: int
    at: int
    default: float
    limit: int
    settled: int = 0
    deep: bool = False

    def events(self, rows: list[DecisionRow], until: int | None) -> list[Event]:
        """The defaults of these decisions in their order, and the event that says that all until then are settled."""
        out = [outcome(row, DEFAULT, self.at, self.default) for row in sorted(rows, key=in_order)]
        if until is not None:
            out.append(Event(0, SETTLED, self.at, f"!{until}", decided=until))  # no decision can be called so
        return out


class Settled(NamedTuple):
    """How many defaults were written, where the next look begins, whether all were looked at, and until when all
    decisions are settled now (None: as before)."""

    written: int
    after: tuple[int, str]
    done: bool
    until: int | None


class Configure(NamedTuple):
    """Write change number `serial` of the configuration, unless another change has that number. Answered with None,
    or with a Conflict."""

    bandit: int
    serial: int
    at: int
    body: str

    @property
    def id(self) -> str:
        """What stands in the place of a decision's id; no decision can be called so."""
        return f"#{self.serial}"


class Keep(NamedTuple):
    """Write a snapshot of the fold after n events, the last of which has this cursor. Answered with None."""

    bandit: int
    n: int
    at: int
    body: str
    cursor: Any


class Draw(NamedTuple):
    """Keep a cell of a chart: what the events of a stretch of time came to. Written once by the first to get there, and
    like a snapshot a cache that the journal can give again. Answered with None."""

    bandit: int
    width: int
    start: int
    body: str


class Thin(NamedTuple):
    """Drop the cells of this width that begin before a time: coarser ones stand for them. Answered with None."""

    bandit: int
    width: int
    before: int


class Note(NamedTuple):
    """Keep a text under a name, for the whole journal; where `first` is set, a text that is there already stays.
    Answered with None."""

    name: str
    text: str
    first: bool


Ask = Decide | Pay | Settle | Configure | Keep | Draw | Thin | Note


class Standing(NamedTuple):
    """What a journal knows of one decision: itself, its outcome, a reward that came after the default, and when the
    outcome was written."""

    row: DecisionRow
    kind: int | None
    value: float | None
    late: float | None
    came: int | None


class Journal(Protocol):
    """A store of decisions and events. `commit` is called by one thread at a time; reading is open to all threads."""

    target: str  # the path or URL it was opened by
    live: bool  # whether other processes may write as well

    def bandits(self) -> dict[str, int]:
        """The bandits in this journal, and their numbers."""
        ...

    def number(self, name: str) -> int | None:
        """The number of the bandit with this name, or None."""
        ...

    def bandit_count(self) -> int:
        """How many bandits there are."""
        ...

    def create(self, name: str, at: int) -> int:
        """The number of the bandit with this name, which is made if there is none."""
        ...

    def commit(self, asks: list[Ask]) -> tuple[list[Any], list[tuple[int, Event]]]:
        """Write all asks in one transaction. An answer for each, or the error it met; and what a single-process store
        appended, by bandit, in order."""
        ...

    def events(self, bandit: int, after: Any = None, limit: int | None = None) -> Iterator[tuple[Any, Event]]:
        """The events after a cursor in the order all readers agree on, each with its cursor."""
        ...

    def decisions(self, bandit: int, by_time: bool = False, checked: bool = True) -> Iterator[DecisionRow]:
        """All decisions in order of `known`, or of time. One that was altered is refused, if `checked`."""
        ...

    def recent(self, bandit: int, limit: int) -> list[DecisionRow]:
        """The last decisions, newest first."""
        ...

    def standing(self, bandit: int, ids: list[str]) -> dict[str, Standing]:
        """What is known of these decisions."""
        ...

    def changes(self, bandit: int) -> list[tuple[Any, Event]]:
        """The changes of configuration, in order, each with its cursor."""
        ...

    def first_at(self, bandit: int) -> int | None:
        """The time of the first decision."""
        ...

    def snapshots(self, bandit: int) -> list[tuple[int, str]]:
        """The snapshots kept, newest first: number of events, body."""
        ...

    def verify(self, bandit: int, n: int = 0, cursor: Any = None) -> None:
        """Refuse a journal that lacks events after the snapshot of n events, the last of which has this cursor."""
        ...

    def charts(self, bandit: int, width: int, since: int, until: int) -> list[tuple[int, str]]:
        """The cells of this width that begin in this time, oldest first: start, body."""
        ...

    def last_chart(self, bandit: int, width: int) -> tuple[int, str] | None:
        """The newest cell of this width."""
        ...

    def note(self, name: str) -> str | None:
        """The text kept under a name, or None."""
        ...

    def tally(
        self, bandit: int, since: int, until: int, width: int, due: tuple[int, int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Counts per stretch of `width` microseconds: (stretch, slot, how, decisions, outcomes, sum of rewards).
        Outcomes count when they were written. With `due`, a wait and the time up to which all decisions are settled,
        they count when their decision was that old, and only if it is settled."""
        ...

    def groups(self, bandit: int, starts: list[int], until: int) -> list[tuple[int, int, int, float, float]]:
        """For each period of time (they begin at `starts`; the last ends at `until`) and each way of deciding:
        outcomes, sum and sum of squares of rewards of decisions made then, as (period, how, count, sum, squares)."""
        ...

    def counts(self, bandit: int) -> dict[str, int]:
        """How many decisions and how many events of each kind there are."""
        ...

    def check(self) -> list[str]:
        """What is wrong with the store itself, in words."""
        ...

    def now(self) -> int:
        """The store's time in microseconds."""
        ...

    def close(self) -> None:
        """Let go of the store."""
        ...


Found = dict[Any, Standing | Damaged]


def whole(found: Found) -> dict[Any, Standing]:
    """Refuse decisions that were altered."""
    for standing in found.values():
        if isinstance(standing, Damaged):
            raise standing
    return found  # type: ignore[return-value]


def judge(ask: Pay, standing: Standing | Damaged | None) -> tuple[list[Event], Any]:
    """The events a reward adds (their numbers left to the store) and its answer. Every store asks this function, so
    that a reward counts once everywhere."""
    if isinstance(standing, Damaged):
        return [], standing
    if standing is None:
        return [], Unknown(f"There is no decision {ask.id!r:.140} to reward; ids come from decide().")
    row, kind, value, late, _ = standing
    came = outcome(row, REWARD, ask.at, ask.value)
    if kind == REWARD:
        return [], "again" if value == ask.value else _other(row.id, value, ask.value)
    if late is not None:
        return [], "again" if late == ask.value else _other(row.id, late, ask.value)
    if kind == DEFAULT:
        return [came._replace(kind=LATE)], "late"
    if ask.wait is not None and ask.at > row.at + ask.wait:
        return [came._replace(kind=DEFAULT, value=ask.default), came._replace(kind=LATE)], "late"
    return [came], "waiting" if ask.waits else "learnt"


def outcome(row: DecisionRow, kind: int, at: int, value: float) -> Event:
    """What became of a decision, as an event."""
    return Event(0, kind, at, row.id, row.slot, row.how, value, row.at, None, row.chance)


def in_order(row: DecisionRow) -> tuple[int, str]:
    """What decisions are sorted by: outcomes that are written together are written in this order, in every process."""
    return row.at, row.id


def _other(decision: str, first: float | None, second: float) -> Conflict:
    return Conflict(f"Decision {decision!r:.140} has the reward {first!r} already; {second!r} was not taken.")


def same_decision(asked: DecisionRow, stands: DecisionRow) -> Any:
    """The decision that stands under an id, if it answers the same question: an id sent again is the same decision."""
    if asked.available != stands.available:
        return Conflict(
            f"Decision {asked.id!r:.140} was made among other available arms; use a new id for a new question."
        )
    return stands
