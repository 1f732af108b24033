"""Group commit: who is woken, by whom, and what happens when somebody is not there any more."""

import asyncio
import threading
import time

import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.bandit.audit import audit
from driftbandit.bandit.records import DecisionRow
from driftbandit.bandit.sqlite import SQLiteCommit
from driftbandit.errors import StoreError


def asked(bandit, id: str):
    return bandit._writer.submit([DecisionRow(id, bandit._replica.now(), 0, 0, 1, None, bandit=1)])


def slowed(bandit, monkeypatch, seconds: float = 0.05, error: Exception | None = None) -> None:
    """Every commit takes this long, so that further asks gather for the next."""
    commit = bandit._journal.commit

    def slow(asks):
        time.sleep(seconds)
        if error is not None:
            raise error
        return commit(asks)

    monkeypatch.setattr(bandit._journal, "commit", slow)


def test_threads_that_wait_for_one_commit_all_go_on(tmp_path, monkeypatch) -> None:
    with Bandit.open(tmp_path / "a.db", "b", DiscountedTS(), 2) as bandit:
        slowed(bandit, monkeypatch)
        before, found = bandit._writer.commits, []
        threads = [threading.Thread(target=lambda n=n: found.append(asked(bandit, f"d{n}").wait())) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5.0)
        assert sorted(rows[0].id for rows in found) == sorted(f"d{n}" for n in range(20))
        assert bandit._writer.commits - before <= 4


def test_an_interrupted_thread_does_not_block_others(tmp_path, monkeypatch) -> None:
    """The chain of those who wake each other is broken where a thread is gone; the next one wakes by the time."""
    with Bandit.open(tmp_path / "a.db", "b", DiscountedTS(), 2) as bandit:
        slowed(bandit, monkeypatch)
        first = asked(bandit, "first")
        time.sleep(0.01)
        lost, other = asked(bandit, "lost"), asked(bandit, "other")
        lost.waits = other.waits = True  # as if both slept, and the first of them had been interrupted since
        first.wait()
        began = time.monotonic()
        assert other.wait()[0].id == "other"
        assert time.monotonic() - began < 2.0


def test_a_commit_that_fails_is_reported_to_every_caller_in_it(tmp_path, monkeypatch) -> None:
    with Bandit.open(tmp_path / "a.db", "b", DiscountedTS(), 2) as bandit:
        with monkeypatch.context() as patch:
            slowed(bandit, patch, error=StoreError("The disk is full."))
            found = []

            def work(n: int) -> None:
                try:
                    asked(bandit, f"d{n}").wait()
                except StoreError as error:
                    found.append(str(error))

            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(5.0)
            assert found == ["The disk is full."] * 8
        assert bandit.health()["failed"] == 8
        assert bandit.decide("d0").id == "d0"


def test_a_single_caller_writes_in_its_own_thread_and_many_callers_do_not(tmp_path, monkeypatch) -> None:
    with Bandit.open(tmp_path / "a.db", "b", DiscountedTS(), 2) as bandit:
        commit, who = bandit._journal.commit, []

        def noted(asks):
            who.append((threading.current_thread().name, len(asks)))
            time.sleep(0.01)
            return commit(asks)

        monkeypatch.setattr(bandit._journal, "commit", noted)
        bandit.decide()
        bandit.decide("x")
        assert who == [("MainThread", 1)] * 2
        threads = [threading.Thread(target=bandit.decide, name=f"caller {n}") for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5.0)
        groups = [size for name, size in who[2:] if name == "driftbandit-writer"]
        assert sum(groups) >= 10
        assert max(groups) >= 2


def test_a_request_that_cannot_be_met_fails_without_the_others(tmp_path, monkeypatch) -> None:
    with Bandit.open(tmp_path / "a.db", "b", DiscountedTS(), ["x", "y"]) as bandit:
        slowed(bandit, monkeypatch)
        found = {}

        def work(n: int) -> None:
            try:
                found[n] = bandit.decide(f"d{n}", available=["x"] if n % 4 else ["z"]).arm
            except ValueError as error:
                found[n] = str(error)[:7]

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5.0)
        assert found == {n: "x" if n % 4 else "Arm 'z'" for n in range(16)}
        assert bandit.health()["decisions"] == 12
        assert bandit.health()["queued"] == 0


@pytest.mark.parametrize("written", [False, True])
def test_an_interrupt_in_a_lone_commit_harms_nothing(tmp_path, monkeypatch, written: bool) -> None:
    path = tmp_path / "a.db"
    with Bandit.open(path, "b", DiscountedTS(), 2) as bandit:
        bandit.decide("d0")
        write = SQLiteCommit._insert_decisions

        def interrupted(group, *what):
            if written:
                write(group, *what)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(SQLiteCommit, "_insert_decisions", interrupted)
            with pytest.raises(KeyboardInterrupt):
                bandit.decide("d1")
        assert [bandit.decide(f"d{n}").id for n in range(1, 4)] == ["d1", "d2", "d3"]
        bandit.reward("d1", 1.0)
    assert [report.differences for report in audit(path)] == [[]]


def test_closing_while_threads_decide_leaves_no_thread_waiting(tmp_path) -> None:
    path = tmp_path / "a.db"
    bandit = Bandit.open(path, "b", DiscountedTS(), 2)
    made, refused = [], []

    def work() -> None:
        try:
            while True:
                made.append(bandit.decide().id)
        except StoreError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    bandit.close()
    for thread in threads:
        thread.join(5.0)
    assert refused == ["This bandit is closed; open it again."] * 16
    with Bandit.open(path, "b") as again:
        assert again.health()["decisions"] >= len(set(made)) == len(made)
    assert [report.differences for report in audit(path)] == [[]]


def test_a_thousand_coroutines_share_a_few_commits(tmp_path) -> None:
    with Bandit.open(tmp_path / "a.db", "b", DiscountedTS(), 2) as bandit:

        async def all_of_them():
            made = await asyncio.gather(*(bandit.adecide() for _ in range(1000)))
            return await asyncio.gather(*(bandit.areward(decision.id, 1.0) for decision in made))

        before = bandit._writer.commits
        assert asyncio.run(all_of_them()) == ["learned"] * 1000
        assert bandit._writer.commits - before < 100
        assert bandit._fold.player.learned == 1000


def test_an_event_loop_that_ended_early_does_not_stop_other_callers(tmp_path, monkeypatch) -> None:
    async def given_up(bandit):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(bandit.adecide("d1"), 0.01)

    with Bandit.open(tmp_path / "a.db", "b", DiscountedTS(), 2) as bandit:
        with monkeypatch.context() as patch:
            slowed(bandit, patch, 0.1)
            asyncio.run(given_up(bandit))
            time.sleep(0.15)
        assert bandit.reward("d1", 1.0) == "learned"
        assert bandit.decide("d2").id == "d2"
