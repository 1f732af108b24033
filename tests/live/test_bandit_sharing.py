"""A bandit shared by threads, coroutines, other bandits and other processes, and its clock."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from driftbandit.bandit import Bandit, NotFound, StoreError, opening
from driftbandit.bandit.audit import audit
from driftbandit.errors import RecordConflict
from driftbandit.policies import BetaTS
from live.button import HOUR, Clock, assert_proved, opened, play


def test_threads_share_a_bandit_and_every_call_counts(store) -> None:
    with opened(store, half_life="1 h", snapshot_every=50) as bandit:

        def work(number: int) -> None:
            for n in range(40):
                decision = bandit.decide(f"t{number}-{n}")
                bandit.reward(decision.id, float(n % 2))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bandit.refresh()
        assert bandit.health()["rewards"] == 320
        assert bandit._writer.commits < 640
    assert_proved(store)


def test_coroutines_share_a_bandit(store) -> None:
    async def main(bandit: Bandit) -> list[str]:
        async def one(n: int) -> str:
            decision = await bandit.adecide(f"d{n}")
            return await bandit.areward(decision.id, 1.0)

        several = await bandit.adecide_many(5)
        assert await bandit.areward_many({d.id: 0.0 for d in several}) == ["learned"] * 5
        return await asyncio.gather(*(one(n) for n in range(50)))

    with opened(store) as bandit:
        assert asyncio.run(main(bandit)) == ["learned"] * 50
        assert bandit._writer.commits < 60
        with pytest.raises(NotFound):
            asyncio.run(bandit.areward("missing", 1.0))


def test_several_bandits_share_one_journal(store) -> None:
    with opened(store, name="one") as one, opened(store, name="two", policy=BetaTS(), arms=2) as two:
        play(one, 5)
        decision = two.decide("d0")
        assert two.reward(decision.id, 1.0) == "learned"
        two.refresh()
        assert (one._fold.player.learned, two._fold.player.learned) == (5, 1)
    assert {report.bandit for report in audit(store)} == {"one", "two"}


def test_without_waiting_for_the_disk_everything_is_there_after_closing(tmp_path) -> None:
    store = tmp_path / "j.db"
    with opened(store, durability="none") as bandit:
        ids = {bandit.decide().id for _ in range(2000)}
    connection = sqlite3.connect(store)
    assert ids == {row[0] for row in connection.execute("SELECT id FROM decision")}
    connection.close()


def test_a_second_writing_process_is_refused_and_readers_are_not(tmp_path) -> None:
    store = str(tmp_path / "j.db")
    code = (
        "import sys\nfrom driftbandit import DiscountedTS\nfrom driftbandit.bandit import Bandit\n"
        "from driftbandit.bandit.audit import audit\nprint(audit(sys.argv[1])[0].differences)\n"
        "Bandit.open(sys.argv[1], 'button')"
    )
    with opened(store) as bandit:
        play(bandit, 3)
        done = subprocess.run([sys.executable, "-c", code, store], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n"
    last = done.stderr.strip().splitlines()[-1]
    assert "another process" in last
    assert "PostgreSQL" in last
    assert f"process {os.getpid()}" in last
    with opened(store) as bandit:
        assert bandit.health()["rewards"] == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused_with_advice_to_open_again(store) -> None:
    def child(bandit: Bandit, answers) -> None:
        try:
            bandit.decide()
        except StoreError as error:
            answers.put(str(error))

    context = multiprocessing.get_context("fork")
    with opened(store) as bandit:
        answers = context.Queue()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            process = context.Process(target=child, args=(bandit, answers))
            process.start()
        assert "forked" in answers.get(timeout=30)
        process.join(timeout=30)
        play(bandit, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_threads_are_in_the_middle_of_calls_does_not_hang(store) -> None:
    """Every lock is held by a thread that the child does not have; its calls are refused with advice to open again, it
    can close what it inherited, and does no harm to the parent by it."""
    with opened(store) as bandit:
        play(bandit, 5)
        opened_once = bandit._opened
        locks = [bandit._lock, bandit._writer._mutex, bandit._writer._leads, bandit._journal._reading, opening._lock]
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with contextlib.ExitStack() as stack:
                for lock in locks:
                    stack.enter_context(lock)
                held.set()
                done.wait(20.0)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(5.0)
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            refused = 0
            for call in (bandit.decide, lambda: bandit.reward("d0", 1.0), bandit.refresh, lambda: bandit.decide("d1")):
                try:
                    call()
                except StoreError as error:
                    refused += "forked" in str(error)
            bandit.health()
            bandit.close()
            os._exit(0 if refused == 4 else 1)
        assert os.waitpid(child, 0)[1] == 0
        done.set()
        holder.join()
        play(bandit, 5, first=5)
        assert opening._opened[bandit._journal.target] is opened_once
    assert_proved(store)


def test_a_clock_set_back_is_reported_and_not_used(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "j.db", half_life="1 h", clock=clock) as bandit:
        first = bandit.decide("a")
        clock.now -= 2 * HOUR
        with pytest.warns(RuntimeWarning, match=r"set back by 7200\.0 s"):
            second = bandit.decide("b")
        assert second.at == first.at
        assert bandit.health()["clock_set_back"].total_seconds() == 7200.0
        clock.now += 3 * HOUR
        assert bandit.decide("c").microseconds == clock.now
    clock.now -= 10 * HOUR
    with (
        Bandit.open(tmp_path / "j.db", "button", clock=clock) as bandit,
        pytest.warns(RuntimeWarning, match="set back"),
    ):
        assert bandit.decide("d").microseconds > clock.now
    assert_proved(tmp_path / "j.db")


@pytest.mark.long
def test_bandits_are_made_while_others_of_the_same_file_write(tmp_path) -> None:
    """As a service does where one client makes bandits and others decide."""
    path = tmp_path / "a.db"
    with opened(path, "busy", durability="none") as busy, ThreadPoolExecutor(1) as pool:
        done = threading.Event()

        def decide() -> None:
            while not done.is_set():
                busy.decide_many(5)

        deciding = pool.submit(decide)
        try:
            for n in range(12):
                opened(path, f"b{n}").close()
        finally:
            done.set()
        deciding.result(30)
    assert_proved(path)


def test_an_outcome_that_another_handle_wrote_is_seen_by_the_one_that_decided(store) -> None:
    """A reward of a decision that was made here is written before looking whether there is one already."""
    with Bandit.open(store, "b", arms=["red", "green"]) as one, Bandit.open(store, "b") as other:
        first, second, third = one.decide_many(3)
        assert other.reward(first.id, 1.0) == "learned"
        assert other.reward(second.id, 0.0) == "learned"
        assert one.reward(first.id, 1.0) == "again"
        answers = one.reward_many([(second.id, 1.0), (third.id, 1.0)])
        assert isinstance(answers[0], RecordConflict)
        assert answers[1] == "learned"
        assert one.reward(third.id, 1.0) == other.reward(third.id, 1.0) == "again"
        until = time.monotonic() + 5.0
        while one.health()["rewards"] < 3 and time.monotonic() < until:
            one.refresh()
        assert one.health()["rewards"] == 3
    assert_proved(store)
