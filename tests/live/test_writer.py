"""Group commit: who is woken, by whom, and what happens when somebody is not there any more."""

import threading
import time

from driftbandit import Bandit, DiscountedTS
from driftbandit.live.errors import StoreError
from driftbandit.live.journal import Decide
from driftbandit.live.records import DecisionRow


def asked(bandit, id: str):
    return bandit._writer.submit([Decide(1, DecisionRow(id, bandit._replica.now(), 0, 0, 1, None))])


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
        crew = [threading.Thread(target=lambda n=n: found.append(asked(bandit, f"d{n}").wait())) for n in range(20)]
        for member in crew:
            member.start()
        for member in crew:
            member.join(5.0)
        assert sorted(rows[0].id for rows in found) == sorted(f"d{n}" for n in range(20))
        assert bandit._writer.commits - before <= 4


def test_a_thread_that_was_interrupted_keeps_nobody_asleep(tmp_path, monkeypatch) -> None:
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


def test_a_commit_that_fails_is_told_to_everybody_in_it(tmp_path, monkeypatch) -> None:
    with Bandit.open(tmp_path / "a.db", "b", DiscountedTS(), 2) as bandit:
        with monkeypatch.context() as patch:
            slowed(bandit, patch, error=StoreError("The disk is full."))
            found = []

            def work(n: int) -> None:
                try:
                    asked(bandit, f"d{n}").wait()
                except StoreError as error:
                    found.append(str(error))

            crew = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for member in crew:
                member.start()
            for member in crew:
                member.join(5.0)
            assert found == ["The disk is full."] * 8
        assert bandit.health()["failed"] == 8
        assert bandit.decide("d0").id == "d0"
