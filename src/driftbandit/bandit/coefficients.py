"""What a policy believes about the arms in a context: a normal distribution of its coefficients."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.player import copy_lists
from driftbandit.policies.drift.belief import Expected
from driftbandit.policies.drift.drift_lin_ts import DriftLinTS, by_hypothesis, feature_limits
from driftbandit.policies.drift.regressions import N_RUNS, NOISE, ORIGIN, RATES, RUNS
from driftbandit.policies.linear import DiscountedLogisticTS


class Believer(NamedTuple):
    """A copy of a player's beliefs at a time: using it needs no lock of its bandit."""

    policy: Any
    state: Any  # of lists or arrays
    learned: int
    n_features: int
    joint: bool
    key: int

    def arrays(self) -> Any:
        """The state as arrays."""
        return _as_arrays(self.state)


def _as_arrays(state: Any) -> Any:
    """The fields of a state as arrays, without a copy of those that are."""
    fields = [_as_arrays(field) if isinstance(field, tuple) else np.asarray(field) for field in state]
    return tuple.__new__(type(state), fields)


def copy_player(player: Any, at: int) -> Believer:
    """A copy of a player's beliefs at a time."""
    state = copy_lists(player.state) if player.half_life is None else player.faded(at)
    return Believer(player.policy, state, player.learned, player.n_features, player.joint, player.key)


class Coefficients(NamedTuple):
    """A normal distribution of the coefficients of every slot, the intercept first if there is one, for features less
    `origin`. In the joint form there is one slot for all arms."""

    mean: np.ndarray  # slots × coefficients
    covariance: np.ndarray  # slots × coefficients × coefficients
    origin: np.ndarray
    log_odds: bool = False  # whether the regression is of the log odds of a success
    known: bool = True  # whether there were rewards enough for a scale
    noise: float = math.inf  # standard deviation of rewards around their mean, where the policy has one
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


def coefficients(known: Believer) -> Coefficients | None:
    """What a policy believes; None for one that has no such belief."""
    policy, state = known.policy, known.state
    logistic = isinstance(policy, DiscountedLogisticTS)
    if not (isinstance(policy, DriftLinTS) or hasattr(policy, "sd") or logistic) or not hasattr(state, "x"):
        return None
    state = known.arrays()
    if isinstance(policy, DriftLinTS):
        return _mixture(state, known.learned)
    n, origin = len(state.u), np.zeros(known.n_features)
    if hasattr(state, "gram"):
        V = ridge(state.gram, n, policy.lam)
        sd, target = 1.0 if logistic else policy.sd, np.reshape(state.target, (-1, n, 1))
        mean, covariance = np.linalg.solve(V, target)[:, :, 0], sd**2 * np.linalg.inv(V)
        return Coefficients(mean, covariance, origin, logistic, noise=math.inf if logistic else sd)
    idle = policy.drift**2 * (known.learned - state.last)
    covariance = _symmetric(np.reshape(state.covariance, (-1, n, n))) + idle[:, None, None] * np.eye(n)
    return Coefficients(np.reshape(state.mean, (-1, n)), covariance, origin, noise=policy.sd)


def ridge(gram: Any, n: int, lam: float) -> np.ndarray:
    """Sums of squares as matrices of size n, each with its ridge."""
    return _symmetric(np.reshape(gram, (-1, n, n))) + lam * np.eye(n)


def _symmetric(upper: np.ndarray) -> np.ndarray:
    """Matrices of which the upper triangle is given."""
    out: np.ndarray = np.triu(upper) + np.triu(upper, 1).swapaxes(1, 2)
    return out


def hypotheses(state: Any) -> tuple[list[int], np.ndarray]:
    """The places of the hypotheses of DriftLinTS, and their weights."""
    used = [*range(RUNS), *state.slots[: int(state.counts[N_RUNS])]]
    weights = np.array(state.weights)[used]
    return used, weights / weights.sum()


def _mixture(state: Any, t: int) -> Coefficients:
    """The mean and covariance of all hypotheses of DriftLinTS together."""
    n, (used, weights) = len(state.x), hypotheses(state)
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
    limits, noise = feature_limits(state, t), math.sqrt(state.numbers[NOISE])
    return Coefficients(mean, covariance, state.origin[1:], known=noise > 0.0, noise=noise, limits=limits)


def compute_expected(known: Believer, features: Any, names: list[Any]) -> dict[Any, Expected]:
    """The expected reward of every slot, in the policy's units; a ValueError for a policy that has no belief."""
    if known.learned == 0 and (features is not None or hasattr(known.policy, "explain")):
        return dict.fromkeys(names, Expected(math.nan, math.inf))
    found = coefficients(known) if features is not None else None
    if found is not None:
        pairs = zip(names, *found.expected(features), strict=True)
        return {name: Expected(float(mean), float(sd)) for name, mean, sd in pairs}
    if features is None and hasattr(known.policy, "explain"):
        return dict(known.policy.explain(known.arrays(), names).arms)
    raise ValueError(f"{type(known.policy).__name__} has no expected rewards; DriftAuto and DriftLinTS have.")
