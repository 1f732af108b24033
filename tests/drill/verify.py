"""What must hold after any accident: nothing acknowledged is lost, nothing is doubled, and the state is the fold."""

from collections import Counter
from itertools import islice
from typing import NamedTuple

from driftbandit.bandit.fold import Fold
from driftbandit.bandit.opening import policy_maker, reading, rereader
from driftbandit.bandit.records import DEFAULT, REWARD
from driftbandit.bandit.reports import View


class Losses(NamedTuple):
    """Counts that must be 0."""

    decisions_lost: int
    rewards_lost: int
    doubled: int
    bits_differ: int

    def __str__(self) -> str:
        lost = self.decisions_lost + self.rewards_lost
        return f"{lost} lost, {self.doubled} doubled, {self.bits_differ} states differ"


def losses(target: str, decided: set[str], rewarded: set[str], name: str = "drill") -> Losses:
    """Compare a journal with what was acknowledged, and the state from its snapshots with that from its beginning, each
    after as many events: PostgreSQL may still be ending what a killed process had asked."""
    with View(target, name) as view:
        seen, state = view._fold.n, view.fingerprint()
    journal = reading(target)
    try:
        number = journal.bandits()[name]
        there = {row.id for row in journal.decisions(number)}
        outcomes = Counter(event.decision for _, event in journal.events(number) if event.kind in (REWARD, DEFAULT))
        whole = Fold(policy_maker(), rereader(journal, number))
        whole.apply(event for _, event in islice(journal.events(number), seen))
    finally:
        journal.close()
    differ = int(state != whole.dump())
    doubled = sum(count - 1 for count in outcomes.values()) + sum(id not in there for id in outcomes)
    return Losses(len(decided - there), len(rewarded - set(outcomes)), doubled, differ)
