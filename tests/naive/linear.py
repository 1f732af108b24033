"""Linear bandits from the whole history: one system for all arms, with x = e_arm (x) (1, context) where every arm has
its own coefficients, and x the arm's features in the joint form.

Rules of the family:
  * V = lam I + sum of weight x x', b = sum of weight reward x, theta = V^-1 b.
  * The width of an interval is alpha sd where alpha > 0. Otherwise it is the radius of the theory, whose d is the
    dimension of the whole system.
  * Equal indices, to ten decimals: TIES decides. Samples: the first maximum.
  * Samples of a joint form take one normal per coefficient, theta + scale L^-T z with V = L L'. Where every arm has its
    own coefficients, arms are independent, and each takes one normal: x theta + scale sqrt(x' V^-1 x) z.
"""

import math
from typing import Any

import numpy as np

from .draws import Round, argmax, argmax_fair


class _Linear:
    """Keeps every (x, reward)."""

    def __init__(self, n_arms: int, n_features: int = 0, joint: bool = False, **parameters: Any) -> None:
        self.n_arms, self.joint = n_arms, joint
        self.dimension = n_features if joint else n_arms * (n_features + 1)
        self.own: dict[str, Any] = parameters
        self.rows: list[np.ndarray] = []
        self.rewards: list[float] = []
        self.start()

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("own", {}):
            return self.own[name]
        raise AttributeError(name)

    def start(self) -> None:
        """The further state of a twin."""

    def row(self, arm: int, features: Any) -> np.ndarray:
        if self.joint:
            return np.asarray(features, float)
        x = np.concatenate([[1.0], np.asarray(features, float)])
        return np.concatenate([x if i == arm else np.zeros_like(x) for i in range(self.n_arms)])

    def table(self, features: Any) -> np.ndarray:
        """x of every arm."""
        given = np.reshape(features, (self.n_arms, -1)) if self.joint else [features] * self.n_arms
        return np.array([self.row(arm, given[arm]) for arm in range(self.n_arms)])

    def weights(self) -> np.ndarray:
        """Of every round so far."""
        return np.ones(len(self.rewards))

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        X = np.reshape(self.rows, (-1, self.dimension))
        return self.lam * np.eye(self.dimension) + X.T @ (weights[:, None] * X)

    def solved(self) -> tuple[np.ndarray, np.ndarray]:
        """V^-1 and theta."""
        weights = self.weights()
        inverse = np.linalg.inv(self.matrix(weights))
        return inverse, inverse @ np.reshape(self.rows, (-1, self.dimension)).T @ (weights * np.array(self.rewards))

    def scores(self, t: int, X: np.ndarray, rng: Round) -> np.ndarray:
        raise NotImplementedError

    def pick(self, scores: np.ndarray, rng: Round) -> int:
        return argmax_fair(list(np.round(scores, 10)), rng)

    def choose(self, t: int, rng: Round, features: Any = ()) -> int:
        return self.pick(self.scores(t, self.table(features), rng), rng)

    def learn(self, t: int, arm: int, reward: float, features: Any = ()) -> None:
        self.rows.append(self.row(arm, features))
        self.rewards.append(reward)

    def radius(self, weight: float) -> float:
        """With the sum of the squared weights of all rounds."""
        if self.alpha > 0.0:
            return float(self.alpha * self.sd)
        inside = 1.0 + weight / (self.lam * self.dimension)
        noise = math.sqrt(2.0 * math.log(1.0 / self.delta) + self.dimension * math.log(inside))
        return float(math.sqrt(self.lam) + self.sd * noise)


class _Discounted(_Linear):
    def weights(self) -> np.ndarray:
        return np.asarray(self.gamma ** np.arange(len(self.rewards))[::-1])


class NaiveLinUCB(_Linear):
    """x theta + beta |x| in the norm of V^-1. Draws: TIES."""

    tried = {"lam": 0.1, "sd": 0.5, "delta": 0.01, "alpha": 1.0}

    def scores(self, t: int, X: np.ndarray, rng: Round) -> np.ndarray:
        inverse, theta = self.solved()
        return X @ theta + self.radius(float(np.sum(self.weights() ** 2))) * np.sqrt(np.sum(X @ inverse * X, axis=1))


class NaiveRestartLinUCB(NaiveLinUCB):
    """LinUCB that forgets everything in rounds 0, period, 2 period, ... Draws: TIES."""

    tried = {**NaiveLinUCB.tried, "period": 90}

    def choose(self, t: int, rng: Round, features: Any = ()) -> int:
        kept = t % self.period
        self.rows, self.rewards = self.rows[len(self.rows) - kept :], self.rewards[len(self.rewards) - kept :]
        return super().choose(t, rng, features)


class NaiveSlidingLinUCB(NaiveLinUCB):
    """LinUCB of the last `window` rounds, with the radius of the full window. Draws: TIES."""

    tried = {**NaiveLinUCB.tried, "window": 50}

    def weights(self) -> np.ndarray:
        return (np.arange(len(self.rewards))[::-1] < self.window).astype(float)

    def radius(self, weight: float) -> float:
        if self.alpha > 0.0:
            return float(self.alpha * self.sd)
        inside = (1.0 + self.window / self.lam) / self.delta
        return float(math.sqrt(self.lam) + self.sd * math.sqrt(self.dimension * math.log(inside)))


class NaiveWeightedLinUCB(_Discounted, NaiveLinUCB):
    """LinUCB with discounted weights. Draws: TIES."""

    tried = {"gamma": 0.97, **NaiveLinUCB.tried}


class NaiveDiscountedLinUCB(_Discounted):
    """The width is that of V^-1 Vt V^-1. In the paper Vt has the squared weights. In the code it is gamma^2 V + x x' +
    (1 - gamma^2) lam I, with V that already contains this round's x. Draws: TIES."""

    tried = {**NaiveWeightedLinUCB.tried, "form": "paper"}

    def second(self) -> np.ndarray:
        weights = self.weights()
        if self.form == "code" and len(weights) > 0:
            return self.matrix(self.gamma**2 * weights + np.append(np.zeros(len(weights) - 1), 1.0))
        return self.matrix(weights**2)

    def scores(self, t: int, X: np.ndarray, rng: Round) -> np.ndarray:
        inverse, theta = self.solved()
        X_inverse = X @ inverse
        widths = np.sqrt(np.sum(X_inverse @ self.second() * X_inverse, axis=1))
        return X @ theta + self.factor(rng) * self.radius(float(np.sum(self.weights() ** 2))) * widths

    def factor(self, rng: Round) -> float:
        return 1.0


class NaiveDiscountedRandLinUCB(NaiveDiscountedLinUCB):
    """D-LinUCB with its width times |Z| / 2.5. Draws: the first of the normals is Z; TIES."""

    tried = NaiveWeightedLinUCB.tried
    form = "paper"

    def factor(self, rng: Round) -> float:
        return abs(rng.normals(1)[0]) / 2.5


class NaiveLinTS(_Linear):
    """theta ~ N(V^-1 b, (alpha sd)^2 V^-1). Draws: normals."""

    tried = {"alpha": 1.0, "lam": 1.0, "sd": 0.5}

    def sample(self, X: np.ndarray, rng: Round, theta: np.ndarray, scale: float, root: np.ndarray) -> np.ndarray:
        """Scores of coefficients with mean theta and covariance scale^2 root root'."""
        if self.joint:
            return np.asarray(X @ (theta + scale * root @ rng.normals(self.dimension)))
        return np.asarray(X @ theta + scale * np.linalg.norm(X @ root, axis=1) * rng.normals(self.n_arms))

    def scores(self, t: int, X: np.ndarray, rng: Round) -> np.ndarray:
        _, theta = self.solved()
        root = np.linalg.inv(np.linalg.cholesky(self.matrix(self.weights()))).T
        return self.sample(X, rng, theta, self.alpha * self.sd, root)

    def pick(self, scores: np.ndarray, rng: Round) -> int:
        return argmax(list(scores))


class NaiveDiscountedLinTS(_Discounted, NaiveLinTS):
    """theta ~ N(V^-1 b, (alpha sd)^2 V^-1 Vt V^-1), Vt with the squared weights. Draws: normals; in the joint form
    V^-1 (b + alpha sd L z) with Vt = L L'."""

    tried = {"gamma": 0.97, **NaiveLinTS.tried}

    def scores(self, t: int, X: np.ndarray, rng: Round) -> np.ndarray:
        inverse, theta = self.solved()
        root = inverse @ np.linalg.cholesky(self.matrix(self.weights() ** 2))
        return self.sample(X, rng, theta, self.alpha * self.sd, root)


class NaiveStableLinTS(NaiveLinTS):
    """The information form: each round Lam <- g Lam + (1 - g) Lam0, eta <- g eta, then the reward. Draws: normals."""

    tried = {"gamma": 0.97, "lam": 0.25, "sd": 0.5}

    def start(self) -> None:
        self.first = np.eye(self.dimension) * self.lam / self.own.get("sd", 1.0) ** 2
        self.information, self.eta = self.first, np.zeros(self.dimension)

    def learn(self, t: int, arm: int, reward: float, features: Any = ()) -> None:
        x = self.row(arm, features)
        self.information = self.gamma * self.information + (1.0 - self.gamma) * self.first
        self.information = self.information + np.outer(x, x) / self.sd**2
        self.eta = self.gamma * self.eta + reward * x / self.sd**2

    def scores(self, t: int, X: np.ndarray, rng: Round) -> np.ndarray:
        root = np.linalg.inv(np.linalg.cholesky(self.information)).T
        return self.sample(X, rng, np.linalg.solve(self.information, self.eta), 1.0, root)


class NaiveDiscountedLogisticTS(NaiveStableLinTS):
    """For rewards in [0, 1]: Lam += w x x', m += Lam^-1 x (r - mu(x m)), w = mu'(x m), discounted in the information
    form. The draws are of coefficients, which order arms as their probabilities do. Draws: normals."""

    tried = {"gamma": 0.97, "lam": 1.0}

    def learn(self, t: int, arm: int, reward: float, features: Any = ()) -> None:
        x = self.row(arm, features)
        self.information = self.gamma * self.information + (1.0 - self.gamma) * self.first
        mean = np.linalg.solve(self.information, self.gamma * self.eta)
        mu = 1.0 / (1.0 + math.exp(-float(x @ mean)))
        self.information = self.information + mu * (1.0 - mu) * np.outer(x, x)
        self.eta = self.information @ (mean + np.linalg.solve(self.information, x) * (reward - mu))


class NaiveKalmanTS(NaiveLinTS):
    """Coefficients that walk: between two rounds their covariance grows by drift^2 I. Draws: normals."""

    tried = {"drift": 0.05, "sd": 0.5, "prior_sd": 1.0}

    def start(self) -> None:
        self.mean, self.covariance = np.zeros(self.dimension), np.eye(self.dimension) * self.prior_sd**2

    def learn(self, t: int, arm: int, reward: float, features: Any = ()) -> None:
        x = self.row(arm, features)
        gain = self.covariance @ x / (x @ self.covariance @ x + self.sd**2)
        self.mean = self.mean + gain * (reward - x @ self.mean)
        self.covariance = self.covariance - np.outer(gain, x @ self.covariance)
        self.covariance = self.covariance + self.drift**2 * np.eye(self.dimension)

    def scores(self, t: int, X: np.ndarray, rng: Round) -> np.ndarray:
        return self.sample(X, rng, self.mean, 1.0, np.linalg.cholesky(self.covariance))


class NaiveCusumLinUCB(NaiveLinUCB):
    """LinUCB with three cumulative sums for every set of coefficients, of log likelihood ratios of the standardised
    error e = (r - x theta) / sqrt(sd^2 (1 + x' V^-1 x) + (lam S |V^-1 x|)^2): a mean of +shift, a mean of -shift, a
    variance of 1 + shift^2. One that reaches `threshold` is an alarm. It discards the reward that raised it, and
    everything, or with `local` what is known of this arm. Draws: uniform(0) < explore: uniform(1) is the arm; TIES."""

    tried = {**NaiveLinUCB.tried, "shift": 1.0, "threshold": 5.0, "explore": 0.05, "local": False}

    def start(self) -> None:
        self.owners: list[int] = []
        self.sums = np.zeros((1 if self.joint else self.n_arms, 3))
        self.alarms = 0

    def choose(self, t: int, rng: Round, features: Any = ()) -> int:
        if rng.uniform(0) < self.explore:
            return int(rng.uniform(1) * self.n_arms)
        return super().choose(t, rng, features)

    def learn(self, t: int, arm: int, reward: float, features: Any = ()) -> None:
        x, owner = self.row(arm, features), 0 if self.joint else arm
        inverse, theta = self.solved()
        bias = self.lam * np.linalg.norm(inverse @ x)
        e = (reward - x @ theta) / math.sqrt(self.sd**2 * (1.0 + x @ inverse @ x) + bias**2)
        d = self.shift
        ratios = d * e - d * d / 2, -d * e - d * d / 2, (e * e * d * d / (1 + d * d) - math.log(1 + d * d)) / 2
        self.sums[owner] = np.maximum(0.0, self.sums[owner] + ratios)
        super().learn(t, arm, reward, features)
        self.owners.append(owner)
        if self.sums[owner].max() >= self.threshold:
            self.alarms += 1
            forgotten = {owner} if self.local else set(range(len(self.sums)))
            kept = [i for i, one in enumerate(self.owners) if one not in forgotten]
            self.rows, self.rewards = [self.rows[i] for i in kept], [self.rewards[i] for i in kept]
            self.owners = [self.owners[i] for i in kept]
            self.sums[sorted(forgotten)] = 0.0
