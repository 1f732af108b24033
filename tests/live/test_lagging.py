"""A process that has not yet read what another has written: its calls have the same answers as if it had."""

import asyncio

import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.reports import View
from driftbandit.errors import RecordConflict
from live.button import HOUR, Clock, assert_proved, opened


@pytest.fixture
def pair(postgres):
    """Two processes' bandits, of which the first reads nothing by itself."""
    clock = Clock()
    with opened(postgres, wait="1 h", clock=clock) as behind, Bandit.open(postgres, "button", clock=clock) as ahead:
        behind._journal.unfollow(behind._replica)
        behind._journal.follow(ahead._replica)
        yield postgres, behind, ahead, clock


def test_an_id_erased_elsewhere_is_still_the_same_decision(pair) -> None:
    store, behind, ahead, _ = pair
    first = ahead.decide("d", available=["red"])
    ahead.reward("d", 1.0)
    ahead.fix("blue")
    ahead.erase("d")
    again = behind.decide("d", available=["red"])
    assert (again.id, again.arm, again.at) == ("d", "red", first.at)
    assert [one.arm for one in behind.decide_many(["new", "d"], available=["red"])] == ["red", "red"]
    with pytest.raises(RecordConflict):
        behind.decide("d", available=["green"])
    assert behind.reward("d", 1.0) == "again"
    with pytest.raises(RecordConflict):
        behind.reward("d", 0.0)
    assert behind.health()["decisions"] == 2
    assert_proved(store)


@pytest.mark.parametrize("part", [None, "p"])
def test_a_reward_of_a_decision_erased_elsewhere_does_not_bring_its_id_back(pair, part) -> None:
    store, behind, ahead, clock = pair
    if part is not None:
        ahead.reward(ahead.decide("other"), 0.5, add=True)
        behind.refresh()
    behind.decide("d")
    ahead.erase("d")
    assert behind.reward("d", 1.0, add=part is not None, part=part) == "waiting"
    assert behind.reward("d", 1.0, add=part is not None, part=part) == "again"
    rows = behind._journal._rows("SELECT decision FROM @event UNION SELECT id FROM @decision")
    assert not [id for (id,) in rows if id.startswith("d")]
    clock.now += 2 * HOUR
    behind.settle()
    assert next(one for one in behind.recent() if one.decision.id.startswith("=")).reward == 1.0
    assert_proved(store)


@pytest.mark.parametrize("known", [True, False])
def test_a_whole_reward_after_a_part_elsewhere_is_refused(pair, known) -> None:
    store, behind, ahead, clock = pair
    (behind if known else ahead).decide("d")
    behind.decide("e")
    assert ahead.reward("d", 0.5, add=True, part="p") == "waiting"
    found = behind.reward_many([("d", 1.0), ("e", 1.0)])
    assert [isinstance(found[0], RecordConflict), found[1]] == [True, "waiting"]
    clock.now += 2 * HOUR
    behind.settle()
    assert (behind.outcome("d").reward, behind.outcome("e").reward) == (0.5, 1.0)
    assert_proved(store)


def test_a_part_after_a_whole_reward_elsewhere_is_refused(pair) -> None:
    store, behind, ahead, _ = pair
    ahead.reward(ahead.decide("d"), 1.0)
    with pytest.raises(RecordConflict):
        behind.reward("d", 0.5, add=True)
    assert asyncio.run(behind.areward("d", 1.0)) == "again"
    assert_proved(store)


CALLS = {
    "decide": lambda bandit: bandit.decide("d").arm,
    "decide many": lambda bandit: bandit.decide_many(["e", "d"])[1].arm,
    "a coroutine": lambda bandit: asyncio.run(bandit.adecide("d")).arm,
    "outcome": lambda bandit: bandit.outcome("d").decision.arm,
    "recent": lambda bandit: next(one.decision.arm for one in bandit.recent() if one.decision.id == "d"),
    "history": lambda bandit: bandit.history().arms[-1],
}


@pytest.mark.parametrize("call", CALLS)
def test_an_arm_added_elsewhere_is_known_when_it_is_met(pair, call) -> None:
    _, behind, ahead, _ = pair
    behind.decide("before")
    ahead.add_arm("new")
    ahead.fix("new")
    ahead.decide("d")
    assert CALLS[call](behind) == "new"


def test_a_view_of_a_file_meets_an_arm_added_since(tmp_path) -> None:
    path = str(tmp_path / "journal.db")
    for call in ("outcome", "recent", "history"):
        with opened(path, call) as bandit, View(path, call) as view:
            bandit.add_arm("new")
            bandit.fix("new")
            bandit.decide("d")
            assert CALLS[call](view) == "new"
