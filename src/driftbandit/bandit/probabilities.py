"""The probability of every arm under the rules and, in a context, under the policy: from what it believes, by an
integral or with all draws at once.

What a policy knows is copied first, so that nothing here needs the lock of a bandit."""

from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandit.bandit.beliefs import Believer, Coefficients, coefficients, copy_player, hypotheses, ridge
from driftbandit.bandit.records import StoredConfig
from driftbandit.core.beliefs import NormalBelief, largest_probabilities, normal_cdf
from driftbandit.core.draws import Stream
from driftbandit.policies.drift.drift_lin_ts import SHRINK, DriftLinTS, by_hypothesis, feature_limits
from driftbandit.policies.drift.regressions import CENTRE, NOISE, RATES, RUNS
from driftbandit.policies.linear import (
    DiscountedLinTS,
    DiscountedLinUCB,
    DiscountedLogisticTS,
    DiscountedRandLinUCB,
    KalmanTS,
    LinTS,
    LinUCB,
    RestartLinUCB,
    SlidingLinUCB,
    StableLinTS,
    WeightedLinUCB,
)
from driftbandit.policies.linear.linear_policy import radius

Found = tuple[np.ndarray, float]  # of each slot, and how far it may be off

_THOMPSON = (LinTS, StableLinTS, DiscountedLinTS, DiscountedLogisticTS, KalmanTS)
_BOUNDS = (LinUCB, WeightedLinUCB, DiscountedLinUCB, RestartLinUCB, SlidingLinUCB)  # no random numbers but for ties
_JOINT = 10  # times as many draws in the joint form, where each is cheap
_POINTS = 120  # of an integral, per arm
_SHARPEST = 1e-12  # of a mean: the least standard deviation that is integrated


def prepare(player: Any, at: int, features: Any, slots: list[int], draws: int) -> Callable[[], Found]:
    """How to compute the probability of each of these slots, from a copy of what the player knows. Where there is no
    context, and for policies that have to be asked draw by draw, they are computed at once."""
    kind = type(player.policy)
    contextual = features is not None and len(slots) > 1
    if contextual and kind in _BOUNDS:
        player.choose(Stream(player.key).at(0), None, at, features)
        bounds = _bounds(np.array([player.view(at).scores]), slots)
        return lambda: (bounds, 0.0)
    integrate = {DriftLinTS: _drift_lin_ts, DiscountedRandLinUCB: _random_bounds, **dict.fromkeys(_THOMPSON, _thompson)}
    if not contextual or kind not in integrate:
        found = player.probabilities(slots, at, draws, features)
        return lambda: found
    known, numbers = copy_player(player, at), player.check_features(features, player.n_arms)
    return lambda: integrate[kind](known, numbers, slots, draws)


def mix_rules(config: StoredConfig, slots: list[int], own: np.ndarray, error: float) -> tuple[np.ndarray, float]:
    """The probability of every slot, where the policy's own are known and no arm is fixed."""
    out = np.zeros(len(slots) if config.candidates else len(config.arms))
    held = config.holdback
    if held > 0.0:
        if config.baseline is not None and config.baseline in slots:
            out[config.baseline] += held
        else:
            out[slots] += held / len(slots)
    out[slots] += (1.0 - held) * config.floor / len(slots)
    share = (1.0 - held) * (1.0 - config.floor)
    out[slots] += share * own
    return out, share * error


def _bounds(scores: np.ndarray, slots: list[int]) -> np.ndarray:
    """How often each slot is played by a policy that plays the arm of the largest bound, or any of those that share it,
    given rows of bounds of all arms."""
    some = scores[:, slots]
    top = some == some.max(axis=1, keepdims=True)
    return np.asarray((top / top.sum(axis=1, keepdims=True)).mean(axis=0))


def _sandwich(known: Believer) -> np.ndarray:
    """The covariance of estimates that forget, if the noise is 1."""
    state, n, lam = known.arrays(), known.n_features + (not known.joint), known.policy.lam
    inverse = np.linalg.inv(ridge(state.gram, n, lam))
    return np.asarray(inverse @ ridge(state.second, n, lam) @ inverse)


def _thompson(known: Believer, features: Any, slots: list[int], draws: int) -> Found:
    """Of a policy that draws from normal distributions: an integral where those of the arms are independent."""
    policy, found = known.policy, coefficients(known)
    assert found is not None
    covariance = policy.sd**2 * _sandwich(known) if type(policy) is DiscountedLinTS else found.covariance
    found = found._replace(covariance=getattr(policy, "alpha", 1.0) ** 2 * covariance, log_odds=False)
    if known.joint:
        rng = np.random.Generator(np.random.Philox(known.key))
        rows = found.rows(features)
        scores = _draw_normals(found.covariance[0], _JOINT * draws, rng) @ rows.T + rows @ found.mean[0]
        scores = scores[:, _first_alike(rows)]
        return _smooth(_shares(scores, slots, scores.argmax(axis=1)), len(scores))
    mean, sd, _ = (values.ravel() for values in found.rewards(found.rows(features)))
    if not sd.any():  # alpha is 0: the first of those that share the largest mean
        return _shares(mean[None], slots, mean[None].argmax(axis=1)), 0.0
    mean, sd = mean[slots], sd[slots]
    values, error = largest_probabilities(NormalBelief(mean, np.maximum(sd, _SHARPEST * (1.0 + np.abs(mean)))), _POINTS)
    return values, error


def _random_bounds(known: Believer, features: Any, slots: list[int], draws: int) -> Found:
    """Of D-RandLinUCB: bounds whose width is a random number, the same for all arms."""
    state, policy, n = known.arrays(), known.policy, known.n_features + (not known.joint)
    mean = np.linalg.solve(ridge(state.gram, n, policy.lam), np.reshape(state.target, (-1, n, 1)))[:, :, 0]
    found = Coefficients(mean, _sandwich(known), np.zeros(known.n_features))
    centre, sd = found.expected(features)
    widths = np.abs(np.random.Generator(np.random.Philox(known.key)).standard_normal(draws))
    return _smooth(_bounds(centre + (widths / 2.5 * radius(policy, state))[:, None] * sd, slots), len(widths))


def _draw_normals(covariance: np.ndarray, draws: int, rng: Any) -> np.ndarray:
    """Draws of normal numbers with this covariance, a row for each."""
    sizes, vectors = np.linalg.eigh(covariance)
    return np.asarray(rng.standard_normal((draws, len(sizes))) @ (vectors * np.sqrt(np.maximum(sizes, 0.0))).T)


def _first_alike(rows: np.ndarray) -> np.ndarray:
    """For every row, the place of the first that equals it: products of equal rows may differ by rounding."""
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first[place.ravel()])


def _shares(scores: np.ndarray, slots: list[int], arms: np.ndarray) -> np.ndarray:
    """How often each slot is played, given rows of scores of all arms and the arm of each row that the policy plays.
    Where that is not one of the slots, `player.choose_among` takes any that has the largest score among them."""
    some, own = scores[:, slots], arms[:, None] == np.array(slots)
    top = np.where(own.any(axis=1, keepdims=True), own, some == some.max(axis=1, keepdims=True))
    return np.asarray((top / top.sum(axis=1, keepdims=True)).mean(axis=0))


def _smooth(found: np.ndarray, draws: int, error: float | None = None) -> Found:
    """Shares of so many draws as probabilities above 0, and two standard errors. A slot that was never the largest may
    still be chosen with a small probability."""
    if error is None:
        error = float(2.0 * np.sqrt(found * (1.0 - found) / draws).max())
    return (found * draws + 1.0 / len(found)) / (draws + 1.0), error + 2.0 / draws


def _drift_lin_ts(known: Believer, features: Any, slots: list[int], draws: int) -> Found:
    """Of DriftLinTS. With coefficients for each arm, the draws of all arms but one say how probable it is that its own
    is the largest: their mean varies less than a share of draws."""
    state, t, rng = known.arrays(), known.learned, np.random.Generator(np.random.Philox(known.key))
    noise = state.numbers[NOISE]
    if noise <= 0.0:
        return np.full(len(slots), 1.0 / len(slots)), 0.0
    if known.joint:
        values, scores = _draw_joint(state, t, features, _JOINT * draws, rng)
        top = scores == scores.max(axis=1, keepdims=True)
        return _smooth(_shares(scores, slots, np.where(top, values, -np.inf).argmax(axis=1)), len(scores))
    (used, weights), n, last = hypotheses(state), len(state.x), state.last[slots]
    x = np.append(1.0, np.clip(np.asarray(features) - state.origin[1:], *feature_limits(state, t)))
    factors = np.multiply.outer(x, x)[np.tril_indices(n)] * np.where(np.equal(*np.tril_indices(n)), 1.0, 2.0)
    before, wander = factors @ state.prior, factors @ state.wander
    mean = np.tensordot(x, by_hypothesis(state.mean, n)[slots][:, :, used], (0, 1))
    mean[:, RATES:RUNS] += state.level
    variance = np.maximum(
        np.tensordot(factors, by_hypothesis(state.covariance, len(factors))[slots][:, :, used], (0, 1)), 0.0
    )
    rates = np.append(state.rates, np.zeros(len(used) - RATES))
    drawn = np.searchsorted(np.cumsum(weights), (np.arange(draws) + rng.random()) / draws)  # one of each stratum
    drawn = np.minimum(drawn, len(used) - 1)
    idle = rng.random((draws, len(slots))) < 1.0 - (np.maximum(last, 1.0) / (t + 1.0)) ** (1.0 / 32.0)
    middle = np.where(idle, state.numbers[CENTRE], mean[:, drawn].T)
    spread = np.where(idle, before, variance[:, drawn].T) + rates[drawn, None] * wander * (t - last)
    learned = np.minimum(1.0, spread / before) if before > 0.0 else 1.0
    sd = np.sqrt(noise * spread * (learned + (1.0 - learned) * SHRINK))
    values = middle + sd * rng.standard_normal(middle.shape)
    return _largest(middle, sd, values, np.maximum(values, middle))


def _largest(middle: np.ndarray, sd: np.ndarray, values: np.ndarray, scores: np.ndarray) -> Found:
    """The probability of each column that its score, max(value, middle), is the largest, given those of all others in
    the same row; where scores are equal, the larger value decides."""
    rows, columns = np.arange(len(scores)), np.arange(scores.shape[1])
    rest = scores.copy()
    best = []
    for _ in range(2):
        top = rest == rest.max(axis=1, keepdims=True)
        best.append(np.where(top, values, -np.inf).argmax(axis=1))
        rest[rows, best[-1]] = -np.inf
    other = np.where(best[0][:, None] == columns, best[1][:, None], best[0][:, None])
    rival = scores[rows[:, None], other]
    need = np.where(middle == rival, values[rows[:, None], other], rival)
    found = np.where(middle > rival, 1.0, normal_cdf((middle - need) / np.maximum(sd, 1e-300)))
    share = found.mean(axis=0)
    away = found[1::2] - found[: len(found) // 2 * 2 : 2]  # neighbours are of the same stratum
    error = 2.0 * float(np.sqrt((away * away).mean(axis=0).max() / 2.0 / len(found))) if len(away) else 1.0
    return _smooth(share / share.sum(), len(found), error)


def _draw_joint(state: Any, t: int, features: Any, draws: int, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    """Draws of every arm in the joint form, and what is compared: coefficients are drawn once for all arms."""
    (used, weights), n = hypotheses(state), len(state.x)
    x = np.clip(np.reshape(features, (-1, n - 1)) - state.origin[1:], *feature_limits(state, t))
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
        normals = _draw_normals(covariance, int(some.sum()), rng) @ x.T
        variance = np.maximum(factors @ triangles[:, h], 0.0)
        normals *= np.where(variance > 0.0, 1.0 / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
        middle = x @ means[:, h] + (state.level[h - RATES] if RATES <= h < RUNS else 0.0)
        spread = variance + (state.rates[h] if h < RATES else 0.0) * wander * (t - state.last[0])
        learned = np.where(before > 0.0, np.minimum(1.0, spread / np.maximum(before, 1e-300)), 1.0)
        values[some] = middle + np.sqrt(state.numbers[NOISE] * spread * (learned + (1.0 - learned) * SHRINK)) * normals
        scores[some] = np.maximum(values[some], middle)
    alike = _first_alike(x)
    return values[:, alike], scores[:, alike]
