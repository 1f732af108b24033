"""Late rewards of policies that divide by a probability: the journal keeps the one the arm was played with."""

import json
import random
import sqlite3
from typing import Any

import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.bandit.audit import audit
from driftbandit.bandit.fold import Fold
from driftbandit.bandit.opening import is_url, policy_maker
from driftbandit.bandit.records import mark
from driftbandit.player import Player
from driftbandit.policies.exp3 import EXP3S, REXP3
from driftbandit.policies.wrappers import PeriodicRestart
from live.button import ARMS, Clock, assert_proved, opened

RULES = {"floor": 0.1, "holdback": 0.1, "baseline": "uniform", "learn_holdback": True}
POLICIES = [EXP3S(0.3, 0.01), REXP3(37, 0.3), PeriodicRestart(EXP3S(0.3, 0.01), 23)]


def play_late(bandit: Any, rounds: int, late: int) -> list[str]:
    """Every third reward never comes, the others `late` decisions later."""
    made = []
    for n in range(rounds):
        made.append(bandit.decide(f"d{n}"))
        if n >= late and n % 3:
            bandit.reward(made[n - late].id, float(ARMS.index(made[n - late].arm) == n // 40 % 3))
    bandit.refresh()
    return [decision.arm for decision in made]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_a_late_reward_is_learned_with_the_probability_of_its_decision(policy, store) -> None:
    """Against the obvious way: a list of what each decision was made with."""
    with opened(store, policy=policy, **RULES) as bandit:
        play_late(bandit, 80, 17)
        kept = json.loads(json.dumps(bandit._fold.dump()))
        rows = {row.id: row for row in bandit._journal.decisions(1)}
        events = [event for _, event in bandit._journal.events(1)]
    assert all(row.probability is not None and 0.0 < row.probability <= 1.0 for row in rows.values())
    player = Player(policy, 3, int(bandit._fold.config.key))
    for event in events[1:]:
        player.learn(event.slot, event.value, probability=rows[event.decision].probability)
    assert player.dump() == {**bandit._fold.player.dump(), "time": 0}
    assert_proved(store)
    with opened(store, policy=policy, **RULES) as again:
        assert again._fold.dump() == kept


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_the_probability_kept_is_the_one_the_policy_had(policy, tmp_path) -> None:
    """Every decision is looked at the moment it is made; and what is learned differs from learning by the present."""
    with opened(tmp_path / "j.db", policy=policy, floor=0.0, first=False) as bandit:
        for n in range(60):
            id = f"d{n}"
            bandit.decide(id)
            row = bandit._journal.standing(1, [id])[id].row
            state = bandit._fold.player.view()
            chances = getattr(state, "probabilities", None) or state.base.probabilities
            assert row.probability == chances[row.slot]
            if n >= 9:
                bandit.reward(f"d{n - 9}", float(n % 2))
        then = bandit._fold.player.dump()
        events = [event._replace(probability=None) for _, event in bandit._journal.events(1)]
    present = Fold(policy_maker({}))
    present.apply(events)
    assert present.player.dump()["state"] != then["state"]


def test_a_default_is_weighed_like_a_reward(store) -> None:
    clock = Clock()
    with opened(store, policy=EXP3S(0.3, 0.01), wait="1 h", default=0.5, clock=clock) as bandit:
        for n in range(6):
            bandit.decide(f"d{n}")
            clock.now += 10
        clock.now += 2 * 3600 * 1_000_000
        assert bandit.settle() == 6
        assert bandit.reward("d0", 1.0) == "late"
        bandit.refresh()
        rows = {row.id: row for row in bandit._journal.decisions(1)}
        events = [event for _, event in bandit._journal.events(1) if event.slot >= 0 and event.decision in rows]
        assert [event.probability for event in events] == [rows[event.decision].probability for event in events]
        assert all(event.probability for event in events)
    assert_proved(store)


def test_other_policies_keep_no_probability_and_their_rows_as_they_were(store) -> None:
    with opened(store, policy=DiscountedTS()) as bandit:
        play_late(bandit, 10, 3)
        assert {row.probability for row in bandit._journal.decisions(1)} == {None}
        assert {event.probability for _, event in bandit._journal.events(1)} == {None}


def test_another_policy_learns_by_the_probabilities_that_were_kept(store) -> None:
    """Of decisions by a policy that kept none it learns as it would have at once."""
    with opened(store, policy=EXP3S(0.3, 0.01)) as bandit:
        play_late(bandit, 30, 5)
        bandit.change(policy=REXP3(37, 0.9))
        chosen = bandit._fold.player.state
        bandit.change(policy=DiscountedTS())
        for n in range(100, 110):
            bandit.reward(bandit.decide(f"d{n}").id, 1.0)
        bandit.change(policy=REXP3(37, 0.9))
        assert len(chosen.gains) == len(bandit._fold.player.state.gains)
        bandit.refresh()
    assert_proved(store)


def alter(store: str, sql: str, *values: Any) -> None:
    if is_url(store):
        import psycopg

        with psycopg.connect(store, autocommit=True) as connection:
            connection.execute(sql.replace("@", "driftbandit.").replace("?", "%s"), values)
    else:
        with sqlite3.connect(store) as file:
            file.execute(sql.replace("@", ""), values)
        file.close()


def test_an_altered_probability_is_found_out(store) -> None:
    with opened(store, policy=EXP3S(0.3, 0.01)) as bandit:
        play_late(bandit, 12, 2)
        row = bandit._journal.standing(1, ["d6"])["d6"].row
    alter(store, "UPDATE @decision SET probability = 0.25 WHERE id = 'd6'")
    assert any("checksum" in text for report in audit(store) for text in report.differences)
    forged = row._replace(probability=0.25)
    alter(store, "UPDATE @decision SET mark = ? WHERE id = 'd6'", mark(forged))
    found = [text for report in audit(store) for text in report.differences]
    assert any("d6" in text and "has the probability 0.25 of its arm" in text for text in found)
    assert any("does not fit its decision d6" in text for text in found)


@pytest.mark.parametrize(
    "policy", [EXP3S(0.3, 0.01), pytest.param(REXP3(37, 0.3), marks=pytest.mark.long)], ids=["EXP3S", "REXP3"]
)
def test_machine_code_folds_kept_and_missing_probabilities_alike(policy, tmp_path) -> None:
    with opened(tmp_path / "j.db", policy=policy) as bandit:
        play_late(bandit, 120, 17)
        events = [event for _, event in bandit._journal.events(1)]
    events = [event._replace(probability=None) if n % 5 == 2 else event for n, event in enumerate(events)]
    plain, compiled = Fold(policy_maker({})), Fold(policy_maker({}), compiled=True)
    plain.apply(events)
    compiled.apply(events)
    assert plain.dump() == compiled.dump()


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[2]], ids=lambda policy: type(policy).__name__)
def test_arms_come_and_go_while_rewards_are_under_way(policy, tmp_path) -> None:
    """150 calls in random order, many of them late rewards of arms that were retired meanwhile, or of a time with fewer
    arms: everything is proved, and opened again it is the same."""
    chance, clock, path, pending, added = random.Random(3), Clock(), str(tmp_path / "j.db"), [], 0
    with opened(path, policy=policy, clock=clock, snapshot_every=17, wait="10 min", **RULES) as bandit:
        for n in range(150):
            clock.now += chance.randrange(60_000_000)
            kind = chance.random()
            if kind < 0.5:
                some = chance.sample(bandit.arms, chance.randrange(1, len(bandit.arms) + 1))
                pending.append(bandit.decide(f"d{n}", available=None if chance.random() < 0.7 else some).id)
            elif kind < 0.9 and pending:
                bandit.reward(pending.pop(chance.randrange(len(pending))), chance.choice([0.0, 0.25, 1.0]))
            elif kind < 0.95:
                bandit.add_arm(f"new{added}")
                added += 1
            elif len(bandit.arms) > 1:
                bandit.retire_arm(bandit.arms[0])
        last = bandit.fingerprint()
    assert added >= 2
    assert_proved(path)
    with Bandit.open(path, "button", clock=clock) as again:
        assert again.fingerprint() == last
