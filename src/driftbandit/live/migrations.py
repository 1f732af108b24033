"""The tables of a journal, as numbered steps that are only ever added to.

A journal says which step it is at. An older one is brought forward when it is opened for writing; a newer one is
refused, because this version cannot know what its rows mean."""

from collections.abc import Callable

from driftbandit.live.errors import Damaged

_SQLITE = [
    """
    CREATE TABLE bandit (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created INTEGER NOT NULL);
    CREATE TABLE decision (
        bandit INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, slot INTEGER NOT NULL,
        how INTEGER NOT NULL, known INTEGER NOT NULL, available TEXT, mark INTEGER NOT NULL,
        PRIMARY KEY (bandit, seq)) WITHOUT ROWID;
    CREATE UNIQUE INDEX decision_id ON decision (bandit, id);
    CREATE TABLE event (
        bandit INTEGER NOT NULL, n INTEGER NOT NULL, kind INTEGER NOT NULL, at INTEGER NOT NULL,
        decision TEXT NOT NULL, slot INTEGER NOT NULL, how INTEGER NOT NULL, value REAL NOT NULL,
        decided INTEGER NOT NULL, body TEXT, mark INTEGER NOT NULL,
        PRIMARY KEY (bandit, n)) WITHOUT ROWID;
    CREATE UNIQUE INDEX event_decision ON event (bandit, decision, (kind = 3));
    CREATE TABLE snapshot (
        bandit INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (bandit, n));
    """,
    """
    CREATE TABLE chart (
        bandit INTEGER NOT NULL, width INTEGER NOT NULL, start INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (bandit, width, start)) WITHOUT ROWID;
    """,
    "ALTER TABLE decision ADD COLUMN chance REAL; ALTER TABLE event ADD COLUMN chance REAL;",
]

_POSTGRES = [
    """
    CREATE TABLE driftbandit.bandit (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, created bigint NOT NULL);
    CREATE TABLE driftbandit.decision (
        bandit bigint NOT NULL, id text NOT NULL, at bigint NOT NULL, slot int NOT NULL, how smallint NOT NULL,
        known bigint NOT NULL, available text, mark bigint NOT NULL,
        PRIMARY KEY (bandit, id));
    CREATE INDEX decision_at ON driftbandit.decision (bandit, at, id);
    CREATE TABLE driftbandit.event (
        bandit bigint NOT NULL, era int NOT NULL, xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
        seq bigint GENERATED ALWAYS AS IDENTITY, kind smallint NOT NULL, at bigint NOT NULL, decision text NOT NULL,
        slot int NOT NULL, how smallint NOT NULL, value double precision NOT NULL, decided bigint NOT NULL, body text,
        mark bigint NOT NULL,
        PRIMARY KEY (bandit, era, xid, seq));
    CREATE UNIQUE INDEX event_decision ON driftbandit.event (bandit, decision, (kind = 3));
    CREATE TABLE driftbandit.snapshot (
        bandit bigint NOT NULL, n bigint NOT NULL, at bigint NOT NULL, body text NOT NULL,
        PRIMARY KEY (bandit, n));
    """,
    """
    CREATE TABLE driftbandit.chart (
        bandit bigint NOT NULL, width bigint NOT NULL, start bigint NOT NULL, body text NOT NULL,
        PRIMARY KEY (bandit, width, start));
    """,
    # The server's own ANALYZE is a transaction that readers wait for: with 100 values per column to find it samples
    # 30,000 rows, pauses in between, and takes seconds; with 1 it samples 300. All our queries go by an index.
    "".join(
        f"ALTER TABLE driftbandit.{table} {', '.join(f'ALTER {name} SET STATISTICS 1' for name in names.split())};"
        for table, names in (
            ("decision", "bandit id at slot how known available mark"),
            ("event", "bandit era xid seq kind at decision slot how value decided body mark"),
        )
    )
    + "ALTER INDEX driftbandit.event_decision ALTER COLUMN 3 SET STATISTICS 1;",
    "".join(
        f"ALTER TABLE driftbandit.{table} ADD COLUMN chance double precision;"
        f"ALTER TABLE driftbandit.{table} ALTER chance SET STATISTICS 1;"
        for table in ("decision", "event")
    ),
]

STEPS = {"sqlite": _SQLITE, "postgres": _POSTGRES}


def migrate(kind: str, version: int, run: Callable[[str, int], None], target: str) -> None:
    """Take the steps that a journal at `version` lacks: run(statements, its new version) for each."""
    steps = STEPS[kind]
    if version > len(steps):
        raise Damaged(
            f"{target} was written by a newer driftbandit (tables of version {version}; this one knows {len(steps)}). "
            "Update driftbandit to open it."
        )
    for number in range(version, len(steps)):
        run(steps[number], number + 1)
