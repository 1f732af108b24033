"""Unimodal bandits on the line 0 - 1 - ... - K-1: only the best-looking arm and its neighbours are ever compared."""

import math

from .draws import Round, argmax_fair, log, log_log, pick, total
from .ucb import kl_ucb


class NaiveSlidingOSUB:
    """SW-OSUB. While some arm has never been played: play the lowest such arm; such rounds have no leader.

    Otherwise, with g = min(2, K - 1) the largest number of neighbours on the line:
    1. The leader L has the largest mean Sum_i / N_i over the last `window` rounds (`argmax_fair`). An arm absent from
       the window cannot lead.
    2. If the number of earlier rounds led by L is divisible by g + 1: play L.
    3. Else play, among L and its neighbours, the largest klUCB(mean_i, (ln l + c ln ln l) / N_i), with l = 1 + rounds
       among the last `window` led by L, and +inf for an arm absent from the window; exact ties are drawn fairly in
       index order with uniform(3), since TIES may have chosen the leader.
    `learn` counts the leader found by the round's `choose`.

    "Never been played" and the divisibility by g + 1 look at all rounds since the start: a windowed l stops at
    window + 1 under a lasting leader, and then either every round would play the leader or none by that rule.

    Draws: TIES for the leader, uniform(3) for the arm."""

    tried = {"window": 60}

    def __init__(self, n_arms: int, window: int, c: float = 0.0) -> None:
        self.n_arms, self.window, self.c = n_arms, window, c
        self.history: list[tuple[int, float]] = []
        self.leaders: list[int] = []  # one entry per round; -1 without one
        self.leader = -1

    def held(self) -> list[list[float]]:
        return [[x for arm, x in self.history[-self.window :] if arm == i] for i in range(self.n_arms)]

    def choose(self, t: int, rng: Round) -> int:
        self.leader = -1
        played = {arm for arm, _ in self.history}
        for arm in range(self.n_arms):
            if arm not in played:
                return arm

        held = self.held()
        means = [total(x) / len(x) if x else -math.inf for x in held]
        leader = self.leader = argmax_fair(means, rng)
        ever = self.leaders.count(leader)
        if ever % (min(2, self.n_arms - 1) + 1) == 0:
            return leader

        count = 1 + self.leaders[-self.window :].count(leader)
        budget = log(count) + self.c * log_log(count)
        near = [arm for arm in (leader - 1, leader, leader + 1) if 0 <= arm < self.n_arms]
        index = [kl_ucb(means[arm], budget / len(held[arm])) if held[arm] else math.inf for arm in near]
        top = max(index)
        best = [arm for arm, value in zip(near, index, strict=True) if value == top]
        return best[0] if len(best) == 1 else pick(best, rng.uniform(3))

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.history.append((arm, reward))
        self.leaders.append(self.leader)
        self.leader = -1
