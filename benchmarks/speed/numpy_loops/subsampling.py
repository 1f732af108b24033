"""Duels on equal numbers of rewards: an arm's mean against that of the leader's latest.

A round plays all winners, one after the other, or the leader if there is none."""

from collections import deque

import numpy as np

from .common import stands_for


def elected(eligible, counts, sums, previous, rng):
    """The eligible arm with most plays, then the largest sum; then the leader so far, then a fair draw."""
    most = np.flatnonzero(eligible & (counts == counts[eligible].max()))
    most = most[sums[most] == sums[most].max()]
    return previous if previous in most else int(rng.choice(most))


def duels_won(counts, sums, latest):
    """Whose mean is at least that of as many of the leader's `latest` rewards (of all, if there are fewer)? Each
    arm has some."""
    tail = np.cumsum(np.array(latest)[::-1])
    length = np.minimum(counts, len(tail))
    return sums / counts >= tail[length - 1] / length


class Duels:
    """All plays are counted, and round 1 plays every arm."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.leader, self.round = p, rng, -1, 1
        self.pulls, self.sums, self.plays = np.zeros(n_arms, int), np.zeros(n_arms), list(range(n_arms))[::-1]

    def choose(self, t):
        if not self.plays:
            self.round += 1
            self.leader = elected(self.pulls > 0, self.pulls, self.sums, self.leader, self.rng)
            wins = self.won() | (self.pulls < np.log(self.round) ** self.p.forced_power)
            wins &= self.pulls < self.pulls[self.leader]
            self.plays = self.rng.permutation(np.flatnonzero(wins)).tolist() or [self.leader]
        return self.plays.pop()

    def learn(self, t, arm, reward):
        self.pulls[arm] += 1
        self.sums[arm] += reward


@stands_for("lb-sda")
class LBSDA(Duels):
    """Every reward of the past takes part, by way of the sums up to it."""

    def __init__(self, p, n_arms, rng):
        super().__init__(p, n_arms, rng)
        self.path = np.zeros((n_arms, p.capacity + 1))  # sum of an arm's first 0, 1, 2, ... rewards

    def won(self):
        path, count = self.path[self.leader], self.pulls[self.leader]
        return self.sums >= path[count] - path[count - self.pulls]

    def learn(self, t, arm, reward):
        super().learn(t, arm, reward)
        self.path[arm, self.pulls[arm]] = self.sums[arm]


@stands_for("sw-lb-sda")
class SWLBSDA:
    """Subsampling duels on a sliding window."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.n_arms, log = p, rng, n_arms, np.log(p.window)
        self.forced, self.spread, self.delay = log**p.forced_power, log**2, int((n_arms - 1) * log**2)
        self.held, self.rewards = deque(), [deque() for _ in range(n_arms)]
        self.count, self.sums, self.drawn = np.zeros(n_arms, int), np.zeros(n_arms), np.zeros(n_arms, int)
        self.leader, self.since, self.round, self.winners, self.plays = -1, 0, 0, np.zeros(n_arms, bool), []

    def choose(self, t):
        if not self.plays:
            self.plays = self.next_round()
        return self.plays.pop()

    def next_round(self):
        self.round += 1
        reach = min(self.round, self.p.window)
        eligible = np.ones(self.n_arms, bool)
        if self.leader >= 0 and self.count[self.leader] >= reach / (2 * self.n_arms):
            eligible = self.winners & (self.count >= reach / self.n_arms)
            eligible[self.leader] = True
        leader = elected(eligible, self.count, self.sums, self.leader, self.rng)
        if leader != self.leader:
            self.leader, self.since = leader, self.round
        # An arm without rewards is played whatever its duel says.
        wins = duels_won(np.maximum(self.count, 1), self.sums, self.rewards[leader] or [0.0])
        idle = self.round - self.drawn >= self.delay
        if idle[leader] and self.round - self.since >= self.delay:
            wins |= idle & (self.count <= self.spread)
        wins[leader] = False
        wins |= self.count < self.forced
        self.winners = wins
        plays = self.rng.permutation(np.flatnonzero(wins)).tolist() or [leader]
        self.drawn[plays] = self.round
        return plays

    def learn(self, t, arm, reward):
        self.held.append(arm)
        self.rewards[arm].append(reward)
        self.count[arm] += 1
        self.sums[arm] += reward
        if len(self.held) > self.p.window:
            old = self.held.popleft()
            self.count[old] -= 1
            self.sums[old] -= self.rewards[old].popleft()
