"""Archiving a bandit: it decides no more, leaves the lists, comes back within a day, and is deleted afterwards."""

from contextlib import closing

import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.asks import PURGE, SetNote, Within
from driftbandit.bandit.opening import reading, writing
from driftbandit.bandit.records import DAY
from driftbandit.bandit.retention import purge
from driftbandit.errors import Archived, NotFound
from live.button import Clock, assert_proved, opened, play


def names(store) -> list[str]:
    with closing(reading(store)) as journal:
        return journal.names()


def test_an_archived_bandit_decides_no_more_and_comes_back_within_a_day(store) -> None:
    with opened(store, "a", clock=(clock := Clock())) as bandit, opened(store, "b"):
        play(bandit, 5)
        decision = bandit.decide()
        bandit.archive(who="Ada")
        bandit.archive()
        with pytest.raises(Archived, match="archived"):
            bandit.decide()
        assert bandit.reward(decision.id, 1.0) == "learned"
        assert names(store) == ["b"]
        clock.now += DAY - 1_000_000
        bandit.unarchive()
        assert bandit.decide().arm
        assert names(store) == ["a", "b"]
        assert [change["who"] for change in bandit.changes()][-2:] == ["Ada", ""]
    assert_proved(store)


def test_it_is_exported_and_deleted_after_a_day_and_its_name_is_free(store, tmp_path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    clock = Clock()
    with opened(store, "a", clock=clock) as bandit, opened(store, "b") as other:
        play(bandit, 5)
        play(other, 5)
        bandit.archive()
        assert not bandit.prune(tmp_path).deleted
        clock.now += DAY
        with pytest.raises(Archived, match="day ago"):
            bandit.unarchive()
        assert "folder" in bandit.prune().note
        done = bandit.prune(tmp_path)
        assert done.deleted
        assert parquet.read_table(done.files[0]).num_rows == 5
        with pytest.raises(Exception, match="deleted"):
            bandit.decide()
    with closing(reading(store)) as journal:
        assert list(journal.bandits()) == ["b"]
        assert journal.notes(PURGE) == []
        assert journal.check(journal.number("b")) == []
    with pytest.raises(NotFound):
        Bandit.open(store, "a")
    with opened(store, "a") as bandit:
        play(bandit, 3)
        assert bandit.health()["decisions"] == 3
    assert_proved(store)


def test_a_deletion_that_was_interrupted_is_finished(store) -> None:
    with opened(store, "a") as bandit:
        play(bandit, 20)
        bandit.archive()
    held = writing(store)
    try:
        number = held.journal.number("a")
        held.writer.submit([SetNote(PURGE + "a", "a", first=False), Within(number, "purge", ("a", 7))]).wait()
        held.writer.submit([Within(number, "purge", ("a", 7))]).wait()
        for name in held.journal.notes(PURGE):
            purge(held.journal, held.writer, name)
        purge(held.journal, held.writer, "a")  # once more does nothing
        assert held.journal.bandits() == {}
        assert held.journal.check(number) == []
    finally:
        held.release()
