"""ADSWITCH, which need not know how often the environment changes: it tests for change on many intervals at once.

The original tests every interval; this is the practical version, on dyadic intervals that end now. All rounds are
0-based, all intervals contain both ends, sums run over the rounds of the interval and are exact for 0/1 rewards.
`choose` draws and plans only; `learn` makes it lasting (obligations), records the reward, then tests.
"""

import math
from typing import NamedTuple

from .draws import Round, total


class Obligation(NamedTuple):
    """A bad arm has to be sampled `pulls` times from round `since` on."""

    pulls: int
    since: int


class NaiveAdSwitch:
    """ADSWITCH on a grid. An episode begins in round `start`; all arms are GOOD, nothing is owed or remembered (not
    even the times of the last plays), l = number of the episode = 1, 2, ... Lt = ln(horizon).

    choose(t):
    1. For each BAD arm a (index order) and each i = 1, 2, ... with 2^-i >= D(a) / 16: if
       uniform(1000 + 64 a + i) < 2^-i sqrt(l / (K horizon Lt)), arm a owes (floor(2^(2i+1) Lt) pulls from round t on).
    2. Among GOOD arms and arms that owe (the new debts included): the arm whose last play in this episode is oldest;
       arms not yet played in the episode come first, the lowest index first.
    learn(t): the new debts last, the reward is recorded, m = t - start + 1. If m is a multiple of `every`, test:
    3. suffixes: the last L rounds, L = every, 2 every, 4 every, ... <= m, and L = m (once), from short to long.
    4. New episode if for some GOOD a, some suffix of L < m rounds, and some earlier interval of length
       every, 2 every, 4 every, ... <= m - L, or m - L, that ends just before the suffix: both hold a play of a and
       |mean - mean| > sqrt(2 Lt / n_earlier) + sqrt(2 Lt / n_suffix).
    5. New episode if for some BAD a and some suffix that holds a play of a:
       |mean - m(a)| > D(a) / 4 + sqrt(2 Lt / n).
    6. Without a new episode: for each GOOD a in index order, and for each suffix from short to long with n(a) >= 2: let
       best be the largest mean among arms still GOOD (earlier evictions of this step count; a itself included) with a
       play in the suffix. If best - mean(a) > sqrt(c1 Lt / (n(a) - 1)): a becomes BAD with m(a) = mean(a) and
       D(a) = best - mean(a) of this suffix, owes nothing, and the next a is examined.
    7. In every round, last of all: a debt is dropped once n_[since, t](a) >= pulls.
    A new episode begins in round t + 1 with l + 1. mean = sum / count. All comparisons ">" are strict.

    For a fast version: all ends of intervals lie at multiples of `every` in the episode, so block sums suffice; and an
    arm owes exactly until its plays in the episode reach the largest (plays at `since`) + pulls, so one number per arm
    holds all its debts.

    Draws: uniform(1000 + 64 a + i)."""

    tried = {"horizon": 400, "c1": 0.5, "every": 10}

    def __init__(self, n_arms: int, horizon: int, c1: float = 16.1, every: int = 50) -> None:
        self.n_arms, self.horizon, self.c1, self.every = n_arms, horizon, c1, every
        self.log = math.log(horizon)
        self.episode = 0
        self.begin(0)

    def begin(self, start: int) -> None:
        self.episode += 1
        self.start = start
        self.played: list[tuple[int, float]] = []  # (arm, reward) of the rounds start, start + 1, ...
        self.good = list(range(self.n_arms))
        self.frozen: dict[int, tuple[float, float]] = {}  # bad arm -> its mean and its gap at eviction
        self.owed: list[list[Obligation]] = [[] for _ in range(self.n_arms)]
        self.new: list[tuple[int, Obligation]] = []

    def choose(self, t: int, rng: Round) -> int:
        self.new = []
        rate = math.sqrt(self.episode / (self.n_arms * self.horizon * self.log))
        for arm in sorted(self.frozen):
            i = 1
            while 0.5**i >= self.frozen[arm][1] / 16.0:
                if rng.uniform(1000 + 64 * arm + i) < 0.5**i * rate:
                    self.new.append((arm, Obligation(math.floor(2 ** (2 * i + 1) * self.log), t)))
                i += 1
        owing = {arm for arm, _ in self.new} | {arm for arm in range(self.n_arms) if self.owed[arm]}
        candidates = [arm for arm in range(self.n_arms) if arm in self.good or arm in owing]
        last = dict.fromkeys(range(self.n_arms), -1)
        for s, (arm, _) in enumerate(self.played):
            last[arm] = s
        return min(candidates, key=lambda arm: last[arm])  # the first of equals: the lowest index

    def rewards(self, arm: int, first: int, end: int) -> list[float]:
        """Arm's rewards in rounds first, ..., end - 1 of the episode (counted from its start)."""
        return [x for a, x in self.played[first:end] if a == arm]

    def lengths(self, m: int) -> list[int]:
        """every, 2 every, 4 every, ... up to m, and m itself."""
        lengths = []
        length = self.every
        while length < m:
            lengths.append(length)
            length *= 2
        return [*lengths, m] if m > 0 else []

    def learn(self, t: int, arm: int, reward: float) -> None:
        for debtor, obligation in self.new:
            self.owed[debtor].append(obligation)
        self.new = []
        self.played.append((arm, reward))
        m = len(self.played)
        if m % self.every == 0:
            if self.good_arm_changed(m) or self.bad_arm_changed(m):
                self.begin(t + 1)
                return
            self.evict(m)
        for debtor in range(self.n_arms):
            self.owed[debtor] = [
                debt for debt in self.owed[debtor] if len(self.rewards(debtor, debt.since - self.start, m)) < debt.pulls
            ]

    def good_arm_changed(self, m: int) -> bool:
        for arm in self.good:
            for length in self.lengths(m):
                new = self.rewards(arm, m - length, m)
                for earlier in self.lengths(m - length):
                    old = self.rewards(arm, m - length - earlier, m - length)
                    if new and old and abs(mean(old) - mean(new)) > self.width(len(old)) + self.width(len(new)):
                        return True
        return False

    def bad_arm_changed(self, m: int) -> bool:
        for arm, (frozen, gap) in self.frozen.items():
            for length in self.lengths(m):
                new = self.rewards(arm, m - length, m)
                if new and abs(mean(new) - frozen) > gap / 4.0 + self.width(len(new)):
                    return True
        return False

    def width(self, n: int) -> float:
        return math.sqrt(2.0 * self.log / n)

    def evict(self, m: int) -> None:
        for arm in list(self.good):
            for length in self.lengths(m):
                held = [self.rewards(a, m - length, m) for a in range(self.n_arms)]
                n = len(held[arm])
                if n < 2:
                    continue
                gap = max(mean(held[a]) for a in self.good if held[a]) - mean(held[arm])
                if gap > math.sqrt(self.c1 * self.log / (n - 1)):
                    self.good.remove(arm)
                    self.frozen[arm] = (mean(held[arm]), gap)
                    self.owed[arm] = []
                    break


def mean(values: list[float]) -> float:
    return total(values) / len(values)
