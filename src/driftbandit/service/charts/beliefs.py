"""What a policy believes about each arm, in the units of the rewards, for every kind of policy; and over time."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.agent.explaining import can_explain
from driftbandit.beliefs import BetaBelief, NormalBelief
from driftbandit.service.types import BeliefSeries

Numbers = list[float | None]


class Believed(NamedTuple):
    """By slot: believed mean reward, standard deviation of that belief, and the effective number of observations behind
    it. None where a policy keeps no such number."""

    mean: Numbers
    spread: Numbers
    weight: Numbers


def believed(policy: Any, state: Any, config: Any) -> Believed:
    """The beliefs of a policy with this state."""
    n_arms = len(config.arms)
    if hasattr(policy, "base") and hasattr(state, "base"):  # a policy around another one
        return believed(policy.base, state.base, config)
    low, high = config.reward_range
    weight = _weights(state, n_arms)
    mean, spread = _moments(policy, state, weight, n_arms)
    if weight is None and mean is not None and spread is not None and can_explain(policy):
        weight = _observations(mean, spread)
    if weight is not None and mean is not None:  # before the first reward there is nothing to believe
        mean = np.where(weight > 1e-9, mean, np.nan)
    return Believed(
        _plain(None if mean is None else low + (high - low) * mean, n_arms),
        _plain(None if spread is None else (high - low) * spread, n_arms),
        _plain(weight, n_arms),
    )


def belief_of(policy: Any, state: Any) -> Any:
    """The distributions of the next samples, or None."""
    if hasattr(policy, "base") and hasattr(state, "base"):
        return belief_of(policy.base, state.base)
    ask = getattr(policy, "belief", None)
    return None if ask is None else ask(state)


def alarms_of(state: Any) -> int | None:
    """How many changes a policy that detects changes has found."""
    if hasattr(state, "base"):
        return alarms_of(state.base)
    found = getattr(state, "alarms", None)
    return None if found is None else int(np.asarray(found)[0])


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
        if found.learnt == 0:
            return None, None
        mean, sd = np.array([found.arms[slot] for slot in range(n_arms)]).T
        return mean, sd
    belief = belief_of(policy, state)
    if isinstance(belief, NormalBelief):
        return np.asarray(belief.mean), np.asarray(belief.sd)
    if isinstance(belief, BetaBelief):
        a, b = np.asarray(belief.a), np.asarray(belief.b)
        mean = a / (a + b)
        return mean, np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    mean = getattr(state, "mean", None)
    if mean is not None and len(mean) == n_arms:
        mean = np.asarray(mean, float)
    else:
        sums = next((getattr(state, name) for name in ("sums", "total", "wins") if name in state._fields), None)
        if sums is None or weight is None or len(sums) != n_arms:
            return None, None
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.asarray(sums, float) / weight
    if weight is None:
        return mean, None
    with np.errstate(divide="ignore", invalid="ignore"):
        return mean, np.minimum(1.0, 0.5 / np.sqrt(weight))  # a bounded reward deviates by half its range at most


def _plain(values: Any, n_arms: int) -> Numbers:
    if values is None:
        return [None] * n_arms
    return [float(value) if math.isfinite(value) else None for value in values]


def densities(policy: Any, state: Any, config: Any, points: int = 240) -> tuple[list[float], list[list[float]]] | None:
    """Rewards, and each arm's density at them."""
    if hasattr(policy, "base") and hasattr(state, "base"):
        return densities(policy.base, state.base, config, points)
    low, high = config.reward_range
    width = high - low
    belief = belief_of(policy, state)
    if can_explain(policy):  # a mixture, drawn as the Beta distribution of its mean and spread
        mean, sd = _moments(policy, state, None, len(config.arms))
        if mean is None:
            return None
        count = _observations(mean, sd) + 2.0
        belief = BetaBelief(mean * count, (1.0 - mean) * count)
    if isinstance(belief, NormalBelief):
        mean, sd = np.asarray(belief.mean), np.maximum(np.asarray(belief.sd), 1e-6)
        keep = np.isfinite(mean) & np.isfinite(sd)
        if not keep.any():
            return None
        x = np.linspace((mean - 3.5 * sd)[keep].min(), (mean + 3.5 * sd)[keep].max(), points)
        out = np.exp(-0.5 * ((x - mean[:, None]) / sd[:, None]) ** 2) / (sd[:, None] * math.sqrt(2.0 * math.pi))
    elif isinstance(belief, BetaBelief):
        x = np.linspace(0.0, 1.0, points + 2)[1:-1]
        a, b = np.asarray(belief.a)[:, None], np.asarray(belief.b)[:, None]
        beta = np.array(
            [math.lgamma(p) + math.lgamma(q) - math.lgamma(p + q) for p, q in zip(a[:, 0], b[:, 0], strict=True)]
        )
        out = np.exp((a - 1.0) * np.log(x) + (b - 1.0) * np.log1p(-x) - beta[:, None])
    else:
        return None
    return (low + width * x).tolist(), np.nan_to_num(out / width).tolist()


# ---- over time -------------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """The beliefs at a time."""

    at: int
    belief: Believed
    alarms: int | None
    n: int


def take_sample(fold: Any, at: int) -> Sample:
    """The beliefs of a fold at a time."""
    state = fold.player.arrays(at)
    return Sample(at, believed(fold.player.policy, state, fold.config), alarms_of(state), fold.n)


def thin(samples: list[Sample], begin: int, end: int, points: int) -> list[Sample]:
    """At most `points` samples: the last of each interval."""
    width = max(1, (end - begin) // points)
    last: dict[int, Sample] = {}
    for found in samples:
        last[(found.at - begin) // width] = found
    return [last[place] for place in sorted(last)]


def as_series(samples: list[Sample], slots: int) -> BeliefSeries:
    """Samples as columns; null for arms that were added later."""

    def rows(name: str) -> list[list[float | None]]:
        return [(getattr(found.belief, name) + [None] * slots)[:slots] for found in samples]

    return BeliefSeries([found.at for found in samples], rows("mean"), rows("spread"), rows("weight"))
