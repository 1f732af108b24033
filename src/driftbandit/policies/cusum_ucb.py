"""CUSUM-UCB: UCB with a two-sided alarm on every arm; an alarm discards all evidence about that arm."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import argmax_fair, compilable
from driftbandit.core.state import new_state
from driftbandit.core.validity import COUNTS, REALS, ROUNDS, fits, need
from driftbandit.policies.window import changes


class AlarmState(NamedTuple):
    """The evidence about each arm since its last alarm."""

    pulls: Any  # k
    total: Any  # sum of the rewards
    mean: Any  # total / pulls, kept because K divisions per round cost more than one
    reference: Any  # u0, the mean of the first `samples` rewards
    up: Any  # g+, evidence that the mean rose
    down: Any  # g-, evidence that it fell
    counted: Any  # length 1: the sum of pulls, n in the index
    short: Any  # length 1: how many arms are in warm-up
    alarms: Any  # length 1: alarms so far
    scores: Any  # scratch: the indices of the last choice


@compilable
def write_padded_scores(scores: Any, mean: Any, pulls: Any, factor: float) -> None:
    """Write mean + sqrt(factor / pulls) of every arm; +inf without pulls. Without a branch, so that it runs on SIMD
    registers."""
    for i in range(len(scores)):
        value = mean[i] + math.sqrt(factor / max(pulls[i], 1.0))
        scores[i] = value if pulls[i] > 0.0 else math.inf


@described(
    short="cusum-ucb",
    family="detects",
    scratch=("scores",),
    forgets="drops all evidence about an arm when the arm's two-sided cumulative-sum test raises an alarm",
    knows="how often the environment changes, to set threshold and explore; the smallest change, to set drift",
    rewards="any",
    cost="O(K), update O(1)",
    formula=r"""
        a \ \text{uniform with probability } \mathtt{explore}, \text{ else}
        a = \operatorname{argmax}_i\ \hat\mu_i + \sqrt{\frac{\xi \ln n}{k_i}}, \quad n = \sum_j k_j
        g^+ \leftarrow \max\bigl(0,\ g^+ + x - u_0 - \mathtt{drift}\bigr)
        g^- \leftarrow \max\bigl(0,\ g^- + u_0 - x - \mathtt{drift}\bigr)
        \max(g^+, g^-) \ge \mathtt{threshold}: \ \text{forget arm } a
        u_0 = \text{mean of the arm's first } \mathtt{samples} \text{ rewards}
    """,
    reference="Liu, Lee, Shroff 2018",
)
@checked
class CusumUCB(NamedTuple):
    """UCB with a cumulative-sum test of each arm: after an alarm the arm starts from nothing.

    The first `samples` rewards of an arm fix a reference mean u0. From then on g+ adds up y - u0 - drift and g- adds up
    u0 - y - drift, neither below 0. The arm raises an alarm when one of them reaches `threshold`. Only that arm
    forgets, including the reward that raised the alarm. Since a test sees only rewards of arms that are played, a share
    `explore` of the rounds is uniform over all arms.

    Assumes abrupt changes by more than `drift`, rewards in [0, 1] (threshold is in units of summed reward) and phases
    long enough to collect `samples` rewards. Use it when changes are few and large; for slow drift a window is better.
    With `warmup`, arms short of `samples` are played first, which costs K * samples rounds at the start and `samples`
    rounds per alarm: the code of the DS-TS paper does so, and its figures show it; Liu, Lee and Shroff do not. Regret
    is of order sqrt(T B log(T/B)) when B, the number of changes, is known. Unconfirmed: the theory's xi, taken as 1 by
    `tuned`.

    >>> CusumUCB.text(horizon=100_000, phases=10, n_arms=5).threshold
    9.210340371976184

    Reference: Liu, Lee and Shroff 2018, "A change-detection based framework for piecewise-stationary multi-armed
    bandit problem"."""

    samples: Annotated[int, within(">= 1")] = 50  # M: rewards that fix the reference mean
    drift: Annotated[float, within(">= 0")] = 0.05  # epsilon: smaller shifts of the mean are tolerated
    threshold: Annotated[float, within("(0, inf]")] = 9.21  # h: summed evidence that raises an alarm; inf: never
    explore: Annotated[float, within("[0, 1]")] = 0.0303  # alpha: share of uniform rounds
    xi: Annotated[float, within(">= 0")] = 0.5  # width of the confidence bound
    warmup: bool = True  # play arms short of `samples` first

    def init(self, n_arms: int) -> AlarmState:
        short = np.array([n_arms if self.warmup else 0], np.int64)
        return new_state(AlarmState, n_arms, counted=np.zeros(1), short=short, alarms=np.zeros(1, np.int64))

    def choose(self, state: AlarmState, t: int, rng: Any) -> int:
        """An arm in warm-up, else with probability `explore` any arm, else the largest index. The indices are written
        in every case: a caller that may not play the returned arm finds the next best there."""
        pulls, scores = state.pulls, state.scores
        write_padded_scores(scores, state.mean, pulls, self.xi * math.log(max(state.counted[0], 1.0)))
        if state.short[0] > 0:
            skip = int(rng.uniform(1) * state.short[0])
            for i in range(len(pulls)):
                if pulls[i] < self.samples:
                    if skip == 0:
                        return i
                    skip -= 1
        if rng.uniform(0) < self.explore:
            return int(rng.uniform(1) * len(pulls))
        return int(argmax_fair(scores, rng))

    def learn(self, state: AlarmState, t: int, arm: int, reward: float) -> None:
        state.counted[0] += 1.0
        pulls = state.pulls[arm] + 1.0
        state.pulls[arm] = pulls
        state.total[arm] += reward
        state.mean[arm] = state.total[arm] / pulls
        if pulls > self.samples:
            reference = state.reference[arm]
            up = max(0.0, state.up[arm] + reward - reference - self.drift)
            down = max(0.0, state.down[arm] + reference - reward - self.drift)
            state.up[arm] = up
            state.down[arm] = down
            if max(up, down) >= self.threshold:
                forget_arm(state, arm)
                state.short[0] += self.warmup
        elif pulls == self.samples:
            state.reference[arm] = state.mean[arm]
            state.short[0] -= self.warmup

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, pulls=COUNTS, total=REALS, mean=REALS, reference=REALS, up=REALS, down=REALS)
        fits(state, counted=COUNTS, alarms=ROUNDS)
        short = int((state.pulls < self.samples).sum()) if self.warmup else 0
        need(state.short[0] == short, "short counts the arms in warm-up")

    def grow(self, state: AlarmState, after: AlarmState, t: int) -> AlarmState:
        """One more arm is in warm-up."""
        after.short[0] += self.warmup
        return after

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "CusumUCB":
        """The theory's h = ln(T / changes) and alpha = sqrt(changes / T ln(T / changes)), without warm-up; xi = 1 is
        unconfirmed."""
        count = changes(phases)
        return cls(50, 0.05, _threshold(horizon, count), _explore(horizon, count), 1.0, False)

    @classmethod
    def text(cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False) -> "CusumUCB":
        """As the theory with phases in place of changes. The paper names neither xi nor the warm-up; both are its
        code's."""
        count = 1 if smooth else phases
        return cls(50, 0.05, _threshold(horizon, count), _explore(horizon, count), 0.5, True)

    @classmethod
    def code(cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False) -> "CusumUCB":
        return cls.text(horizon, phases, n_arms, smooth)


def _threshold(horizon: int, count: int) -> float:
    # With a phase as short as a round the formula gives 0, an alarm at every reward.
    return max(math.log(horizon / count), 1e-3)


def _explore(horizon: int, count: int) -> float:
    return min(1.0, math.sqrt(count / horizon * math.log(horizon / count)))


@compilable
def forget_arm(state: Any, arm: int) -> None:
    """Count an alarm and empty the arm."""
    state.alarms[0] += 1
    state.counted[0] -= state.pulls[arm]
    state.pulls[arm] = 0.0
    state.total[arm] = 0.0
    state.mean[arm] = 0.0
    state.reference[arm] = 0.0
    state.up[arm] = 0.0
    state.down[arm] = 0.0
