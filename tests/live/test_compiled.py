"""Folding by machine code gives the interpreter's bits."""

import random

import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.fold import Fold
from driftbandit.bandit.opening import policy_maker
from driftbandit.bandit.records import CHANGE, DEFAULT, LATE, REWARD, Change, Event
from driftbandit.bandit.settings import first_config
from driftbandit.policies import (
    BetaTS,
    DiscountedBetaTS,
    DiscountedKLUCB,
    DiscountedTS,
    DiscountedUCB,
    SlidingUCB,
)

pytest.importorskip("numba", reason="pip install '.[lab]' brings Numba")


def events(policy, count: int, half_life, seed: int = 1) -> list[Event]:
    """A journal with a holdback, late rewards, late arrivals and one more arm half-way."""
    chance = random.Random(seed)
    options = {"half_life": half_life, "holdback": 0.1, "baseline": 0, "reward_range": (0, 2)}
    config = first_config(policy, 5, 7, "hash", options)
    out = [Event(1, CHANGE, 0, "#1", 1, body=Change("create", "", False, config).text())]
    for n in range(2, count):
        if n == count // 2:
            more = Change("add_arm", "", False, config._replace(arms=[*config.arms, "new"]))
            out.append(Event(n, CHANGE, n * 1000, "#2", 2, body=more.text()))
            continue
        kind = chance.choice([REWARD] * 8 + [DEFAULT, LATE])
        decided = n * 1000 - chance.randrange(50_000)
        value = chance.choice([0.0, 1.0, 0.3, 1.5])
        out.append(Event(n, kind, n * 1000, f"d{n}", chance.randrange(5), chance.randrange(4), value, decided))
    return out


@pytest.mark.parametrize(
    ("policy", "half_life"),
    [
        (DiscountedTS(0.97, weight=2.0), None),
        (DiscountedTS(), "10 s"),
        *(
            pytest.param(policy, half_life, marks=pytest.mark.long)
            for policy, half_life in (
                (DiscountedBetaTS(), "10 s"),
                (DiscountedUCB(), "10 s"),
                (DiscountedKLUCB(), "10 s"),
                (SlidingUCB(window=50), None),
                (BetaTS(), None),
            )
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_compiled_folds_are_the_interpreters_bits(policy, half_life) -> None:
    journal = events(policy, 3000, half_life)
    plain, fast = Fold(policy_maker()), Fold(policy_maker(), compiled=True)
    plain.apply(journal)
    for first in range(0, len(journal), 1100):
        fast.apply(journal[first : first + 1100])
    assert fast.dump() == plain.dump()


def test_a_journal_opened_compiled_has_the_same_state(tmp_path) -> None:
    store = tmp_path / "j.db"
    with Bandit.open(store, "b", DiscountedTS(), 4, half_life="1 h", snapshot_every=10**9) as bandit:
        for _ in range(3):
            made = bandit.decide_many(1000)
            bandit.reward_many([(decision.id, float(decision.arm > 1)) for decision in made])
        before = bandit.fingerprint()
    with Bandit.open(store, "b", compiled=True) as bandit:
        assert bandit.fingerprint() == before
