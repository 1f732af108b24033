"""Eight policies as a good NumPy user would write them: the yardstick of `driftbandit bench`.

Straightforward on purpose: arrays over arms, one `Generator`, no compiler, and no trick that would need explaining.
They follow the same definitions as the package (docs and `tests/naive`), from other random numbers, so their regret
agrees with ours within sampling error; `tests/test_bench.py` checks that. Each takes the package's policy as `p` and
reads the parameters off it."""

from collections import deque

import numpy as np


class DSTS:
    """Discounted Thompson sampling with normal samples."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.pulls, self.mean = p, rng, np.zeros(n_arms), np.zeros(n_arms)

    def choose(self, t):
        with np.errstate(divide="ignore"):
            spread = np.minimum(self.p.tau_max, 1.0 / np.sqrt(self.pulls))
        return int(np.argmax(self.mean + spread * self.rng.standard_normal(len(self.mean))))

    def learn(self, t, arm, reward):
        self.pulls *= self.p.gamma
        self.pulls[arm] += 1.0
        self.mean[arm] += (reward - self.mean[arm]) / self.pulls[arm]


class TS:
    """Thompson sampling with Beta samples."""

    def __init__(self, p, n_arms, rng):
        self.rng, self.a, self.b = rng, np.full(n_arms, p.prior_wins), np.full(n_arms, p.prior_losses)

    def choose(self, t):
        return int(np.argmax(self.rng.beta(self.a, self.b)))

    def learn(self, t, arm, reward):
        self.a[arm] += reward
        self.b[arm] += 1.0 - reward


class SWTS(TS):
    """The same on the last `window` rounds."""

    def __init__(self, p, n_arms, rng):
        super().__init__(p, n_arms, rng)
        self.window, self.held = p.window, deque()

    def learn(self, t, arm, reward):
        super().learn(t, arm, reward)
        self.held.append((arm, reward))
        if len(self.held) > self.window:
            old, gone = self.held.popleft()
            super().learn(t, old, -gone)  # takes `gone` wins away and, below, the loss it came with
            self.b[old] -= 2.0


class DUCB:
    """Discounted UCB."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.pulls, self.sums = p, rng, np.zeros(n_arms), np.zeros(n_arms)

    def choose(self, t):
        if t < len(self.pulls):
            return t
        width = self.p.xi * np.log(self.pulls.sum()) / self.pulls
        return int(np.argmax(self.sums / self.pulls + 2.0 * self.p.reward_max * np.sqrt(width)))

    def learn(self, t, arm, reward):
        self.pulls *= self.p.gamma
        self.sums *= self.p.gamma
        self.pulls[arm] += 1.0
        self.sums[arm] += reward


class CUSUM:
    """UCB with a cumulative-sum test an arm."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng = p, rng
        self.pulls, self.sums, self.reference, self.up, self.down = np.zeros((5, n_arms))

    def choose(self, t):
        if self.rng.random() < self.p.explore:
            return int(self.rng.integers(len(self.pulls)))
        if not self.pulls.all():
            return int(np.argmin(self.pulls))
        width = np.sqrt(self.p.xi * np.log(self.pulls.sum()) / self.pulls)
        return int(np.argmax(self.sums / self.pulls + width))

    def learn(self, t, arm, reward):
        self.pulls[arm] += 1.0
        self.sums[arm] += reward
        if self.pulls[arm] == self.p.samples:
            self.reference[arm] = self.sums[arm] / self.pulls[arm]
        elif self.pulls[arm] > self.p.samples:
            step = reward - self.reference[arm]
            self.up[arm] = max(0.0, self.up[arm] + step - self.p.drift)
            self.down[arm] = max(0.0, self.down[arm] - step - self.p.drift)
            if max(self.up[arm], self.down[arm]) >= self.p.threshold:
                for numbers in (self.pulls, self.sums, self.reference, self.up, self.down):
                    numbers[arm] = 0.0


class MUCB:
    """UCB1 that compares the two halves of each arm's last `window` rewards."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.period = p, rng, int(n_arms / p.explore)
        self.pulls, self.sums, self.start = np.zeros(n_arms), np.zeros(n_arms), 0
        self.recent, self.place = np.zeros((n_arms, p.window)), np.zeros(n_arms, int)

    def choose(self, t):
        turn = (t - self.start + 1) % self.period
        if 1 <= turn <= len(self.pulls):
            return turn - 1
        if not self.pulls.all():
            return int(np.argmin(self.pulls))
        return int(np.argmax(self.sums / self.pulls + np.sqrt(2.0 * np.log(t - self.start) / self.pulls)))

    def learn(self, t, arm, reward):
        half, place, row = self.p.window // 2, self.place[arm], self.recent[arm]
        self.pulls[arm] += 1.0
        self.sums[arm] += reward
        row[place] = reward
        self.place[arm] = place = (place + 1) % self.p.window
        if self.pulls[arm] >= self.p.window:
            # The ring begins at `place`: the older half is the `half` entries from there.
            older = row[place : place + half].sum() + row[: max(0, place - half)].sum()
            if abs(row.sum() - 2.0 * older) > self.p.threshold:
                self.pulls[:], self.sums[:], self.place[:], self.start = 0.0, 0.0, 0, t + 1


class EXP3S:
    """Exponential weights that share."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.weights = p, rng, np.full(n_arms, 1.0 / n_arms)

    def choose(self, t):
        self.chances = (1.0 - self.p.explore) * self.weights + self.p.explore / len(self.weights)
        return min(int(np.searchsorted(np.cumsum(self.chances), self.rng.random())), len(self.weights) - 1)

    def learn(self, t, arm, reward):
        n_arms = len(self.weights)
        gift = np.e * self.p.share / n_arms * self.weights.sum()
        self.weights[arm] *= np.exp(self.p.explore * reward / (n_arms * self.chances[arm]))
        self.weights += gift
        self.weights /= self.weights.sum()


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
        most = np.flatnonzero(eligible & (self.count == self.count[eligible].max()))
        most = most[self.sums[most] == self.sums[most].max()]
        if self.leader not in most:
            self.leader, self.since = int(self.rng.choice(most)), self.round
        tail = np.cumsum(np.array(self.rewards[self.leader])[::-1]) if self.rewards[self.leader] else np.zeros(1)
        length = np.clip(self.count, 1, len(tail))
        wins = self.sums / np.maximum(self.count, 1) >= tail[length - 1] / length
        idle = self.round - self.drawn >= self.delay
        if idle[self.leader] and self.round - self.since >= self.delay:
            wins |= idle & (self.count <= self.spread)
        wins[self.leader] = False
        wins |= self.count < self.forced
        self.winners = wins
        plays = self.rng.permutation(np.flatnonzero(wins)).tolist() or [self.leader]
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


LOOPS = {
    "ds-ts": DSTS,
    "ts": TS,
    "sw-ts": SWTS,
    "d-ucb": DUCB,
    "cusum-ucb": CUSUM,
    "m-ucb": MUCB,
    "exp3s": EXP3S,
    "sw-lb-sda": SWLBSDA,
}


def play(name, policy, table, horizon, seed, rounds=None):
    """The regret of one run in a world of equal phases; stops after `rounds` if given."""
    n_phases, n_arms = table.shape
    rng, luck = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    player, regret = LOOPS[name](policy, n_arms, rng), 0.0
    for phase in range(n_phases):
        means = table[phase].tolist()
        best = max(means)
        start, stop = phase * horizon // n_phases, (phase + 1) * horizon // n_phases
        for t, u in zip(range(start, stop), luck.random(stop - start).tolist(), strict=True):
            if t == rounds:
                return regret
            arm = player.choose(t)
            player.learn(t, arm, 1.0 if u < means[arm] else 0.0)
            regret += best - means[arm]
    return regret
