"""The journal of a live bandit is a log, without an export in between: a SQLite file or a PostgreSQL address."""

import json
import sqlite3

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from driftbandit import DiscountedTS, DriftTS
from driftbandit.bandit import Bandit, NotFound
from driftbandit.bandit.audit import Walk
from driftbandit.bandit.export import JournalLog, export, log_rows, with_probabilities
from driftbandit.bandit.opening import reading
from driftbandit.cli._main import main
from driftbandit.logs import Log, drift, replay

MINUTE = 60 * 1_000_000


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now


def played(store, rounds: int, name: str = "button", paid_after: int = 3) -> None:
    """Decisions every minute, paid three minutes later; the last few are still open."""
    rng, clock, due = np.random.default_rng(0), Clock(), []
    with Bandit.open(store, name, DiscountedTS(gamma=0.98), ["a", "b"], floor=0.2, seed=1, clock=clock) as bandit:
        for n in range(rounds):
            clock.now += MINUTE
            if len(due) >= paid_after:
                bandit.reward(*due.pop(0))
            decision = bandit.decide(f"d{n}")
            due.append((decision.id, float(rng.random() < (0.3 if decision.arm == "a" else 0.6))))


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_journal_is_the_same_log_as_its_export(store, tmp_path, ending) -> None:
    played(store, 60)
    log = Log(store)
    export(store, tmp_path / f"log.{ending}")
    other = Log(str(tmp_path / f"log.{ending}"))
    assert log.arms == ["a", "b"]
    assert (log.n, log.summary.left_out) == (other.n, other.summary.left_out) == (57, 3)
    assert log.summary.dates
    assert other.summary.dates
    assert log.summary.delay == 180.0
    for mine, yours in zip(log.whole(), other.whole(), strict=True):
        assert np.allclose(mine, yours)
    assert log.summary.span == pytest.approx(other.summary.span) == 56 * 60.0
    assert log.summary.least >= 0.1


@pytest.mark.parametrize("propensity", ["none", "arm", "all"])
def test_a_journal_is_read_by_any_reader_of_arrow(store, tmp_path, propensity, monkeypatch) -> None:
    monkeypatch.setattr("driftbandit.bandit.export._BATCH", 7)  # several batches
    played(store, 30)
    export(store, tmp_path / "log.parquet", propensity=propensity)
    written, log = pq.read_table(tmp_path / "log.parquet"), JournalLog(store, "button", propensity)
    assert pa.table(log) == written
    assert pl.DataFrame(log).to_dicts() == pl.from_arrow(written).to_dicts()
    counted = duckdb.sql("select count(*), avg(reward) from log").fetchall()
    assert counted == [(30, pytest.approx(pc.mean(written["reward"]).as_py()))]


def test_a_journal_without_decisions_is_an_empty_table_and_an_unknown_propensity_is_refused(store) -> None:
    played(store, 0)
    assert len(pa.table(JournalLog(store))) == 0
    with pytest.raises(ValueError, match="none, arm, all"):
        pa.table(JournalLog(store, propensity="some"))
    with pytest.raises(NotFound):
        pa.table(JournalLog(store, "banner"))


def test_the_commands_read_a_journal(tmp_path, capsys) -> None:
    shop = str(tmp_path / "shop.db")
    played(shop, 500)
    assert main(["drift", shop]) == 0
    out = capsys.readouterr().out
    assert "shop.db: 497 events, 2 arms, 8.27 h" in out
    played(shop, 3, name="other")
    assert main(["drift", shop]) == 2
    said = capsys.readouterr().err
    assert "write the name of one after the journal" in said
    assert "button, other" in said
    assert main(["drift", shop, "button"]) == 0
    assert "button: 497 events" in capsys.readouterr().out
    with pytest.raises(NotFound, match="There is no bandit 'missing'"):
        Log(shop, bandit="missing")


def test_a_file_that_is_not_a_journal_is_refused_and_not_changed(tmp_path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="journal"):
        Log(str(path))
    assert path.read_bytes() == before
    path.write_text("time,arm\n")
    with pytest.raises(ValueError, match=r"format of .* is not known"):
        Log(str(path))
    with pytest.raises(ValueError, match="This log is not a journal"):
        Log({"time": [1, 2], "arm": ["a", "b"], "reward": [0, 1]}, propensity="uniform", bandit="button")


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """A journal whose arms came and went: c is added after 150 of 450 decisions, a is retired after 300."""
    folder = tmp_path_factory.mktemp("changed")
    rng, clock = np.random.default_rng(1), Clock()
    with Bandit.open(folder / "log.db", "b", DiscountedTS(), ["a", "b"], floor=0.5, seed=1, clock=clock) as bandit:
        for n in range(450):
            clock.now += MINUTE
            if n == 150:
                bandit.add_arm("c")
            if n == 300:
                bandit.retire_arm("a")
            decision = bandit.decide(f"d{n}")
            bandit.reward(decision.id, float(rng.random() < {"a": 0.5, "b": 0.4, "c": 0.6}[decision.arm]))
    for ending in ("csv", "jsonl", "parquet"):
        export(folder / "log.db", folder / f"log.{ending}", propensity="all")
    return folder


@pytest.mark.parametrize("ending", ["db", "csv", "jsonl", "parquet"])
def test_arms_that_came_and_went_are_available_when_they_were_active(changed, ending) -> None:
    log = Log(str(changed / f"log.{ending}"))
    assert log.arms == ["a", "b", "c"]
    allowed = log.menus[log.whole().menu]
    assert np.array_equal(allowed, np.repeat([[1, 1, 0], [1, 1, 1], [0, 1, 1]], 150, axis=0).astype(bool))
    assert log.summary.offered == pytest.approx([2 / 3, 1.0, 2 / 3])
    assert not any("propensit" in text for text in log.summary.warnings)
    assert drift(log).scales
    if ending != "db":  # the same log gives the same answers
        journal = Log(str(changed / "log.db")).whole()
        assert all(np.allclose(mine, yours) for mine, yours in zip(log.whole(), journal, strict=True))
    else:
        line = replay(log, "uniform", own=False, compiled=False).lines[1]
        assert line.value.low < 0.5 < line.value.high


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_probabilities_of_all_arms_come_back_from_a_file(changed, ending) -> None:
    table = pytest.importorskip("pandas")
    read = {"csv": table.read_csv, "parquet": table.read_parquet}.get(
        ending, lambda path: table.read_json(path, lines=True)
    )
    frame = read(changed / f"log.{ending}")
    assert frame["p_a"][:300][frame["how"] != "first"].min() > 0.0  # a first try takes an arm without any reward
    assert frame["p_a"][300:].max() == frame["p_c"][:150].max() == 0.0
    assert np.allclose(frame[["p_a", "p_b", "p_c"]].sum(axis=1), 1.0, atol=1e-9)


def test_a_log_stays_as_it_was_read_while_its_journal_goes_on(changed, tmp_path, monkeypatch) -> None:
    path = tmp_path / "copy.db"
    path.write_bytes((changed / "log.db").read_bytes())
    short = Log(str(path))
    monkeypatch.setattr("driftbandit.logs.read.PIECE", 64)
    log = Log(str(path))
    with Bandit.open(path, "b") as bandit:  # it goes on meanwhile
        bandit.reward(bandit.decide("later").id, 1.0)
    assert log.n == short.n == 450
    assert all(np.array_equal(mine, yours) for mine, yours in zip(log.whole(), short.whole(), strict=True))


def test_a_journal_of_successes_only_is_refused_in_a_sentence(tmp_path) -> None:
    """10,000 decisions and 1,006 rewards, all of them 1, produced no word."""
    rng = np.random.default_rng(0)
    with Bandit.open(tmp_path / "one.db", "b", DiscountedTS(), ["a", "b"], seed=1) as bandit:
        for n in range(20):
            made = bandit.decide_many([f"{n}-{k}" for k in range(50)])
            bandit.reward_many([(one.id, 1.0) for one in made if rng.random() < 0.1])
    log = Log(tmp_path / "one.db")
    assert log.n + log.summary.left_out == 1000
    for ask in (drift, replay):
        with pytest.raises(ValueError, match="only successes seem to be reported, so every arm looks perfect"):
            ask(log)


def test_where_no_arm_came_or_went_nothing_is_said_of_what_was_available(store, tmp_path) -> None:
    played(store, 60)
    export(store, tmp_path / "log.jsonl")
    assert all(json.loads(line)["available"] is None for line in (tmp_path / "log.jsonl").read_text().splitlines())


def test_an_arm_added_while_the_journal_is_read_ends_the_log_there(tmp_path) -> None:
    with Bandit.open(tmp_path / "j.db", "b", DiscountedTS(), ["a", "b"], seed=1) as bandit:
        for _ in range(6):
            bandit.decide_many(1000)
        journal = reading(tmp_path / "j.db")
        rows = log_rows(journal, 1, "none")
        first = next(rows)
        bandit.add_arm("c")
        bandit.decide("late")
        assert len([first, *rows]) == 6000
        journal.close()


def test_decisions_from_one_view_are_integrated_once_with_the_same_result(tmp_path, monkeypatch) -> None:
    path, asked = tmp_path / "a.db", []
    with Bandit.open(path, "x", arms=["a", "b", "c"], seed=1, first=False, holdback=0.1, baseline="a") as bandit:
        for n in range(6):
            made = bandit.decide_many([f"{n}-{k}" for k in range(20)])
            some = bandit.decide_many([f"{n}-some-{k}" for k in range(20)], available=["b", "c"])
            bandit.reward_many([(one.id, float(one.arm == "b")) for one in (made + some)[::7]])
    journal = reading(path)
    single = {made.row.id: made.fold.probabilities(made.allowed, made.row.at) for made in Walk(journal, 1).decisions()}
    before = DriftTS.belief
    monkeypatch.setattr(DriftTS, "belief", lambda self, state: asked.append(1) or before(self, state))
    found = list(with_probabilities(Walk(journal, 1).decisions()))
    journal.close()
    assert len(found) == len(single) == 240
    assert len(asked) == 12
    for row, _, values, error in found:
        assert values == pytest.approx(single[row.id][0], abs=1e-8)
        assert error == pytest.approx(single[row.id][1], abs=1e-8)
