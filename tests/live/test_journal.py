"""What every store must do, held against SQLite and PostgreSQL alike."""

import json

import pytest

from driftbandit.bandit.asks import AddChange, AddReward, Settle, Within
from driftbandit.bandit.opening import is_url, reading
from driftbandit.bandit.records import CHANGE, DEFAULT, LATE, REWARD, DecisionRow, Event
from driftbandit.bandit.settings import first_config
from driftbandit.errors import DamagedJournal, NotFound, RecordConflict


def opened(store):
    if is_url(store):
        from driftbandit.bandit.postgres import PostgreSQL

        return PostgreSQL(store)
    from driftbandit.bandit.sqlite import SQLite

    return SQLite(store)


@pytest.fixture
def journal(store):
    journal = opened(store)
    yield journal
    journal.close()


def row(id: str, at: int = 100, slot: int = 0, known: int = 0, available=None, bandit: int = 1) -> DecisionRow:
    return DecisionRow(id, at, slot, 0, known, available, bandit=bandit)


def pay(id: str, value: float = 1.0, at: int = 200, wait=None, bandit: int = 1) -> AddReward:
    config = first_config(None, ["a"], 0, "hash", {})._replace(wait=wait, learn="arrival")
    return AddReward(bandit, id, value, at, config)


def events(journal, bandit: int = 1) -> list[Event]:
    """What is folded, with the numbers that a reader gives."""
    return [event._replace(n=n) for n, (_, event) in enumerate(journal.events(bandit), 1)]


def test_a_group_is_answered_in_order_and_read_back_whole(journal) -> None:
    number = journal.create("a", 5)
    assert journal.create("a", 6) == number
    assert journal.bandits() == {"a": number}
    rows = [row("x", 100, 2, 7, "0,2"), row("y", 101, 1)]
    answers, _ = journal.commit([rows[0], AddChange(number, 1, 50, "{}"), rows[1]])
    assert answers == [rows[0], None, rows[1]]
    answers, _ = journal.commit([pay("y", 0.25), pay("x", 0.5, at=201)])
    assert answers == ["learned", "learned"]
    assert sorted(journal.decisions(number)) == sorted(rows)
    assert journal.recent(number, 1) == [rows[1]]
    read = events(journal, number)
    assert [event.kind for event in read] == [CHANGE, REWARD, REWARD]
    assert read[0].body == "{}"
    assert {event.decision: (event.slot, event.value, event.decided) for event in read[1:]} == {
        "y": (1, 0.25, 101),
        "x": (2, 0.5, 100),
    }
    assert journal.check(number) == journal.check_file() == []


def test_reading_goes_on_after_any_cursor_and_stops_at_a_limit(journal) -> None:
    journal.create("a", 5)
    for n in range(10):
        journal.commit([row(f"d{n}"), pay(f"d{n}", n / 10)])
    whole = list(journal.events(1))
    assert [event.value for _, event in whole] == [n / 10 for n in range(10)]
    for place in range(10):
        assert list(journal.events(1, whole[place][0])) == whole[place + 1 :]
    assert list(journal.events(1, None, 4)) == whole[:4]


def test_an_id_sent_again_is_the_same_decision_and_another_question_under_it_a_conflict(journal) -> None:
    journal.create("a", 5)
    first = row("x", 100, 2, 3, "1,2")
    answers, _ = journal.commit([first, row("x", 120, 1, 9, "1,2")])
    assert answers == [first, first]
    answers, _ = journal.commit([row("x", 130, 0, 9, "1,2"), row("x", 130, 0, 9, None)])
    assert answers[0] == first
    assert isinstance(answers[1], RecordConflict)
    assert list(journal.decisions(1)) == [first]


def test_a_large_group_with_ids_sent_twice_is_answered_as_one_by_one(journal) -> None:
    """More rows than go into one statement; on the way an id that the group or the journal holds already."""
    journal.create("a", 5)
    journal.commit([row("old", at=50)])
    rows = [row(f"d{n:03}", at=100 + n) for n in range(150)]
    again = [row("d070", at=999, slot=1), row("old", at=999), row("d071", available="0")]
    answers, _ = journal.commit([*rows[:140], *again, *rows[140:]])
    assert answers[:140] + answers[143:] == rows
    assert answers[140:142] == [rows[70], row("old", at=50)]
    assert isinstance(answers[142], RecordConflict)
    pays = [pay(f"d{n:03}", n / 150) for n in range(150)]
    answers, _ = journal.commit([*pays, pay("d010", 10 / 150), pay("d011", 0.999), pay("missing"), pay("old")])
    assert answers[:151] == ["learned"] * 150 + ["again"]
    assert [type(answer) for answer in answers[151:]] == [RecordConflict, NotFound, str]
    assert sorted(journal.decisions(1)) == sorted([*rows, row("old", at=50)])
    assert sorted(event.decision for event in events(journal)) == sorted(["old", *(asked.id for asked in rows)])
    assert journal.check(1) == []


def test_a_decision_has_one_outcome(journal) -> None:
    journal.create("a", 5)
    journal.commit([row("x")])
    answers, _ = journal.commit([pay("x"), pay("x"), pay("x", 0.5), pay("missing")])
    assert answers[:2] == ["learned", "again"]
    assert isinstance(answers[2], RecordConflict)
    assert isinstance(answers[3], NotFound)
    answers, _ = journal.commit([pay("x", 0.5), pay("x", 1.0)])
    assert isinstance(answers[0], RecordConflict)
    assert answers[1] == "again"
    assert [(event.decision, event.value) for event in events(journal)] == [("x", 1.0)]


def test_a_reward_after_the_wait_finds_the_default_and_is_kept_as_late(journal) -> None:
    journal.create("a", 5)
    journal.commit([row("x", at=100), row("y", at=100), row("z", at=100)])
    answers, _ = journal.commit([pay("x", at=150, wait=50), pay("y", at=151, wait=50)])
    assert answers == ["learned", "late"]
    answers, _ = journal.commit([pay("y", at=170, wait=50), pay("y", 0.5, at=170, wait=50)])
    assert answers[0] == "again"
    assert isinstance(answers[1], RecordConflict)
    assert [(event.decision, event.kind, event.value) for event in events(journal)] == [
        ("x", REWARD, 1.0),
        ("y", DEFAULT, 0.0),
        ("y", LATE, 1.0),
    ]
    found = journal.standing(1, ["x", "y", "z", "w"])
    assert (found["x"].kind, found["x"].value, found["x"].late) == (REWARD, 1.0, None)
    assert (found["y"].kind, found["y"].value, found["y"].late) == (DEFAULT, 0.0, 1.0)
    assert found["z"].kind is None
    assert "w" not in found


def test_settling_gives_the_default_only_to_decisions_that_waited_too_long(journal) -> None:
    journal.create("a", 5)
    journal.commit([row(f"d{n:02}", at=100 + n) for n in range(20)])
    journal.commit([pay("d03"), pay("d04")])
    last, total, rounds = 0, 0, 0
    while True:
        answers, _ = journal.commit([Settle(1, last, 109, 500, 0.25, limit=4)])
        settled = answers[0]
        last, total, rounds = settled.until or last, total + settled.written, rounds + 1
        if settled.done:
            break
    assert total == 8
    assert rounds >= 3
    defaults = [event for event in events(journal) if event.kind == DEFAULT]
    assert sorted(event.decision for event in defaults) == [f"d{n:02}" for n in range(10) if n not in (3, 4)]
    assert {event.value for event in defaults} == {0.25}
    assert {event.decided for event in defaults} == {100 + n for n in range(10) if n not in (3, 4)}
    answers, _ = journal.commit([Settle(1, last, 115, 600, 0.25)])
    assert answers[0].written == 6


def test_two_changes_with_one_number_are_a_conflict_and_the_same_one_twice_is_not(journal) -> None:
    journal.create("a", 5)
    assert journal.commit([AddChange(1, 1, 50, "a")])[0] == [None]
    assert journal.commit([AddChange(1, 1, 50, "a")])[0] == [None]
    assert isinstance(journal.commit([AddChange(1, 1, 50, "b")])[0][0], RecordConflict)
    assert [event.body for _, event in journal.changes(1)] == ["a"]


def test_bandits_of_one_journal_do_not_mix(journal) -> None:
    one, two = journal.create("one", 5), journal.create("two", 5)
    journal.commit([row("x", slot=1, bandit=one), row("x", slot=2, bandit=two)])
    journal.commit([pay("x", 0.25, bandit=two)])
    assert events(journal, one) == []
    assert [(event.slot, event.value) for event in events(journal, two)] == [(2, 0.25)]
    assert journal.count_decisions(one) == 1


def test_only_the_newest_snapshots_are_kept(journal) -> None:
    journal.create("a", 5)
    cursor = None
    for n in range(1, 8):
        journal.commit([row(f"d{n}"), pay(f"d{n}")])
        cursor = [found for found, _ in journal.events(1, cursor)][-1]
        body = json.dumps({"cursor": cursor, "n": n})
        journal.commit([Within(1, "add_snapshot", (n, 10 * n, body, cursor))])
    assert [(n, json.loads(body)["n"]) for n, body in journal.snapshots(1)] == [(7, 7), (6, 6), (5, 5)]
    journal.verify(1, 7, cursor)
    journal.verify(1)


def test_counts_over_time_are_made_by_the_store(journal) -> None:
    journal.create("a", 5)
    for n in range(100):
        journal.commit([row(f"d{n}", at=1000 + n, slot=n % 2), pay(f"d{n}", n % 3 / 2, at=1000 + n)])
    rows = journal.tally(1, 1010, 1060, 20)
    decisions, outcomes, rewards = {}, {}, {}
    for stretch, slot, _, made, came, total in rows:
        key = stretch, slot
        decisions[key] = decisions.get(key, 0) + made
        outcomes[key] = outcomes.get(key, 0) + came
        rewards[key] = rewards.get(key, 0.0) + total
    expected = {(stretch, slot): 10 if stretch < 2 else 5 for stretch in range(3) for slot in range(2)}
    assert decisions == expected
    assert outcomes == expected
    naive = {}
    for n in range(10, 60):
        key = (n - 10) // 20, n % 2
        naive[key] = naive.get(key, 0.0) + n % 3 / 2
    assert rewards == naive
    for starts in ([1010], [1010, 1025], [1010, 1011, 1025, 1030, 1059]):
        ends = [*starts[1:], 1060]
        for period, how, count, total, squares in journal.groups(1, starts, 1060):
            values = [n % 3 / 2 for n in range(starts[period] - 1000, ends[period] - 1000)]
            assert (how, count, total) == (0, len(values), sum(values))
            assert squares == sum(value**2 for value in values)
        assert len(journal.groups(1, starts, 1060)) == len(starts)


def test_an_altered_row_is_found_by_its_checksum(journal, store) -> None:
    journal.create("a", 5)
    journal.commit([row("x"), row("y")])
    journal.commit([pay("x"), pay("y")])
    for table, change in (("event", "value = 0.5"), ("decision", "at = 7")):
        assert journal.check(1) == []
        undo = change.replace("0.5", "1.0").replace("7", "100")
        _run(store, f"UPDATE {table} SET {change} WHERE {'decision' if table == 'event' else 'id'} = 'y'")
        assert any(f"{table} " in text and "altered" in text for text in journal.check(1))
        _run(store, f"UPDATE {table} SET {undo} WHERE {'decision' if table == 'event' else 'id'} = 'y'")


def test_tables_of_a_newer_version_are_refused_and_nothing_is_touched(journal, store) -> None:
    journal.close()
    if is_url(store):
        _run(store, "UPDATE version SET version = 99")
    else:
        _run(store, "PRAGMA user_version = 99")
    with pytest.raises(DamagedJournal, match="version 99"):
        opened(store)
    with pytest.raises(DamagedJournal, match="version 99"):
        reading(store)


def test_a_reader_sees_what_was_committed_and_cannot_make_a_journal(journal, store, tmp_path) -> None:
    journal.create("a", 5)
    journal.commit([row("x")])
    other = reading(store)
    assert [found.id for found in other.decisions(1)] == ["x"]
    journal.commit([pay("x")])
    assert len(list(other.events(1))) == 1
    other.close()
    with pytest.raises(NotFound, match="no journal"):
        reading(str(tmp_path / "nothing.db"))


def _run(store: str, sql: str) -> None:
    if is_url(store):
        import psycopg

        with psycopg.connect(store, autocommit=True, options="-c search_path=driftbandit") as connection:
            connection.execute(sql)
    else:
        import sqlite3

        connection = sqlite3.connect(store)
        connection.execute(sql)
        connection.commit()
        connection.close()


def test_rewards_of_a_long_sqlite_journal_cost_what_those_of_a_short_one_do(tmp_path) -> None:
    """Counted in steps of SQLite's machine: it must find decisions by their ids, however many there are."""
    journal = opened(str(tmp_path / "j.db"))
    journal.create("a", 5)
    steps, costs = [0], []

    def step() -> int:
        steps[0] += 1
        return 0

    for first in (0, 2000):
        journal.commit([row(f"d{n}", at=1000 + n) for n in range(first, first + 1000)])
        journal._writer.set_progress_handler(step, 10)
        steps[0] = 0
        journal.commit([pay(f"d{n}", at=9000) for n in range(first, first + 20)])
        costs.append(steps[0])
        journal._writer.set_progress_handler(None, 0)
        journal.commit([row(f"d{n}", at=1000 + n) for n in range(first + 1000, first + 2000)])
    journal.close()
    assert costs[1] < 1.5 * costs[0]
