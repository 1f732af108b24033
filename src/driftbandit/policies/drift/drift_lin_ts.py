"""DriftLinTS: Thompson sampling for rewards on any scale, with or without context, with nothing to tune."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import WIDTH, compilable, index
from driftbandit.core.validity import REALS, ROUNDS, SHARE, fits, need
from driftbandit.policies.drift.belief import (
    ALL_JUMPED,
    BEGINNING,
    DRIFTS,
    DRIFTS_TOGETHER,
    STATIONARY,
    VISIBLE,
    Expected,
    Explanation,
    summarise,
)
from driftbandit.policies.drift.lin_learning import FARTHER, learn_rewards, refresh, renew, set_priors, take_features
from driftbandit.policies.drift.regressions import (
    CENTRE,
    CLASSES,
    EVERY,
    FOURTH,
    HYPOTHESES,
    MOST_RUNS,
    N_CUT,
    N_RUNS,
    NOISE,
    ORIGIN,
    RATES,
    RUNS,
    TOP,
    VARIANCE,
    WITHIN,
    live,
    measure,
    multiply_pairs,
    place,
    sum_products,
)

SHRINK = 1.0 / 4.0  # of the variance within a hypothesis where it has learned; 1/2: 1.24, this: 1.07, 8 environments
# Of `numbers` in a snapshot: first reward, centre, noise, largest surprise, moments, variance of pairs.
LARGEST_NUMBERS = (1e31, 1e31, 1e63, 1e63, 1e31, 1e63, 1e126, 1e63)
IDLE = 200  # first slot of the uniform numbers by which idle arms are drawn from the prior


@described(arrays=("weights", "rates", "level", "level_variance", "fade", "mean", "covariance", "link"))
class DriftLinTSState(NamedTuple):
    """What is known. G groups of arms, D coefficients each; variances are in units of the noise variance."""

    numbers: Any  # first reward, prior mean of an arm, noise variance, largest surprise, moments, variance of pairs
    counts: Any  # runs, pairs of rewards of one group among the first, blocks in use, rewards cut
    weights: Any  # of the hypotheses; 0 where a place is free
    slots: Any  # places of the runs in the order in which they began
    began: Any  # round in which each run began
    age_class: Any
    rates: Any  # of the drifts, never written to
    level: Any  # of the common drifts
    level_variance: Any
    fade: Any  # factor that `link` is still to be multiplied by
    mean: Any  # per group and hypothesis D numbers
    covariance: Any  # per group and hypothesis a triangle of D (D + 1) / 2 numbers
    link: Any  # covariance of the level with the coefficients, per group and common drift D numbers
    prior: Any  # triangle, covariance of a group's coefficients before it was played
    wander: Any  # triangle, covariance by which own drifts move
    last: Any  # round in which a group was last learned
    first_group: Any  # the first 16 rewards, less the origin from the 16th on, and their features
    first_reward: Any
    first_x: Any
    origin: Any  # the first features, subtracted from all others
    centre: Any  # mean of each feature, their variance and the largest distance from the mean before
    variance: Any
    reach: Any
    known: Any  # variance of each feature that is known beforehand, 0 where none is
    x: Any  # scratch: features of the present call, 1 first
    factor: Any  # scratch: triangle
    own: Any  # scratch: prior variance of each coefficient
    gain: Any  # scratch of learning
    forecast: Any
    spread: Any
    middles: Any  # scratch of choosing
    variances: Any
    draws: Any
    scores: Any


@described(
    short="drift-lin-ts",
    family="infers",
    arithmetic=5,
    scratch=("x", "factor", "own", "gain", "forecast", "spread", "middles", "variances", "draws", "scores"),
    forgets="by inference: weighs runs since a change and drifts by how well they predict",
    knows="nothing",
    rewards="any",
    cost="O(K d^2 + d^2 log t), memory O(K d^2)",
    formula=r"""
        h \sim w, \quad \theta_i \sim \mathcal{N}\bigl(x' m_{h,i},\ \sigma^2\, x' P_{h,i}\, x\bigr)
        a = \operatorname{argmax}_i \max(\theta_i, x' m_{h,i})
        w_h \leftarrow w_h\, \mathcal{N}\bigl(y;\ x' m_{h,a},\ \sigma^2 (1 + x' P_{h,a}\, x)\bigr)
        \text{every 16 rounds a little weight flows to a new run and to the drifts}
    """,
    reference="driftbandit",
)
@checked
class DriftLinTS(NamedTuple):
    """Thompson sampling for rewards of any scale that change in unknown ways. It has no parameters.

    Explanations of the past compete: nothing has changed since some round, every arm drifts, or the level common to all
    arms drifts. Each is a Bayesian regression, weighted by how well it predicted. To choose, one is drawn by weight,
    then a value for every arm from it, but not below its mean. An arm that was not played for long may have changed and
    is sometimes drawn from the prior. The noise and the differences between arms are estimated from the rewards.

    With context, either all arms share the features of a round and each arm has its own coefficients (disjoint), or
    each arm has features and all share their coefficients (`joint`).

    Choices do not change when every reward y is replaced by a y + b with a > 0, or a feature by any a x + b, in
    the joint form with a > 0. For rewards of 0 and 1 without context, `DriftTS` has less regret. No regret bound is
    known.

    >>> from driftbandit import Bandit
    >>> bandit = Bandit(["red", "green"], DriftLinTS(), seed=7)
    >>> for _ in range(80):
    ...     decision = bandit.decide()
    ...     verdict = bandit.reward(decision, 30.0 if decision.arm == "red" else 20.0)
    >>> bandit.decide().arm
    'red'

    Reference: our own; the parts are Bayesian change-point detection (Adams and MacKay 2007), exponential weights that
    share (Herbster and Warmuth 1998) and Kalman filters."""

    def init(self, n_arms: int, n_features: int = 0, joint: bool = False) -> DriftLinTSState:
        """No reward yet. With `joint`, each arm has `n_features` features and all arms are one group."""
        groups, n = 1 if joint else n_arms, 1 + n_features
        size = n * (n + 1) // 2
        slots, began, age_class = np.zeros((3, MOST_RUNS), np.int64)
        level, level_variance, fade = np.zeros((3, RATES))
        weights, forecast, spread = np.zeros((3, HYPOTHESES))
        prior, wander, factor = np.zeros((3, size))
        origin, centre, variance, reach, known, x, own = np.zeros((7, n))
        middles, variances, draws, scores = np.zeros((4, n_arms))
        x[0] = 1.0
        state = DriftLinTSState(
            np.zeros(8), np.zeros(4, np.int64), weights, slots, began, age_class, 8.0 ** -np.arange(2.0, 2.0 + RATES),
            level, level_variance, fade, np.zeros(groups * HYPOTHESES * n), np.zeros(groups * HYPOTHESES * size),
            np.zeros(groups * RATES * n), prior, wander, np.zeros(groups), np.zeros(EVERY, np.int64), np.zeros(EVERY),
            np.zeros(EVERY * n), origin, centre, variance, reach, known, x, factor, own,
            np.zeros(max(WIDTH * n, EVERY)), forecast, spread, middles, variances, draws, scores,
        )  # fmt: skip
        set_priors(state, 0, 0.0)
        renew(state, 0)
        return state

    def choose(self, state: DriftLinTSState, t: int, rng: Any) -> Any:
        return self.choose_in(state, t, rng, state.origin)

    def learn(self, state: DriftLinTSState, t: int, arm: Any, reward: Any) -> None:
        self.learn_in(state, t, arm, reward, state.origin)

    def choose_in(self, state: DriftLinTSState, t: int, rng: Any, features: Any) -> Any:
        """Draw a hypothesis by its weight, draw a value for every arm from it, never below the mean, and play the
        largest; while nothing is known of the scale, the arm of the largest normal. The joint form takes the features
        of all arms, arm after arm."""
        draws, scores, noise = state.draws, state.scores, state.numbers[NOISE]
        joint = len(state.last) < len(scores)
        rng.normals(state.own if joint and noise > 0.0 else draws)
        if noise == 0.0:
            for arm in range(len(scores)):
                scores[arm] = draws[arm]
        else:
            drawn = draw_hypothesis(state.weights, state.slots, RUNS + state.counts[N_RUNS], rng.uniform(0))
            if joint:
                draw_coefficients(state.own, state.factor, state.covariance, place(drawn, len(state.prior)))
            draw_arms(state, t, rng, features, drawn, joint)
        best = 0
        for arm in range(1, len(scores)):
            if scores[arm] > scores[best] or (scores[arm] == scores[best] and draws[arm] > draws[best]):
                best = arm
        return best

    def learn_in(self, state: DriftLinTSState, t: int, arm: Any, reward: Any, features: Any) -> None:
        """Weigh all hypotheses by how well they predicted the reward, and let them learn from it. The features are
        those of the arm, in the joint form."""
        learn_rewards(state, t, arm, reward, features)

    def know_variances(self, state: DriftLinTSState, variances: Iterable[float]) -> None:
        """Take the variances of features that are known beforehand, before the first reward; 0 where one is not."""
        state.known[1:] = list(variances)

    def cut_rewards(self, state: DriftLinTSState) -> int:
        """How many rewards were cut because they were absurdly large."""
        return int(state.counts[N_CUT])

    def units_known(self, state: DriftLinTSState, t: int) -> bool:
        """Whether something can be known of a new arm: up to the 16th reward the hypotheses begin anew."""
        return t >= EVERY

    def know_arm(self, state: DriftLinTSState, t: int, arm: int, mean: float, worth: float, features: Any) -> None:
        """Add a new arm to every hypothesis as after so many rewards of this mean in a context; a drift remembers at
        most 1 / sqrt(rate) of them. The levels of common drifts stay."""
        if t < EVERY:
            return
        take_features(state, t, features, 0)
        x, n, size = np.array(state.x), len(state.x), len(state.prior)
        rows, columns = np.tril_indices(n)
        for i in range(RUNS + state.counts[N_RUNS]):
            h = live(state.slots, i)
            at, first = arm * HYPOTHESES * n + place(h, n), arm * HYPOTHESES * size + place(h, size)
            means = slice(at, at + n * WIDTH, WIDTH)
            covariances = slice(first, first + size * WIDTH, WIDTH)
            square = np.zeros((n, n))
            square[rows, columns] = square[columns, rows] = state.covariance[covariances]
            level = state.level[h - RATES] if RATES <= h < RUNS else 0.0
            middle = np.array(state.mean[means])
            pulls = worth if h >= RUNS else min(worth, state.rates[h % RATES] ** -0.5)
            cover = square @ x
            gain = cover / (x @ cover + 1.0 / pulls)
            state.mean[means] = (middle + gain * (mean - state.numbers[ORIGIN] - level - x @ middle)).tolist()
            state.covariance[covariances] = (square - np.outer(gain, cover))[rows, columns].tolist()

    def grow(self, state: DriftLinTSState, after: DriftLinTSState, t: int) -> DriftLinTSState:
        """One more arm, which every hypothesis gives the prior of any arm before its first reward."""
        for group in range(len(state.last), len(after.last)):
            for h in range(HYPOTHESES):
                refresh(after, h, group)
            after.last[group] = t
        return after

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold: numbers small enough that fourth powers fit, and runs in order."""
        values, variances, positive = within("[-1e31, 1e31]"), within("[-1e40, 1e40]"), "variances are 0 or more"
        fits(state, n_arms=len(state.last), weights=SHARE, began=ROUNDS, last=ROUNDS, first_group=within("arm"))
        fits(state, mean=values, first_reward=values, first_x=REALS, origin=REALS, centre=REALS, variance=REALS)
        fits(state, covariance=variances, link=variances, prior=variances, wander=variances, reach=REALS, level=values)
        fits(state, known=within("[0, 1e24]"))
        fits(state, level_variance=within("[0, 1e40]"), fade=within("(0, 1]"), age_class=within(f"[0, {CLASSES - 1}]"))
        need(np.array_equal(state.rates, like.rates), "the rates are those of the policy")
        need((np.abs(state.numbers) <= LARGEST_NUMBERS).all(), "the numbers are small enough to be squared")
        need((state.numbers[[NOISE, TOP, VARIANCE, FOURTH, WITHIN]] >= 0.0).all(), positive)
        n, size = len(state.x), len(state.prior)
        diagonal = np.arange(n) * (np.arange(n) + 3) // 2
        for field, width in ((state.covariance, WIDTH), (state.prior, 1), (state.wander, 1)):
            need((np.reshape(field, (-1, size, width))[:, diagonal] >= 0.0).all(), positive)
        runs, pairs, blocks, cut = (int(count) for count in state.counts)
        need(0 <= cut <= t, "rewards that were cut were learned")
        need(1 <= runs < MOST_RUNS and 0 <= pairs < EVERY, f"there are 1 to {MOST_RUNS - 1} runs, and few pairs")
        classes, began = state.age_class[:runs], state.began[:runs]
        used = np.flatnonzero(np.asarray(state.weights) > 0.0)
        need(np.array_equal([*range(RUNS), *np.sort(state.slots[:runs])], used), "each hypothesis has a weight")
        need(blocks == used[-1] // WIDTH + 1, "the blocks in use are counted")
        need((np.diff(classes) <= 0).all() and max(np.bincount(classes)) <= 2, "at most two runs are of one age")
        need((np.diff(began) >= 0).all() and began[-1] <= t and (state.last <= t).all(), "nothing is of a later round")
        need(abs(sum(state.weights) - 1.0) < 1e-6, "the weights sum to 1")

    def state_size(self, n_arms: int, n_features: int = 0, joint: bool = False) -> int:
        """The numbers that the state holds."""
        n, groups = 1 + n_features, 1 if joint else n_arms
        size, each = n * (n + 1) // 2, 3 * HYPOTHESES + 3 * MOST_RUNS + 4 * RATES + 2 * EVERY + 12
        per_group = HYPOTHESES * (n + size) + RATES * n + 1
        return groups * per_group + 4 * n_arms + each + 3 * size + EVERY * n + 7 * n + max(WIDTH * n, EVERY)

    def explain(self, state: DriftLinTSState, names: Iterable[Any]) -> Explanation:
        """What it believes about the environment, and about the arms under these names, at the mean features."""
        n, t, runs = len(state.x), int(max(state.last)), int(state.counts[N_RUNS])
        x, noise, used = np.append(1.0, state.centre[1:]), state.numbers[NOISE], [*range(RUNS), *state.slots[:runs]]
        weights = np.array(state.weights)[used] / sum(state.weights)
        start = np.append(np.zeros(RUNS), state.began[:runs])
        factors = np.multiply.outer(x, x)[np.tril_indices(n)] * np.where(np.equal(*np.tril_indices(n)), 1.0, 2.0)
        variance = noise * np.tensordot(factors, by_hypothesis(state.covariance, len(factors))[:, :, used], (0, 1))
        mean = np.tensordot(x, by_hypothesis(state.mean, n)[:, :, used], (0, 1))
        mean[:, RATES:RUNS] += state.level
        middle = mean @ weights
        spread = np.sqrt((variance + (mean - middle[:, None]) ** 2) @ weights)
        values = zip(names, middle + state.numbers[ORIGIN], spread, strict=True)
        arms = {name: Expected(float(value), float(sd)) for name, value, sd in values}
        slow = np.sqrt(np.multiply(state.rates, t)) < VISIBLE
        kinds = np.concatenate([np.where(slow, STATIONARY, DRIFTS), np.where(slow, STATIONARY, DRIFTS_TOGETHER),
                                np.where(start[RUNS:] < BEGINNING, STATIONARY, ALL_JUMPED)])  # fmt: skip
        reach = t - start
        reach[:RATES] = np.minimum(t, np.power(state.rates, -0.5))
        return summarise(weights, kinds, start, reach, t, arms)


def by_hypothesis(values: Any, count: int) -> np.ndarray:
    """Numbers stored in blocks as an array of groups × `count` × hypotheses."""
    blocks = np.reshape(values, (-1, HYPOTHESES // WIDTH, count, WIDTH))
    return blocks.swapaxes(1, 2).reshape(len(blocks), count, HYPOTHESES)


def feature_limits(state: Any, t: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of every feature, less the first, that is not cut; see `take_features`."""
    most = FARTHER * np.maximum(state.reach, np.sqrt(state.known))[1:]
    most[(most == 0.0) | (t < EVERY)] = np.inf
    return state.centre[1:] - most, state.centre[1:] + most


@compilable
def draw_hypothesis(weights: Any, slots: Any, count: int, u: Any) -> Any:
    """The hypothesis whose share of the weights a uniform number falls into."""
    left = 0.0
    for i in range(count):
        left += weights[live(slots, i)]
    left *= u
    h = 0
    for i in range(count):
        h = live(slots, i)
        left -= weights[h]
        if left < 0.0:
            break
    return h


@compilable
def draw_coefficients(normals: Any, factor: Any, covariance: Any, first: Any) -> None:
    """Turn normals into a draw of the coefficients, less their mean and in units of the noise: they are
    multiplied by the Cholesky factor of the covariance. The intercept comes last, as do the first of the normals."""
    n, start = len(normals), index(first)
    for i in range(n):
        row, a = i * (i + 1) // 2, (i + 1) % n
        for j in range(i + 1):
            b = (j + 1) % n
            at = max(a, b) * (max(a, b) + 1) // 2 + min(a, b)
            column = j * (j + 1) // 2
            left = covariance[start + at * WIDTH]
            for k in range(j):
                left -= factor[row + k] * factor[column + k]
            if j < i:
                pivot = factor[column + j]
                factor[row + j] = left / pivot if pivot > 0.0 else 0.0
            else:
                factor[row + j] = math.sqrt(left) if left > 0.0 else 0.0
    for i in range(n - 1, -1, -1):
        total = 0.0
        for j in range(i + 1):
            total += factor[i * (i + 1) // 2 + j] * normals[j]
        normals[i] = total


@compilable
def draw_arms(state: Any, t: int, rng: Any, features: Any, drawn: Any, joint: bool) -> None:
    """Draw a value for every arm from one hypothesis, into `draws`, and write the compared values into `scores`."""
    x, n, draws, noise = state.x, len(state.x), state.draws, state.numbers[NOISE]
    rate = state.rates[drawn] if drawn < RATES else 0.0
    before = 0.0
    wander = 0.0
    for arm in range(len(draws)):
        if joint or arm == 0:
            take_features(state, t, features, arm * (n - 1))
            pairs = multiply_pairs(x, state.factor)
            sum_products(state.scores, arm, arm + 1, state.prior, 0, 1, pairs, 0.0)
            before = state.scores[arm]
            sum_products(state.scores, arm, arm + 1, state.wander, 0, 1, pairs, 0.0)
            wander = state.scores[arm]
            measure(state, drawn, pairs, arm, arm + 1 if joint else len(draws))
        middle, variance, last = state.middles[arm], max(state.variances[arm], 0.0), state.last[0 if joint else arm]
        if joint:
            draws[arm] = state.own[n - 1]
            for i in range(1, n):
                draws[arm] += x[i] * state.own[i - 1]
            draws[arm] = draws[arm] / math.sqrt(variance) if variance > 0.0 else 0.0
        elif rng.uniform(IDLE + arm) < 1.0 - root32(max(last, 1.0) / (t + 1.0)):
            middle, variance = state.numbers[CENTRE], before
        variance += rate * wander * (t - last)
        known = min(1.0, variance / before) if before > 0.0 else 1.0
        variance *= known + (1.0 - known) * SHRINK
        draws[arm] = middle + math.sqrt(noise * variance) * draws[arm]
        state.scores[arm] = max(draws[arm], middle)


@compilable
def root32(x: Any) -> Any:
    """x**(1/32), the same bits everywhere."""
    for _ in range(5):
        x = math.sqrt(x)
    return x
