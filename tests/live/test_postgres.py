"""What only PostgreSQL has: an order of many writers, strangers' transactions, outages, rights, dumps."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit, DamagedJournal, StoreError
from driftbandit.bandit.asks import AddReward
from driftbandit.bandit.audit import audit
from driftbandit.bandit.records import DecisionRow, mark
from driftbandit.bandit.settings import first_config

psycopg = pytest.importorskip("psycopg", reason="pip install '.[postgres]' brings psycopg")


def opened(url, **options) -> Bandit:
    return Bandit.open(url, "b", DiscountedTS(), ["x", "y"], seed=1, **options)


def journal_of(url):
    from driftbandit.bandit.postgres import PostgreSQL

    return PostgreSQL(url)


def test_an_event_is_not_read_before_an_older_transaction_of_ours_has_ended(postgres) -> None:
    """Two transactions by hand: the older commits last. A reader that went by numbers would miss its event."""
    journal = journal_of(postgres)
    journal.create("b", 1)
    journal.commit([DecisionRow(id, 100, 0, 0, 0, None, bandit=1) for id in ("old", "new")])
    older = psycopg.connect(postgres)
    older.execute("SELECT pg_advisory_xact_lock_shared(%s, 0)", (0x64726266,))
    older.execute(
        "INSERT INTO driftbandit.event (era, bandit, kind, at, decision, slot, how, value, decided, mark) "
        "VALUES (0, 1, 1, 200, 'old', 0, 0, 1.0, 100, %s)",
        (mark((1, 200, "old", 0, 0, 1.0, 100, None, None)),),
    )
    assert journal.commit([AddReward(1, "new", 1.0, 201, first_config(None, ["a"], 0, "hash", {}))])[0] == ["learned"]
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        assert list(journal.events(1)) == []
        time.sleep(0.01)
    older.commit()
    older.close()
    assert [event.decision for _, event in journal.events(1)] == ["old", "new"]
    journal.close()


def test_a_database_without_an_encoding_keeps_a_journal_as_any_other(postgres) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
    url = re.sub(r"/t\d+(?=\?|$)", "/plain", postgres)
    with opened(url, who="Zoë") as bandit:
        bandit.reward(bandit.decide("d"), 1.0)
    with opened(url) as bandit:
        assert bandit.outcome("d").reward == 1.0
        assert audit(url)


def test_an_analyze_by_the_server_samples_few_rows(postgres) -> None:
    """It is a transaction that readers wait for. The rows it samples are 300 times the largest target of a column."""
    opened(postgres).close()
    with psycopg.connect(postgres) as connection:
        targets = connection.execute(
            "SELECT attrelid::regclass::text, attname, attstattarget FROM pg_attribute WHERE attnum > 0 AND ("
            "attrelid IN ('driftbandit.decision'::regclass, 'driftbandit.event'::regclass) OR "
            "attrelid = 'driftbandit.event_decision'::regclass AND attnum = 3)"
        ).fetchall()
    assert len(targets) == 10 + 14 + 1
    assert {target for *_, target in targets} == {1}


def test_a_look_for_new_events_goes_by_the_index_whatever_the_server_knows(postgres) -> None:
    """Once the table has been analysed, and the statement planned for values not known yet, the server would read all
    of it for one row, if it were not asked for the first."""
    from driftbandit.bandit import postgres as store

    opened(postgres).close()
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO driftbandit.event (era, bandit, kind, at, decision, slot, how, value, decided, mark) "
            "SELECT 0, 1, 1, g, 'd' || g, 0, 0, 1.0, g, 0 FROM generate_series(1, 20000) g"
        )
        connection.execute("ANALYZE driftbandit.event")
        connection.execute(store._INDEX)
        connection.execute("SET plan_cache_mode = force_generic_plan")
        values = ("{1}", "{0}", "{0}", "{0}", 0, 1000)
        numbered = store._FINAL.replace("%s", "{}").format(*(f"${n + 1}" for n in range(len(values))))
        types = "bigint[], int[], text[], bigint[], int, int"
        connection.execute(f"PREPARE look ({types}) AS {numbered}")
        shown = connection.execute(f"EXPLAIN EXECUTE look ({', '.join(repr(value) for value in values)})").fetchall()
    plan = "\n".join(row[0] for row in shown)
    assert "using event_pkey" in plan, plan
    assert "Seq Scan" not in plan, plan


def test_a_strangers_open_transaction_holds_nothing_up(postgres) -> None:
    with psycopg.connect(postgres) as stranger, opened(postgres) as bandit:
        stranger.execute("CREATE TABLE elsewhere (x int)")  # has an id now, and stays open
        decision = bandit.decide()
        bandit.reward(decision.id, 1.0)
        until = time.monotonic() + 10.0
        while bandit._fold.player.learned == 0 and time.monotonic() < until:
            time.sleep(0.005)
        assert bandit._fold.player.learned == 1
        stranger.rollback()


def test_two_processes_worth_of_replicas_agree(postgres, monkeypatch) -> None:
    from driftbandit.bandit import opening

    with opened(postgres) as one:
        monkeypatch.setattr(opening, "_opened", {})  # as another process would: a separate journal
        with opened(postgres) as two:
            assert one._journal is not two._journal

            def work(bandit: Bandit, name: str) -> None:
                for n in range(60):
                    decision = bandit.decide(f"{name}{n}")
                    bandit.reward(decision.id, float(n % 3 == 0))

            workers = [threading.Thread(target=work, args=pair) for pair in ((one, "a"), (two, "b"))]
            for thread in workers:
                thread.start()
            one.add_arm("z")
            two.fix("y")
            one.release()
            for thread in workers:
                thread.join()
            one.refresh()
            two.refresh()
            assert one.fingerprint() == two.fingerprint()
            assert one._fold.player.learned == 120
            assert two.arms == ["x", "y", "z"]
            assert one.decide("a0") == two.decide("a0")
    assert all(report.differences == [] for report in audit(postgres))


def test_a_dump_restored_into_a_younger_server_goes_on_behind_what_it_holds(postgres) -> None:
    """Such a dump holds transaction ids of the new server's future."""
    with opened(postgres) as bandit:
        for n in range(5):
            bandit.reward(bandit.decide(f"d{n}").id, 1.0)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("UPDATE driftbandit.event SET xid = (xid::text::bigint + 1000000000)::text::xid8")
    with opened(postgres) as bandit:
        assert bandit._fold.player.learned == 5
        for n in range(5, 9):
            bandit.reward(bandit.decide(f"d{n}").id, 0.0)
        bandit.refresh()
        assert bandit._fold.player.learned == 9
        before = bandit.fingerprint()
    with opened(postgres) as bandit:
        assert bandit.fingerprint() == before
    assert all(report.differences == [] for report in audit(postgres))


def test_without_rights_or_server_one_sentence_is_said(postgres, tmp_path) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS nobody_much")
        connection.execute("CREATE ROLE nobody_much LOGIN")
        connection.execute("REVOKE CREATE ON DATABASE " + connection.info.dbname + " FROM PUBLIC")
    weak = postgres.replace("postgres:@", "nobody_much:@")
    wrong = [weak, f"postgresql:///db?host={tmp_path}", "postgresql://127.0.0.1:1/db?connect_timeout=1"]
    for url in wrong:
        with pytest.raises(StoreError, match="PostgreSQL") as caught:
            opened(url)
        assert "\n" not in str(caught.value)


def test_another_programs_schema_is_left_alone(postgres) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA driftbandit")
        connection.execute("CREATE TABLE driftbandit.mine (x int)")
    with pytest.raises(DamagedJournal, match="another program"):
        opened(postgres)


def test_after_its_connections_were_ended_a_bandit_goes_on(postgres) -> None:
    with opened(postgres) as bandit:
        bandit.reward(bandit.decide("a").id, 1.0)
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'driftbandit' "
                "AND datname = current_database()"
            )
        assert bandit.decide("b").id == "b"
        assert bandit.reward("b", 1.0) == "learned"
        bandit.refresh()
        assert bandit._fold.player.learned == 2


def test_processes_that_open_an_empty_database_at_the_same_moment_make_one_journal(postgres) -> None:
    """As the workers of a first deployment do: all have seen that there are no tables before the first makes them."""
    with psycopg.connect(postgres, autocommit=True) as gate, ThreadPoolExecutor(3) as pool:
        gate.execute("SELECT pg_advisory_lock(%s, 1)", (0x64726266,))
        opening = [pool.submit(journal_of, postgres) for _ in range(3)]
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until = time.monotonic() + 20.0
        while gate.execute(waiting).fetchone()[0] < 3 and time.monotonic() < until:
            time.sleep(0.01)
        gate.execute("SELECT pg_advisory_unlock(%s, 1)", (0x64726266,))
        journals = [future.result(30) for future in opening]
    assert {journal.create("a", 5) for journal in journals} == {1}
    for journal in journals:
        journal.close()
