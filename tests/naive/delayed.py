"""Outcomes that are learned late or in another order: the whole list of decisions, looked through in every round."""

import math
from typing import NamedTuple

from driftbandit.core.primitives import TIES

from .draws import Round


class Outcome(NamedTuple):
    """A decision and its outcome; `due` is the round in which it is learned."""

    t: int
    arm: int
    reward: float
    chance: float
    due: int


class OutcomeList:
    """What the wrapper `Delayed` keeps.

    `decided` adds a decision. An outcome arrives after `rounds` rounds; if `random`, after floor(-rounds ln(1 - u)) of
    them, at most 20 rounds. With `wait`, an outcome <= 0 or one that arrives later than `wait` becomes a 0 that is due
    after `wait`; in decision order so are all others, unchanged. With `batch`, an outcome is due in the last round of
    the batch of rounds in which it would have been.

    `due_in` gives the outcomes that are due in a round, in the order of learning: by decision; shuffled, for
    j = m - 1 down to 1, item j changes places with item int(uniform(TIES + 2 + j) * (j + 1)); or rewards above 0
    before the others.

    Draws: uniform(TIES + 1) of the decision's round for the delay; uniform(TIES + 2 + j) of the round of learning."""

    def __init__(self, rounds=100, random=False, wait=0, batch=0, order="arrival") -> None:
        self.rounds, self.random, self.wait, self.batch, self.order = rounds, random, wait, batch, order
        self.outcomes: list[Outcome] = []

    def decided(self, t: int, arm: int, reward: float, chance: float, rng: Round) -> None:
        late = self.rounds
        if self.random:
            late = min(math.floor(-self.rounds * math.log(1.0 - rng.uniform(TIES + 1))), 20 * self.rounds)
        if self.wait:
            if reward <= 0 or late > self.wait:
                reward, late = 0.0, self.wait
            elif self.order == "decision":
                late = self.wait
        due = t + late
        while self.batch and (due + 1) % self.batch != 0:
            due += 1
        self.outcomes.append(Outcome(t, arm, reward, chance, due))

    def due_in(self, t: int, rng: Round) -> list[Outcome]:
        found = [one for one in self.outcomes if one.due == t]
        if self.order == "successes-first":
            found.sort(key=lambda one: one.reward <= 0)  # stable
        if self.order == "shuffled":
            for j in range(len(found) - 1, 0, -1):
                k = int(rng.uniform(TIES + 2 + j) * (j + 1))
                found[j], found[k] = found[k], found[j]
        return found
