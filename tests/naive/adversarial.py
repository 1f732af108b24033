"""Exponential weights: an arm is drawn with probability tilted towards what has paid, mixed with uniform play."""

import math

from .draws import Round, draw_from, total


class NaiveEXP3S:
    """EXP3.S. w_i = 1 / K at the start. p_i = (1 - explore) w_i / W + explore / K with W = sum of w.

    Learning (arm a, reward x), with the p of the present weights, that is the p the arm was drawn from:
    g = explore * x / (K p_a); w_a *= e^g; then w_j += (e share / K) W for all j, W the sum before the change;
    then all w are divided by their new sum.

    Draws: uniform(0) against the cumulative p (first arm whose cumulative sum exceeds it)."""

    tried = {"explore": 0.3, "share": 0.001}

    def __init__(self, n_arms: int, explore: float, share: float) -> None:
        self.explore, self.share = explore, share
        self.weights = [1.0 / n_arms] * n_arms

    def probabilities(self) -> list[float]:
        return mixed(self.weights, self.explore)

    def choose(self, t: int, rng: Round) -> int:
        return draw_from(self.probabilities(), rng.uniform(0))

    def learn(self, t: int, arm: int, reward: float) -> None:
        k = len(self.weights)
        before = total(self.weights)
        gain = self.explore * reward / (k * self.probabilities()[arm])
        weights = list(self.weights)
        weights[arm] *= math.exp(gain)
        weights = [w + math.e * self.share / k * before for w in weights]
        after = total(weights)
        self.weights = [w / after for w in weights]


class NaiveREXP3:
    """REXP3: EXP3 (EXP3.S without sharing) made new before choosing in rounds t = 0, batch, 2 batch, ... (0-based).

    Kept as gains G_i = sum of g of arm i since the restart, with weights exp(G_i - max G), because without sharing the
    weights themselves have no floor. p and g as in EXP3.S.

    Draws: uniform(0) against the cumulative p."""

    tried = {"batch": 100, "explore": 0.3}

    def __init__(self, n_arms: int, batch: int, explore: float) -> None:
        self.n_arms, self.batch, self.explore = n_arms, batch, explore
        self.played: list[tuple[int, int, float]] = []  # (round, arm, g)

    def probabilities(self, t: int) -> list[float]:
        start = t - t % self.batch
        gains = [total(g for s, arm, g in self.played if s >= start and arm == i) for i in range(self.n_arms)]
        top = max(gains)
        return mixed([math.exp(gain - top) for gain in gains], self.explore)

    def choose(self, t: int, rng: Round) -> int:
        return draw_from(self.probabilities(t), rng.uniform(0))

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.played.append((t, arm, self.explore * reward / (self.n_arms * self.probabilities(t)[arm])))


def mixed(weights: list[float], explore: float) -> list[float]:
    """Normalised weights with a share `explore` of uniform play."""
    whole = total(weights)
    return [(1.0 - explore) * w / whole + explore / len(weights) for w in weights]
