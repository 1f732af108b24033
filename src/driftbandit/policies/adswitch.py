"""ADSWITCH: successive elimination that keeps testing every arm for change, with the number of changes unknown."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import argmax, compilable, index, where
from driftbandit.core.state import new_state
from driftbandit.core.validity import FLAG, REALS, ROUNDS, SCRATCH, fits, need

_LEVELS = 64  # no record has more dyadic lengths
_PLAYS = within("[0, 1e15]")
_DEBT_MAX = 2.0**62  # more pulls than any run has rounds


class AdSwitchState(NamedTuple):
    """The episode under way: which arms are good, what bad arms looked like, and sums at the points of the test
    grid."""

    plays: Any  # in the episode
    total: Any  # summed rewards in the episode
    last: Any  # round of the arm's last play in the episode, -1 before the first
    good: Any  # 1 good, 0 bad
    frozen: Any  # mean of a bad arm when it was evicted
    gap: Any  # its distance to the best arm then
    debt: Any  # a bad arm is sampled until its plays reach this
    plays_at: Any  # block * K + arm: plays after so many blocks of `every` rounds
    total_at: Any  # the same for total
    best: Any  # scratch: largest mean of a good arm in each suffix
    recent: Any  # scratch: each arm's mean in a suffix
    width: Any  # scratch: how far a good arm's mean there may be off, infinite for others
    start: Any  # length 1: first round of the episode
    episode: Any  # length 1: its number, from 1
    alarms: Any  # length 1: new episodes so far
    scores: Any  # scratch: how long ago each candidate was played


@described(
    short="adswitch",
    family="detects",
    scratch=("scores",),
    forgets="starts over when an arm's rewards on neighbouring intervals disagree",
    knows="the horizon",
    rewards="any",
    cost="O(K), and O(K log(t)^2) every `every` rounds; memory O(K horizon / every)",
    formula=r"""
        a = \text{the arm played longest ago among the good and those that owe samples}
        \text{evict } i:\ \Delta_i = \max_{j \text{ good}} \bar x_S(j) - \bar x_S(i) > \sqrt{c_1 \ln T / (n_S(i) - 1)}
        S = \text{some stretch that ends now}, \quad m_i = \bar x_S(i) \text{ then}
        \text{a bad arm owes } \lfloor 2^{2l+1} \ln T \rfloor \text{ samples, for every } 2^{-l} \ge \Delta_i / 16,
        \text{with probability } 2^{-l} \sqrt{\text{number of the episode} / (K T \ln T)} \text{ in a round}
        \text{new episode:}\ |\bar x_{R}(i) - \bar x_S(i)| > \sqrt{2 \ln T / n_{R}(i)} + \sqrt{2 \ln T / n_S(i)}
        \text{for some good } i \text{ and a stretch } R \text{ before } S,
        \text{or}\ |\bar x_S(i) - m_i| > \Delta_i / 4 + \sqrt{2 \ln T / n_S(i)}, \quad i \text{ bad}
    """,
    reference="Auer, Gajane, Ortner 2019",
)
@checked
class AdSwitch(NamedTuple):
    """Play the arms that may still be best in turn, check bad arms at random, and start over when any arm has changed.

    An arm is evicted when it is clearly worse than another over some recent stretch. From then on it is sampled now and
    then, for long enough to see a change of size 2**-i with a probability of order 2**-i. A new episode, which forgets
    everything, begins when a good arm's recent rewards differ from its earlier ones, or a bad arm's from those at its
    eviction.

    Needs only the horizon, and was the first policy with regret of order sqrt(B K T log T) for an unknown number B of
    changes. The price is large constants: with c1 = 16.1 at T = 1e5 an arm worse by 0.5 is played some 740 times before
    it is evicted. Use it as the reference for "no prior knowledge", on long horizons with few, large changes. Rewards
    in [0, 1].

    The paper tests every interval in every round, at O(K t**3). As in other implementations, tests take place every
    `every` rounds of an episode and on neighbouring intervals of `every` * 2**j rounds, at O(K log(t)**2) per test. The
    prefix sums take 16 K / every bytes per round (32 MB for 10 arms and 10 million rounds). An episode that outlasts
    `horizon` ends without an alarm. Unconfirmed: c1 = 16.1 (the theory needs more than 16), and that the earlier
    interval ends before the later one begins.

    Reference: Auer, Gajane and Ortner 2019, "Adaptively tracking the best bandit arm with an unknown number of
    distribution changes"."""

    horizon: Annotated[int, within(">= 2")] = 100_000  # T
    c1: Annotated[float, within("> 0")] = 16.1  # how sure an eviction must be
    every: Annotated[int, within(">= 1")] = 50  # rounds between tests

    def init(self, n_arms: int) -> AdSwitchState:
        blocks, whole = self.horizon // self.every + 1, np.zeros((2, n_arms), np.int64)
        return new_state(
            AdSwitchState,
            n_arms,
            plays=whole[0],
            last=np.full(n_arms, -1, np.int64),
            good=np.ones(n_arms, np.int64),
            debt=whole[1],
            plays_at=np.zeros(blocks * n_arms, np.int64),
            total_at=np.zeros(blocks * n_arms),
            best=np.zeros(_LEVELS),
            start=np.zeros(1, np.int64),
            episode=np.ones(1, np.int64),
            alarms=np.zeros(1, np.int64),
        )

    def choose(self, state: AdSwitchState, t: int, rng: Any) -> int:
        n_arms = len(state.good)
        scores = state.scores
        rate = self.sampling_rate(state)
        for arm in range(n_arms):
            wanted = (
                state.good[arm] == 1 or state.plays[arm] < state.debt[arm] or self.new_debt(state, arm, rate, rng) > 0
            )
            scores[arm] = -1.0 * state.last[arm] if wanted else -math.inf
        return argmax(scores)

    def sampling_rate(self, state: AdSwitchState) -> float:
        """The probability of a round's new debt, over the size of change it is meant to show."""
        return math.sqrt(state.episode[0] / (len(state.good) * self.horizon * math.log(self.horizon)))

    def new_debt(self, state: AdSwitchState, arm: int, rate: float, rng: Any) -> int:
        """Pulls of the largest debt that a bad arm takes on in this round, 0 for none."""
        size = 0.5
        slot = 1001 + 64 * arm
        pulls = 0
        while size >= state.gap[arm] / 16.0:
            if rng.uniform(slot) < size * rate:
                # Debts grow with every step of this loop, so the last one found is the largest.
                pulls = int(min(math.floor(2.0 / (size * size) * math.log(self.horizon)), _DEBT_MAX))
            size *= 0.5
            slot += 1
        return pulls

    def learn(self, state: AdSwitchState, t: int, arm: int, reward: float, rng: Any) -> None:
        """Record debts and the reward; on a point of the grid, test.

        Debts are taken on by rounds that end in a reward, so they are drawn here; a choice draws them too, to act on
        them in the same round. Of an arm's debts only the one that lasts longest matters, so one number per arm
        holds them all."""
        n_arms = len(state.good)
        rate = self.sampling_rate(state)
        for i in range(n_arms):
            if state.good[i] == 0:
                pulls = self.new_debt(state, i, rate, rng)
                if pulls > 0:
                    state.debt[i] = max(state.debt[i], state.plays[i] + pulls)
        state.plays[arm] += 1
        state.total[arm] += reward
        state.last[arm] = t
        rounds = t - state.start[0] + 1
        if rounds % self.every != 0:
            return
        block = rounds // self.every
        if (block + 1) * n_arms > len(state.plays_at):
            self.begin(state, t + 1)
            return
        for i in range(n_arms):
            state.plays_at[block * n_arms + i] = state.plays[i]
            state.total_at[block * n_arms + i] = state.total[i]
        if self.has_changed(state, block):
            state.alarms[0] += 1
            self.begin(state, t + 1)
        else:
            self.evict(state, block)

    def has_changed(self, state: AdSwitchState, block: int) -> bool:
        """Whether some good arm's suffix differs from the interval before it, or some bad arm's suffix from its
        frozen mean."""
        log = math.log(self.horizon)
        length = 1
        while length > 0:
            if frozen_differ(state, block, length, log):
                return True
            if differs_before(state.plays_at, state.total_at, state.recent, state.width, block - length, log):
                return True
            length = next_length(length, block)
        return False

    def evict(self, state: AdSwitchState, block: int) -> None:
        """Evict the good arms that are clearly worse than the best good arm in some suffix."""
        log, n_arms = math.log(self.horizon), len(state.good)
        best_means(state.best, state.plays_at, state.total_at, state.good, block)
        for arm in range(n_arms):
            if state.good[arm] == 0:
                continue
            now = block * n_arms + arm
            length, level = 1, 0
            while length > 0:
                then = (block - length) * n_arms + arm
                n = state.plays_at[now] - state.plays_at[then]
                if n >= 2:
                    mean = (state.total_at[now] - state.total_at[then]) / n
                    gap = state.best[level] - mean
                    if gap > math.sqrt(self.c1 * log / (n - 1)):
                        state.good[arm] = 0
                        state.frozen[arm] = mean
                        state.gap[arm] = gap
                        state.debt[arm] = 0
                        best_means(state.best, state.plays_at, state.total_at, state.good, block)
                        break
                length = next_length(length, block)
                level += 1

    def begin(self, state: AdSwitchState, start: int) -> None:
        """A new episode. The sums after 0 blocks are always 0; later ones are written before they are read."""
        state.start[0] = start
        state.episode[0] += 1
        for i in range(len(state.good)):
            state.plays[i] = 0
            state.total[i] = 0.0
            state.last[i] = -1
            state.good[i] = 1
            state.debt[i] = 0

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, plays=_PLAYS, total=REALS, last=within(f"[-1, {t}]"), good=FLAG, frozen=REALS, gap=REALS)
        fits(state, debt=within("[0, 9e18]"), plays_at=_PLAYS, total_at=REALS)
        fits(state, best=SCRATCH, recent=SCRATCH, width=SCRATCH, alarms=ROUNDS)
        fits(state, start=within(f"[0, {t}]"), episode=within("[1, 1e15]"))
        need((state.gap[state.good == 0] >= 1e-20).all(), "a bad arm was worse by something")

    def state_size(self, n_arms: int) -> int:
        return 2 * n_arms * (self.horizon // self.every + 8) + _LEVELS

    def grow(self, state: AdSwitchState, after: AdSwitchState, t: int) -> AdSwitchState:
        """The sums of a block lie next to each other, those of a new arm at their end."""
        n_arms = len(state.good)
        for name in ("plays_at", "total_at"):
            table = getattr(after, name).reshape(-1, n_arms + 1)
            table[:, :n_arms] = getattr(state, name).reshape(-1, n_arms)
            table[:, n_arms] = 0
        return after

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "AdSwitch":
        """The theory's c1 > 16; the number of phases is not used."""
        return cls(horizon)


@compilable
def next_length(length: int, most: int) -> int:
    """The length after this one in 1, 2, 4, ... below `most` and `most` itself; 0 after the last."""
    return min(2 * length, most) if length < most else 0


# The next two have their loop over arms innermost and without a way out, so that it is vectorised: tests are most of
# what the policy costs.


@compilable
def frozen_differ(state: Any, block: int, length: int, log: float) -> bool:
    """Write every arm's mean over the last `length` blocks, and return whether a bad arm's differs from its frozen
    mean."""
    plays_at, total_at, good, gap = state.plays_at, state.total_at, state.good, state.gap
    n_arms = len(good)
    now, then = block * n_arms, (block - length) * n_arms
    found = False
    for arm in range(n_arms):
        n = plays_at[index(now + arm)] - plays_at[index(then + arm)]
        held = max(n, 1)
        mean = (total_at[index(now + arm)] - total_at[index(then + arm)]) / held
        width = where(n > 0, math.sqrt(2.0 * log / held), math.inf)
        state.recent[arm] = mean
        state.width[arm] = where(good[arm] == 1, width, math.inf)
        found = found | ((good[arm] == 0) & (abs(mean - state.frozen[arm]) > gap[arm] / 4.0 + width))
    return found


@compilable
def differs_before(plays_at: Any, total_at: Any, recent: Any, widths: Any, block: int, log: float) -> bool:
    """Whether some interval that ends after `block` blocks has a mean further from an arm's recent one than both widths
    allow.

    With sum s of n plays that is |s/n - recent| - width > sqrt(2 log / n). Times n, and squared, it needs neither
    root nor division, and is false where n is 0 or the width infinite."""
    n_arms = len(recent)
    now = block * n_arms
    length = 1 if block > 0 else 0
    while length > 0:
        then = now - length * n_arms
        found = False
        for arm in range(n_arms):
            n = 1.0 * (plays_at[index(now + arm)] - plays_at[index(then + arm)])
            total = total_at[index(now + arm)] - total_at[index(then + arm)]
            beyond = abs(total - recent[arm] * n) - widths[arm] * n
            found = found | ((beyond > 0.0) & (beyond * beyond > 2.0 * log * n))
        if found:
            return True
        length = next_length(length, block)
    return False


@compilable
def best_means(best: Any, plays_at: Any, total_at: Any, good: Any, block: int) -> None:
    """The largest mean of a good arm in each suffix, from short to long; -inf where none was played."""
    n_arms = len(good)
    length, level = 1, 0
    while length > 0:
        top = -math.inf
        for arm in range(n_arms):
            now = block * n_arms + arm
            then = (block - length) * n_arms + arm
            n = plays_at[now] - plays_at[then]
            if good[arm] == 1 and n > 0:
                top = max(top, (total_at[now] - total_at[then]) / n)
        best[level] = top
        length = next_length(length, block)
        level += 1
