"""Linear Thompson sampling: draw coefficients, play the arm they make best; and ways to let it forget."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import within
from driftbandit.core.primitives import argmax, compilable, index
from driftbandit.core.validity import REALS, ROUNDS, SCRATCH, fits, need
from driftbandit.policies.forgetting import DISCOUNT
from driftbandit.policies.linear.least_squares import (
    add_product,
    discount,
    factorise,
    group_of,
    predict,
    predict_arm,
    quadratic,
    renew,
    renew_all,
    sample,
    score_by,
    second_variance,
    solve_lower,
    solve_upper,
    square,
)
from driftbandit.policies.linear.linear_policy import (
    LAM,
    MATRIX,
    SD,
    LinearState,
    dimension,
    linear,
    new_regression,
    sizes,
)

SCALE = within(">= 0")
_FARTHEST = 500.0  # log odds beyond this count as this much: their exponential overflows
_LEAST = 1e-12  # of the prior variance: keeps the pivots of a covariance above 0
_DISCOUNTED = r"""V \leftarrow \gamma V + x x^\top + (1 - \gamma) \lambda I, \quad b \leftarrow \gamma b + r x"""


@linear(
    short="lin-ts",
    draws="sample",
    family="never forgets",
    knows="the noise",
    cost="O(K D^2 + D^3)",
    formula=r"""
        \theta \sim \mathcal{N}\bigl(V^{-1} b,\ (\alpha \sigma)^2 V^{-1}\bigr), \quad
        a = \operatorname{argmax}_i x_i^\top \theta
        V \leftarrow V + x x^\top, \quad b \leftarrow b + r x
    """,
    reference="Agrawal, Goyal 2013",
)
class LinTS(NamedTuple):
    """Thompson sampling with a Bayesian linear regression. Suited to rewards that do not change.

    At alpha = 1 samples are from the posterior of coefficients with variance sd**2 / lam and normal noise. The theory
    requires samples that are far wider, alpha = 3 sqrt(d ln(T/delta)), which `tuned` computes.

    Reference: Agrawal and Goyal 2013, "Thompson sampling for contextual bandits with linear payoffs"."""

    alpha: Annotated[float, SCALE] = 1.0  # width of the samples; 1: the posterior's
    lam: Annotated[float, LAM] = 1.0  # ridge: the variance of the noise over that of a coefficient
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise

    def choose(self, state: LinearState, t: int, rng: Any) -> Any:
        sample(state, self.alpha * self.sd, rng)
        return argmax(state.scores)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0, n_features: int = 0, joint: bool = False) -> "LinTS":
        """alpha = 3 sqrt(d ln(horizon / delta)) with delta = 0.01."""
        return cls(3.0 * math.sqrt(dimension(n_arms, n_features, joint) * math.log(100.0 * horizon)))


@linear(
    short="d-lin-ts",
    draws="sample",
    second=True,
    family="discounts",
    formula=rf"""
        \theta = V^{{-1}} \bigl(b + \alpha \sigma \tilde V^{{1/2}} z\bigr), \quad z \sim \mathcal{{N}}(0, I), \quad
        a = \operatorname{{argmax}}_i x_i^\top \theta
        {_DISCOUNTED}
        \tilde V \leftarrow \gamma^2 \tilde V + x x^\top + (1 - \gamma^2) \lambda I
    """,
    reference="Kim, Tewari 2020",
)
class DiscountedLinTS(NamedTuple):
    """Linear Thompson sampling whose rewards lose a factor `gamma` each round, with samples as wide as the estimates of
    D-LinUCB are uncertain (D-LinTS).

    `tuned` computes D-LinUCB's gamma = 1 - (B/(dT))**(2/3) for a total change B of the coefficients in T rounds.

    Reference: Kim and Tewari 2020, "Randomized exploration for non-stationary stochastic linear bandits"."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    alpha: Annotated[float, SCALE] = 1.0  # width of the samples; a in the paper
    lam: Annotated[float, LAM] = 1.0  # ridge: the weight of the prior
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise

    def choose(self, state: LinearState, t: int, rng: Any) -> Any:
        u, scores, draws, n, scale = state.u, state.scores, state.draws, len(state.u), self.alpha * self.sd
        rng.normals(draws)
        if len(state.x) > n:
            factorise(state.second, self.lam, state.root, 0, u)
            add_draw(u, state.target, scale, state.root, draws)
            solve_lower(state.factor, 0, u, 0, n)
            solve_upper(state.factor, 0, u, n)
            score_by(state, u)
        else:
            for arm in range(len(scores)):
                mean = predict_arm(state, arm)
                scores[arm] = mean + scale * math.sqrt(max(second_variance(state, arm, self.lam), 0.0)) * draws[arm]
        return argmax(scores)


@linear(
    short="stable-lin-ts",
    draws="sample",
    family="discounts",
    formula=rf"""
        \theta \sim \mathcal{{N}}\bigl(V^{{-1}} b,\ \sigma^2 V^{{-1}}\bigr), \quad
        a = \operatorname{{argmax}}_i x_i^\top \theta
        {_DISCOUNTED}
    """,
    reference="Kulhavý, Zarrop 1993",
)
class StableLinTS(NamedTuple):
    """Linear Thompson sampling that forgets towards its prior (stabilised forgetting).

    Each round the posterior becomes the weighted geometric mean of itself, with weight `gamma`, and of the prior N(0,
    sd**2 / lam). Directions without rewards therefore return to the prior and stay there, where plain
    discounting lets them become ever more uncertain. Evidence adds up, so that late rewards and a half-life by the
    clock work as for DS-TS. `tuned` takes the discount of D-LinUCB's theory; no regret bound is known.

    Reference: the forgetting, Kulhavý and Zarrop 1993, "On a general concept of forgetting"."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    lam: Annotated[float, LAM] = 1.0  # ridge: the variance of the noise over that of a coefficient
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise

    def choose(self, state: LinearState, t: int, rng: Any) -> Any:
        sample(state, self.sd, rng)
        return argmax(state.scores)


@linear(
    short="d-logistic-ts",
    draws="sample",
    family="discounts",
    knows="how much the coefficients change, to set gamma",
    rewards="[0, 1]",
    formula=r"""
        \theta \sim \mathcal{N}\bigl(m,\ V^{-1}\bigr), \quad a = \operatorname{argmax}_i x_i^\top \theta
        V \leftarrow \gamma V + (1 - \gamma) \lambda I, \quad m \leftarrow V^{-1} (\gamma V_{\text{before}}\, m)
        V \leftarrow V + \mu'(x^\top m)\, x x^\top, \quad m \leftarrow m + V^{-1} x \bigl(r - \mu(x^\top m)\bigr)
        \mu(y) = 1 / (1 + e^{-y})
    """,
    reference="Kulhavý, Zarrop 1993; Chapelle, Li 2011",
)
class DiscountedLogisticTS(NamedTuple):
    """Thompson sampling for successes and failures: stabilised forgetting in a logistic regression.

    The posterior is normal: a reward is taken by one Newton step, which needs no more than the sums of a linear
    regression with weights. Arms are ordered by the sampled log odds. A late reward is linearised at the present
    estimate. `tuned` takes the discount of D-LinUCB's theory; no regret bound is known.

    Reference: the forgetting as in `StableLinTS`; logistic Thompson sampling, Chapelle and Li 2011."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    lam: Annotated[float, LAM] = 1.0  # 1 over the prior variance of a coefficient, in log odds

    def choose(self, state: LinearState, t: int, rng: Any) -> Any:
        sample(state, 1.0, rng)
        return argmax(state.scores)

    def learn(self, state: LinearState, t: int, arm: Any, reward: Any) -> None:
        discount(state, self.gamma)
        renew_all(state, self.lam)
        self.take(state, arm, reward, 1.0)

    def take(self, state: LinearState, arm: Any, reward: Any, weight: float) -> None:
        """Add one reward of this weight, by a step of Newton's method from the present mean."""
        group, n = group_of(state, arm), len(state.u)
        at = index(group * n)
        odds = min(max(predict(state, 0, group), -_FARTHEST), _FARTHEST)
        mean = 1.0 / (1.0 + math.exp(-odds))
        information = mean * (1.0 - mean)
        step = weight * (reward - mean + information * odds)
        add_product(state.gram, at * n, state.x, n, weight * information)
        for i in range(n):
            state.target[at + i] += step * state.x[i]
        state.pulls[group] += weight
        renew(state, group, self.lam)


class KalmanState(NamedTuple):
    """The belief about G groups of D coefficients each."""

    mean: Any  # G x D
    covariance: Any  # G x D x D, upper triangles, of the round in which a group was last learned
    last: Any  # G, that round
    pulls: Any  # G, number of rewards
    root: Any  # scratch, as in `LinearState`
    x: Any
    u: Any
    draws: Any
    scores: Any


@linear(
    short="kalman-ts",
    family="discounts",
    forgets="lets every coefficient walk: its variance grows by drift**2 per round",
    knows="how fast the coefficients change, to set drift; the noise",
    cost="O(K D^2), in the joint form O(K D + D^3)",
    formula=r"""
        \theta \sim \mathcal{N}(m, P), \quad a = \operatorname{argmax}_i x_i^\top \theta
        k = P x / (x^\top P x + \sigma^2), \quad m \leftarrow m + k (r - x^\top m)
        P \leftarrow P - k x^\top P + \mathtt{drift}^2 I
    """,
    reference="Kalman 1960",
)
class KalmanTS(NamedTuple):
    """Thompson sampling for coefficients that walk at random: each moves by N(0, drift**2) per round.

    Optimal estimates if that is how they move and the noise is normal. The memory is about sd / drift rewards. What
    is not observed becomes ever more uncertain, without a limit, so idle arms are tried again and again. `tuned` sets
    drift so that the memory is that of D-LinUCB's theory; no regret bound is known.

    Reference: Kalman 1960, "A new approach to linear filtering and prediction problems"."""

    drift: Annotated[float, within("> 0")] = 0.01  # standard deviation of a coefficient's step per round
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise
    prior_sd: Annotated[float, within("> 0")] = 1.0  # of a coefficient before the first round

    def init(self, n_arms: int, n_features: int = 0, joint: bool = False) -> KalmanState:
        groups, size = sizes(n_arms, n_features, joint)
        mean, covariance = np.zeros(groups * size), np.tile(np.eye(size).ravel() * self.prior_sd**2, groups)
        more = {"mean": mean, "covariance": covariance, "last": np.zeros(groups, np.int64)}
        state: KalmanState = new_regression(
            KalmanState, 1.0, n_arms, n_features, joint, draws="sample", second=True, **more
        )
        return state

    def choose(self, state: KalmanState, t: int, rng: Any) -> Any:
        u, x, scores, draws, n, drift = state.u, state.x, state.scores, state.draws, len(state.u), self.drift**2
        rng.normals(draws)
        if len(x) > n:
            least = _LEAST * self.prior_sd * self.prior_sd
            factorise(state.covariance, max(drift * (t - state.last[0]), least), state.root, 0, u)
            add_draw(u, state.mean, 1.0, state.root, draws)
            score_by(state, u)
        else:
            size = square(x)
            for arm in range(len(scores)):
                at, mean = index(arm * n), 0.0
                for i in range(n):
                    mean += x[i] * state.mean[at + i]
                variance = quadratic(state.covariance, at * n, x) + drift * (t - state.last[arm]) * size
                scores[arm] = mean + math.sqrt(max(variance, 0.0)) * draws[arm]
        return argmax(scores)

    def learn(self, state: KalmanState, t: int, arm: Any, reward: Any) -> None:
        group, n, x, gain, covariance = group_of(state, arm), len(state.u), state.x, state.u, state.covariance
        at, drift = index(group * n), self.drift * self.drift * (t - state.last[group])
        error, variance = reward, self.sd * self.sd
        for j in range(n):
            covariance[(at + j) * n + j] += drift
            gain[j] = 0.0
        for j in range(n):
            row, error = index((at + j) * n), error - x[j] * state.mean[at + j]
            gain[j] += covariance[row + j] * x[j]
            for i in range(j + 1, n):
                gain[j] += covariance[row + i] * x[i]
                gain[i] += covariance[row + i] * x[j]
        for j in range(n):
            variance += x[j] * gain[j]
        variance = max(variance, self.sd * self.sd)
        for j in range(n):
            state.mean[at + j] += gain[j] * (error / variance)
        add_product(covariance, at * n, gain, n, -1.0 / variance)
        state.last[group] = t
        state.pulls[group] += 1.0

    def grow(self, state: KalmanState, after: KalmanState, t: int) -> KalmanState:
        """One more arm, which starts to walk now."""
        after.last[len(state.last) :] = t
        return after

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        n = len(state.u)
        fits(state, mean=REALS, covariance=MATRIX, last=ROUNDS, pulls=ROUNDS, x=MATRIX)
        fits(state, u=SCRATCH, draws=SCRATCH, root=SCRATCH)
        need((state.last <= t).all(), "no arm was learned after the last round")
        need(len(state.x) > n or state.x[0] == like.x[0], "the intercept's feature is 1")
        variances = np.reshape(state.covariance, (-1, n * n))[:, :: n + 1]
        need((variances >= 0.0).all(), "variances are 0 or more")


@compilable
def add_draw(out: Any, mean: Any, scale: Any, factor: Any, draws: Any) -> None:
    """Write mean + scale R'z, R with reciprocals on its diagonal."""
    n = len(out)
    for i in range(n):
        out[i] = mean[i]
    for j in range(n):
        part = scale * draws[j]
        out[j] += part / factor[j * n + j]
        for i in range(j + 1, n):
            out[i] += part * factor[j * n + i]
