"""GLR-klUCB: kl-UCB with an exact generalised likelihood ratio test of every possible change point, by convex hulls."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import argmax_fair, compilable
from driftbandit.core.state import new_state
from driftbandit.core.validity import COUNTS, ROUNDS, fits, need
from driftbandit.policies.kl_ucb import kl_bernoulli, kl_ucb

VERTICES = 1024  # places for the vertices of one hull of one arm
_NEVER = 2.0**62  # a period longer than any run, that still fits an integer
_LOG_TWO_ZETA = math.log(math.pi**2 / 3.0)  # ln(2 zeta(2))
_SWITCH = 1.0 / math.log(1.5) + math.log(math.log(1.5))  # h(1 / ln 1.5), where h~ changes its formula


class GLRKLUCBState(NamedTuple):
    """The evidence about each arm since its last restart, and the corners of its path of summed rewards."""

    pulls: Any  # k
    total: Any  # sum of the rewards
    start: Any  # rounds played when the arm last restarted
    upper_at: Any  # arm * places + j: where the upper hull of the points (pulls, total) has its vertices
    upper_sum: Any
    lower_at: Any  # the same of the lower hull
    lower_sum: Any
    corners: Any  # arm * 2: number of vertices of the upper hull; arm * 2 + 1: of the lower hull
    period: Any  # length 1: rounds between two visits of forced exploration; 0 if nothing is forced
    alarms: Any  # length 1: alarms so far
    scores: Any  # scratch: the indices of the last choice


@described(
    short="glr-klucb",
    family="detects",
    scratch=("scores",),
    forgets="drops an arm (or all) when a likelihood-ratio test finds a change point in its record",
    knows="the horizon",
    rewards="[0, 1]",
    cost="O(K + log n) expected",
    formula=r"""
        a = t \bmod \lfloor K / \alpha \rfloor \ \text{ if that is in } 1..K, \text{ else}
        a = \operatorname{argmax}_i\ \max\{q : \mathrm{kl}(\hat\mu_i, q) \le d_i / k_i\}
        d_i = \ln (t - s_i) + c \ln \ln (t - s_i)
        \alpha = \sqrt{e K \ln T / T}, \quad e = 1 + \text{alarms so far}
        s_i = \text{the arm's last restart}
        G = \max_s\ s\, \mathrm{kl}(\hat\mu_{1:s}, \hat\mu) + (n - s)\, \mathrm{kl}(\hat\mu_{s+1:n}, \hat\mu)
        G > \ln (\mathtt{threshold}\; n^{3/2} / \delta): \ \text{forget arm } a \text{ (all, if not } \mathtt{local})
    """,
    reference="Besson, Kaufmann, Maillard, Seznec 2022",
)
@checked
class GLRKLUCB(NamedTuple):
    """kl-UCB that tests, after every reward, whether the arm's record is better explained by two means than by one.

    For each split of an arm's rewards since its restart it computes the likelihood ratio of "two Bernoulli means"
    against "one". If the largest exceeds a threshold growing like 3/2 ln n + ln(1/delta), the arm (`local`) or every
    arm is forgotten. All arms are visited in turn, more often after each alarm, so that changes of unplayed arms are
    seen.

    Needs the horizon but neither the number of changes nor their size. Rewards in [0, 1]. `local=False` suits changes
    of all arms at once. Its regret is of order sqrt(T B K log T) without knowing B, the number of changes, and sqrt(T B
    log T) in `local` form, if phases are long. `threshold` is the factor inside the practical test, ln(threshold n**1.5
    / delta): 1 and 3 are in use; 0 means the theory's threshold, three to four times higher and rarely reached. With
    delta = 0 there are no alarms.

    The cost of the test does not grow with the record. The ratio is a convex function of the split's point (s, sum of
    the first s rewards), so that its maximum is at a corner of these points' convex hull. The hull gains a point at
    amortised O(1), and usually has about 2 ln n corners. A corner is evaluated only if the chi-squared bound on its
    ratio exceeds the threshold, which saves nearly all logarithms.

    Memory is bounded: 1024 corners per hull and arm. If a hull fills (0/1 rewards cannot fill one within 39,000 pulls),
    corners close to others are dropped, fewer the nearer they are to either end. The statistic is then at most a few
    per cent lower in our tests, so an alarm may come a little later but none is added.

    Reference: Besson, Kaufmann, Maillard and Seznec 2022, "Efficient change-point detection for tackling
    piecewise-stationary bandits"."""

    horizon: Annotated[int, within(">= 1")] = 100_000  # T
    delta: Annotated[float, within("[0, 1]", "tuned(horizon, phases, n_arms) takes 1 / sqrt(horizon).")] = (
        0.003  # false alarms
    )
    local: bool = True  # an alarm empties only its arm
    threshold: Annotated[float, within(">= 0")] = 1.0  # factor inside the practical threshold; 0: the theory's
    changes: Annotated[int, within(">= 0")] = 0  # if known: explore at a constant rate for so many changes
    c: Annotated[float, within(">= 0")] = 0.0  # weight of ln ln in the index; theory 3

    def init(self, n_arms: int) -> GLRKLUCBState:
        upper_at, upper_sum, lower_at, lower_sum = np.zeros((4, n_arms * VERTICES))
        return new_state(
            GLRKLUCBState,
            n_arms,
            start=np.zeros(n_arms, np.int64),
            upper_at=upper_at,
            upper_sum=upper_sum,
            lower_at=lower_at,
            lower_sum=lower_sum,
            corners=np.zeros(2 * n_arms, np.int64),
            period=np.array([forced_period(self.horizon, max(self.changes, 1), n_arms)], np.int64),
            alarms=np.zeros(1, np.int64),
        )

    def choose(self, state: GLRKLUCBState, t: int, rng: Any) -> int:
        """The arm whose forced turn it is, else the largest kl-UCB index; the indices are written in both cases."""
        scores = state.scores
        for i in range(len(scores)):
            pulls = state.pulls[i]
            if pulls > 0.0:
                since = max(t - state.start[i], 1)
                bonus = math.log(since)
                if self.c > 0.0:
                    bonus += self.c * math.log(math.log(max(since, math.e)))
                scores[i] = kl_ucb(state.total[i] / pulls, bonus / pulls)
            else:
                scores[i] = math.inf
        period = state.period[0]
        if period > 0:
            turn = (t + 1) % period
            if 1 <= turn <= len(scores):
                return int(turn - 1)
        return int(argmax_fair(scores, rng))

    def learn(self, state: GLRKLUCBState, t: int, arm: int, reward: float) -> None:
        """Add the end of the record so far to the hulls, then the reward to the record, then test it."""
        before = state.pulls[arm]
        sum_before = state.total[arm]
        n = before + 1.0
        whole = sum_before + reward
        state.pulls[arm] = n
        state.total[arm] = whole
        if before == 0.0:
            return
        places = len(state.upper_at) // len(state.pulls)
        first = arm * places
        corners = state.corners
        upper = push(state.upper_at, state.upper_sum, first, corners[2 * arm], places, before, sum_before, 1.0)
        lower = push(state.lower_at, state.lower_sum, first, corners[2 * arm + 1], places, before, sum_before, -1.0)
        corners[2 * arm] = upper
        corners[2 * arm + 1] = lower
        if self.delta <= 0.0 or not 0.0 < whole / n < 1.0:
            return
        # The theory's threshold is above the practical one with factor 3, and dear: it waits until that is passed.
        factor = self.threshold if self.threshold > 0.0 else 3.0
        bar = math.log(factor) + 1.5 * math.log(n) - math.log(self.delta)
        found = max(
            largest_ratio(state.upper_at, state.upper_sum, first, upper, n, whole, bar),
            largest_ratio(state.lower_at, state.lower_sum, first, lower, n, whole, bar),
        )
        if found > bar and (self.threshold > 0.0 or found > theory_threshold(bar, n)):
            self.restart(state, t + 1, arm)

    def restart(self, state: GLRKLUCBState, start: int, arm: int) -> None:
        """Empty the arm with the alarm, or all, and explore more from now on."""
        state.alarms[0] += 1
        n_arms = len(state.pulls)
        for i in range(n_arms):
            if i == arm or not self.local:
                state.pulls[i] = 0.0
                state.total[i] = 0.0
                state.start[i] = start
                state.corners[2 * i] = 0
                state.corners[2 * i + 1] = 0
        if self.changes == 0:
            state.period[0] = forced_period(self.horizon, state.alarms[0] + 1, n_arms)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, pulls=COUNTS, total=COUNTS, start=within(f"[0, {t}]"), period=ROUNDS, alarms=COUNTS)
        fits(state, upper_at=COUNTS, upper_sum=COUNTS, lower_at=COUNTS, lower_sum=COUNTS)
        fits(state, corners=within(f"[0, {VERTICES}]"))
        need((state.total <= state.pulls * (1.0 + 1e-9) + 1e-9).all(), "no sum of rewards exceeds their number")
        for arm in range(len(state.pulls)):
            for side, at in enumerate((state.upper_at, state.lower_at)):
                corners = at[arm * VERTICES : arm * VERTICES + state.corners[2 * arm + side]]
                inside = (corners >= 1.0).all() and (corners <= state.pulls[arm] - 1.0).all()
                need(inside and (np.diff(corners) > 0.0).all(), "corners lie in order within an arm's record")

    def state_size(self, n_arms: int) -> int:
        return n_arms * (4 * VERTICES + 6)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0, local: bool = True) -> "GLRKLUCB":
        """delta = 1 / sqrt(T), the practical threshold and ln t in the index, as in the experiments of its authors."""
        return cls(horizon, 1.0 / math.sqrt(horizon), local)


@compilable
def forced_period(horizon: int, episodes: int, n_arms: int) -> int:
    """Rounds between two forced visits: floor(K / min(1, sqrt(episodes K ln T / T))); 0 if none is due (T = 1)."""
    explore = min(1.0, math.sqrt(episodes * n_arms * math.log(max(horizon, 1)) / horizon))
    if explore <= 0.0:
        return 0
    return math.floor(min(n_arms / explore, _NEVER))


@compilable
def theory_threshold(x: float, n: float) -> float:
    """2 T(x / 2) + 6 ln(1 + ln n) for x = ln(3 n**1.5 / delta), with T of Kaufmann and Koolen's mixture martingales."""
    y = (h_inverse(1.0 + x / 2.0) + _LOG_TWO_ZETA) / 2.0
    if y >= _SWITCH:
        u = h_inverse(y)
        tilde = math.exp(1.0 / u) * u
    else:
        tilde = 1.5 * (y - math.log(math.log(1.5)))
    return 2.0 * (2.0 * tilde) + 6.0 * math.log(1.0 + math.log(n))


@compilable
def h_inverse(y: float) -> float:
    """The u >= 1 with u - ln u = y, for y >= 1, by halving until the ends are neighbours."""
    low = 1.0
    high = 2.0 * y + 2.0
    middle = (low + high) / 2.0
    while low < middle < high:
        if middle - math.log(middle) < y:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2.0
    return middle


# ---- the corners of a path of summed rewards, kept as two convex hulls -----------------------------------------------
# The points are (s, sum of the first s rewards). A hull is a stretch of the arrays `at` and `sums` from `first` on,
# with places for `places` vertices; it lies above all points (side 1) or below (side -1).


@compilable
def push(at: Any, sums: Any, first: int, count: int, places: int, s: float, a: float, side: float) -> int:
    """Add the point (s, a), right of all others, to a hull (side 1: upper, -1: lower) and return its number of
    vertices.

    The newest vertices that the new point leaves on or inside the hull are removed first."""
    while count >= 2:
        last = first + count - 1
        rise = (a - sums[last - 1]) * (at[last] - at[last - 1])
        if side * (rise - (sums[last] - sums[last - 1]) * (s - at[last - 1])) < 0.0:
            break
        count -= 1
    share = 0.125
    while count == places:
        count = thin(at, sums, first, count, s, share)
        share *= 2.0
    at[first + count] = s
    sums[first + count] = a
    return count + 1


@compilable
def thin(at: Any, sums: Any, first: int, count: int, n: float, share: float) -> int:
    """Drop vertices from between neighbours that are close, and return how many are left.

    Close means: by at most this share of their distance to the nearer end of the record. A change point is found
    from few rewards on one side of it, so splits near the ends have to stay dense."""
    kept = 1
    for j in range(first + 1, first + count):
        left = at[first + kept - 1]
        if j == first + count - 1 or at[j + 1] - left > share * min(left, n - at[j + 1]):
            at[first + kept] = at[j]
            sums[first + kept] = sums[j]
            kept += 1
    return kept


@compilable
def largest_ratio(at: Any, sums: Any, first: int, count: int, n: float, whole: float, bar: float) -> float:
    """The largest log-likelihood ratio at the vertices of one hull, if it exceeds `bar`; otherwise some number below.

    kl(p, q) <= (p - q)**2 / (q (1 - q)) bounds the ratio at (s, a) by n (a - s m)**2 / (s (n - s) m (1 - m)), m the
    mean. Vertices bounded well below the bar are skipped, except near m = 0 and 1, where kl keeps its second
    argument off the ends."""
    mean = whole / n
    limit = 0.9 * bar * mean * (1.0 - mean)
    if mean < 1e-12 or mean > 1.0 - 1e-12:
        limit = -1.0
    best = 0.0
    for j in range(first, first + count):
        s = at[j]
        excess = sums[j] - s * mean
        if n * excess * excess > limit * s * (n - s):
            # Rounding can leave the rest of the sum a hair outside [0, n - s], where kl has no logarithm.
            after = min(max((whole - sums[j]) / (n - s), 0.0), 1.0)
            ratio = s * kl_bernoulli(sums[j] / s, mean) + (n - s) * kl_bernoulli(after, mean)
            best = max(best, ratio)
    return best
