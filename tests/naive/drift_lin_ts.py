"""DriftLinTS: Thompson sampling over competing linear explanations of the past, for rewards of any scale.

No parameters. A run assumes that nothing has changed since its start; an own drift assumes that the coefficients of
every arm wander; a common drift assumes that one level shared by all arms wanders. Each hypothesis is a Bayesian linear
regression, updated one reward at a time (a Kalman filter) and weighted by how well it predicted the rewards.

In the disjoint form all arms share one context and each arm is a group with its own coefficients. In the joint form
each arm has its own features, and all arms share one group of coefficients. A context is written x = (1, features), so
coefficient 0 is the intercept. All variances are in units of the noise variance.

Beyond the specification: if the first reward is cut in the second look at the first 16 rewards, the first of them that
is not cut takes its place as y1. A difference from a first reward of 1e17 has no digits left.

Settled here, where the specification could be read in two ways: the first context survives the second look at the
first 16 rewards. The new run of a renewal stays however small its weight is, so that there is
always a run. When two runs of equal weight merge, the older one stays. A common drift that is reset keeps its weight.
Runs are merged after the new run has been added. For own drifts the empirical prior uses the covariances as stored,
that is, as of the round in which the group was last learned.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .draws import Round, argmax, total

RATES = [8.0 ** -(i + 2) for i in range(8)]  # of the drifts: variance added per round, the fastest first
EVERY = 16  # rounds between renewals; also the number of first rewards that are stored
COMMON = 1 / 16  # the common drifts' part of all weight that drifts start with and are given
LARGEST_REWARD = 1e30
Features = Sequence[Any] | np.ndarray | None  # d numbers; in `choose` of the joint form, one row of d numbers per arm
Vector = np.ndarray
Matrix = np.ndarray


@dataclass
class Run:
    """Nothing has changed since round `start`. Two runs of one age class merge into one of the next class."""

    weight: float
    means: list[Vector]
    covariances: list[Matrix]
    start: int
    age_class: int
    level: float = 0.0


@dataclass
class OwnDrift:
    """The coefficients of each group wander by covariance rate * VQ per round. The covariance of a group is the one
    after it was last learned."""

    weight: float
    means: list[Vector]
    covariances: list[Matrix]
    rate: float
    level: float = 0.0


@dataclass
class CommonDrift:
    """Coefficients are constant, and a level that all arms share wanders by variance `rate` per round.
    `level_covariances[g]` is the covariance of the level with the coefficients of group g."""

    weight: float
    means: list[Vector]
    covariances: list[Matrix]
    rate: float
    level: float
    level_variance: float
    level_covariances: list[Vector]


Hypothesis = Run | OwnDrift | CommonDrift


@dataclass
class Prediction:
    """One hypothesis's prediction of a reward: its mean p, its variance S, and the gain vector k."""

    mean: float
    variance: float
    gain: Vector


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def quadratic(x: Vector, matrix: Matrix) -> float:
    return float(x @ matrix @ x)


def arrow(variances: list[float], feature_means: list[float]) -> Matrix:
    """The covariance of the coefficients of raw features, if the coefficients of centred features are independent."""
    size = len(variances)
    matrix = np.zeros((size, size))
    matrix[0, 0] = variances[0]
    for j in range(1, size):
        mu, v = feature_means[j - 1], variances[j]
        matrix[j, j] = v
        matrix[0, j] = matrix[j, 0] = -mu * v
        matrix[0, 0] += mu * mu * v
    return matrix


def cholesky(matrix: Matrix) -> Matrix:
    """The lower triangular factor; a pivot that is not positive counts as 0, and so does its column."""
    size = len(matrix)
    factor = np.zeros((size, size))
    for j in range(size):
        pivot = matrix[j, j] - total(factor[j, k] ** 2 for k in range(j))
        if pivot <= 0.0:
            continue
        factor[j, j] = math.sqrt(pivot)
        for i in range(j + 1, size):
            factor[i, j] = (matrix[i, j] - total(factor[i, k] * factor[j, k] for k in range(j))) / factor[j, j]
    return factor


def limits(values: list[float], factor: float) -> tuple[float, float]:
    """How far from the median a value may be: `factor` times as far as the third farthest, if that is not 0."""
    median = float(np.median(values))
    far = factor * sorted(abs(value - median) for value in values)[-3]
    return (median - far, median + far) if far > 0.0 else (-math.inf, math.inf)


class NaiveDriftLinTS:
    """DriftLinTS, in the order of its specification.

    `choose` takes the d features of the round (joint: one row of d features per arm), `learn` those of the arm played;
    without features both may be left out. Rewards are first cut to +-1e30.

    Draws: normals(n_arms)[i] for arm i; while the noise variance is 0, the arm with the largest normal is played.
    uniform(0) * (sum of weights) draws the hypothesis in the order own drifts and common drifts (fastest first), runs
    (oldest first): weights are subtracted until the remainder is below 0. uniform(200 + i) <
    1 - (max(last, 1) / (t + 1))^(1/32) says that arm i is drawn from the prior. The joint form has one vector
    normals(D), whose entries belong to the coefficients 1, ..., d, 0 in this order."""

    def __init__(self, n_arms: int, n_features: int = 0, joint: bool = False, known: Sequence[float] = ()) -> None:
        self.n_arms, self.n_features, self.joint = n_arms, n_features, joint
        self.known = list(known) or [0.0] * n_features  # variances of features, 0 where unknown
        self.n_groups = 1 if joint else n_arms
        self.first_reward: float | None = None
        self.first_context: list[float] | None = None
        self.given: list[float] = []  # the first 16 rewards, nothing subtracted
        self.n_cut = 0  # rewards cut
        self.reset()

    def reset(self) -> None:
        """Forget everything but the first reward and the first context."""
        self.t = 0
        self.c0 = 0.0  # prior mean of an arm
        self.s2 = 0.0  # noise variance
        self.top = 0.0  # largest squared deviation of a reward from the mean before it
        self.reward_mean = self.reward_variance = self.reward_fourth = 0.0  # M, V, Q
        self.feature_means = [0.0] * self.n_features  # mu
        self.feature_variances = [0.0] * self.n_features  # var
        self.feature_ranges = [0.0] * self.n_features  # mx
        self.triples: list[tuple[Vector, int, float]] = []
        self.previous: list[float | None] = [None] * self.n_groups
        self.pairs = 0
        self.within = 0.0
        self.build()

    # Hypotheses

    def hypotheses(self) -> list[Hypothesis]:
        return [*self.own_drifts, *self.common_drifts, *self.runs]

    def heaviest(self) -> Hypothesis:
        everything = self.hypotheses()
        return everything[argmax([hypothesis.weight for hypothesis in everything])]

    def vectors(self, intercept: float) -> list[Vector]:
        return [np.array([intercept] + [0.0] * self.n_features) for _ in range(self.n_groups)]

    def prior_covariances(self) -> list[Matrix]:
        return [self.V0.copy() for _ in range(self.n_groups)]

    def new_run(self, weight: float, start: int) -> Run:
        return Run(weight, self.vectors(self.c0), self.prior_covariances(), start, 0)

    def new_own_drift(self, weight: float, rate: float) -> OwnDrift:
        return OwnDrift(weight, self.vectors(self.c0), self.prior_covariances(), rate)

    def new_common_drift(self, weight: float, rate: float) -> CommonDrift:
        covariances = self.prior_covariances()
        return CommonDrift(weight, self.vectors(0.0), covariances, rate, self.c0, 1.0, self.vectors(0.0))

    def plain_variances(self) -> list[float]:
        variances = [1.0]
        for j in range(self.n_features):
            variance = max(self.feature_variances[j], self.known[j])
            scale = max(self.n_features * variance, self.feature_ranges[j] ** 2 / 8)
            variances.append(1 / scale if scale > 0.0 else 0.0)
        return variances

    # Choose

    def extended(self, features: Features) -> Vector:
        """x = (1, the features minus the first context). After 16 rewards a feature is cut 8 times as far from its mean
        as it ever was, or as its known standard deviation."""
        x = [1.0]
        given = [] if features is None else [float(value) for value in features]
        assert len(given) == self.n_features
        for j in range(self.n_features):
            first = 0.0 if self.first_context is None else self.first_context[j]
            difference = given[j] - first
            difference = 0.0 if abs(difference) <= 2.0**-40 * abs(first) else difference
            farthest = 8 * max(self.feature_ranges[j], math.sqrt(self.known[j]))
            if self.t >= EVERY and farthest > 0.0:
                middle = self.feature_means[j]
                difference = clip(difference, middle - farthest, middle + farthest)
            x.append(difference)
        return np.array(x)

    def choose(self, t: int, rng: Round, x: Features = None) -> int:
        if self.s2 == 0.0:
            return argmax(rng.normals(self.n_arms))
        hypothesis = self.drawn(rng.uniform(0))
        contexts = [self.extended(x[arm] if self.joint and x is not None else x) for arm in range(self.n_arms)]
        normals = self.joint_normals(hypothesis, contexts, rng) if self.joint else rng.normals(self.n_arms)

        means, draws = [], []
        for arm in range(self.n_arms):
            x_arm = contexts[arm]
            group = 0 if self.joint else arm
            mean = float(x_arm @ hypothesis.means[group]) + hypothesis.level
            v = max(quadratic(x_arm, hypothesis.covariances[group]), 0.0)
            prior = quadratic(x_arm, self.V0)
            if not self.joint:
                from_prior = 1 - (max(self.last[group], 1) / (self.t + 1)) ** (1 / 32)
                if rng.uniform(200 + arm) < from_prior:
                    mean, v = self.c0, prior
            if isinstance(hypothesis, OwnDrift):
                v += hypothesis.rate * quadratic(x_arm, self.VQ) * (self.t - self.last[group])
            r = min(1.0, v / prior)
            v *= r + (1 - r) / 4
            means.append(mean)
            draws.append(mean + math.sqrt(self.s2 * v) * normals[arm])

        scores = [max(draws[arm], means[arm]) for arm in range(self.n_arms)]
        best = 0
        for arm in range(1, self.n_arms):
            if (scores[arm], draws[arm]) > (scores[best], draws[best]):
                best = arm
        return best

    def drawn(self, u: float) -> Hypothesis:
        everything = self.hypotheses()
        rest = u * total(hypothesis.weight for hypothesis in everything)
        for hypothesis in everything:
            rest -= hypothesis.weight
            if rest < 0.0:
                return hypothesis
        return everything[-1]

    def joint_normals(self, hypothesis: Hypothesis, contexts: list[Vector], rng: Round) -> list[float]:
        """A standard normal number per arm, correlated as the arms' rewards are in this hypothesis."""
        covariance = hypothesis.covariances[0]
        order = [*range(1, self.n_features + 1), 0]
        coefficients = cholesky(covariance[np.ix_(order, order)]) @ np.array(rng.normals(len(order)))
        result = []
        for x in contexts:
            v = quadratic(x, covariance)
            result.append(float(x[order] @ coefficients) / math.sqrt(v) if v > 0.0 else 0.0)
        return result

    # Learn

    def learn(self, t: int, arm: int, reward: float, x: Features = None) -> None:
        y = clip(float(reward), -LARGEST_REWARD, LARGEST_REWARD)
        if self.first_reward is None or self.first_context is None:
            self.first_reward = y
            self.first_context = [] if x is None else [float(value) for value in x]
        if self.t < EVERY:
            self.given.append(y)
        self.learn_shifted(self.extended(x), 0 if self.joint else arm, y - self.first_reward)
        if self.t == EVERY:
            self.look_again()

    def look_again(self) -> None:
        """Learn the first 16 rewards again if one or two of them, or of a feature, are absurdly far from the others."""
        triples, origin = self.triples, self.first_reward
        low, high = limits(self.given, 3)
        self.first_reward = next(y for y in self.given if low <= y <= high)
        rewards = [y - self.first_reward for y in self.given]
        low, high = limits(rewards, 3)
        bounds = [limits([float(x[j + 1]) for x, _, _ in triples], 8) for j in range(self.n_features)]
        cut_rewards = [clip(y, low, high) for y in rewards]
        cut_contexts = [
            np.array([1.0] + [clip(float(x[j + 1]), *bounds[j]) for j in range(self.n_features)]) for x, _, _ in triples
        ]
        far_rewards = sum(cut != y for cut, y in zip(cut_rewards, rewards, strict=True))
        self.n_cut += far_rewards
        if (
            far_rewards
            or self.first_reward != origin
            or any((cut != x).any() for cut, (x, _, _) in zip(cut_contexts, triples, strict=True))
        ):
            self.reset()
            for x, (_, group, _), y in zip(cut_contexts, triples, cut_rewards, strict=True):
                self.learn_shifted(x, group, y)

    def learn_shifted(self, x: Vector, group: int, y: float) -> None:
        y = self.learn_reward_moments(x, group, y)
        self.learn_feature_moments(x)
        E = self.absorb(x, group, y, self.t)
        if self.s2 > 0.0:
            E = min(E, self.s2 * (1 + self.t) / 2)
        if self.t > 1:
            self.s2 += (E - self.s2) * max(min(1.0, 2 / self.t), 1 / 512)
        self.s2 = max(self.s2, 2.0**-40 * self.top)
        if self.t <= 32:
            self.c0 += (y - self.c0) / self.t
        if self.t in (1, 2, 4, 8, 16):
            self.build()
        elif self.t % EVERY == 0:
            self.renew()

    def learn_reward_moments(self, x: Vector, group: int, y: float) -> float:
        """Step 1: cut the reward, and update everything that depends on rewards only."""
        n = self.t
        if n >= EVERY and self.reward_variance > 0.0:
            width = 3 * math.sqrt(self.reward_fourth / self.reward_variance)
            self.n_cut += abs(y - self.reward_mean) > width
            y = clip(y, self.reward_mean - width, self.reward_mean + width)
        f = 4 / (4 + n)
        e = y - self.reward_mean
        self.reward_mean += f * e
        self.reward_variance = (1 - f) * (self.reward_variance + f * e**2)
        self.reward_fourth = (1 - f) * (self.reward_fourth + f * e**4)
        if n > 0:
            self.top = max(self.top, e**2)
        if n < EVERY:
            self.triples.append((x, group, y))
            previous = self.previous[group]
            if previous is not None:
                self.pairs += 1
                self.within += ((y - previous) ** 2 / 2 - self.within) / self.pairs
            self.previous[group] = y
        self.t = n + 1
        return y

    def learn_feature_moments(self, x: Vector) -> None:
        """Step 2. Until a feature moves for the first time, no reward depends on its coefficient, so the prior variance
        of the coefficient can still be added everywhere."""
        old_means = list(self.feature_means)
        for j in range(self.n_features):
            value = float(x[j + 1])
            e = value - old_means[j]
            if e != 0.0 and self.feature_ranges[j] == self.known[j] == 0.0 and self.t > EVERY:
                variances = [0.0] * (self.n_features + 1)
                variances[j + 1] = 1 / (e**2 * max(self.n_features / self.t, 1 / 8))
                for hypothesis in self.hypotheses():
                    for group in range(self.n_groups):
                        hypothesis.covariances[group] = hypothesis.covariances[group] + arrow(variances, old_means)
            self.feature_means[j] += e / self.t
            self.feature_variances[j] += (e * (value - self.feature_means[j]) - self.feature_variances[j]) / self.t
            if self.t > 1:
                self.feature_ranges[j] = max(self.feature_ranges[j], abs(e))

    def absorb(self, x: Vector, group: int, y: float, t: int) -> float:
        """Step 3: all hypotheses predict and learn the reward of round t. Returns E, the mean squared error in units of
        the predictions' own variances."""
        everything = self.hypotheses()
        for own in self.own_drifts:
            own.covariances[group] = own.covariances[group] + own.rate * (t - self.last[group]) * self.VQ
        for common in self.common_drifts:
            common.level_variance += common.rate

        predictions = [self.predict(hypothesis, x, group) for hypothesis in everything]
        whole = total(hypothesis.weight for hypothesis in everything)
        shares = [hypothesis.weight / whole for hypothesis in everything]
        pairs = list(zip(shares, predictions, strict=True))
        y_bar = total(share * p.mean for share, p in pairs)
        E = total(share * (y - p.mean) ** 2 / p.variance for share, p in pairs)
        R = y - y_bar
        C = min(R**2, 9 * self.s2)

        for hypothesis, p in zip(everything, predictions, strict=True):
            if self.s2 > 0.0:
                h = p.mean - y_bar
                exponent = ((R - h / 2) * h - C / 2) / (self.s2 * p.variance)
                hypothesis.weight *= math.exp(clip(exponent, -600.0, 600.0)) / math.sqrt(p.variance)
            self.condition(hypothesis, p, x, group, y)

        whole = total(hypothesis.weight for hypothesis in everything)
        for hypothesis in everything:
            hypothesis.weight = max(hypothesis.weight / whole, 1e-200)
        self.last[group] = t
        return E

    def predict(self, hypothesis: Hypothesis, x: Vector, group: int) -> Prediction:
        mean = float(x @ hypothesis.means[group]) + hypothesis.level
        gain = hypothesis.covariances[group] @ x
        variance = 1 + float(x @ gain)
        if isinstance(hypothesis, CommonDrift):
            b = float(x @ hypothesis.level_covariances[group])
            variance += hypothesis.level_variance + 2 * b
            gain = gain + hypothesis.level_covariances[group]
        return Prediction(mean, max(1.0, variance), gain)

    def condition(self, hypothesis: Hypothesis, p: Prediction, x: Vector, group: int, y: float) -> None:
        """One step of the Kalman filter. The covariances of different groups are not kept. Rounding takes less from the
        variances than they grow by, and the level's covariance with other groups shrinks at least as the level's
        standard deviation does: so all variances stay positive."""
        k, S, error = p.gain, p.variance, y - p.mean
        hypothesis.means[group] = hypothesis.means[group] + k * error / S
        before = hypothesis.covariances[group]
        hypothesis.covariances[group] = before + np.diag(np.diag(before)) * 2.0**-42 - np.outer(k, k) / S
        if isinstance(hypothesis, CommonDrift):
            kap = hypothesis.level_covariances
            f = (hypothesis.level_variance + float(x @ kap[group])) / S
            after = max(hypothesis.level_variance - f**2 * S, 0.0)
            factor = max(min(1 - f, math.sqrt(after / hypothesis.level_variance)), 0.001)
            for other in range(self.n_groups):
                kap[other] = kap[other] - f * k if other == group else kap[other] * factor
            hypothesis.level += f * error
            hypothesis.level_variance = after

    # Build and renew

    def build(self) -> None:
        """Start again with the units estimated so far, and absorb the stored rewards."""
        F = 1.0
        if self.t >= 2:
            v = float(np.var([y for _, _, y in self.triples]))
            if self.pairs > 0 and self.s2 > 0.0:
                self.s2 = min(self.s2, max(self.within * (1 + 4 / self.pairs), v / self.pairs**2))
            if self.s2 > 0.0:
                F = max(1.0, v / self.s2 - 1)
        self.VQ = arrow(self.plain_variances(), self.feature_means)
        self.V0 = F * self.VQ
        self.runs = [self.new_run(1 / 9, 0)]
        self.own_drifts = [self.new_own_drift((1 - COMMON) / 9, rate) for rate in RATES]
        self.common_drifts = [self.new_common_drift(COMMON / 9, rate) for rate in RATES]
        self.last = [0] * self.n_groups
        for i, (x, group, y) in enumerate(self.triples):
            self.absorb(x, group, y, i + 1)

    def renew(self) -> None:
        """Estimate the prior again, add a run, merge old runs, and give some weight to every drift."""
        self.renew_prior()
        s = 1 / (1 + self.t)
        givers = [*self.runs, *self.own_drifts]
        given = total(s * giver.weight for giver in givers)
        for giver in givers:
            giver.weight -= s * giver.weight
        self.runs = [run for run in self.runs if run.weight >= 1e-25]
        self.runs.append(self.new_run(given, self.t))
        self.merge_runs()

        for hypothesis in self.hypotheses():
            hypothesis.weight *= 1 - s
        own_gift, common_gift = (1 - COMMON) * s / 8, COMMON * s / 8
        for i, common in enumerate(self.common_drifts):
            if common.weight < common_gift / 10:
                self.common_drifts[i] = self.new_common_drift(common.weight, common.rate)
        for own in self.own_drifts:
            own.weight += own_gift
        for common in self.common_drifts:
            common.weight += common_gift

    def renew_prior(self) -> None:
        variances = self.plain_variances()
        self.VQ = arrow(variances, self.feature_means)
        if self.s2 > 0.0:
            heaviest = self.heaviest()
            x_mean = np.array([1.0, *self.feature_means])
            levels = [float(x_mean @ mean) + heaviest.level for mean in heaviest.means]
            for j in range(self.n_features + 1):
                a = 0.0
                for group in range(self.n_groups):
                    mean, covariance = heaviest.means[group], heaviest.covariances[group]
                    if j == 0:
                        a += (levels[group] - self.c0) ** 2 / self.s2 + quadratic(x_mean, covariance)
                    else:
                        a += float(mean[j]) ** 2 / self.s2 + float(covariance[j, j])
                if variances[j] > 0.0:
                    variances[j] = (variances[j] / 4 + a) / (1 / 4 + self.n_groups)
            self.c0 = total(levels) / self.n_groups
        self.V0 = arrow(variances, self.feature_means)
        if self.joint:
            self.VQ = self.V0.copy()

    def merge_runs(self) -> None:
        self.runs.sort(key=lambda run: run.start)
        age_class = 0
        while any(run.age_class >= age_class for run in self.runs):
            same = [run for run in self.runs if run.age_class == age_class]
            while len(same) >= 3:
                older, newer = same[0], same[1]
                stays, goes = (newer, older) if newer.weight > older.weight else (older, newer)
                stays.weight += goes.weight
                stays.age_class += 1
                self.runs = [run for run in self.runs if run is not goes]
                same = same[2:]
            age_class += 1
