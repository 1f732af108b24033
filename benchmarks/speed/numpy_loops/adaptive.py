"""Elimination that needs not know how often the environment changes."""

import math

import numpy as np

from .common import stands_for


@stands_for("adswitch")
class ADSWITCH:
    """Good arms in turn, bad ones when they owe samples; every `every` rounds a test on intervals of 1, 2, 4, ...
    blocks of so many rounds, and on the whole episode."""

    def __init__(self, p, n_arms, rng):
        self.p, self.rng, self.log, self.episode = p, rng, math.log(p.horizon), 0
        # No eviction has a smaller gap than one seen over the whole horizon.
        smallest = math.sqrt(p.c1 * self.log / p.horizon)
        self.sizes = 0.5 ** np.arange(1, 1 + max(0, int(math.log2(16.0 / smallest))))
        self.samples = np.floor(2.0 * self.log / self.sizes**2)
        self.plays_at, self.total_at = np.zeros((2, p.horizon // p.every + 1, n_arms))
        self.begin(0)

    def begin(self, t):
        n_arms = self.plays_at.shape[1]
        self.start, self.episode, self.good, self.last = t, self.episode + 1, np.ones(n_arms, bool), np.full(n_arms, -1)
        self.plays, self.total, self.frozen, self.gap, self.debt = np.zeros((5, n_arms))

    def choose(self, t):
        bad = np.flatnonzero(~self.good)
        if len(bad):
            rate = math.sqrt(self.episode / (len(self.good) * self.p.horizon * self.log))
            checked = self.rng.random((len(bad), len(self.sizes))) < rate * self.sizes
            checked &= self.sizes >= self.gap[bad, None] / 16.0
            owed = np.where(checked, self.plays[bad, None] + self.samples, 0.0).max(axis=1)
            self.debt[bad] = np.maximum(self.debt[bad], owed)
        wanted = self.good | (self.plays < self.debt)
        return int(np.argmin(np.where(wanted, self.last, np.inf)))

    def learn(self, t, arm, reward):
        self.plays[arm] += 1.0
        self.total[arm] += reward
        self.last[arm] = t
        block, rest = divmod(t - self.start + 1, self.p.every)
        if rest == 0:
            self.plays_at[block], self.total_at[block] = self.plays, self.total
            if self.has_changed(block):
                self.begin(t + 1)
            else:
                self.evict(block)

    def intervals(self, block):
        """Lengths in blocks, plays and means of the intervals that end after this block, a row each."""
        lengths = np.array([*(2**i for i in range((block - 1).bit_length())), block])
        plays = self.plays_at[block] - self.plays_at[block - lengths]
        return lengths, plays, (self.total_at[block] - self.total_at[block - lengths]) / np.maximum(plays, 1.0)

    def width(self, plays):
        """How far a mean may be off; any distance without plays."""
        return np.where(plays > 0.0, np.sqrt(2.0 * self.log / np.maximum(plays, 1.0)), np.inf)

    def has_changed(self, block):
        """Does a bad arm differ from what it was when evicted, or a good one from an interval just before?"""
        lengths, plays, means = self.intervals(block)
        widths = self.width(plays)
        if (~self.good & (np.abs(means - self.frozen) > self.gap / 4.0 + widths)).any():
            return True
        for length, mean, width in zip(lengths.tolist(), means, widths, strict=True):
            if length < block:
                _, before, others = self.intervals(block - length)
                if (self.good & (np.abs(others - mean) > self.width(before) + width)).any():
                    return True
        return False

    def evict(self, block):
        """Good arms clearly worse than another good one on some interval, the shortest first, become bad."""
        _, plays, means = self.intervals(block)
        for arm in np.flatnonzero(self.good):
            gap = np.where(self.good & (plays > 0.0), means, -np.inf).max(axis=1) - means[:, arm]
            count = plays[:, arm]
            worse = (count >= 2.0) & (gap > np.sqrt(self.p.c1 * self.log / np.maximum(count - 1.0, 1.0)))
            if worse.any():
                row = np.argmax(worse)
                self.good[arm], self.frozen[arm], self.gap[arm], self.debt[arm] = False, means[row, arm], gap[row], 0.0
