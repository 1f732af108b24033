"""Thompson sampling: a draw from each arm's belief, and the arm with the largest draw is played.

Unless a docstring says otherwise: samples are compared by `argmax` (first maximum), an arm without evidence is sampled
from its prior, and rewards enter as they are.
"""

import math

from .draws import Round, argmax, argmax_fair, total


class NaiveDiscountedTS:
    """DS-TS. Mean form of the discounted sums, exactly in this order for each reward x of arm a:
    N_j *= gamma for all j; N_a += 1; mean_a += (x - mean_a) / N_a; both start at 0.

    theta_i = centre_i + sd_i * normal_i; sd_i = min(1 / sqrt(weight * N_i), tau_max), and tau_max when
    weight * N_i = 0. centre_i = mean_i, but N_i * mean_i (almost 0) as long as N_i < forget_below: the mean itself
    is kept, so the forgetting happens at reading only. First maximum.

    Draws: normals(n_arms)[i] belongs to arm i."""

    tried = {"gamma": 0.97, "tau_max": 0.2}

    def __init__(
        self, n_arms: int, gamma: float, tau_max: float, forget_below: float = 0.0, weight: float = 1.0
    ) -> None:
        self.gamma, self.tau_max, self.forget_below, self.weight = gamma, tau_max, forget_below, weight
        self.pulls = [0.0] * n_arms
        self.means = [0.0] * n_arms

    def sds(self) -> list[float]:
        sds = []
        for n in self.pulls:
            evidence = self.weight * n
            sds.append(min(1.0 / math.sqrt(evidence), self.tau_max) if evidence > 0.0 else self.tau_max)
        return sds

    def centres(self) -> list[float]:
        return [n * m if n < self.forget_below else m for n, m in zip(self.pulls, self.means, strict=True)]

    def choose(self, t: int, rng: Round) -> int:
        noise = rng.normals(len(self.pulls))
        return argmax([c + sd * z for c, sd, z in zip(self.centres(), self.sds(), noise, strict=True)])

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.pulls = [n * self.gamma for n in self.pulls]
        self.pulls[arm] += 1.0
        self.means[arm] += (reward - self.means[arm]) / self.pulls[arm]


class NaiveBetaTS:
    """TS: Beta(prior_wins + S_i, prior_losses + F_i), S_i the sum of arm i's rewards y, F_i the sum of 1 - y, in order
    of arrival. y = x, or with `binarise` y = 1 if coin < x else 0. First maximum.

    Draws: betas(a, b)[i] for arm i; coin = uniform(2), of the reward's time step, kept from
    `choose`, which must come just before."""

    def __init__(self, n_arms: int, prior_wins: float = 1.0, prior_losses: float = 1.0, binarise: bool = False) -> None:
        self.n_arms, self.prior_wins, self.prior_losses, self.binarise = n_arms, prior_wins, prior_losses, binarise
        self.history: list[tuple[int, float]] = []  # (arm, y)
        self.coin = 0.5

    def remembered(self) -> list[tuple[int, float]]:
        return self.history

    def wins(self) -> list[float]:
        return [total(y for arm, y in self.remembered() if arm == i) for i in range(self.n_arms)]

    def losses(self) -> list[float]:
        return [total(1.0 - y for arm, y in self.remembered() if arm == i) for i in range(self.n_arms)]

    def parameters(self) -> tuple[list[float], list[float]]:
        return [self.prior_wins + s for s in self.wins()], [self.prior_losses + f for f in self.losses()]

    def choose(self, t: int, rng: Round) -> int:
        self.coin = rng.uniform(2)
        return argmax(rng.betas(*self.parameters()))

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.history.append((arm, binarised(reward, self.coin) if self.binarise else reward))


class NaiveSlidingTS(NaiveBetaTS):
    """SW-TS: as TS, but S and F count the last `window` rounds only (all arms together).

    Draws: as TS. With `binarise` the window holds the y of the round in which it was observed."""

    tried = {"window": 50}

    def __init__(
        self,
        n_arms: int,
        window: int,
        prior_wins: float = 1.0,
        prior_losses: float = 1.0,
        binarise: bool = False,
    ) -> None:
        super().__init__(n_arms, prior_wins, prior_losses, binarise)
        self.window = window

    def remembered(self) -> list[tuple[int, float]]:
        return self.history[-self.window :]


class NaiveDiscountedBetaTS:
    """dTS: S_j *= gamma and F_j *= gamma for all j, then S_a += y, F_a += 1 - y (y as in TS); theta_i from
    Beta(prior_wins + S_i, prior_losses + F_i). The prior is never discounted. First maximum.

    optimistic (dOTS): theta_i = max(draw_i, a_i / (a_i + b_i)) with a_i, b_i the Beta parameters. Equal posterior means
    then tie with positive probability, so the choice is by `argmax_fair`.

    Draws: betas(a, b)[i] for arm i; coin = uniform(2) as in TS; TIES when optimistic."""

    tried = {"gamma": 0.97, "optimistic": True}

    def __init__(
        self,
        n_arms: int,
        gamma: float,
        optimistic: bool = False,
        prior_wins: float = 1.0,
        prior_losses: float = 1.0,
        binarise: bool = False,
    ) -> None:
        self.gamma, self.optimistic, self.binarise = gamma, optimistic, binarise
        self.prior_wins, self.prior_losses = prior_wins, prior_losses
        self.wins = [0.0] * n_arms
        self.losses = [0.0] * n_arms
        self.coin = 0.5

    def parameters(self) -> tuple[list[float], list[float]]:
        return [self.prior_wins + s for s in self.wins], [self.prior_losses + f for f in self.losses]

    def choose(self, t: int, rng: Round) -> int:
        self.coin = rng.uniform(2)
        a, b = self.parameters()
        theta = rng.betas(a, b)
        if not self.optimistic:
            return argmax(theta)
        return argmax_fair([max(theta[i], a[i] / (a[i] + b[i])) for i in range(len(a))], rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        y = binarised(reward, self.coin) if self.binarise else reward
        self.wins = [s * self.gamma for s in self.wins]
        self.losses = [f * self.gamma for f in self.losses]
        self.wins[arm] += y
        self.losses[arm] += 1.0 - y


def binarised(reward: float, coin: float) -> float:
    """A 0/1 reward of the same mean, decided by a uniform number."""
    return 1.0 if coin < reward else 0.0


class NaiveDiscountedGaussianTS:
    """D-GTS. N_i and S_i, the weighted number and sum of arm i's rewards, are multiplied by gamma for every arm before
    a reward counts with weight 1. Posterior of a normal mean: precision = 1/prior_sd^2 + N_i/noise^2 and
    mean = prior_mean + (S_i - prior_mean N_i)/noise^2 / precision; theta_i = mean + normal_i / sqrt(precision). First
    maximum.

    Draws: normals(n_arms)[i] belongs to arm i."""

    tried = {"gamma": 0.97, "noise": 0.3, "prior_mean": 0.4, "prior_sd": 0.6}

    def __init__(
        self, n_arms: int, gamma: float, noise: float = 0.5, prior_mean: float = 0.5, prior_sd: float = 0.5
    ) -> None:
        self.gamma, self.noise, self.prior_mean, self.prior_sd = gamma, noise, prior_mean, prior_sd
        self.evidence = [(0.0, 0.0)] * n_arms

    def choose(self, t: int, rng: Round) -> int:
        known, prior = 1.0 / (self.noise * self.noise), 1.0 / (self.prior_sd * self.prior_sd)
        draws = []
        for (n, s), z in zip(self.evidence, rng.normals(len(self.evidence)), strict=True):
            precision = prior + known * n
            draws.append(self.prior_mean + known * (s - self.prior_mean * n) / precision + z / math.sqrt(precision))
        return argmax(draws)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.evidence = [(n * self.gamma, s * self.gamma) for n, s in self.evidence]
        n, s = self.evidence[arm]
        self.evidence[arm] = (n + 1.0, s + reward)


class NaiveSlidingGaussianTS(NaiveDiscountedGaussianTS):
    """SW-GTS: as D-GTS with N_i and S_i from the last `window` rounds of all arms together.

    Draws: as D-GTS."""

    tried = {"window": 60, "noise": 0.3, "prior_mean": 0.4, "prior_sd": 0.6}

    def __init__(
        self, n_arms: int, window: int, noise: float = 0.5, prior_mean: float = 0.5, prior_sd: float = 0.5
    ) -> None:
        super().__init__(n_arms, 1.0, noise, prior_mean, prior_sd)
        self.window = window
        self.history: list[tuple[int, float]] = []

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.history.append((arm, reward))
        last = self.history[-self.window :]
        rewards = [[x for a, x in last if a == i] for i in range(len(self.evidence))]
        self.evidence = [(float(len(xs)), total(xs)) for xs in rewards]
