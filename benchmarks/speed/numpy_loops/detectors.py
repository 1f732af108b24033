"""Upper confidence bounds with a test for change on every arm."""

import math

import numpy as np

from .common import fair_argmax, stands_for
from .ucb import kl, kl_ucb


class Watched:
    """UCB since each arm's last alarm, with a share of uniform play so that every arm is watched."""

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

    def test(self, arm, step):
        self.up[arm] = max(0.0, self.up[arm] + step - self.p.drift)
        self.down[arm] = max(0.0, self.down[arm] - step - self.p.drift)
        if max(self.up[arm], self.down[arm]) >= self.p.threshold:
            for numbers in (self.pulls, self.sums, self.reference, self.up, self.down):
                numbers[arm] = 0.0


@stands_for("cusum-ucb")
class CUSUM(Watched):
    """A cumulative sum against the mean of the first `samples` rewards."""

    def learn(self, t, arm, reward):
        self.pulls[arm] += 1.0
        self.sums[arm] += reward
        if self.pulls[arm] == self.p.samples:
            self.reference[arm] = self.sums[arm] / self.pulls[arm]
        elif self.pulls[arm] > self.p.samples:
            self.test(arm, reward - self.reference[arm])


@stands_for("m-ucb")
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


@stands_for("glr-klucb")
class GLRKLUCB:
    """kl-UCB with the likelihood ratio of every split of the played arm's record, and arms visited in turn."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.alarms = p, rng, 0
        self.pulls, self.start = np.zeros(n_arms, int), np.zeros(n_arms, int)
        self.sums = np.zeros((n_arms, p.horizon + 1))  # of an arm's first 0, 1, 2, ... rewards since its alarm

    def choose(self, t):
        n_arms = len(self.pulls)
        explore = math.sqrt((self.alarms + 1) * n_arms * math.log(self.p.horizon) / self.p.horizon)
        turn = (t + 1) % int(n_arms / min(1.0, explore))
        if 1 <= turn <= n_arms:
            return turn - 1
        counts = np.maximum(self.pulls, 1)
        mean = self.sums[np.arange(n_arms), self.pulls] / counts
        index = kl_ucb(mean, np.log(np.maximum(t - self.start, 1)) / counts)
        return fair_argmax(np.where(self.pulls > 0, index, np.inf), self.rng)

    def learn(self, t, arm, reward):
        sums = self.sums[arm]
        self.pulls[arm] = n = self.pulls[arm] + 1
        sums[n] = sums[n - 1] + reward
        if not 0.0 < sums[n] < n:
            return
        before, mean = np.arange(1, n), sums[n] / n
        after = n - before
        ratio = before * kl(sums[1:n] / before, mean) + after * kl((sums[n] - sums[1:n]) / after, mean)
        if ratio.max() > math.log(self.p.threshold * n**1.5 / self.p.delta):
            self.alarms += 1
            gone = [arm] if self.p.local else slice(None)
            self.pulls[gone], self.start[gone] = 0, t + 1
