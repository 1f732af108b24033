"""Policies that need no knowledge of how often the world changes: they test for change on many intervals at once.

Both originals test every interval; these are the practical versions, on dyadic intervals that end now. All rounds are
0-based, all intervals contain both ends, sums run over the rounds of the interval and are exact for 0/1 rewards.
`choose` draws and plans only; `learn` makes it lasting (obligations, replays), records the reward, then tests.
"""

import math
from typing import NamedTuple

from .draws import Round, pick, total


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


class Procedure:
    """A base procedure: from round `start`, over when round `end` begins, with its set of active arms."""

    def __init__(self, start: int, end: float, arms: list[int]) -> None:
        self.start, self.end, self.arms = start, end, arms


class NaiveMeta:
    """META on dyadic suffixes. An episode begins in round `start` with a stack of one procedure, the root: start, no
    end, all arms. The root's active set is the master set A*. Lt = ln(horizon).

    choose(t):
    1. Procedures are popped from the top while their `end` <= t (the root never).
    2. If t > start: for m = 2, 4, ..., 2^J with J = ceil(log2(horizon)), B_m = 1 if
       uniform(1000 + j) < replays / sqrt(m (t - start)), m = 2^j. If any, a replay of the largest such m is pushed:
       start t, end t + m (so it lives m rounds), all arms active.
    3. Play arm number int(uniform(1) * |A|) of the top's active set A in index order.
    learn(t), arm a, reward x:
    4. Pops and push of steps 1 and 2 become lasting. The round's entry is |A| x for arm a, 0 for all others.
    5. For each procedure on the stack, for each arm i still active in it, for each L = 2, 4, 8, ... with
       L <= t - procedure.start + 1: with G_k the sum of arm k's entries in the last L rounds, i is removed from this
       procedure if max_k G_k - G_i > c0 Lt sqrt(max(K (L - 1), K^2)) (strictly; k over all arms).
    6. If the root has no arm left, a new episode begins in round t + 1: entries and stack are cleared.

    Why entries need no mark "i was active in that round": lifetimes are nested and all procedures use the same L, so an
    arm removed from a procedure leaves all its ancestors in the same round; an arm still active in a procedure was
    active in every round of its life. Hence A* is part of every active set, and no active set is empty while A* is not.
    For a fast version: when a replay is pushed, procedures (not the root) with `end` <= t + m can be dropped, since
    they will never run again; then the m on the stack decrease strictly and J + 1 places suffice. The smallest L at
    which an arm is beaten settles it for the whole stack: the arm leaves every procedure that has lived L rounds.

    Draws: uniform(1000 + j) for a replay of 2^j rounds, j = 1, ..., J; uniform(1) for the arm."""

    tried = {"horizon": 400, "c0": 0.5}

    def __init__(self, n_arms: int, horizon: int, c0: float, replays: float = 1.0) -> None:
        self.n_arms, self.horizon, self.c0, self.replays = n_arms, horizon, c0, replays
        self.log = math.log(horizon)
        self.largest = math.ceil(math.log2(horizon))
        self.episode = 0
        self.begin(0)

    def begin(self, start: int) -> None:
        self.episode += 1
        self.start = start
        self.stack = [Procedure(start, math.inf, list(range(self.n_arms)))]
        self.entries: list[tuple[int, float]] = []  # (arm, |A| x) of the rounds start, start + 1, ...
        self.replay = 0  # length of the replay that the round's `choose` found, 0 for none

    def running(self, t: int) -> list[Procedure]:
        alive = list(self.stack)
        while alive[-1].end <= t:
            alive.pop()
        return alive

    def choose(self, t: int, rng: Round) -> int:
        self.replay = 0
        if t > self.start:
            for j in range(1, self.largest + 1):
                if rng.uniform(1000 + j) < self.replays / math.sqrt(2**j * (t - self.start)):
                    self.replay = 2**j
        arms = list(range(self.n_arms)) if self.replay else self.running(t)[-1].arms
        return pick(arms, rng.uniform(1))

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.stack = self.running(t)
        if self.replay:
            self.stack.append(Procedure(t, t + self.replay, list(range(self.n_arms))))
            self.replay = 0
        self.entries.append((arm, len(self.stack[-1].arms) * reward))
        length = 2
        while length <= t - self.start + 1:
            beaten = self.beaten(length)
            for procedure in self.stack:
                if length <= t - procedure.start + 1:
                    procedure.arms = [i for i in procedure.arms if i not in beaten]
            length *= 2
        if not self.stack[0].arms:
            self.begin(t + 1)

    def beaten(self, length: int) -> list[int]:
        """The arms that the last `length` rounds show to be worse than some other."""
        gains = [total(x for arm, x in self.entries[-length:] if arm == k) for k in range(self.n_arms)]
        limit = self.c0 * self.log * math.sqrt(max(self.n_arms * (length - 1), self.n_arms**2))
        return [i for i in range(self.n_arms) if max(gains) - gains[i] > limit]


def mean(values: list[float]) -> float:
    return total(values) / len(values)
