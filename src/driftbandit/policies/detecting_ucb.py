"""UCB that tests the rewards of each arm for a change: CUSUM-UCB, which forgets the arm, and M-UCB, which restarts."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import argmax_fair, compilable
from driftbandit.core.state import new_state
from driftbandit.core.validity import COUNTS, REALS, ROUNDS, fits, need
from driftbandit.policies.forgetting import changes


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


_NEVER = 2.0**62  # a period longer than any run, that still fits an integer


class MonitoredUCBState(NamedTuple):
    """The evidence about each arm since the last alarm, and its newest rewards."""

    pulls: Any  # k
    total: Any  # sum of the rewards
    mean: Any  # total / pulls
    recent: Any  # arm * window + j: each arm's last rewards, a ring
    place: Any  # where the arm's next reward goes in its ring
    halves: Any  # arm * 4 + j: sums of the older and the newer half of a full ring, and fresh sums of this pass
    start: Any  # length 1: rounds played when the last alarm was over
    period: Any  # length 1: rounds between two visits of forced exploration; 0 if nothing is forced
    alarms: Any  # length 1: alarms so far
    scores: Any  # scratch: the indices of the last choice


@described(
    short="m-ucb",
    family="detects",
    scratch=("scores",),
    forgets="drops everything when the two halves of an arm's last `window` rewards differ by more than threshold",
    knows="horizon, number of changes and smallest change, to set window, threshold and explore",
    rewards="any",
    cost="O(K), update O(1)",
    formula=r"""
        a = (t - s) \bmod \lfloor K / \mathtt{explore} \rfloor \ \text{ if that is in } 1..K, \text{ else}
        a = \operatorname{argmax}_i\ \hat\mu_i + \sqrt{\frac{2 \ln (t - s)}{k_i}}
        |X_{\text{newer}} - X_{\text{older}}| > \mathtt{threshold}: \ \text{forget all arms}, \ s \leftarrow t
        X = \text{sums of the two halves of arm } a\text{'s last } \mathtt{window} \text{ rewards}
    """,
    reference="Cao, Wen, Kveton, Xie 2019",
)
@checked
class MonitoredUCB(NamedTuple):
    """UCB1 that forgets everything when the newer and the older half of an arm's last `window` rewards differ too much.

    An alarm needs |sum of newer half - sum of older half| > `threshold`, on an arm with `window` rewards since the last
    alarm, and restarts all arms. Every floor(K / explore) rounds the arms are visited once in turn, so that a share
    `explore` of the rounds observes arms that UCB1 would not play.

    Assumes abrupt changes that move some mean by at least 2 threshold / window (0.25 at the paper's values) and phases
    much longer than K * window / explore. Use it when changes are rare, large and common to many arms. Rewards in [0,
    1]. The regret is of order sqrt(T B K log T) if B and the smallest change are known. The paper's window of 800 is
    not the one its source recommends (7270 for a smallest change of 0.2 at K = 5, T = 1e5), nor is its `explore`.
    `tuned` has the source's formulas.

    >>> MonitoredUCB.text(horizon=100_000, phases=10, n_arms=5)
    MonitoredUCB(window=800, threshold=100.65..., explore=0.07587...)

    Reference: Cao, Wen, Kveton and Xie 2019, "Nearly optimal adaptive procedure with change detection for
    piecewise-stationary bandit"."""

    window: Annotated[int, within(">= 2", "It is split into two halves, so it is even.")] = 800  # w
    threshold: Annotated[float, within("[0, inf]")] = 100.65  # b; at window / 2 or more there is no alarm
    explore: Annotated[float, within("[0, 1]")] = 0.0759  # gamma: share of forced rounds

    def validate(self) -> None:
        if self.window % 2 == 1:
            raise ValueError(f"MonitoredUCB needs an even window, since it compares two halves; got {self.window}.")

    def init(self, n_arms: int) -> MonitoredUCBState:
        period = math.floor(min(n_arms / self.explore, _NEVER)) if self.explore > 0.0 else 0
        return new_state(
            MonitoredUCBState,
            n_arms,
            recent=np.zeros(n_arms * self.window),
            place=np.zeros(n_arms, np.int64),
            halves=np.zeros(4 * n_arms),
            start=np.zeros(1, np.int64),
            period=np.array([period], np.int64),
            alarms=np.zeros(1, np.int64),
        )

    def choose(self, state: MonitoredUCBState, t: int, rng: Any) -> int:
        """The arm whose forced turn it is, else the largest UCB1 index; the indices are written in both cases."""
        since = t - state.start[0]
        scores = state.scores
        write_padded_scores(scores, state.mean, state.pulls, 2.0 * math.log(max(since, 1)))
        period = state.period[0]
        if period > 0:
            turn = (since + 1) % period
            if 1 <= turn <= len(scores):
                return int(turn - 1)
        return int(argmax_fair(scores, rng))

    def learn(self, state: MonitoredUCBState, t: int, arm: int, reward: float) -> None:
        """Add the reward, move the arm's two half-sums by one place, and test.

        A reward enters the newer half, the one in the middle of the ring passes to the older half, the oldest leaves.
        Both halves are also summed afresh on every pass through the ring, so that rounding errors cannot accumulate.

        An alarm only sets the counts to 0, and an arm's first reward after it overwrites the rest: the method is
        then short enough for the compiler to inline, where a call would copy the whole state."""
        window = self.window
        half = window // 2
        recent, halves = state.recent, state.halves
        pulls = state.pulls[arm] + 1.0
        place = state.place[arm]
        total = state.total[arm]
        sums = 4 * arm
        if pulls == 1.0:
            place = 0
            total = 0.0
        if place == 0:
            halves[sums + 2] = 0.0
            halves[sums + 3] = 0.0
        total += reward
        state.pulls[arm] = pulls
        state.total[arm] = total
        state.mean[arm] = total / pulls
        here = arm * window + place
        if pulls > window:
            middle = recent[here + half] if place < half else recent[here - half]
            halves[sums] += middle - recent[here]
            halves[sums + 1] += reward - middle
        recent[here] = reward
        halves[sums + 2 if place < half else sums + 3] += reward
        place += 1
        if place == window:
            place = 0
            halves[sums] = halves[sums + 2]
            halves[sums + 1] = halves[sums + 3]
        state.place[arm] = place
        if pulls >= window and abs(halves[sums + 1] - halves[sums]) > self.threshold:
            state.alarms[0] += 1
            state.start[0] = t + 1
            for i in range(len(state.pulls)):
                state.pulls[i] = 0.0

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, pulls=COUNTS, total=REALS, mean=REALS, recent=REALS, halves=REALS, alarms=ROUNDS, period=ROUNDS)
        fits(state, place=within(f"[0, {self.window - 1}]"), start=within(f"[0, {t}]"))

    def state_size(self, n_arms: int) -> int:
        return n_arms * (self.window + 9)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int, smallest_change: float = 0.6) -> "MonitoredUCB":
        """Cao et al.: w = 4 / d**2 (sqrt(ln(2KT**2)) + sqrt(ln(2T)))**2 rounded up to even, b = sqrt(w/2 ln(2KT**2)),
        and gamma = sqrt(changes K (2b + 3 sqrt(w)) / (2T)), at most 1. The smallest change d = 0.6 is about what the
        paper's w = 800 corresponds to."""
        count = changes(phases)
        if not 0.0 < smallest_change <= 1.0:
            raise ValueError(f"MonitoredUCB.tuned needs smallest_change in (0, 1]; got {smallest_change!r}.")
        spread = math.log(2.0 * n_arms * float(horizon) ** 2)
        wanted = 4.0 / smallest_change**2 * (math.sqrt(spread) + math.sqrt(math.log(2.0 * horizon))) ** 2
        window = 2 * math.ceil(wanted / 2.0)
        threshold = math.sqrt(window / 2.0 * spread)
        explore = math.sqrt(count * n_arms * (2.0 * threshold + 3.0 * math.sqrt(window)) / (2.0 * horizon))
        return cls(window, threshold, min(1.0, explore))

    @classmethod
    def text(cls, horizon: int, phases: int, n_arms: int, smooth: bool = False) -> "MonitoredUCB":
        """The paper's values: w = 800, b = sqrt(w/2 ln(2KT**2)), gamma = sqrt(K phases ln(T) / T), at most 1."""
        count = 1 if smooth else phases
        threshold = math.sqrt(800 / 2.0 * math.log(2.0 * n_arms * float(horizon) ** 2))
        return cls(800, threshold, min(1.0, math.sqrt(n_arms * count * math.log(horizon) / horizon)))
