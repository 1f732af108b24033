"""How a group of asks becomes a few statements of PostgreSQL, whatever its size."""

from collections.abc import Callable, Iterable
from typing import Any

from driftbandit.live.errors import Conflict
from driftbandit.live.journal import (
    Ask,
    Configure,
    Decide,
    Draw,
    Found,
    Keep,
    Note,
    Pay,
    Settle,
    Settled,
    Standing,
    Thin,
    judge,
    same_decision,
)
from driftbandit.live.records import CHANGE, DEFAULT, LATE, Event, mark
from driftbandit.live.tables import DECISION, EVENT, KEPT, NOTE, standing, whole_decisions

LOCK = 0x64726266  # the class of our advisory locks
_SLACK = 5_000_000  # microseconds by which a decision may reach the store after its own time
_DEEP = 3600 * 1_000_000  # and by which it may, where the store was away


def _counting(insert: str, table: str) -> str:
    """A statement that inserts rows and adds them to the writer's row of `head`; gives those that were inserted."""
    return f"""
    WITH written AS ({insert}),
    counted AS (
        INSERT INTO driftbandit.head AS h (bandit, writer, events, event_marks, decisions, decision_marks)
        SELECT bandit, %s, {"count(*), sum(mark), 0, 0" if table == "event" else "0, 0, count(*), sum(mark)"}
        FROM written GROUP BY bandit ORDER BY bandit
        ON CONFLICT (bandit, writer) DO UPDATE
        SET {table}s = h.{table}s + excluded.{table}s, {table}_marks = h.{table}_marks + excluded.{table}_marks)
    """


_INSERT_DECISIONS = _counting(
    f"""
    INSERT INTO driftbandit.decision (bandit, {DECISION}, mark)
    SELECT * FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::int[], %s::smallint[], %s::bigint[], %s::text[],
                         %s::float8[], %s::bigint[])
    ON CONFLICT DO NOTHING RETURNING bandit, mark""",
    "decision",
) + "SELECT FROM written"  # fmt: skip
# The lock of all who write events, taken before the first row is made and with it the transaction's id: see `postgres`.
LOCKED = f"WHERE (SELECT pg_advisory_xact_lock_shared({LOCK}, 0) IS NOT NULL)"
_INSERT_EVENTS = _counting(
    f"""
    INSERT INTO driftbandit.event (era, bandit, {EVENT}, mark)
    SELECT %s, * FROM unnest(%s::bigint[], %s::smallint[], %s::bigint[], %s::text[], %s::int[], %s::smallint[],
                         %s::float8[], %s::bigint[], %s::text[], %s::float8[], %s::bigint[])
    {LOCKED}
    ON CONFLICT DO NOTHING RETURNING bandit, decision, kind, mark""",
    "event",
) + "SELECT bandit, decision, kind FROM written"  # fmt: skip
_STANDING = f"""
    SELECT d.bandit, {", ".join("d." + name for name in DECISION.split(", "))}, d.mark, o.kind, o.value, l.value, o.at
    FROM unnest(%s::bigint[], %s::text[]) AS asked (bandit, id)
    JOIN driftbandit.decision d ON d.bandit = asked.bandit AND d.id = asked.id
    LEFT JOIN driftbandit.event o ON o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = false
    LEFT JOIN driftbandit.event l ON l.bandit = d.bandit AND l.decision = d.id AND (l.kind = 3) = true"""

_NUMBERS = {int, float}

Place = tuple[int, str]  # a bandit's number and a decision's id


class CommitGroup:
    """One transaction for a group of asks. Everything is sent before anything is waited for, where that can be: a wait
    costs a round to the server, and under load that is most of the time."""

    def __init__(self, connection: Any, era: int, writer: int, asks: dict[int, Ask]) -> None:
        self._connection, self._era, self._writer, self._asks = connection, era, writer, asks
        self.answers: dict[int, Any] = {}
        self.again: dict[int, Ask] = {}  # to be asked once more, in another transaction
        self.appended: tuple[int, Event] | None = None  # the last event
        self._checks: list[Callable[[], None]] = []

    @property
    def one_statement(self) -> bool:
        """Whether this is a single statement, which is a transaction by itself: decisions alone, or rewards alone whose
        decisions are all known."""
        asks = self._asks.values()
        return all(type(ask) is Decide for ask in asks) or all(type(ask) is Pay and ask.row is not None for ask in asks)

    def send(self) -> None:
        """Ask the server to write; within a transaction of the caller's."""
        kinds: dict[type, dict[int, Any]] = {}
        for place, ask in self._asks.items():
            kinds.setdefault(type(ask), {})[place] = ask
        if Decide in kinds:
            self._decide(kinds[Decide])
        if Pay in kinds:
            self._pay(kinds[Pay])
        for place, ask in kinds.get(Settle, {}).items():
            self._settle(place, ask)
        for place, ask in kinds.get(Configure, {}).items():
            self._configure(place, ask)
        for place, ask in kinds.get(Keep, {}).items():
            _keep(self._connection, ask)
            self.answers[place] = None
        for kind, sql in (
            (Draw, "INSERT INTO driftbandit.chart VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"),
            (Thin, "DELETE FROM driftbandit.chart WHERE bandit = %s AND width = %s AND start < %s"),
            (Note, NOTE.replace("@", "driftbandit.").replace("?", "%s")),
        ):
            for place, ask in kinds.get(kind, {}).items():
                self._connection.execute(sql, ask)
                self.answers[place] = None

    def finish(self) -> None:
        """After the commit: what the server said."""
        for check in self._checks:
            check()

    @property
    def last(self) -> tuple[tuple[int, str] | None, tuple[int, str, bool] | None]:
        """A decision and an event that the journal has after the commit."""
        decided = next(((ask.bandit, ask.row.id) for ask in self._asks.values() if type(ask) is Decide), None)
        if self.appended is None:
            return decided, None
        bandit, event = self.appended
        return decided, (bandit, event.decision, event.kind == LATE)

    def _decide(self, asks: dict[int, Decide]) -> None:
        # In order of ids, so that two processes with the same ids wait for each other and do not lock each other out.
        ordered = sorted(asks.values(), key=lambda ask: (ask.bandit, ask.row.id))
        cursor = self._connection.execute(
            _INSERT_DECISIONS,
            [*columns((ask.bandit, *ask.row, mark(ask.row)) for ask in ordered), self._writer],
        )

        def check() -> None:
            if cursor.rowcount == len(asks):
                self.answers.update((place, ask.row) for place, ask in asks.items())
                return
            where = sorted({(ask.bandit, ask.row.id) for ask in ordered})
            found = standings(_fetching(self._connection), where)
            for place, ask in asks.items():
                stands = found[ask.bandit, ask.row.id]
                self.answers[place] = same_decision(ask.row, stands.row) if isinstance(stands, Standing) else stands

        self._checks.append(check)

    def _pay(self, asks: dict[int, Pay]) -> None:
        """What another process was quicker with, or this group holds twice, is judged again when the first stands."""
        unknown = sorted({(ask.bandit, ask.id) for ask in asks.values() if ask.row is None})
        known: Found = standings(_fetching(self._connection), unknown) if unknown else {}
        writing: dict[Place, tuple[int, Event]] = {}
        for place, ask in asks.items():
            where = ask.bandit, ask.id
            if where in writing:
                self.again[place] = ask._replace(row=None)
                continue
            fresh = None if ask.row is None else Standing(ask.row, None, None, None, None)
            events, self.answers[place] = judge(ask, fresh or known.get(where))
            if events:
                writing[where] = place, events[0]
                if len(events) > 1:
                    self.again[place] = ask._replace(row=None)

        def check(done: set[tuple[int, str, int]]) -> None:
            for where, (place, event) in writing.items():
                if (where[0], event.decision, event.kind) not in done:
                    self.again[place] = asks[place]._replace(row=None)

        # In the order of the decisions, which all processes agree on, so that they wait for each other and do not lock
        # each other out.
        added = [(where[0], event) for where, (_, event) in writing.items()]
        self._append(sorted(added, key=lambda pair: (pair[0], pair[1].decided, pair[1].decision)), check)

    def _append(self, events: list[tuple[int, Event]], check: Callable[[set[tuple[int, str, int]]], None]) -> None:
        """Write events, but for those that are there already; `check` is told which were written."""
        if events:
            rows = ((bandit, *event[1:], mark(event[1:])) for bandit, event in events)
            cursor = self._connection.execute(_INSERT_EVENTS, [self._era, *columns(rows), self._writer])

            def told() -> None:
                every = {(bandit, event.decision, event.kind) for bandit, event in events}
                check(every if cursor.rowcount == len(events) else set(cursor.fetchall()))

            self._checks.append(told)
            self.appended = events[-1]

    def _settle(self, place: int, ask: Settle) -> None:
        sql = (
            f"SELECT {DECISION}, mark FROM driftbandit.decision d WHERE bandit = %s AND at > %s AND at <= %s "
            "AND NOT EXISTS (SELECT FROM driftbandit.event o WHERE o.bandit = d.bandit AND o.decision = d.id "
            "AND (o.kind = 3) = false) ORDER BY at, id LIMIT %s"
        )
        low, until = ask.after[0] - (_DEEP if ask.deep else _SLACK), ask.until
        rows = self._connection.execute(sql, (ask.bandit, low, until, ask.limit)).fetchall()
        done = len(rows) < ask.limit
        if not done:  # up to here, with all of the same moment
            until = rows[-1][1]
            rows = self._connection.execute(sql, (ask.bandit, low, until, None)).fetchall()
        any_of_them = "SELECT EXISTS (SELECT FROM driftbandit.decision WHERE bandit = %s AND at > %s AND at <= %s)"
        passed = self._connection.execute(any_of_them, (ask.bandit, ask.settled, until)).fetchone()[0]
        after, reached = max(ask.after, (until, "")), until if passed else None
        self.answers[place] = Settled(0, after, done, reached)

        def check(written: set[tuple[int, str, int]]) -> None:
            self.answers[place] = Settled(sum(kind == DEFAULT for _, _, kind in written), after, done, reached)

        open_ones = whole_decisions(ask.bandit, rows)
        self._append([(ask.bandit, event) for event in ask.events(open_ones, reached)], check)

    def _configure(self, place: int, ask: Configure) -> None:
        def check(written: set[tuple[int, str, int]]) -> None:
            self.answers[place] = None
            if not written:
                sql = (
                    "SELECT at, body FROM driftbandit.event WHERE bandit = %s AND decision = %s AND (kind = 3) = false"
                )
                there = self._connection.execute(sql, (ask.bandit, ask.id)).fetchone()
                if there != (ask.at, ask.body):
                    self.answers[place] = Conflict("The configuration was changed meanwhile.")

        event = Event(0, CHANGE, ask.at, ask.id, slot=ask.serial, body=ask.body)
        self._append([(ask.bandit, event)], check)


def columns(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """Rows as PostgreSQL's text for one array per column, which is several times as quick as handing over lists."""
    return ["{" + ",".join(_elements(column)) + "}" for column in zip(*rows, strict=True)]


def _elements(column: tuple[Any, ...]) -> Iterable[str]:
    kinds = set(map(type, column))
    return map(repr if kinds <= _NUMBERS else _element, column)


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


def standings(rows: Callable[..., list[Any]], places: list[Place]) -> Found:
    """What is known of these decisions."""
    found = rows(_STANDING, [bandit for bandit, _ in places], [id for _, id in places])
    return {(row[0], row[1]): standing(row[0], row[1:]) for row in found}


def _keep(connection: Any, ask: Keep) -> None:
    last, marks, cursor = 0, 0, (0, "0", 0)
    found = connection.execute(
        "SELECT n, marks, body::json -> 'cursor' FROM driftbandit.snapshot WHERE bandit = %s AND n < %s "
        "ORDER BY n DESC LIMIT 1",
        (ask.bandit, ask.n),
    ).fetchone()
    if found is not None:
        last, marks, cursor = found
    count, added = connection.execute(
        "SELECT count(*), COALESCE(sum(mark), 0)::bigint FROM driftbandit.event WHERE bandit = %s "
        "AND (era, xid, seq) > (%s, %s::text::xid8, %s) AND (era, xid, seq) <= (%s, %s::text::xid8, %s)",
        (ask.bandit, *cursor, *ask.cursor),
    ).fetchone()
    if last + count != ask.n:  # rows are missing: the next opening says so
        return
    values = (ask.n, ask.at, ask.body, marks + added)
    connection.execute(
        "INSERT INTO driftbandit.snapshot VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (ask.bandit, *values, mark(values)),
    )
    connection.execute(
        "DELETE FROM driftbandit.snapshot WHERE bandit = %s AND n < (SELECT min(n) FROM (SELECT n FROM "
        "driftbandit.snapshot WHERE bandit = %s ORDER BY n DESC LIMIT %s) AS newest)",
        (ask.bandit, ask.bandit, KEPT),
    )


def _fetching(connection: Any) -> Callable[..., list[Any]]:
    return lambda sql, *values: list(connection.execute(sql, values).fetchall())
