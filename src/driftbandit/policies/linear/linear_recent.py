"""LinUCB on recent rounds only: those since a restart, those of a window, or those since a change was detected."""

import math
from collections import namedtuple
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import within
from driftbandit.core.primitives import argmax_fair, compilable, index
from driftbandit.core.validity import ARM, REALS, ROUNDS, close, fits, need
from driftbandit.policies.forgetting import WINDOW, changes
from driftbandit.policies.linear.least_squares import (
    add,
    forget_group,
    group_of,
    predict,
    renew,
    renew_all,
    solve_upper,
    square,
)
from driftbandit.policies.linear.linear_policy import (
    ALPHA,
    DELTA,
    LAM,
    MATRIX,
    SD,
    LinearState,
    bound_scores,
    linear,
    new_regression,
    radius,
    validate_state,
)
from driftbandit.policies.linear.linear_ucb import INDEX, RADIUS

# The regressions and the ring of the last rounds, round t at t % window: groups, rewards, D features of each.
SlidingLinState = namedtuple("SlidingLinState", (*LinearState._fields, "groups", "rewards", "rows"))  # type: ignore[misc]
# The regressions and the tests of each group: evidence that rewards are higher than predicted, lower, or farther from
# predictions than the noise; and the number of alarms so far.
CusumLinState = namedtuple("CusumLinState", (*LinearState._fields, "up", "down", "spread", "alarms"))  # type: ignore[misc]


@linear(
    short="restart-lin-ucb",
    family="restarts",
    forgets="everything every `period` rounds",
    knows="how much the coefficients change, to set period; what LinUCB needs",
    cost="O(K D^2 + D^3)",
    formula=rf"""
        {INDEX}
        {RADIUS}
        V \leftarrow V + x x^\top, \quad b \leftarrow b + r x, \quad \hat\theta = V^{{-1}} b
        V \leftarrow \lambda I, \quad b \leftarrow 0 \ \text{{ every }} \mathtt{{period}} \text{{ rounds}}
    """,
    reference="Zhao, Zhang, Jiang, Zhou 2020",
)
class RestartLinUCB(NamedTuple):
    """LinUCB that starts again every `period` rounds.

    With a total change P of the coefficients in T rounds the theory requires a period of (dT/(1 + P))**(2/3), which
    `tuned` computes. The proof of its first version has a gap; the proved regret is of order P**(1/4) T**(3/4).

    Reference: Zhao, Zhang, Jiang and Zhou 2020, "A simple approach for non-stationary linear bandits"; corrected in
    arXiv 2103.05324."""

    period: Annotated[int, within(">= 1", "tuned(horizon, phases, n_arms) suggests one.")] = 1000  # H: rounds
    lam: Annotated[float, LAM] = 1.0  # ridge: the weight of the prior
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise
    delta: Annotated[float, DELTA] = 0.01  # probability that the radius of the theory is too small
    alpha: Annotated[float, ALPHA] = 0.0  # width of the bound in units of sd; 0: the radius of the theory

    def learn(self, state: LinearState, t: int, arm: Any, reward: Any) -> None:
        """The last reward of a period is forgotten with it, since `choose` must not change anything."""
        group = group_of(state, arm)
        if (t + 1) % self.period == 0:
            for i in range(len(state.pulls)):
                forget_group(state, i, self.lam)
        else:
            add(state, group, reward, 1.0)
            renew(state, group, self.lam)


@linear(
    short="sw-lin-ucb",
    family="window",
    forgets="all rounds older than the window",
    knows="how much the coefficients change, to set the window; what LinUCB needs",
    cost="O(K D^2 + D^3), memory O(window D)",
    formula=rf"""
        {INDEX}
        \beta = \sqrt{{\lambda}}
        + \sigma \sqrt{{d \ln\bigl((1 + \mathtt{{window}} / \lambda) / \delta\bigr)}}
        V = \lambda I + \sum_{{s=t-\mathtt{{window}}}}^{{t-1}} x_s x_s^\top
        b = \sum_{{s=t-\mathtt{{window}}}}^{{t-1}} r_s x_s, \quad \hat\theta = V^{{-1}} b
    """,
    reference="Cheung, Simchi-Levi, Zhu 2019",
)
class SlidingLinUCB(NamedTuple):
    """LinUCB on the last `window` rounds (SW-LinUCB).

    With a total change B of the coefficients in T rounds the paper requires a window of (dT/B)**(2/3), which `tuned`
    computes. Rounds are added and subtracted, and all sums are computed again each time the ring comes round.

    Reference: Cheung, Simchi-Levi and Zhu 2019, "Learning to optimize under non-stationarity"."""

    window: Annotated[int, WINDOW] = 500  # rounds remembered, all arms together
    lam: Annotated[float, LAM] = 1.0  # ridge: the weight of the prior
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise
    delta: Annotated[float, DELTA] = 0.01  # probability that the radius of the theory is too small
    alpha: Annotated[float, ALPHA] = 0.0  # width of the bound in units of sd; 0: the radius of the theory

    def init(self, n_arms: int, n_features: int = 0, joint: bool = False) -> Any:
        rows = np.zeros(self.window * (n_features + (not joint)))
        groups, rewards = np.zeros(self.window, np.int64), np.zeros(self.window)
        return new_regression(
            SlidingLinState, self.lam, n_arms, n_features, joint, groups=groups, rewards=rewards, rows=rows
        )

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        width = self.alpha * self.sd
        if self.alpha == 0.0:
            inside = (1.0 + self.window / self.lam) / self.delta
            width = self.sd * math.sqrt(len(state.target) * math.log(inside))
            width += math.sqrt(self.lam)
        bound_scores(state, width)
        return argmax_fair(state.scores, rng)

    def learn(self, state: Any, t: int, arm: Any, reward: Any) -> None:
        n, x, here, group = len(state.u), state.x, index(t % len(state.groups)), group_of(state, arm)
        row, gone = index(here * n), index(state.groups[here])
        if t >= len(state.groups):
            add_row(state, here, -1.0)
        state.groups[here] = group
        state.rewards[here] = reward
        for i in range(n):
            state.rows[row + i] = x[i]
        if here + 1 < len(state.groups):
            add_row(state, here, 1.0)
            renew(state, group, self.lam)
            if gone != group and t >= len(state.groups):
                renew(state, gone, self.lam)
        else:
            for i in range(len(state.gram)):
                state.gram[i] = 0.0
            for i in range(len(state.target)):
                state.target[i] = 0.0
            for i in range(len(state.pulls)):
                state.pulls[i] = 0.0
            for i in range(len(state.groups)):
                add_row(state, i, 1.0)
            renew_all(state, self.lam)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        validate_state(self, state, t, like)
        groups, n, held = len(state.pulls), len(state.u), min(t, len(state.groups))
        fits(state, groups, groups=ARM, rewards=REALS, rows=MATRIX)
        owner = state.groups[:held]
        rows = np.reshape(state.rows, (-1, n))[:held]
        need(np.array_equal(state.pulls, np.bincount(owner, minlength=groups)), "pulls counts the rounds in the window")
        for group in range(groups):
            mine = owner == group
            X, r, scale = rows[mine], state.rewards[:held][mine], max(1.0, float(np.square(rows).sum()))
            need(
                close(np.reshape(state.gram, (-1, n, n))[group] / scale, np.triu(X.T @ X) / scale),
                "gram is the window's",
            )
            scale *= max(1.0, float(np.abs(state.rewards).max()))
            need(close(np.reshape(state.target, (-1, n))[group] / scale, r @ X / scale), "target is the window's")


@compilable
def add_row(state: Any, place: Any, sign: Any) -> None:
    """Add a round of the window to the sums, or subtract it."""
    n = len(state.u)
    group, row, reward = index(state.groups[place]), index(place * n), state.rewards[place]
    at = index(group * n)
    for j in range(n):
        part = sign * state.rows[row + j]
        state.target[at + j] += part * reward
        for i in range(j, n):
            state.gram[(at + j) * n + i] += part * state.rows[row + i]
    state.pulls[group] += sign


@linear(
    short="cusum-lin-ucb",
    family="detects",
    forgets="everything, or all about an arm, when a test of the arm's prediction errors raises an alarm",
    knows="the noise; how large changes are, to set shift; what LinUCB needs",
    cost="O(K D^2 + D^3)",
    formula=rf"""
        a \ \text{{uniform with probability }} \mathtt{{explore}}, \text{{ else}}
        {INDEX}
        e = (r - x^\top \hat\theta) / \sqrt{{\sigma^2 (1 + x^\top V^{{-1}} x) + \lambda^2 \|V^{{-1}} x\|^2}}
        g^\pm \leftarrow \max\bigl(0,\ g^\pm \pm \mathtt{{shift}}\, e - \mathtt{{shift}}^2 / 2\bigr)
        h \leftarrow \max\bigl(0,\ h + e^2 (1 - 1/v) / 2 - \ln(v) / 2\bigr), \quad v = 1 + \mathtt{{shift}}^2
        \max(g^+, g^-, h) \ge \mathtt{{threshold}}: \ \text{{forget}}
    """,
    reference="driftbandit; the test: Page 1954",
)
class CusumLinUCB(NamedTuple):
    """LinUCB that starts again when its prediction errors show a change.

    Three cumulative sums per regression add up log likelihood ratios of the error e, in units of the standard deviation
    that it has at most while nothing changes: a mean of `shift`, a mean of -`shift`, a variance of 1 + shift**2. The
    third notices changes that raise some predictions and lower others. Without a change a sum reaches `threshold` once
    in exp(threshold) rewards or less often. An alarm discards everything, or with `local` the evidence about this arm,
    and the reward that raised it.

    A test sees only rewards of arms that are played, so a share `explore` of the rounds is uniform. Suited to few,
    abrupt changes and a known noise. No regret bound is known.

    Reference: our own; cumulative sums are Page's (1954), for bandits without context Liu, Lee and Shroff's (2018)."""

    threshold: Annotated[float, within("> 0", "tuned(horizon, phases) suggests one.")] = 10.0  # evidence for an alarm
    shift: Annotated[float, within("> 0")] = 1.0  # change of a reward's mean that is looked for, in units of sd
    explore: Annotated[float, within("[0, 1]")] = 0.01  # share of uniform rounds
    local: bool = False  # an alarm discards only the evidence about its arm
    lam: Annotated[float, LAM] = 1.0  # ridge: the weight of the prior
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise
    delta: Annotated[float, DELTA] = 0.01  # probability that the radius of the theory is too small
    alpha: Annotated[float, ALPHA] = 0.0  # width of the bound in units of sd; 0: the radius of the theory

    def init(self, n_arms: int, n_features: int = 0, joint: bool = False) -> Any:
        up, down, spread = np.zeros((3, 1 if joint else n_arms))
        alarms = np.zeros(1, np.int64)
        return new_regression(
            CusumLinState, self.lam, n_arms, n_features, joint, up=up, down=down, spread=spread, alarms=alarms
        )

    def choose(self, state: Any, t: int, rng: Any) -> int:
        bound_scores(state, radius(self, state))
        if rng.uniform(0) < self.explore:
            return int(rng.uniform(1) * len(state.scores))
        return int(argmax_fair(state.scores, rng))

    def learn(self, state: Any, t: int, arm: int, reward: float) -> None:
        group, n, bias = group_of(state, arm), len(state.u), self.lam
        error = reward - predict(state, 0, group)
        variance = self.sd * self.sd * (1.0 + square(state.u))
        solve_upper(state.factor, group * n * n, state.u, n)
        error /= math.sqrt(variance + bias * bias * square(state.u))
        power = self.shift * self.shift
        ratio = error * error * power / (1.0 + power) - math.log(1.0 + power)
        state.up[group] = max(0.0, state.up[group] + self.shift * error - power / 2.0)
        state.down[group] = max(0.0, state.down[group] - self.shift * error - power / 2.0)
        state.spread[group] = max(0.0, state.spread[group] + ratio / 2.0)
        if max(state.up[group], state.down[group], state.spread[group]) < self.threshold:
            add(state, group, reward, 1.0)
            renew(state, group, self.lam)
        else:
            state.alarms[0] += 1
            for i in range(len(state.pulls)):
                if i == group or not self.local:
                    forget_group(state, i, self.lam)
                    state.up[i] = 0.0
                    state.down[i] = 0.0
                    state.spread[i] = 0.0

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        validate_state(self, state, t, like)
        sums = within(f"[0, {self.threshold!r}]")
        fits(state, up=sums, down=sums, spread=sums, alarms=ROUNDS)

    @classmethod
    def tuned(
        cls, horizon: int, phases: int, n_arms: int = 0, n_features: int = 0, joint: bool = False
    ) -> "CusumLinUCB":
        """threshold = ln(horizon), so that few alarms are false; explore as in CUSUM-UCB, and at most a tenth."""
        rate = changes(phases) / horizon
        explore = min(0.1, math.sqrt(-rate * math.log(rate)))
        return cls(max(1.0, math.log(horizon)), explore=explore, delta=1.0 / (horizon + 1.0))
