"""An event that a process cannot fold: it says so and decides no more, instead of deciding from half of it."""

import time
from typing import Any, NamedTuple

import numpy as np
import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit, StoreError, opening
from driftbandit.bandit.audit import audit
from driftbandit.bandit.opening import is_url
from driftbandit.bandit.reports import View
from live.button import assert_proved


class OwnState(NamedTuple):
    pulls: Any


class Own(NamedTuple):
    """A policy of the user's, which fails at a reward of 0.5 if it is not mended."""

    mended: bool = False

    def init(self, n_arms):
        return OwnState(np.zeros(n_arms))

    def choose(self, state, t, rng):
        return t % len(state.pulls)

    def learn(self, state, t, arm, reward):
        state.pulls[arm] += 1.0
        if reward == 0.5 and not self.mended and t > 70:  # after what is played before it is taken into use
            raise ZeroDivisionError("own\nfault")


class Mended(Own):
    """The same without the fault."""

    def learn(self, state, t, arm, reward):
        state.pulls[arm] += 1.0


def test_a_policy_that_fails_to_learn_stops_its_bandit_and_goes_on_when_mended(store) -> None:
    with Bandit.open(store, "b", Own(), 2, seed=1) as bandit:
        for n in range(75):
            bandit.reward(bandit.decide(f"d{n}").id, 1.0)
        bandit.refresh()
        ids = [bandit.decide(f"e{n}").id for n in range(3)]
        assert bandit.reward_many([(ids[0], 1.0), (ids[1], 0.5), (ids[2], 1.0)]) == ["learned"] * 3  # all are written
        with pytest.raises(StoreError, match=r"cannot learn event 78 .*ZeroDivisionError: own fault.*open it again\.$"):
            bandit.refresh()
        for call in (bandit.decide, bandit.refresh, lambda: bandit.decide_many(["x", "y"]), lambda: bandit.fix(0)):
            with pytest.raises(StoreError, match="cannot learn event 78"):
                call()
        time.sleep(0.3 if is_url(store) else 0.0)  # followers of the database have looked again
        assert bandit._fold.n == 78  # and counted once
    with pytest.raises(StoreError, match="cannot learn event 78"):
        Bandit.open(store, "b", Own(), 2)
    found = [text for report in audit(store, policies={"Own": Own}) for text in report.differences]
    assert found == ["after 78 events: ZeroDivisionError: own fault"]
    with Bandit.open(store, "b", policies={"Own": Mended}) as bandit:
        bandit.refresh()
        assert bandit._fold.n == 80  # the last marks that other arithmetic decides from there on
        assert sum(bandit._fold.player.state.pulls) == 78.0
        assert bandit.decide("f").known == 80


def test_a_process_without_the_policy_of_another_decides_no_more(postgres, monkeypatch) -> None:
    with Bandit.open(postgres, "b", DiscountedTS(), 2, seed=1) as one:
        monkeypatch.setattr(opening, "_opened", {})  # as if in another process
        with Bandit.open(postgres, "b") as other:
            other.decide("d1")
            one.change(policy=Own(mended=True))
            until = time.monotonic() + 5.0
            while not other._replica._stuck and time.monotonic() < until:
                time.sleep(0.01)
            with pytest.raises(StoreError, match=r"cannot learn event 2 .*Own.*open it again\.$"):
                other.decide()
            one.reward(one.decide("d2").id, 1.0)
            time.sleep(0.5)
            assert other._fold.n == 2
        one.refresh()
        assert one._fold.n == 3
    with Bandit.open(postgres, "b", policies={"Own": Own}) as again:
        assert again.decide("d3").known == 3
    assert [report.differences for report in audit(postgres, policies={"Own": Own})] == [[]]


def test_a_view_that_met_such_an_event_goes_on_saying_so(tmp_path) -> None:
    path = tmp_path / "j.db"
    with Bandit.open(path, "b", DiscountedTS(), 2) as bandit, View(path, "b") as view:
        bandit.change(policy=Own(mended=True))
        bandit.reward(bandit.decide("d").id, 1.0)
        for _ in range(3):
            with pytest.raises(ValueError, match="Own"):
                view.refresh()


def test_a_snapshot_that_cannot_be_queued_does_not_lose_events(tmp_path, monkeypatch) -> None:
    path = tmp_path / "j.db"
    with Bandit.open(path, "b", DiscountedTS(), 2, snapshot_every=1) as bandit:
        ids = [bandit.decide(f"d{n}").id for n in range(3)]
        with monkeypatch.context() as patch:

            def busy():
                raise StoreError("Busy.")

            patch.setattr(type(bandit._fold), "snapshot", lambda *_: busy())
            assert bandit.reward_many([(id, 1.0) for id in ids]) == ["learned"] * 3
        assert bandit.decide("after").known == 4
    assert_proved(path)
