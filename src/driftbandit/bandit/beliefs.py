"""What a policy believes about each arm now, in the units of the rewards."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.beliefs import BetaBelief, NormalBelief
from driftbandit.core.checks import UNIT, accepted_rewards

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
    weight = _weights(state, n_arms)
    mean, spread = _moments(policy, state, weight, n_arms)
    if weight is None and mean is not None and spread is not None and _has_successes(policy):
        weight = _observations(mean, spread)
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


def _has_successes(policy: Any) -> bool:
    """Whether its explanations are about rewards of 0 and 1."""
    return can_explain(policy) and accepted_rewards(policy) == UNIT


def _observations(mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """How many rewards of 0 or 1, after a uniform prior, give a Beta distribution of this mean and spread."""
    count: np.ndarray = mean * (1.0 - mean) / spread**2 - 3.0  # a + b is m(1 - m)/s^2 - 1, of which the prior is 2
    return np.asarray(np.maximum(count, 0.0))


def _weights(state: Any, n_arms: int) -> np.ndarray | None:
    for names in (("pulls",), ("wins", "losses"), ("count",)):
        fields = [getattr(state, name) for name in names if name in state._fields]
        if len(fields) == len(names) and all(len(field) == n_arms for field in fields):
            return np.sum([np.asarray(field, float) for field in fields], axis=0)  # type: ignore[no-any-return]
    return None


def _moments(policy: Any, state: Any, weight: Any, n_arms: int) -> tuple[Any, Any]:
    if can_explain(policy):  # its next sample may come from a mixture
        found = policy.explain(state, range(n_arms))
        if found.learned == 0:
            return None, None
        mean, sd = np.array([found.arms[slot] for slot in range(n_arms)]).T
        return mean, sd
    belief = policy.belief(state) if getattr(policy, "belief", None) is not None else None
    if isinstance(belief, NormalBelief):
        return np.asarray(belief.mean), np.asarray(belief.sd)
    if isinstance(belief, BetaBelief):
        a, b = np.asarray(belief.a), np.asarray(belief.b)
        mean = a / (a + b)
        return mean, np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
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
    belief = policy.belief(state) if getattr(policy, "belief", None) is not None else None
    if can_explain(policy):  # a mixture, drawn as the Beta or normal distribution of its mean and spread
        mean, sd = _moments(policy, state, None, len(config.arms))
        if mean is None:
            return None
        belief = NormalBelief(mean, sd)
    if _has_successes(policy):
        count = _observations(mean, sd) + 2.0
        belief = BetaBelief(mean * count, (1.0 - mean) * count)
    if isinstance(belief, NormalBelief):
        mean, sd = np.asarray(belief.mean), np.asarray(belief.sd)
        keep = np.isfinite(mean) & np.isfinite(sd)
        if not keep.any():
            return None
        sd = np.maximum(sd, 1e-6 * max(float(np.abs(mean[keep]).max()), 1e-12))
        x = np.linspace((mean - 3.5 * sd)[keep].min(), (mean + 3.5 * sd)[keep].max(), 240)
        out = np.exp(-0.5 * ((x - mean[:, None]) / sd[:, None]) ** 2) / (sd[:, None] * math.sqrt(2.0 * math.pi))
    elif isinstance(belief, BetaBelief):
        x = np.linspace(0.0, 1.0, 242)[1:-1]
        a, b = np.asarray(belief.a)[:, None], np.asarray(belief.b)[:, None]
        log_gamma = np.vectorize(math.lgamma)
        log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b)
        out = np.exp((a - 1.0) * np.log(x) + (b - 1.0) * np.log1p(-x) - log_beta)
    else:
        return None
    step = 1 if unit > 0.0 else -1  # rewards in rising order
    return (origin + unit * x)[::step].tolist(), np.nan_to_num(out / abs(unit))[:, ::step].tolist()
