"""Upper confidence bounds: every arm gets an optimistic index, and the largest index is played (`argmax_fair`).

Rules of the whole family, also used by the policies with change detectors:
  * n, the number inside a logarithm, counts the rewards behind the indices: t for kl-UCB (t = 0, 1, ... as
    given to `choose`), min(t, window) with a window, the discounted total with a discount. So in the limits (no
    discount, endless window) the policies are the same policy, from the first round on.
  * ln n is 0 for n < 1 and ln ln n is 0 for n <= e.
  * An arm without evidence (count exactly 0) has index +inf; several such arms tie, and TIES decides.
  * mean = sum / count with the sum in order of arrival (exact for 0/1 rewards, so equal records give equal means);
    discounted policies use the mean form: N_j *= gamma for all j; N_a += 1; mean_a += (x - mean_a) / N_a.
  * Paddings are computed as sqrt(factor * ln n / count), from left to right.
"""

import math
from collections.abc import Sequence

from .draws import Round, argmax_fair, log, log_log, total

EDGE = 1e-15  # how close kl lets its second argument come to 0 and 1


def kl(p: float, q: float) -> float:
    """Divergence of two Bernoulli laws; 0 ln 0 = 0, q is moved into [EDGE, 1 - EDGE]."""
    q = min(max(q, EDGE), 1.0 - EDGE)
    left = p * math.log(p / q) if p > 0.0 else 0.0
    right = (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0
    return left + right


def kl_ucb(p: float, d: float) -> float:
    """The largest q >= p with kl(p, q) <= d, to 1e-9 or better.

    1 if p >= 1. Otherwise top = min(1, p + sqrt(d / 2)), and if kl(p, top) <= d the answer is top itself: this makes
    the two exact cases exact, d = 0 (the answer is p) and a bound so wide that q = 1, where several arms tie. Else
    50 halvings of [p, top], keeping the lower end feasible; the lower end is the answer."""
    if p >= 1.0:
        return 1.0
    low, high = p, min(1.0, p + math.sqrt(d / 2.0))
    if kl(p, high) <= d:
        return high
    for _ in range(50):
        middle = (low + high) / 2.0
        if kl(p, middle) <= d:
            low = middle
        else:
            high = middle
    return low


def padded(rewards: Sequence[float], factor: float, n: float) -> float:
    """mean + sqrt(factor ln n / count) of one arm's rewards."""
    if not rewards:
        return math.inf
    k = len(rewards)
    return total(rewards) / k + math.sqrt(factor * log(n) / k)


def kl_padded(rewards: Sequence[float], c: float, n: float) -> float:
    """klUCB(mean, (ln n + c ln ln n) / count) of one arm's rewards."""
    if not rewards:
        return math.inf
    k = len(rewards)
    return kl_ucb(total(rewards) / k, (log(n) + c * log_log(n)) / k)


class _FromHistory:
    """Keeps every (arm, reward); the index looks at the last `window` of them."""

    def __init__(self, n_arms: int) -> None:
        self.n_arms = n_arms
        self.history: list[tuple[int, float]] = []

    def held(self, window: int | None = None) -> list[list[float]]:
        rounds = self.history if window is None else self.history[-window:]
        return [[x for arm, x in rounds if arm == i] for i in range(self.n_arms)]

    def indices(self, t: int) -> list[float]:
        raise NotImplementedError

    def choose(self, t: int, rng: Round) -> int:
        return argmax_fair(self.indices(t), rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.history.append((arm, reward))


class NaiveKLUCB(_FromHistory):
    """kl-UCB: klUCB(Sum_i / k_i, (ln t + c ln ln t) / k_i).

    Draws: TIES."""

    def __init__(self, n_arms: int, c: float = 0.0) -> None:
        super().__init__(n_arms)
        self.c = c

    def indices(self, t: int) -> list[float]:
        return [kl_padded(rewards, self.c, t) for rewards in self.held()]


class NaiveSlidingUCB(_FromHistory):
    """SW-UCB: S_i / N_i + reward_max sqrt(xi ln min(t, window) / N_i), N and S over the last `window` rounds.

    Draws: TIES."""

    tried = {"window": 50, "xi": 0.6}

    def __init__(self, n_arms: int, window: int, xi: float, reward_max: float = 1.0) -> None:
        super().__init__(n_arms)
        self.window, self.xi, self.reward_max = window, xi, reward_max

    def indices(self, t: int) -> list[float]:
        n = min(t, self.window)
        scores = []
        for rewards in self.held(self.window):
            k = len(rewards)
            if k == 0:
                scores.append(math.inf)
            else:
                scores.append(total(rewards) / k + self.reward_max * math.sqrt(self.xi * log(n) / k))
        return scores


class NaiveSlidingKLUCB(_FromHistory):
    """SW-klUCB: klUCB(S_i / N_i, (ln n + c ln ln n) / N_i), n = min(t, window), N and S over the last `window` rounds.

    Draws: TIES."""

    tried = {"window": 50}

    def __init__(self, n_arms: int, window: int, c: float = 0.0) -> None:
        super().__init__(n_arms)
        self.window, self.c = window, c

    def indices(self, t: int) -> list[float]:
        return [kl_padded(rewards, self.c, min(t, self.window)) for rewards in self.held(self.window)]


class _Discounted:
    """Discounted counts and means in the mean form, and the discounted total n <- gamma n + 1."""

    def __init__(self, n_arms: int, gamma: float) -> None:
        self.gamma = gamma
        self.pulls = [0.0] * n_arms
        self.means = [0.0] * n_arms
        self.n = 0.0

    def index(self, arm: int) -> float:
        raise NotImplementedError

    def indices(self, t: int) -> list[float]:
        # A count of 0 means never played, or unplayed so long that the count underflowed: both must be tried.
        return [self.index(arm) if self.pulls[arm] > 0.0 else math.inf for arm in range(len(self.pulls))]

    def choose(self, t: int, rng: Round) -> int:
        return argmax_fair(self.indices(t), rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.n = self.gamma * self.n + 1.0
        self.pulls = [n * self.gamma for n in self.pulls]
        self.pulls[arm] += 1.0
        self.means[arm] += (reward - self.means[arm]) / self.pulls[arm]


class NaiveDiscountedUCB(_Discounted):
    """D-UCB: mean_i + 2 reward_max sqrt(xi ln n / N_i).

    Draws: TIES."""

    tried = {"gamma": 0.97}

    def __init__(self, n_arms: int, gamma: float, xi: float = 2.0 / 3.0, reward_max: float = 1.0) -> None:
        super().__init__(n_arms, gamma)
        self.xi, self.reward_max = xi, reward_max

    def index(self, arm: int) -> float:
        return self.means[arm] + 2.0 * self.reward_max * math.sqrt(self.xi * log(self.n) / self.pulls[arm])


class NaiveDiscountedKLUCB(_Discounted):
    """D-klUCB: klUCB(mean_i, ln n / N_i).

    Draws: TIES."""

    tried = {"gamma": 0.97}

    def index(self, arm: int) -> float:
        return kl_ucb(self.means[arm], log(self.n) / self.pulls[arm])
