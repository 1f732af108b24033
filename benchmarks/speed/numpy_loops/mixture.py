"""Thompson sampling over hypotheses about how the environment changes: runs, split runs, drifters, tides."""

import numpy as np

from .common import stands_for

_EVERY, _RATE, _GROW, _SHARE, _TIDE, _V0 = 8, 1 / 16, 1 / 4, 1 / 4, 1 / 4, 1 / 4
_Q = 4.0 ** -np.arange(3.0, 15.0)


class _Bank:
    """Runs in the slots of a binary counter, two a level; one row each."""

    def __init__(self, n_arms, room=64):
        self.w, self.c = np.zeros(room), np.zeros(room)
        self.won, self.tries = np.zeros((room, n_arms)), np.zeros((room, n_arms))
        self.changed = np.ones((room, n_arms))
        self.old_won, self.old_tries = np.zeros((room, n_arms)), np.zeros((room, n_arms))
        self.w[0] = 0.5 / (1 + len(_Q))

    def rows(self):
        return self.won, self.tries, self.changed, self.old_won, self.old_tries

    def merge(self, pair, into):
        w = self.w[pair : pair + 2].copy()
        heavier = pair + int(w[1] > w[0])
        self.c[into] = w @ self.c[pair : pair + 2] / max(w.sum(), 1e-300)
        for row in self.rows():
            row[into] = row[heavier]
        self.w[pair : pair + 2] = 0.0
        self.w[into] = w.sum()

    def shelve(self, births, w, c, *rows):
        count, ones = 1 + births, 0
        while count >> ones & 1 and count >> (ones + 1):
            ones += 1
        for level in range(ones - 1, -1, -1):
            top = level + 1 == ones and count >> (ones + 1) > 0
            self.merge(2 * level, 2 * level + 2 + int(top))
        slot = 0 if ones else 1
        self.w[slot], self.c[slot] = w, c
        for row, values in zip(self.rows(), rows, strict=True):
            row[slot] = values


@stands_for("drift-ts")
class DriftTS:
    """All hypotheses on the same rewards, weighed by how well they predicted them."""

    def __init__(self, p, n_arms, rng):
        self.rng, g = rng, len(_Q)
        self.won, self.tries, self.last = np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms)
        self.whole, self.split = _Bank(n_arms), _Bank(n_arms)
        self.v, self.d = np.full(g, (1 - _TIDE) / (1 + g)), np.zeros(g)
        self.n, self.m = np.zeros((g, n_arms)), np.full((g, n_arms), 0.5)
        self.tide_v, self.tide_d = np.full(g, _TIDE / (1 + g)), np.zeros(g)
        self.level, self.u = np.full(g, 0.5), np.full(g, _V0)
        self.offset, self.r = np.zeros((g, n_arms)), np.full((g, n_arms), _V0)

    def choose(self, t):
        sums = np.cumsum(np.concatenate([self.whole.w, self.split.w, self.v, self.tide_v]))
        h = int(np.searchsorted(sums, self.rng.random() * sums[-1], side="right"))
        room, g, sharper = len(self.whole.w), len(_Q), 1.0
        if h < 2 * room:
            bank, h = (self.whole, h) if h < room else (self.split, h - room)
            new = self.rng.random(len(self.won)) < bank.changed[h]
            n = self.tries - np.where(new, bank.tries[h], bank.old_tries[h])
            x = np.clip(self.won - np.where(new, bank.won[h], bank.old_won[h]), 0.0, n)
        elif h < 2 * room + g:
            h -= 2 * room
            n = self.n[h] / (1 + _Q[h] * (t - self.last) * self.n[h])
            x, sharper = n * self.m[h], 1 + (2 + n) / 2.0**h
        else:
            h -= 2 * room + g
            n = np.maximum(1 / self.r[h] - 1 / _V0, 0.0)
            x = n * np.clip(self.level[h] + self.offset[h], 0.0, 1.0)
        a, b = (1 + x) * sharper, (1 + n - x) * sharper
        draws = self.rng.beta(a, b)
        return int(np.lexsort((draws, np.maximum(draws, a / (a + b))))[-1])

    def learn(self, t, arm, reward):
        t += 1
        self.weigh(t, arm, reward)
        self.won[arm] += reward
        self.tries[arm] += 1
        self.last[arm] = t
        banks = self.whole, self.split
        s = sum(bank.w.sum() for bank in banks) + self.v.sum() + self.tide_v.sum()
        seen = sum(bank.w @ bank.c for bank in banks) + self.v @ self.d + self.tide_v @ self.tide_d
        alpha = _SHARE / (_SHARE + t)
        z, h = (1 - alpha) / s, _EVERY / (1 + t) if t % _EVERY == 0 else 0.0
        born = [self.newborn(bank, t, z * h) for bank in banks] if h else []
        kept = self.inheritance(t) if h else ()
        for bank in banks:
            bank.w *= z * (1 - h * (_RATE + _GROW * bank.c))
        for v, d, part in ((self.v, self.d, 1 - _TIDE), (self.tide_v, self.tide_d, _TIDE)):
            gift = alpha * part / len(_Q)
            v *= z * (1 - h * (_RATE + _GROW * d))
            v += gift
            d += gift / v * (seen / s - d)
        for bank, (w, c), changed in zip(banks, born, (1.0, 0.5), strict=False):
            bank.shelve(t // _EVERY, w, c, self.won, self.tries, changed, *kept)

    def weigh(self, t, arm, y):
        for bank in (self.whole, self.split):
            p = (1 + self.won[arm] - bank.won[:, arm]) / (2 + self.tries[arm] - bank.tries[:, arm])
            old = (1 + self.won[arm] - bank.old_won[:, arm]) / (2 + self.tries[arm] - bank.old_tries[:, arm])
            changed = bank.changed[:, arm]
            f, o = (changed * p, (1 - changed) * old) if y else (changed * (1 - p), (1 - changed) * (1 - old))
            bank.w *= f + o
            bank.changed[:, arm] = f / (f + o)
        n = self.n[:, arm] / (1 + _Q * (t - self.last[arm]) * self.n[:, arm])
        p = (1 + n * self.m[:, arm]) / (2 + n)
        self.v *= p if y else 1 - p
        self.n[:, arm] = n + 1
        self.m[:, arm] += (y - self.m[:, arm]) / (n + 1)
        u, r, m = self.u + _Q, self.r[:, arm], self.level + self.offset[:, arm]
        n = np.maximum(1 / (u + r) - 2, 0.0)
        p = (1 + n * np.clip(m, 0.0, 1.0)) / (2 + n)
        self.tide_v *= p if y else 1 - p
        e = (y - m) / (1 + u + r)
        self.level += u * e
        self.offset[:, arm] += r * e
        self.u = np.minimum(u - u * u / (1 + u + r), 1.0)
        self.r[:, arm] = r - r * r / (1 + u + r)

    def newborn(self, bank, t, zh):
        b0, b1, b2 = (bank.w @ bank.c**k + 0.5 * (self.v @ self.d**k + self.tide_v @ self.tide_d**k) for k in range(3))
        flow = _RATE * b0 + _GROW * b1
        return zh * flow, min(t // _EVERY, 1 + (_RATE * b1 + _GROW * b2) / flow)

    def inheritance(self, t):
        bank, run, drifter = self.split, int(np.argmax(self.split.w)), int(np.argmax(self.v))
        if self.v[drifter] > bank.w[run]:
            n = self.n[drifter] / (1 + _Q[drifter] * (t - self.last) * self.n[drifter])
            return self.won - n * self.m[drifter], self.tries - n
        new = bank.changed[run] >= 0.5
        return np.where(new, bank.won[run], bank.old_won[run]), np.where(new, bank.tries[run], bank.old_tries[run])
