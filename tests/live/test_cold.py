"""Opening a bandit that has been closed: from a recent snapshot, however the process ended."""

import os
import subprocess
import sys

import pytest

from driftbandit import Bandit
from driftbandit.bandit.replica import latest, snapshot_step
from live.button import assert_proved, opened, play


def kept(store) -> list[int]:
    with opened(store) as bandit:
        return [n for n, _ in bandit._journal.snapshots(1)]


def test_steps_grow_with_the_journal_up_to_the_limit() -> None:
    assert [snapshot_step(n, 10_000) for n in (1, 100, 1000, 10_000, 100_000, 10**7)] == [32, 32, 32, 512, 4096, 10_000]
    assert all(snapshot_step(n, 7) == 7 for n in (1, 100, 10**6))


def test_closing_leaves_a_snapshot_of_everything(store) -> None:
    with opened(store) as bandit:
        play(bandit, 20)
        state = bandit.fingerprint()
    assert kept(store) == [21]
    with opened(store) as bandit:
        assert bandit.fingerprint() == state
        play(bandit, 3, first=20)
    assert kept(store) == [21]  # three events are folded faster than a snapshot is written
    assert_proved(store)


def test_a_killed_process_leaves_a_recent_snapshot(store) -> None:
    code = f"""
import os, sys
sys.path.insert(0, {os.path.dirname(os.path.dirname(__file__))!r})
from live.button import opened, play
bandit = opened({str(store)!r})
play(bandit, 150)
bandit.decide()
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    with Bandit.open(store, "button") as bandit:
        assert bandit.events == 151
        fold, _ = latest(bandit._journal, 1, bandit._replica._make)
        assert 151 - fold.n < 64
    assert_proved(store)


@pytest.mark.parametrize("default", [0.0, 0.5])
def test_what_waits_is_settled_when_the_bandit_is_opened_again(default, store) -> None:
    import time

    with opened(store, wait="1 s", default=default) as bandit:
        for n in range(10):
            bandit.decide(f"d{n}")
    time.sleep(1.2)
    with Bandit.open(store, "button") as bandit:
        bandit.refresh()
        assert bandit.health()["defaults"] == 10
    assert_proved(store)
