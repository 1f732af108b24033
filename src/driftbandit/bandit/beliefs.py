"""What a policy believes: about each arm now, in the units of the rewards, and about the arms in a context, as a normal
distribution of its coefficients."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.beliefs import BetaBelief, NormalBelief
from driftbandit.core.checks import UNIT, accepted_rewards
from driftbandit.player import copy_lists
from driftbandit.policies.drift.belief import Expected
from driftbandit.policies.drift.drift_lin_ts import DriftLinTS, by_hypothesis, feature_limits
from driftbandit.policies.drift.regressions import N_RUNS, NOISE, ORIGIN, RATES, RUNS
from driftbandit.policies.linear import DiscountedLogisticTS

Numbers = list[float | None]


def can_explain(policy: Any) -> bool:
    """Whether this policy can describe its beliefs."""
    return hasattr(policy, "explain")


class ArmBeliefs(NamedTuple):
    """By slot: believed mean reward, standard deviation of that belief, and the effective number of observations behind
    it. None where a policy keeps no such number."""

    mean: Numbers
    spread: Numbers
    weight: Numbers


def read_bandit(bandit: Any) -> tuple[Any, Any, Any]:
    """The policy, its state and the configuration of a bandit, all from between the same two changes."""
    while True:
        config = bandit.stored
        found = bandit.policy, bandit.state, config
        if bandit.stored is config:
            return found


def beliefs_of(bandit: Any) -> ArmBeliefs:
    """The beliefs of a bandit; with features, those in the mean context where its policy has such beliefs."""
    policy, state, config = read_bandit(bandit)
    found = arm_beliefs(policy, state, config)
    if config.features is None or config.candidates or any(mean is not None for mean in found.mean):
        return found
    try:
        expected = bandit.expected()
    except ValueError:  # the policy has none
        return found
    active = dict(zip(config.active, expected.values(), strict=False))
    mean, spread = (
        [getattr(active.get(slot), name, math.nan) for slot in range(len(config.arms))] for name in ("mean", "sd")
    )
    return found._replace(mean=_to_list(mean, len(mean)), spread=_to_list(spread, len(spread)))


def arm_beliefs(policy: Any, state: Any, config: Any) -> ArmBeliefs:
    """The beliefs of a policy with this state."""
    policy, state, origin, unit = _innermost(policy, state, config)
    n_arms = len(config.arms)
    weight, law = _weights(state, n_arms), _law(policy, state, n_arms)
    mean: Any = None
    spread: Any = None
    if law is not None:
        mean, spread = _moments(law)
        if weight is None and can_explain(policy) and isinstance(law, BetaBelief):
            weight = np.asarray(law.a) + np.asarray(law.b) - 2.0  # of which the prior is 2
    elif not can_explain(policy):
        mean, spread = _count_moments(state, weight, n_arms)
    if weight is not None and mean is not None:  # before the first reward there is nothing to believe
        mean = np.where(weight > 1e-9, mean, np.nan)
    return ArmBeliefs(
        _to_list(None if mean is None else origin + unit * mean, n_arms),
        _to_list(None if spread is None else abs(unit) * spread, n_arms),
        _to_list(weight, n_arms),
    )


def _innermost(policy: Any, state: Any, config: Any) -> tuple[Any, Any, float, float]:
    """The policy that learns, where others are wrapped around it, its state, and the origin and unit of what it
    learns."""
    origin, unit = config.scale
    while hasattr(policy, "base") and hasattr(state, "base"):
        policy, state = policy.base, state.base
    if hasattr(policy, "playing"):
        policy, state, low, high = policy.playing(state)
        origin, unit = origin + unit * low, unit * (high - low)
    return policy, state, origin, unit


def _law(policy: Any, state: Any, n_arms: int) -> NormalBelief | BetaBelief | None:
    """What is believed of the arms' means. A mixture is described by the distribution of its mean and spread: a Beta
    one if the policy learns rewards of 0 and 1."""
    if can_explain(policy):  # its `belief` may be sharpened for the next choice
        found = policy.explain(state, range(n_arms))
        if found.learned == 0:
            return None
        mean, sd = np.array([found.arms[slot] for slot in range(n_arms)]).T
        if accepted_rewards(policy) != UNIT:
            return NormalBelief(mean, sd)
        count = np.maximum(mean * (1.0 - mean) / sd**2 - 1.0, 2.0)
        return BetaBelief(mean * count, (1.0 - mean) * count)
    law = policy.belief(state) if getattr(policy, "belief", None) is not None else None
    return law if isinstance(law, NormalBelief | BetaBelief) else None


def _moments(law: NormalBelief | BetaBelief) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(law, NormalBelief):
        return np.asarray(law.mean), np.asarray(law.sd)
    a, b = np.asarray(law.a), np.asarray(law.b)
    mean = a / (a + b)
    return mean, np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))


def _weights(state: Any, n_arms: int) -> np.ndarray | None:
    for names in (("pulls",), ("wins", "losses"), ("count",)):
        fields = [getattr(state, name) for name in names if name in state._fields]
        if len(fields) == len(names) and all(len(field) == n_arms for field in fields):
            return np.sum([np.asarray(field, float) for field in fields], axis=0)  # type: ignore[no-any-return]
    return None


def _count_moments(state: Any, weight: Any, n_arms: int) -> tuple[Any, Any]:
    """From the means or sums that a policy without a distribution keeps."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = getattr(state, "mean", None)
        if mean is not None and len(mean) == n_arms:
            mean = np.asarray(mean, float)
        else:
            sums = next((getattr(state, name) for name in ("sums", "total", "wins") if name in state._fields), None)
            if sums is None or weight is None or len(sums) != n_arms:
                return None, None
            mean = np.asarray(sums, float) / weight
        # A bounded reward deviates from its mean by half its range at most.
        return mean, None if weight is None else np.minimum(1.0, 0.5 / np.sqrt(weight))


def _to_list(values: Any, n_arms: int) -> Numbers:
    if values is None:
        return [None] * n_arms
    return [float(value) if math.isfinite(value) else None for value in values]


def belief_densities(policy: Any, state: Any, config: Any) -> tuple[list[float], list[list[float]]] | None:
    """240 rewards, and each arm's density at them; None for a policy without such beliefs."""
    policy, state, origin, unit = _innermost(policy, state, config)
    law = _law(policy, state, len(config.arms))
    if isinstance(law, NormalBelief):
        mean, sd = _moments(law)
        keep = np.isfinite(mean) & np.isfinite(sd)
        if not keep.any():
            return None
        sd = np.maximum(sd, 1e-6 * max(float(np.abs(mean[keep]).max()), 1e-12))
        x = np.linspace((mean - 3.5 * sd)[keep].min(), (mean + 3.5 * sd)[keep].max(), 240)
        out = np.exp(-0.5 * ((x - mean[:, None]) / sd[:, None]) ** 2) / (sd[:, None] * math.sqrt(2.0 * math.pi))
    elif isinstance(law, BetaBelief):
        x = np.linspace(0.0, 1.0, 242)[1:-1]
        a, b = np.asarray(law.a)[:, None], np.asarray(law.b)[:, None]
        log_gamma = np.vectorize(math.lgamma)
        log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b)
        out = np.exp((a - 1.0) * np.log(x) + (b - 1.0) * np.log1p(-x) - log_beta)
    else:
        return None
    step = 1 if unit > 0.0 else -1  # rewards in rising order
    return (origin + unit * x)[::step].tolist(), np.nan_to_num(out / abs(unit))[:, ::step].tolist()


# ---- in a context ----------------------------------------------------------------------------------------------------


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


def expected_rewards(known: Believer, config: Any, features: Any) -> list[Expected]:
    """The expected reward of every slot, or of every candidate; a ValueError for a policy that has no such belief."""
    origin, unit = config.scale
    count = len(config.arms) if features is None or not known.joint else len(features) // known.n_features
    if known.learned == 0 and (features is not None or can_explain(known.policy)):
        return [Expected(math.nan, math.inf)] * count
    found = coefficients(known) if features is not None else None
    if found is not None:
        pairs = zip(*found.expected(features), strict=True)
        return [Expected(origin + unit * float(mean), abs(unit) * float(sd)) for mean, sd in pairs]
    if features is None and can_explain(known.policy):
        arms = known.policy.explain(known.arrays(), range(count)).arms
        return [Expected(origin + unit * arms[slot].mean, abs(unit) * arms[slot].sd) for slot in range(count)]
    raise ValueError(f"{type(known.policy).__name__} has no expected rewards; DriftAuto and DriftLinTS have.")
