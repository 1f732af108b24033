"""kl-UCB with the generalised likelihood ratio test for a change of a Bernoulli mean.

The rules of `ucb.py` hold. Every reward is first added to its arm, then tested; an alarm discards it too.
"""

import math
from collections.abc import Sequence

from .detectors import forced_arm
from .draws import Round, argmax_fair, log, total
from .ucb import kl, kl_padded

ZETA_2 = math.pi**2 / 6.0


def glr(rewards: Sequence[float]) -> float:
    """max over 1 <= s < n of s kl(mean of the first s, mean) + (n - s) kl(mean of the others, mean); 0 when n < 2 or
    the overall mean is 0 or 1."""
    n, whole = len(rewards), total(rewards)
    if n < 2 or not 0.0 < whole / n < 1.0:
        return 0.0
    best = before = 0.0
    for s in range(1, n):
        before += rewards[s - 1]
        # Rounding can leave the rest of the sum a hair outside [0, n - s], where kl has no logarithm.
        after = min(max((whole - before) / (n - s), 0.0), 1.0)
        best = max(best, s * kl(before / s, whole / n) + (n - s) * kl(after, whole / n))
    return best


def h_inverse(y: float) -> float:
    """The u >= 1 with u - ln u = y, for y >= 1."""
    low, high = 1.0, 2.0 * y + 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle - math.log(middle) < y:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def h_tilde(y: float) -> float:
    switch = 1.0 / math.log(1.5)
    if y >= switch - math.log(switch):
        u = h_inverse(y)
        return math.exp(1.0 / u) * u
    return 1.5 * (y - math.log(math.log(1.5)))


def calligraphic_t(x: float) -> float:
    """The function T(x) of the theoretical threshold."""
    return 2.0 * h_tilde((h_inverse(1.0 + x) + math.log(2.0 * ZETA_2)) / 2.0)


def glr_threshold(n: int, delta: float, threshold: float) -> float:
    """beta(n, delta): ln(threshold n^(3/2) / delta) for threshold > 0, the theoretical one for threshold = 0; no alarm
    ever for delta = 0."""
    if delta <= 0.0:
        return math.inf
    if threshold > 0.0:
        return math.log(threshold) + 1.5 * math.log(n) - math.log(delta)
    x = math.log(3.0) + 1.5 * math.log(n) - math.log(delta)
    return 2.0 * calligraphic_t(x / 2.0) + 6.0 * math.log(1.0 + math.log(n))


class NaiveGLRKLUCB:
    """GLR-klUCB. s_i = number of rewards learned when arm i last restarted (0 at the start), alarms = alarms so far.

    A = (t + 1) mod floor(K / alpha) with alpha = min(1, sqrt(e K ln(horizon) / horizon)), e = alarms + 1, or (constant)
    e = changes if changes > 0: if 1 <= A <= K play arm A - 1. Else klUCB(Sum_i / k_i, (ln m + c ln ln m) / k_i) with
    m = t - s_i and k_i, Sum_i since arm i's restart. alpha is computed from left to right.

    After each play of arm a, with its n >= 2 rewards since its restart: alarm if glr > beta(n, delta) (strictly);
    `threshold` = 1 or 3 are the two practical values, 0 the theoretical one (see `glr_threshold`). An alarm in round t
    empties arm a and sets s_a = t + 1 (local), or does so to all arms (local=False), whatever arm rang.

    Draws: TIES."""

    tried = {"horizon": 400, "delta": 0.05}

    def __init__(
        self,
        n_arms: int,
        horizon: int,
        delta: float,
        local: bool = True,
        threshold: float = 1.0,
        changes: int = 0,
        c: float = 0.0,
    ) -> None:
        self.n_arms, self.horizon, self.delta, self.local = n_arms, horizon, delta, local
        self.threshold, self.changes, self.c = threshold, changes, c
        self.rewards: list[list[float]] = [[] for _ in range(n_arms)]
        self.start = [0] * n_arms
        self.alarms = 0

    def choose(self, t: int, rng: Round) -> int:
        episodes = self.changes if self.changes > 0 else self.alarms + 1
        explore = min(1.0, math.sqrt(episodes * self.n_arms * log(self.horizon) / self.horizon))
        forced = forced_arm(t + 1, self.n_arms, explore)
        if forced >= 0:
            return forced
        return argmax_fair([kl_padded(self.rewards[i], self.c, t - self.start[i]) for i in range(self.n_arms)], rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.rewards[arm].append(reward)
        n = len(self.rewards[arm])
        if n < 2 or not glr(self.rewards[arm]) > glr_threshold(n, self.delta, self.threshold):
            return
        self.alarms += 1
        for i in [arm] if self.local else range(self.n_arms):
            self.rewards[i] = []
            self.start[i] = t + 1
