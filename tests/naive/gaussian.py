"""Thompson sampling with a Normal posterior: of everything seen, of a window, or discounted."""

import math

from .draws import Round, argmax, argmax_fair, total


class NaiveGaussianTS:
    """Agrawal-Goyal's Gaussian TS: theta_i = Sum_i / (k_i + 1) + normal_i / sqrt(k_i + 1); k_i plays of arm i.
    shrink=False: the mean is Sum_i / k_i (0 for a never-played arm), the deviation is unchanged. First maximum.

    Draws: normals(n_arms)[i] belongs to arm i."""

    def __init__(self, n_arms: int, shrink: bool = True) -> None:
        self.shrink = shrink
        self.rewards: list[list[float]] = [[] for _ in range(n_arms)]

    def choose(self, t: int, rng: Round) -> int:
        noise = rng.normals(len(self.rewards))
        theta = []
        for arm, rewards in enumerate(self.rewards):
            k = len(rewards)
            divisor = k + 1 if self.shrink else max(k, 1)
            theta.append(total(rewards) / divisor + noise[arm] / math.sqrt(k + 1))
        return argmax(theta)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.rewards[arm].append(reward)


class NaiveSlidingGaussianTS:
    """Normal prior N(prior_mean, prior_sd^2), noise N(0, noise_sd^2), evidence from the last `window` rounds.
    v_i = 1 / (1 / prior_sd^2 + N_i / noise_sd^2), m_i = v_i (prior_mean / prior_sd^2 + S_i / noise_sd^2),
    theta_i = m_i + sqrt(v_i) normal_i. First maximum; an arm absent from the window is drawn from the prior.

    Draws: normals(n_arms)[i] belongs to arm i."""

    tried = {"window": 50, "noise_sd": 0.5}

    def __init__(
        self, n_arms: int, window: int, prior_mean: float = 0.0, prior_sd: float = 1.0, noise_sd: float = 1.0
    ) -> None:
        self.n_arms, self.window = n_arms, window
        self.prior_mean, self.prior_sd, self.noise_sd = prior_mean, prior_sd, noise_sd
        self.history: list[tuple[int, float]] = []

    def choose(self, t: int, rng: Round) -> int:
        noise = rng.normals(self.n_arms)
        theta = []
        for i in range(self.n_arms):
            held = [x for arm, x in self.history[-self.window :] if arm == i]
            mean, variance = normal_posterior(len(held), total(held), self.prior_mean, self.prior_sd, self.noise_sd)
            theta.append(mean + math.sqrt(variance) * noise[i])
        return argmax(theta)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.history.append((arm, reward))


class NaiveDiscountedGaussianTS:
    """As `NaiveSlidingGaussianTS`, with N_i discounted and S_i = N_i * mean_i, both in the mean form of DS-TS.

    Draws: normals(n_arms)[i] belongs to arm i."""

    tried = {"gamma": 0.97, "noise_sd": 0.5}

    def __init__(
        self, n_arms: int, gamma: float, prior_mean: float = 0.0, prior_sd: float = 1.0, noise_sd: float = 1.0
    ) -> None:
        self.gamma, self.prior_mean, self.prior_sd, self.noise_sd = gamma, prior_mean, prior_sd, noise_sd
        self.pulls = [0.0] * n_arms
        self.means = [0.0] * n_arms

    def choose(self, t: int, rng: Round) -> int:
        noise = rng.normals(len(self.pulls))
        theta = []
        for i, n in enumerate(self.pulls):
            mean, variance = normal_posterior(n, n * self.means[i], self.prior_mean, self.prior_sd, self.noise_sd)
            theta.append(mean + math.sqrt(variance) * noise[i])
        return argmax(theta)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.pulls = [n * self.gamma for n in self.pulls]
        self.pulls[arm] += 1.0
        self.means[arm] += (reward - self.means[arm]) / self.pulls[arm]


class NaiveSlidingPrecisionTS:
    """gamma-SWGTS: theta_i = S_i / N_i + normal_i / sqrt(precision * N_i) over the last `window` rounds; +inf for an
    arm absent from the window (at the start: never played). `argmax_fair`: several absent arms are drawn among fairly.

    Draws: normals(n_arms)[i] belongs to arm i; TIES."""

    tried = {"window": 50, "precision": 4.0}

    def __init__(self, n_arms: int, window: int, precision: float) -> None:
        self.n_arms, self.window, self.precision = n_arms, window, precision
        self.history: list[tuple[int, float]] = []

    def choose(self, t: int, rng: Round) -> int:
        noise = rng.normals(self.n_arms)
        theta = []
        for i in range(self.n_arms):
            held = [x for arm, x in self.history[-self.window :] if arm == i]
            if held:
                theta.append(total(held) / len(held) + noise[i] / math.sqrt(self.precision * len(held)))
            else:
                theta.append(math.inf)
        return argmax_fair(theta, rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.history.append((arm, reward))


def normal_posterior(n: float, s: float, prior_mean: float, prior_sd: float, noise_sd: float) -> tuple[float, float]:
    """Mean and variance after n observations that sum to s."""
    variance = 1.0 / (1.0 / prior_sd**2 + n / noise_sd**2)
    return variance * (prior_mean / prior_sd**2 + s / noise_sd**2), variance
