"""What a policy believes about the arms in a context: a normal distribution of its coefficients."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.policies.drift.belief import Expected
from driftbandit.policies.drift.drift_lin_ts import SHRINK, DriftLinTS, by_hypothesis, feature_limits
from driftbandit.policies.drift.regressions import CENTRE, N_RUNS, NOISE, ORIGIN, RATES, RUNS
from driftbandit.policies.linear import DiscountedLogisticTS


class Coefficients(NamedTuple):
    """A normal distribution of the coefficients of every slot, the intercept first if there is one, for features less
    `origin`. In the joint form there is one slot for all arms."""

    mean: np.ndarray  # slots × coefficients
    covariance: np.ndarray  # slots × coefficients × coefficients
    origin: np.ndarray
    log_odds: bool = False  # whether the regression is of the log odds of a success
    known: bool = True  # whether there were rewards enough for a scale
    limits: tuple[Any, Any] = (-math.inf, math.inf)  # of features less `origin`: what lies beyond is cut

    def rows(self, features: Any) -> np.ndarray:
        """What coefficients are multiplied by, a row for each context: features are those of one or of several."""
        x = np.clip(np.reshape(features, (-1, len(self.origin))) - self.origin, *self.limits)
        intercept = self.mean.shape[1] > x.shape[1]
        return np.hstack([np.ones((len(x), 1)), x]) if intercept else x

    def rewards(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The expected reward of each row and slot, its standard deviation, and by how much it rises with the
        regression."""
        mean = x @ self.mean.T
        sd = np.sqrt(np.maximum(np.einsum("gij,ki,kj->kg", self.covariance, x, x), 0.0))
        if not self.log_odds:
            return mean, sd, np.ones_like(mean)
        share = 1.0 / (1.0 + np.exp(-np.clip(mean, -30.0, 30.0)))
        return share, share * (1.0 - share) * sd, share * (1.0 - share)

    def expected(self, features: Any) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the standard deviation of every slot's reward with these features; in the joint form, of every
        arm."""
        mean, sd, _ = self.rewards(self.rows(features))
        return mean.ravel(), sd.ravel() if self.known else np.full(mean.size, np.inf)


def coefficients(player: Any, at: int) -> Coefficients | None:
    """What a player believes at a time; None for a policy that has no such belief."""
    policy, state = player.policy, player.arrays(at)
    if isinstance(policy, DriftLinTS):
        return _mixture(state, player.learned)
    logistic = isinstance(policy, DiscountedLogisticTS)
    if not (hasattr(policy, "sd") or logistic) or not hasattr(state, "u"):
        return None
    n, origin = len(state.u), np.zeros(player.n_features)
    if hasattr(state, "gram"):
        V = _symmetric(np.reshape(state.gram, (-1, n, n))) + policy.lam * np.eye(n)
        sd, target = 1.0 if logistic else policy.sd, np.reshape(state.target, (-1, n, 1))
        return Coefficients(np.linalg.solve(V, target)[:, :, 0], sd**2 * np.linalg.inv(V), origin, logistic)
    idle = policy.drift**2 * (player.learned - np.asarray(state.last))
    covariance = _symmetric(np.reshape(state.covariance, (-1, n, n))) + idle[:, None, None] * np.eye(n)
    return Coefficients(np.reshape(state.mean, (-1, n)), covariance, origin)


def _symmetric(upper: np.ndarray) -> np.ndarray:
    """Matrices of which the upper triangle is given."""
    out: np.ndarray = np.triu(upper) + np.triu(upper, 1).swapaxes(1, 2)
    return out


def _hypotheses(state: Any) -> tuple[list[int], np.ndarray]:
    """The places of the hypotheses of DriftLinTS, and their weights."""
    used = [*range(RUNS), *state.slots[: int(state.counts[N_RUNS])]]
    weights = np.array(state.weights)[used]
    return used, weights / weights.sum()


def _mixture(state: Any, t: int) -> Coefficients:
    """The mean and covariance of all hypotheses of DriftLinTS together."""
    n, (used, weights) = len(state.x), _hypotheses(state)
    means = by_hypothesis(state.mean, n)[:, :, used]
    means[:, 0] += state.numbers[ORIGIN]
    means[:, 0, RATES:RUNS] += state.level
    triangles = state.numbers[NOISE] * by_hypothesis(state.covariance, n * (n + 1) // 2)[:, :, used] @ weights
    within = np.zeros((len(triangles), n, n))
    within[:, *np.tril_indices(n)] = triangles
    mean = means @ weights
    away = means - mean[:, :, None]
    between = np.einsum("gih,gjh,h->gij", away, away, weights)
    covariance = _symmetric(within.swapaxes(1, 2)) + between
    known, limits = state.numbers[NOISE] > 0.0, feature_limits(state, t)
    return Coefficients(mean, covariance, np.asarray(state.origin)[1:], known=known, limits=limits)


def sampled_probabilities(player: Any, at: int, features: Any, slots: list[int], draws: int) -> Any:
    """The probability that DriftLinTS chooses each of these slots, and two standard errors; None for other policies.
    What `choose_in` does, all draws at once: some hundred times as fast as one after the other."""
    if not isinstance(player.policy, DriftLinTS):
        return None
    state, t, rng = player.arrays(at), player.learned, np.random.Generator(np.random.Philox(player.key))
    n_arms, noise, last = len(state.scores), state.numbers[NOISE], np.asarray(state.last)
    values = rng.standard_normal((draws, n_arms))
    scores = values
    if noise > 0.0 and player.joint:
        values, scores = _draw_joint(state, t, features, draws, rng)
    elif noise > 0.0:
        (used, weights), n = _hypotheses(state), len(state.x)
        x = np.append(1.0, np.clip(np.asarray(features) - np.asarray(state.origin)[1:], *feature_limits(state, t)))
        factors = np.multiply.outer(x, x)[np.tril_indices(n)] * np.where(np.equal(*np.tril_indices(n)), 1.0, 2.0)
        before, wander = factors @ state.prior, factors @ state.wander
        mean = np.tensordot(x, by_hypothesis(state.mean, n)[:, :, used], (0, 1))
        mean[:, RATES:RUNS] += state.level
        variance = np.maximum(
            np.tensordot(factors, by_hypothesis(state.covariance, len(factors))[:, :, used], (0, 1)), 0.0
        )
        rates = np.append(state.rates, np.zeros(len(used) - RATES))
        drawn = rng.choice(len(used), draws, p=weights)
        idle = rng.random((draws, n_arms)) < 1.0 - (np.maximum(last, 1.0) / (t + 1.0)) ** (1.0 / 32.0)
        middle = np.where(idle, state.numbers[CENTRE], mean[:, drawn].T)
        spread = np.where(idle, before, variance[:, drawn].T) + rates[drawn, None] * wander * (t - last)
        known = np.minimum(1.0, spread / before) if before > 0.0 else 1.0
        values = middle + np.sqrt(noise * spread * (known + (1.0 - known) * SHRINK)) * values
        scores = np.maximum(values, middle)
    top = scores[:, slots] == scores[:, slots].max(axis=1, keepdims=True)
    best = np.where(top, values[:, slots], -np.inf).argmax(axis=1)
    found = np.bincount(best, minlength=len(slots)) / draws
    return found, float(2.0 * np.sqrt(found * (1.0 - found) / draws).max() + 2.0 / draws)


def _draw_joint(state: Any, t: int, features: Any, draws: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """Draws of every arm in the joint form, and what is compared: coefficients are drawn once for all arms."""
    (used, weights), n = _hypotheses(state), len(state.x)
    x = np.clip(np.reshape(features, (-1, n - 1)) - np.asarray(state.origin)[1:], *feature_limits(state, t))
    x = np.hstack([np.ones((len(x), 1)), x])
    rows, columns = np.tril_indices(n)
    factors = x[:, rows] * x[:, columns] * np.where(rows == columns, 1.0, 2.0)
    before, wander = factors @ state.prior, factors @ state.wander
    means, triangles = by_hypothesis(state.mean, n)[0], by_hypothesis(state.covariance, len(rows))[0]
    values, scores = np.empty((draws, len(x))), np.empty((draws, len(x)))
    drawn = rng.choice(len(used), draws, p=weights)
    for place in np.unique(drawn):
        h, some = used[place], drawn == place
        covariance = np.zeros((n, n))
        covariance[rows, columns] = covariance[columns, rows] = triangles[:, h]
        sizes, vectors = np.linalg.eigh(covariance)
        normals = rng.standard_normal((int(some.sum()), n)) @ (vectors * np.sqrt(np.maximum(sizes, 0.0))).T @ x.T
        variance = np.maximum(factors @ triangles[:, h], 0.0)
        normals *= np.where(variance > 0.0, 1.0 / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
        middle = x @ means[:, h] + (state.level[h - RATES] if RATES <= h < RUNS else 0.0)
        spread = variance + (state.rates[h] if h < RATES else 0.0) * wander * (t - state.last[0])
        known = np.where(before > 0.0, np.minimum(1.0, spread / np.maximum(before, 1e-300)), 1.0)
        values[some] = middle + np.sqrt(state.numbers[NOISE] * spread * (known + (1.0 - known) * SHRINK)) * normals
        scores[some] = np.maximum(values[some], middle)
    return values, scores


def expected_rewards(player: Any, at: int, features: Any, names: list[Any]) -> dict[Any, Expected]:
    """The expected reward of every slot, in the policy's units; a ValueError for a policy that has no belief."""
    if player.learned == 0 and (features is not None or hasattr(player.policy, "explain")):
        return dict.fromkeys(names, Expected(math.nan, math.inf))
    found = coefficients(player, at) if features is not None else None
    if found is not None:
        pairs = zip(names, *found.expected(features), strict=True)
        return {name: Expected(float(mean), float(sd)) for name, mean, sd in pairs}
    if features is None and hasattr(player.policy, "explain"):
        return dict(player.explain(names, at).arms)
    raise ValueError(f"{type(player.policy).__name__} has no expected rewards; DriftAuto and DriftLinTS have.")
