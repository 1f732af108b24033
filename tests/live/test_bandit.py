"""A live bandit: what it promises to those who call it, on both stores where the store matters."""

import math
import sqlite3
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from driftbandit.bandit import Bandit, NotFound, RecordConflict
from driftbandit.bandit.records import as_datetime
from driftbandit.policies import DiscountedBetaTS, SlidingTS
from live.button import ARMS, HOUR, Clock, assert_proved, opened, play


def test_a_bandit_opened_again_goes_on_where_it_stopped(store) -> None:
    with opened(store, half_life="6 h", snapshot_every=7) as bandit:
        play(bandit, 30)
        before, arm = bandit.fingerprint(), bandit.decide("next").arm
    with Bandit.open(store, "button") as again:
        assert again.fingerprint() == before
        assert again.decide("next").arm == arm
        play(again, 10, 100)
        after = again.fingerprint()
    with opened(store, half_life="6 h") as bandit:
        assert bandit.fingerprint() == after
    assert_proved(store)


def test_a_damaged_snapshot_loses_nothing(tmp_path) -> None:
    store = tmp_path / "j.db"
    with opened(store, snapshot_every=5) as bandit:
        play(bandit, 23)
        before = bandit.fingerprint()
    connection = sqlite3.connect(store)
    assert connection.execute("UPDATE snapshot SET body = substr(body, 1, 40)").rowcount == 3
    connection.commit()
    connection.close()
    with Bandit.open(store, "button") as again:
        assert again.fingerprint() == before


def test_the_same_id_is_the_same_decision_and_a_reward_counts_once(store) -> None:
    with opened(store) as bandit:
        first = bandit.decide("a")
        assert bandit.decide("a") == first
        with pytest.raises(RecordConflict, match="other available arms"):
            bandit.decide("a", available=["red"])
        assert bandit.reward("a", 1.0) == "learned"
        bandit.refresh()
        once = bandit.fingerprint()
        assert bandit.reward("a", 1.0) == "again"
        with pytest.raises(RecordConflict, match=r"already has the reward 1\.0"):
            bandit.reward("a", 0.0)
        with pytest.raises(NotFound, match="no decision 'b'"):
            bandit.reward("b", 1.0)
        assert bandit.reward_many([("a", 1.0), ("a", 0.5), ("zz", 1.0), ("a", 7.0)])[0] == "again"
        bandit.refresh()
        assert bandit.fingerprint() == once
        outcome = bandit.outcome("a")
        assert (outcome.decision, outcome.kind, outcome.reward) == (first, "reward", 1.0)


def test_many_at_once_are_as_many_one_by_one(store) -> None:
    with opened(store) as bandit:
        decisions = bandit.decide_many(100)
        assert len({decision.id for decision in decisions}) == 100
        assert bandit.reward_many({decision.id: 0.5 for decision in decisions}) == ["learned"] * 100
        named = bandit.decide_many([f"n{n}" for n in range(50)])
        assert [decision.id for decision in named] == [f"n{n}" for n in range(50)]
        bandit.refresh()
        assert [bandit.decide(f"n{n}") for n in range(50)] == named
        verdicts = bandit.reward_many([("n0", 1.0), ("missing", 1.0), ("n1", math.nan), ("n2", 3.0), ("n3", 0.0)])
        assert [type(verdict).__name__ for verdict in verdicts] == [
            "str",
            "NotFound",
            "ValueError",
            "ValueError",
            "str",
        ]
    assert_proved(store)


def test_without_a_reward_in_time_the_default_is_learned_and_a_late_reward_is_kept(store) -> None:
    clock = Clock()
    with opened(store, wait="1 h", default=0.25, clock=clock) as bandit:
        one, two, three = (bandit.decide(name) for name in ("one", "two", "three"))
        clock.now += HOUR
        assert bandit.reward(one.id, 1.0) == "waiting"
        assert bandit.outcome(one.id).came == as_datetime(clock.now)
        assert bandit.outcome(one.id).waiting
        bandit.refresh()
        assert (bandit.health()["waiting"], bandit._fold.player.learned) == (1, 0)
        clock.now += 1
        assert bandit.reward(two.id, 1.0) == "late"
        assert bandit.settle() <= 1  # the call before may have been quicker
        assert bandit.settle() == 0
        bandit.refresh()
        assert bandit.reward(two.id, 1.0) == "again"
        assert [(o.kind, o.reward, o.late) for o in map(bandit.outcome, ("one", "two", "three"))] == [
            ("reward", 1.0, None),
            ("default", 0.25, 1.0),
            ("default", 0.25, None),
        ]
        assert (bandit.health()["late"], bandit.health()["waiting"]) == (1, 0)
        assert not bandit.outcome(one.id).waiting
        assert sum(bandit.state.pulls > 0) >= 1
        with_defaults = bandit._fold.player.learned
        assert with_defaults == 3
        assert three.arm in ARMS
    assert_proved(store)


def test_a_default_of_minus_zero_is_zero_and_can_be_proved(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "j.db", wait="1 s", default=-0.0, clock=clock) as bandit:
        bandit.decide("a")
        clock.now += HOUR
        assert bandit.settle() == 1
    assert_proved(tmp_path / "j.db")


def test_defaults_are_written_by_themselves_when_decisions_come_in(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "j.db", wait="10 s", clock=clock) as bandit:
        for n in range(50):
            bandit.decide(f"d{n}")
            clock.now += 1_000_000
        for n in range(50, 55):
            bandit.decide(f"d{n}")
            clock.now += 1_000_000
        assert bandit.health()["defaults"] >= 40


def test_held_back_decisions_follow_the_baseline_and_are_not_learned(store) -> None:
    with opened(store, holdback=0.3, baseline="blue", arms=ARMS) as bandit:
        decisions = bandit.decide_many([f"d{n}" for n in range(400)])
        held = [decision for decision in decisions if decision.how == "holdback"]
        assert {decision.arm for decision in held} == {"blue"}
        assert abs(len(held) - 120) < 5 * math.sqrt(400 * 0.3 * 0.7)
        bandit.reward_many([(decision.id, 1.0) for decision in held])
        bandit.refresh()
        assert bandit._fold.player.learned == 0
        bandit.reward_many([(d.id, float(d.arm == "blue")) for d in decisions if d.how != "holdback"])
        uplift = bandit.uplift()
        assert uplift.baseline == 1.0
        assert uplift.n_baseline == len(held)
        assert uplift.low < uplift.difference < uplift.high <= 0.0
        assert "held back" in str(uplift)
    assert_proved(store)


def test_arms_are_drawn_with_the_reported_probabilities(tmp_path) -> None:
    """Chi-square with 3 degrees of freedom below 16.3: by chance above it once in a thousand, and the ids are fixed."""
    with opened(tmp_path / "j.db", arms=[*ARMS, "pink"], floor=0.1, holdback=0.1, baseline="green") as bandit:
        for n, arm in enumerate(["red"] * 30 + ["blue"] * 20 + ["green"] * 10 + ["pink"] * 3):
            bandit.decide(f"s{n}", available=[arm])
            bandit.reward(f"s{n}", float(n % 4 < 2))
        chances = bandit.probabilities()
        assert abs(sum(chances.values()) - 1.0) < 1e-12
        assert min(chances.values()) >= 0.9 * 0.1 / 4
        counts = dict.fromkeys(chances, 0)
        for first in range(0, 20_000, 1000):
            for decision in bandit.decide_many([f"d{n}" for n in range(first, first + 1000)]):
                counts[decision.arm] += 1
        chi = sum((counts[arm] - 20_000 * p) ** 2 / (20_000 * p) for arm, p in chances.items())
        assert chi < 16.3
        decision = bandit.decide(probability=True)
        assert decision.probability == pytest.approx(chances[decision.arm])


def test_arms_come_and_go_and_can_be_fixed(store) -> None:
    with opened(store) as bandit:
        play(bandit, 10)
        bandit.add_arm("pink", who="ann")
        bandit.fix("pink")
        assert {bandit.decide().arm for _ in range(5)} == {"pink"}
        decision = bandit.decide(available=["red", "blue"])
        assert decision.arm != "pink"
        with pytest.raises(ValueError, match="is fixed"):
            bandit.retire_arm("pink")
        bandit.release()
        bandit.retire_arm("red")
        assert bandit.arms == ["green", "blue", "pink"]
        assert "red" not in {decision.arm for decision in bandit.decide_many(200)}
        with pytest.raises(ValueError, match="was retired"):
            bandit.decide(available=["red"])
        bandit.add_arm("red")
        assert bandit.arms == ["green", "blue", "pink", "red"]
        assert [change["what"] for change in bandit.changes()] == [
            "create", "add_arm pink", "fix pink", "release pink", "retire_arm red", "add_arm red",
        ]  # fmt: skip
        assert bandit.config.retired == ()  # the arm is back
        bandit.change(holdback=0.1, baseline="green", floor=0.02)
        bandit.change(holdback=0.2, half_life="3 h", from_now=True)
        bandit.change(half_life=None, add_arm="grey", retire_arm="red")
        assert [change["what"] for change in bandit.changes()][6:] == [
            "floor 0.005 -> 0.02, holdback 0 -> 0.1, baseline uniform -> green",
            "half_life none -> 3 h, holdback 0.1 -> 0.2 from now on",
            "add_arm grey, retire_arm red, half_life 3 h -> none",
        ]
        assert bandit.config.retired == ("red",)  # once, though it was retired twice
        assert bandit.changes()[1]["who"] == "ann"
        assert sum(map(sum, bandit.history(points=10).decisions)) == 216
    assert_proved(store)


def test_a_decision_stands_for_its_id(tmp_path) -> None:
    with opened(tmp_path / "a.db") as bandit:
        made = bandit.decide_many(3)
        assert bandit.reward(made[0], 1.0) == "learned"
        assert bandit.reward_many([(made[0], 1.0), (made[1], 0.0)]) == ["again", "learned"]
        assert bandit.outcome(made[1]).reward == 0.0
        assert bandit.decide(made[2]) == made[2]


def test_times_have_one_form_everywhere(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "a.db", holdback=0.5, baseline="red", clock=clock) as bandit:
        for _ in range(4):
            clock.now += HOUR
            bandit.reward_many([(one.id, 1.0) for one in bandit.decide_many(10)])
        bandit.refresh()
        then = datetime.fromtimestamp((clock.now - 1.5 * HOUR) / 1e6, UTC)
        for since in ("90 min", timedelta(minutes=90), 5400, then):
            history, uplift = bandit.history(since=since), bandit.uplift(since=since)
            assert sum(map(sum, history.decisions)) == 20
            assert uplift.n_policy + uplift.n_baseline == 20
        assert sum(map(sum, bandit.history(since="150 min", until="30 min").decisions)) == 20
        for wrong in ("never", -3, True, [], datetime(2026, 1, 1)):
            for ask in (lambda since=wrong: bandit.history(since), lambda since=wrong: bandit.uplift(since)):
                with pytest.raises(ValueError, match="since is a "):
                    ask()


def test_the_baseline_is_not_retired_before_another_is_named(tmp_path) -> None:
    with opened(tmp_path / "a.db", holdback=0.5, baseline="red") as bandit:
        with pytest.raises(ValueError, match="baseline of what is held back; change"):
            bandit.retire_arm("red")
        assert bandit.arms == ARMS
        bandit.change(baseline="blue")
        bandit.retire_arm("red")
        held = {one.arm for one in bandit.decide_many(60) if one.how == "holdback"}
        assert held == {"blue"}


def test_another_policy_learns_the_whole_journal_anew(store) -> None:
    clock = Clock()
    with opened(store, clock=clock) as bandit:
        play(bandit, 20)
        clock.now += 30 * HOUR
        bandit.add_arm("pink")
        play(bandit, 10, 50)
        bandit.change(policy=DiscountedBetaTS(0.9), half_life="1 d")
        with opened(store, name="other", policy=DiscountedBetaTS(0.9), half_life="1 d") as other:
            naive = naive_wins(bandit, "1 d")
            assert np.allclose(bandit.state.wins, naive, rtol=1e-9)
            bandit.change(policy=SlidingTS(window=5), half_life=None, from_now=True)
            assert bandit.state.pulls.sum() == 0.0
            assert other.state.wins.sum() == 0.0
        play(bandit, 3, 90)
        assert bandit.state.pulls.sum() == 3.0
        with pytest.raises(ValueError, match=r"sw-ts\) cannot; these can: DiscountedBetaTS \(dts, dots\), "):
            bandit.change(half_life="2 h")
    assert_proved(store)


def naive_wins(bandit: Bandit, half_life: str) -> list[float]:
    """The discounted wins by their definition, each reward weighed by the age of its decision."""
    now = bandit._replica.now()
    wins = [0.0] * len(bandit.stored.arms)
    for _, event in bandit._journal.events(bandit._number):
        if event.kind == 1:
            wins[event.slot] += event.value * 2.0 ** (-(now - event.decided) / (24 * HOUR))
    return wins


def test_a_half_life_weighs_by_age_whatever_the_order_of_arrival(tmp_path) -> None:
    states = []
    for way in range(3):
        clock = Clock()
        with opened(tmp_path / f"{way}.db", policy=DiscountedBetaTS(), half_life="1 h", clock=clock) as bandit:
            made = []
            for n in range(60):
                made.append((bandit.decide(f"d{n}", available=[ARMS[n % 3]]).id, float(n % 4 < 2)))
                if way == 0:
                    bandit.reward(*made[-1])
                clock.now += HOUR // 10
            order = np.random.default_rng(way).permutation(60) if way == 2 else range(60)
            if way > 0:
                for n in order:
                    bandit.reward(*made[n])
            states.append(bandit.state)
            exact = [sum(r * 2.0 ** -((60 - n) / 10) for n, (_, r) in enumerate(made) if n % 3 == k) for k in range(3)]
            assert np.allclose(bandit.state.wins, exact, rtol=1e-12)
            before = bandit.fingerprint()
            clock.now += 10 * HOUR
            assert np.allclose(bandit.state.wins, np.array(exact) / 1024, rtol=1e-12)
            assert bandit.fingerprint() == before
    for state in states[1:]:
        assert np.allclose(state.wins, states[0].wins, rtol=1e-12)
        assert np.allclose(state.losses, states[0].losses, rtol=1e-12)
