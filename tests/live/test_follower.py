"""A process reads what others have written to a PostgreSQL journal: of the bandits that it has open, by one query."""

import contextlib
import time

import psycopg

from driftbandit.bandit import opening
from live.button import opened


@contextlib.contextmanager
def two_processes(monkeypatch, postgres, count):
    """The same bandits twice, as two processes would have them."""
    with contextlib.ExitStack() as stack:
        ours = [stack.enter_context(opened(postgres, f"b{n}")) for n in range(count)]
        monkeypatch.setattr(opening, "_opened", {})
        yield ours, [stack.enter_context(opened(postgres, f"b{n}")) for n in range(count)]


def wait_until(condition) -> float:
    began = time.monotonic()
    while not condition() and time.monotonic() - began < 10.0:
        time.sleep(0.002)
    return time.monotonic() - began


def test_rewards_of_many_bandits_arrive_by_few_queries(postgres, monkeypatch) -> None:
    with two_processes(monkeypatch, postgres, 20) as (ours, theirs):
        time.sleep(0.5)
        journal, looks = theirs[0]._journal, []
        news = journal.news
        monkeypatch.setattr(journal, "news", lambda cursors, *rest: looks.append(set(cursors)) or news(cursors, *rest))
        ids = [bandit.decide().id for bandit in ours[:10]]
        for bandit, id in zip(ours, ids, strict=False):
            bandit.reward(id, 1.0)
        assert wait_until(lambda: all(bandit.events == 2 for bandit in theirs[:10])) < 2.0
        named = [look for look in looks if len(look) < 20]  # the others look at every open bandit, now and then
        assert set().union(*named) <= {bandit._number for bandit in ours[:10]}


def test_a_notification_names_its_bandits(postgres) -> None:
    with psycopg.connect(postgres, autocommit=True) as listener, opened(postgres, "a"), opened(postgres, "b") as bandit:
        listener.execute("LISTEN driftbandit")
        bandit.reward(bandit.decide().id, 1.0)
        heard = [notice.payload for notice in listener.notifies(timeout=2.0, stop_after=1)]
    assert heard == [str(bandit._number)]


def test_every_event_is_announced_in_a_quick_succession(postgres, monkeypatch) -> None:
    """Also those that come too soon after a notification to have their own."""
    monkeypatch.setattr("driftbandit.bandit.pgcommit._POLL", 30.0)
    with two_processes(monkeypatch, postgres, 5) as (ours, theirs):
        for _ in range(10):
            for bandit in ours:
                bandit.reward(bandit.decide().id, 1.0)
        assert wait_until(lambda: all(bandit.events == 11 for bandit in theirs + ours)) < 2.0


def test_events_without_a_notification_are_found(postgres, monkeypatch) -> None:
    """As from a process that was killed before it sent one."""
    with two_processes(monkeypatch, postgres, 3) as (ours, theirs):
        time.sleep(0.5)
        monkeypatch.setattr(ours[0]._journal, "announce", lambda connection: None)
        ours[2].reward(ours[2].decide().id, 1.0)
        assert wait_until(lambda: theirs[2].events == 2 and ours[2].events == 2) < 3.0


def test_a_strange_notification_changes_nothing(postgres, monkeypatch) -> None:
    with psycopg.connect(postgres, autocommit=True) as stranger, opened(postgres) as bandit:
        for text in ("", "x", "-1", "99999999999999999999999", "1 2 drop"):
            stranger.execute("SELECT pg_notify('driftbandit', %s)", (text,))
        bandit.reward(bandit.decide().id, 1.0)
        assert wait_until(lambda: bandit.events == 2) < 2.0


def test_a_closed_bandit_is_not_read(postgres, monkeypatch) -> None:
    with two_processes(monkeypatch, postgres, 2) as (ours, theirs):
        journal = theirs[0]._journal
        theirs[1].close()
        ours[1].reward(ours[1].decide().id, 1.0)
        ours[0].reward(ours[0].decide().id, 1.0)
        assert wait_until(lambda: theirs[0].events == 2) < 2.0
        assert theirs[1].events == 1
        assert list(journal._follower._replicas) == [theirs[0]._number]
        assert theirs[0].lag == 0.0
