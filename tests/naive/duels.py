"""Last-block subsampling duels: the most played arm defends its place against every other arm on equal sample sizes.

A round r plays either the leader or all arms that beat it, one play a time step t. Rules of both policies:
  * The first play of a round plans the whole round from the state at that moment (leader, winners, their order);
    the further plays of the round follow without looking at rewards that came in between. `choose` only plans;
    `learn` makes the plan lasting (r += 1, leader, remaining plays) and then stores the reward.
  * Winners are listed in index order and then shuffled with the draws of the time step that plans the round.
  * Leader: largest count; among those the largest sum of rewards; among those the previous leader if it is one of
    them; else drawn fairly among them in index order (slot TIES).
  * All means are sum / count, sums from left to right in order of arrival: exact for 0/1 rewards.
    With a prefix-sum implementation and real rewards only exact ties can differ.
  * `forced_power`: f(r) = (ln r)^forced_power.
  * A reward for another arm than the planned one counts for the arm it came from; the plan goes on.
    A reward that comes when no round is under way begins one: the policies then plan it with the draws of the reward's
    own time step, the twins must have been asked first.
"""

import math

from .draws import TIES, Round, pick, shuffled, total


def elect(eligible: list[int], counts: list[int], sums: list[float], previous: int, rng: Round) -> int:
    """The leader among `eligible` (index order); `previous` is -1 before the first."""
    most = max(counts[k] for k in eligible)
    tied = [k for k in eligible if counts[k] == most]
    best = max(sums[k] for k in tied)
    tied = [k for k in tied if sums[k] == best]
    if previous in tied:
        return previous
    return tied[0] if len(tied) == 1 else pick(tied, rng.uniform(TIES))


def mean(values: list[float]) -> float:
    return total(values) / len(values)


class NaiveLBSDA:
    """LB-SDA. Round r = 1 plays arms 0, 1, ..., K - 1 in this order; duels are rounds r = 2, 3, ...

    N_k, S_k over everything. Arm k != leader challenges if N_k < N_leader, and wins if N_k < f(r) or
    mean_k >= mean of the leader's last N_k rewards. Winners are played in random order; without winners the leader.

    Draws: TIES for the leader; uniform(100 + j) for the order of the winners."""

    def __init__(self, n_arms: int, forced_power: float = 0.5) -> None:
        self.n_arms, self.forced_power = n_arms, forced_power
        self.rewards: list[list[float]] = [[] for _ in range(n_arms)]
        self.round = 1
        self.leader = -1
        self.queue = list(range(n_arms))
        self.plan: tuple[int, list[int]] = (-1, [])

    def choose(self, t: int, rng: Round) -> int:
        if self.queue:
            return self.queue[0]
        r = self.round + 1
        counts = [len(x) for x in self.rewards]
        leader = elect(list(range(self.n_arms)), counts, [total(x) for x in self.rewards], self.leader, rng)
        winners = []
        for k in range(self.n_arms):
            if k == leader or counts[k] >= counts[leader]:
                continue
            if counts[k] < math.log(r) ** self.forced_power or self.wins(k, leader):
                winners.append(k)
        self.plan = (leader, shuffled(winners, rng) if winners else [leader])
        return self.plan[1][0]

    def wins(self, k: int, leader: int) -> bool:
        mine, theirs = self.rewards[k], self.rewards[leader]
        block = theirs[-len(mine) :] if mine else []
        return not mine or not block or mean(mine) >= mean(block)

    def learn(self, t: int, arm: int, reward: float) -> None:
        if not self.queue and self.plan[1]:
            self.round += 1
            self.leader, self.queue = self.plan
            self.plan = (-1, [])
        self.queue = self.queue[1:]
        self.rewards[arm].append(reward)


class NaiveSlidingLBSDA:
    """SW-LB-SDA. N_k, S_k and all rewards are those of the last `window` plays at the time the round is planned.
    f = (ln window)^forced_power, d = int((K - 1) (ln window)^2), n0 = (ln window)^2. There is no initial sweep: in
    round r = 1 nothing is held, so every arm wins and all are played in random order. Planning round r = 1, 2, ...:

    1. Leader. Round 1, or N_previous < min(r, window) / (2 K): every arm is eligible. Else: the previous leader, and
       every winner of the previous round (the set of steps 2 and 3; empty if that round played the leader for want
       of winners) with N_k >= min(r, window) / K. If the leader changes (round 1 included): leader_since = r.
    2. Winners: every k, the leader too, with N_k = 0 or N_k < f; every k != leader with
       S_k / N_k >= mean of the leader's last min(N_k, N_leader) rewards in the window.
    3. If r - leader_since >= d and r - last_drawn[leader] >= d: also every k != leader with
       r - last_drawn[k] >= d and N_k <= n0. (last_drawn is 0 before the first play.)
    4. Winners, sorted by index and shuffled, are played; without winners the leader. last_drawn = r for all of them.

    Draws: TIES for the leader; uniform(100 + j) for the order of the winners."""

    tried = {"window": 50}

    def __init__(self, n_arms: int, window: int, forced_power: float = 0.5) -> None:
        self.n_arms, self.window, self.forced_power = n_arms, window, forced_power
        self.history: list[tuple[int, float]] = []
        self.round = 0
        self.leader = -1
        self.leader_since = 0
        self.last_drawn = [0] * n_arms
        self.winners: list[int] = []
        self.queue: list[int] = []
        self.plan: tuple[int, list[int], list[int]] = (-1, [], [])  # leader, winners, order of play

    def held(self) -> list[list[float]]:
        return [[x for arm, x in self.history[-self.window :] if arm == k] for k in range(self.n_arms)]

    def choose(self, t: int, rng: Round) -> int:
        if self.queue:
            return self.queue[0]
        r = self.round + 1
        held = self.held()
        counts = [len(x) for x in held]
        reach = min(r, self.window)

        eligible = list(range(self.n_arms))
        if self.leader >= 0 and counts[self.leader] >= reach / (2 * self.n_arms):
            eligible = [
                k
                for k in range(self.n_arms)
                if k == self.leader or (k in self.winners and counts[k] >= reach / self.n_arms)
            ]
        leader = elect(eligible, counts, [total(x) for x in held], self.leader, rng)
        since = self.leader_since if leader == self.leader else r

        spread = math.log(self.window) ** 2
        winners = []
        for k in range(self.n_arms):
            forced = counts[k] == 0 or counts[k] < math.log(self.window) ** self.forced_power
            if forced or (k != leader and mean(held[k]) >= mean(held[leader][-counts[k] :])):
                winners.append(k)
        delay = int((self.n_arms - 1) * spread)
        if r - since >= delay and r - self.last_drawn[leader] >= delay:
            for k in range(self.n_arms):
                if k != leader and k not in winners and r - self.last_drawn[k] >= delay and counts[k] <= spread:
                    winners.append(k)
        winners.sort()
        self.plan = (leader, winners, shuffled(winners, rng) if winners else [leader])
        return self.plan[2][0]

    def learn(self, t: int, arm: int, reward: float) -> None:
        if not self.queue and self.plan[2]:
            self.round += 1
            leader, self.winners, order = self.plan
            self.plan = (-1, [], [])
            if leader != self.leader:
                self.leader, self.leader_since = leader, self.round
            for k in order:
                self.last_drawn[k] = self.round
            self.queue = list(order)
        self.queue = self.queue[1:]
        self.history.append((arm, reward))
