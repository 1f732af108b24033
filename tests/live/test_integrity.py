"""What a journal says about itself: altered and missing rows, the arithmetic that wrote it, a clock far ahead."""

import contextlib
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.bandit import StoreError
from driftbandit.bandit.audit import audit
from driftbandit.bandit.opening import is_url
from driftbandit.bandit.reports import View
from driftbandit.errors import DamagedJournal, JournalLocked
from live.button import HOUR, Clock, assert_proved, opened, play
from tests.drill.files import small_disk


def alter(store: str, sql: str) -> None:
    if is_url(store):
        import psycopg

        with psycopg.connect(store, autocommit=True, options="-c search_path=driftbandit") as connection:
            assert connection.execute(sql).rowcount > 0
    else:
        with sqlite3.connect(store) as file:
            assert file.execute(sql).rowcount > 0
        file.close()


HARMS = {
    "event altered": "UPDATE event SET value = 1 - value WHERE decision = 'd25'",
    "last event deleted": "DELETE FROM event WHERE decision = 'd29'",
    "event in the middle deleted": "DELETE FROM event WHERE decision = 'd27'",
    "event swapped": "UPDATE event SET decision = 'x' || decision WHERE decision = 'd28'",
}


@pytest.mark.parametrize("snapshots", [True, False])
@pytest.mark.parametrize("harm", HARMS)
def test_opening_and_viewing_notice_altered_and_missing_events(harm, snapshots, store) -> None:
    with opened(store, snapshot_every=10 if snapshots else 1000) as bandit:
        play(bandit, 30)  # and one event that makes it
    alter(store, f"DELETE FROM snapshot WHERE n > {20 if snapshots else 0}")
    alter(store, HARMS[harm])
    for read in (lambda: opened(store), lambda: View(store, "button")):
        with pytest.raises(DamagedJournal, match="journal is damaged") as caught:
            read()
        assert "\n" not in str(caught.value)
    assert any(report.differences for report in audit(store))


def test_an_event_deleted_before_the_last_snapshot_is_found_by_the_audit(store) -> None:
    with opened(store, snapshot_every=10) as bandit:
        play(bandit, 30)
    alter(store, "DELETE FROM event WHERE decision = 'd3'")
    assert any("has 30 events, and 31 were written" in text for one in audit(store) for text in one.differences)


def test_an_altered_snapshot_is_not_used_and_leaves_a_line(store, caplog) -> None:
    with opened(store, snapshot_every=10) as bandit:
        play(bandit, 30)
        fingerprint = bandit.fingerprint()
    alter(store, "UPDATE snapshot SET body = replace(body, '\"learned\": 29', '\"learned\": 28') WHERE n = 30")
    with caplog.at_level(logging.WARNING), opened(store) as bandit:
        assert bandit.fingerprint() == fingerprint
    assert "snapshot after 30 events of bandit 1 was altered" in caplog.text
    assert any("snapshot after 30 events" in text for report in audit(store) for text in report.differences)


def test_an_altered_or_deleted_decision_is_noticed_where_it_is_read(store) -> None:
    with opened(store, wait="1 h", clock=Clock()) as bandit:
        play(bandit, 5)
        bandit.decide("a")
        bandit.decide("b")
        bandit.decide("c")
    alter(store, "UPDATE decision SET slot = 1 - slot WHERE id = 'a' AND slot < 2 OR id = 'a' AND slot = 2")
    with opened(store, clock=Clock()) as bandit:
        assert "altered" in str(bandit.reward_many([("a", 1.0), ("b", 1.0)])[0])
        assert bandit.reward("b", 1.0) == "again"  # the others are not affected
        with pytest.raises(DamagedJournal, match="decision a"):
            bandit.outcome("a")
    assert any("decision" in text and "altered" in text for one in audit(store) for text in one.differences)
    alter(store, "DELETE FROM decision WHERE id = 'c'")
    assert any("7 decisions, and 8 were written" in text for one in audit(store) for text in one.differences)


def test_default_rewards_are_not_given_to_altered_decisions(store, caplog) -> None:
    clock = Clock()
    with opened(store, wait="1 h", clock=clock) as bandit:
        bandit.decide("a")
        bandit.decide("b")
    alter(store, "UPDATE decision SET known = known + 1 WHERE id = 'a'")
    clock.now += 2 * HOUR
    with opened(store, clock=clock) as bandit:
        bandit.settle()
        assert bandit.outcome("b").kind == "default"
    assert "decision a of bandit 1 was altered" in caplog.text


# ---- arithmetic ------------------------------------------------------------------------------------------------------


@pytest.fixture
def another_version(monkeypatch):
    """The policy as a later version computes it."""

    def change() -> None:
        learn = DiscountedTS.learn

        def other(self, state: Any, t: int, arm: Any, reward: Any) -> None:
            learn(self, state, t, arm, 0.9 * reward)

        monkeypatch.setattr(DiscountedTS, "learn", other)
        monkeypatch.setattr(DiscountedTS, "arithmetic", 2, raising=False)

    return change


def test_other_arithmetic_is_marked_and_each_stretch_is_proved_or_named(store, another_version, caplog) -> None:
    with opened(store, snapshot_every=10) as bandit:
        play(bandit, 35)
        assert bandit.health()["arithmetic"] == "DiscountedTS 1"
    assert_proved(store)
    another_version()
    with caplog.at_level(logging.WARNING), opened(store, snapshot_every=10) as bandit:
        assert "from event 37 on, DiscountedTS 2 decides" in caplog.text
        assert "DiscountedTS 2 decides" in bandit.health()["note"]
        assert bandit.changes()[-1]["what"] == "arithmetic DiscountedTS 1 -> DiscountedTS 2"
        play(bandit, 20, first=35)
        fingerprint = bandit.fingerprint()
    (report,) = audit(store)
    assert report.differences == []
    assert len(report.unproved) == 1
    assert report.unproved[0].startswith("35 decisions after 1 to ")
    caplog.clear()
    with opened(store) as bandit:  # marked once
        assert bandit.fingerprint() == fingerprint
        assert bandit.health()["note"] == ""
        assert not caplog.records
    alter(store, "UPDATE decision SET slot = (slot + 1) % 3 WHERE id = 'd50'")
    assert any("d50" in text for one in audit(store) for text in one.differences)


def test_stretches_of_other_arithmetic_are_named_one_by_one(tmp_path, monkeypatch) -> None:
    """A version was tried twice and taken back: what lies between the two stretches is proved."""
    path = tmp_path / "a.db"
    for first in (0, 20):
        with opened(path) as bandit:
            play(bandit, 10, first)
        with monkeypatch.context() as other:
            other.setattr(DiscountedTS, "arithmetic", 2, raising=False)
            with opened(path) as bandit:
                play(bandit, 10, first + 10)
    (report,) = audit(path)
    assert report.differences == []
    assert [text.split(" by ")[0] for text in report.unproved] == [
        "10 decisions after 12 to 21 events",
        "10 decisions after 34 to 43 events",
    ]


def test_a_process_with_the_former_arithmetic_stops_deciding(postgres, another_version) -> None:
    """Its decisions could not be proved."""
    code = (
        "import sys\nfrom driftbandit import Bandit\n"
        f"bandit = Bandit.open({postgres!r}, 'button')\n"
        "bandit.decide(), print('open', flush=True)\n"
        "sys.stdin.readline(), bandit.refresh()\n"
    )
    opened(postgres).close()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        another_version()
        with opened(postgres) as bandit:
            bandit.decide()
        _, errors = process.communicate("\n", timeout=30)
    assert "the journal is decided by DiscountedTS 2 from here on, and this process has DiscountedTS 1" in errors


# ---- the clock -------------------------------------------------------------------------------------------------------


def test_after_a_clock_far_ahead_time_goes_on_on_request(store) -> None:
    clock = Clock()
    with opened(store, clock=clock, half_life="1 h", wait="1 h") as bandit:
        play(bandit, 5)
        assert bandit.resume_clock() == timedelta(0)
        clock.now += 10 * 365 * 24 * HOUR
        leap = bandit.decide("leap").microseconds
        clock.now -= 10 * 365 * 24 * HOUR
        with pytest.warns(RuntimeWarning, match="driftbandit live clock"):
            assert bandit.decide("still").microseconds == leap
        ahead = bandit.resume_clock(who="Ada")
        assert ahead.total_seconds() == pytest.approx(10 * 365 * 24 * 3600, rel=1e-6)
        assert bandit.health()["clock_ahead"] == ahead
        assert (bandit.changes()[-1]["what"], bandit.changes()[-1]["who"]) == ("clock ahead 0 -> 3650 d", "Ada")
        clock.now += 2 * HOUR
        later = bandit.decide("later")
        assert later.microseconds == leap + 2 * HOUR
        bandit.settle()
        assert bandit.outcome("leap").kind == "default"  # it has waited for its reward
        assert bandit.reward("later", 1.0) == "waiting"
    assert_proved(store)
    clock.now += HOUR
    with opened(store, clock=clock) as again:
        assert again.decide("again").microseconds == leap + 3 * HOUR
    assert_proved(store)


def test_the_command_resumes_the_clock(tmp_path) -> None:
    path = str(tmp_path / "j.db")
    with opened(path, clock=Clock((time.time_ns() // 1000) + 1000 * HOUR)) as bandit:
        play(bandit, 2)
    words = [sys.executable, "-W", "ignore", "-m", "driftbandit", "live", "clock", path, "button"]
    for text in ("ahead of the clock", "nothing was written"):
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        assert text in done.stdout
    with Bandit.open(path, "button") as bandit:
        one = bandit.decide().at
        time.sleep(0.01)
        assert bandit.decide().at > one
    assert_proved(path)


# ---- the rest --------------------------------------------------------------------------------------------------------


def test_a_small_bandit_has_a_snapshot_after_an_hour(store) -> None:
    clock = Clock()
    with opened(store, clock=clock) as bandit:
        for n in range(10):
            clock.now += HOUR // 4
            play(bandit, 1, first=n)
        bandit.fix("red")
    with opened(store, clock=clock) as bandit:
        kept = [n for n, _ in bandit._journal.snapshots(1)]
    assert 2 <= len(kept) <= 3
    assert max(kept) >= 8
    assert_proved(store)


def test_a_full_disk_leaves_one_line_and_its_end_another(caplog) -> None:
    with small_disk(4) as (folder, real):
        if not real:
            pytest.skip("no small disk can be made here")
        with opened(f"{folder}/j.db") as bandit:
            play(bandit, 2)
            ballast = f"{folder}/ballast"
            with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(b"x" * 4096):
                    pass
            refused = 0
            for _ in range(200):
                try:
                    bandit.decide_many(100)
                except StoreError:
                    refused += 1
                if refused == 3:
                    break
            assert refused == 3
            assert [record.levelname for record in caplog.records] == ["ERROR"]
            assert "is full" in caplog.text
            os.unlink(ballast)
            bandit.decide()
            assert "can be written again" in caplog.text
        assert_proved(f"{folder}/j.db")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
def test_a_read_only_backup_can_be_audited(tmp_path) -> None:
    with opened(tmp_path / "j.db") as bandit:
        play(bandit, 5)
    with small_disk(8) as (folder, real):
        if not real:
            pytest.skip("no small disk can be made here")
        shutil.copyfile(tmp_path / "j.db", f"{folder}/backup.db")
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        assert_proved(f"{folder}/backup.db")
        with View(f"{folder}/backup.db", "button") as view:
            assert view.health()["rewards"] == 5
        with pytest.raises(StoreError):
            opened(f"{folder}/backup.db")


def test_a_locked_journal_names_the_ways_to_share_it(tmp_path) -> None:
    code = f"from driftbandit import Bandit\nBandit.open({str(tmp_path / 'j.db')!r}, 'button')"
    with opened(tmp_path / "j.db"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert JournalLocked.__name__ in done.stderr
    assert "driftbandit serve" in done.stderr
    assert "postgresql://" in done.stderr
