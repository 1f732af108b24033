"""META: elimination with replays, which restarts only when no arm is left that did well throughout the episode."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.parameters import checked, described, within
from driftbandit.validity import ARM, REALS, ROUNDS, SHARE, fits, need, same

_MOST_ARMS = 32_767


class MetaState(NamedTuple):
    """The episode under way: its stack of base procedures, and sums of importance-weighted rewards over dyadic
    windows."""

    begun: Any  # place on the stack: first round of the procedure; place 0 is the root
    ends: Any  # round in which it is over; the root has none
    active_from: Any  # lowest place on the stack at which the arm is active: it is active there and above
    entry_arm: Any  # ring: the arm of a round ...
    entry: Any  # ... and its entry, (number of active arms) * reward
    gains: Any  # level * K + arm: sum of the arm's entries in the last 2**(level + 1) rounds
    afresh: Any  # the same of the block of 2**(level + 1) rounds under way, as far as its halves are complete
    limit: Any  # level: a spread of gains above this evicts
    slack: Any  # level: the spread was and is at least this far below the limit
    top: Any  # length 1: place of the running procedure
    start: Any  # length 1: first round of the episode
    alarms: Any  # length 1: new episodes so far
    chances: Any  # scratch: probability of each arm in the last choice


@described(
    short="meta",
    family="detects",
    scratch=("chances",),
    forgets="starts over when no arm is left that was good throughout the episode; replays test evicted arms",
    knows="the horizon",
    rewards="any",
    cost="O(K log t), memory O(horizon)",
    formula=r"""
        a \ \text{uniform in the active set } A
        d_t(j, i) = |A|\, x\, \bigl(\mathbf{1}\{a = j\} - \mathbf{1}\{a = i\}\bigr)
        \text{evict } i:\ \max_j \sum_{s=s_1}^{t} d_s(j, i) > c_0 \ln(T) \sqrt{\max(K (t - s_1),\ K^2)}
        P(\text{a replay of } m = 2, 4, 8, \dots \text{ rounds begins}) = \mathtt{replays} / \sqrt{m\, (t - t_0)}
        t_0 = \text{start of the episode}
        \text{new episode: all arms evicted from the root}
    """,
    reference="Suk, Kpotufe 2022",
)
@checked
class Meta(NamedTuple):
    """Randomised elimination that checks itself: replays of random length give all arms another chance.

    A round plays uniformly among the arms active in the running procedure. An arm leaves a procedure when over some
    stretch of that procedure's life its importance-weighted rewards fall behind another arm's by more than c0 ln(T)
    sqrt(max(K L, K**2)). At random times a replay begins, in which all arms are active; what it finds also counts for
    the procedures below it. When the root has lost all arms, everything is forgotten and an episode begins.

    Needs only the horizon. It follows "significant" changes: those after which no arm is good throughout. Its regret is
    of order sqrt(K S T) up to logarithms for an unknown number S of significant changes, which can be far below the
    number of changes. As with all such policies the constants are the price: with the theory's, an arm worse by 0.5
    survives thousands of rounds. Rewards in [0, 1].

    Unconfirmed: the constant c0 and the power of the logarithm in the eviction rule; the default is the best of 0.1 to
    1 on abrupt worlds of 1e5 and 1e6 rounds. The paper compares all intervals; here those that end now and have a
    dyadic length, O(K log t) per round and usually O(log t), since a window is compared only when enough has been won
    and lost for it to matter.

    It keeps the arm and entry of as many rounds as the longest window has, the largest power of two <= horizon: 10
    bytes per round (84 MB for 10 million rounds), in memory only as far as the run gets. Past `horizon` windows stop
    growing.

    Reference: Suk and Kpotufe 2022, "Tracking most significant arm switches in bandits"."""

    horizon: Annotated[int, within(">= 1")] = 100_000  # T
    c0: Annotated[float, within("> 0")] = 0.4  # how sure an eviction must be
    replays: Annotated[float, within(">= 0")] = 1.0  # multiplier of the probability of a replay

    def init(self, n_arms: int) -> MetaState:
        """The first episode: all arms active."""
        if n_arms > _MOST_ARMS:
            raise ValueError(f"Meta keeps arms in two bytes, so it needs at most {_MOST_ARMS} arms; got {n_arms}.")
        levels = self.horizon.bit_length() - 1  # windows of 2, 4, ..., 2**levels rounds
        most = math.ceil(math.log2(self.horizon))
        log = math.log(self.horizon)
        lengths = [2 ** (level + 1) for level in range(levels)]
        limits = [self.c0 * log * math.sqrt(max(n_arms * (length - 1), n_arms**2)) for length in lengths]
        return MetaState(
            begun=np.zeros(most + 2, np.int64),
            ends=np.full(most + 2, 2**62, np.int64),
            active_from=np.zeros(n_arms, np.int64),
            entry_arm=np.zeros(2**levels, np.int16),
            entry=np.zeros(2**levels),
            gains=np.zeros(max(levels, 1) * n_arms),
            afresh=np.zeros(max(levels, 1) * n_arms),
            limit=np.array(limits, np.float64),
            slack=np.full(levels, -1.0),
            top=np.zeros(1, np.int64),
            start=np.zeros(1, np.int64),
            alarms=np.zeros(1, np.int64),
            chances=np.zeros(n_arms),
        )

    def choose(self, state: MetaState, t: int, rng: Any) -> int:
        """Draw whether a replay begins, then an arm, uniformly among the active ones."""
        n_arms = len(state.active_from)
        place = self.place(state, t, rng)
        active = self.active_at(state, place)
        skip = int(rng.uniform(1) * active)
        arm = 0
        for i in range(n_arms):
            if state.active_from[i] <= place:
                state.chances[i] = 1.0 / active
                if skip == 0:
                    arm = i
                skip -= 1
            else:
                state.chances[i] = 0.0
        return arm

    def place(self, state: MetaState, t: int, rng: Any) -> Any:
        """The place on the stack of the procedure that runs in round t, the round's replay included."""
        place = state.top[0]
        while state.ends[place] <= t:
            place -= 1
        if self.replay(state, t, rng) > 0:
            place = len(state.begun)  # every arm is active from there or below
        return place

    def active_at(self, state: MetaState, place: int) -> int:
        """How many arms are active at a place on the stack."""
        active = 0
        for i in range(len(state.active_from)):
            active += 1 if state.active_from[i] <= place else 0
        return active

    def chance_of(self, state: MetaState, t: int, arm: int, rng: Any) -> float:
        """The probability of each active arm, given whether a replay begins."""
        return 1.0 / self.active_at(state, self.place(state, t, rng))

    def replay(self, state: MetaState, t: int, rng: Any) -> int:
        """The length of the replay that begins in round t, the longest if several are drawn; 0 for none."""
        since = t - state.start[0]
        if since > 0:
            length = 1 << (len(state.begun) - 2)
            slot = 1000 + len(state.begun) - 2
            while length > 1:
                u = rng.uniform(slot)
                rare = float(length) * since
                # The square spares a root and a division for the many lengths that are far from being drawn.
                if u * u * rare < 1.001 * self.replays * self.replays and u < self.replays / math.sqrt(rare):
                    return length
                length //= 2
                slot -= 1
        return 0

    def learn(self, state: MetaState, t: int, arm: int, reward: float, rng: Any) -> None:
        """Begin the round's replay, then weigh the reward and evict.

        The replay is drawn again from the round's numbers: it begins once for each reward learnt, however often
        `choose` was asked before."""
        self.renew_stack(state, t, self.replay(state, t, rng))
        self.enter(state, t, arm, self.active_at(state, state.top[0]) * reward)

    def learn_late(self, state: MetaState, t: int, arm: int, reward: float, rng: Any, chance: float) -> None:
        """The same with a reward whose arm was played with this probability: one over the number of arms active then,
        which it gives back exactly. Any other (of another policy, or of a mixture) is taken as it is, but never as less
        than that of one arm among all."""
        self.renew_stack(state, t, self.replay(state, t, rng))
        weight = 1.0 / max(chance, 1.0 / len(state.active_from))
        whole = math.floor(weight + 0.5)
        if abs(weight - whole) < 1e-9:
            weight = float(whole)
        self.enter(state, t, arm, weight * reward)

    def enter(self, state: MetaState, t: int, arm: int, value: float) -> None:
        """Compare; begin an episode if no arm is left at the root."""
        if self.compare(state, t, arm, value) and self.active_at(state, 0) == 0:
            self.begin(state, t + 1)

    def renew_stack(self, state: MetaState, t: int, planned: int) -> None:
        """Take off what is over; put the planned replay on.

        Procedures that would be over before the replay ends never run again, so they are taken off too. Then ends
        decrease up the stack, lengths are different powers of two, and their number is bounded. Lifetimes being
        nested, an arm evicted from a procedure leaves all those below it in the same round: one number per arm, the
        lowest place at which it is active, tells all active sets."""
        top = state.top[0]
        over = t + planned
        while state.ends[top] <= over:
            top -= 1
        if top < state.top[0]:
            for i in range(len(state.active_from)):
                state.active_from[i] = min(state.active_from[i], top + 1)
        if planned > 0:
            top += 1
            state.begun[top] = t
            state.ends[top] = over
        state.top[0] = top

    def compare(self, state: MetaState, t: int, arm: int, value: float) -> bool:
        """Enter the value in every window and evict the arms that fall behind; was there any?

        A window gains the new entry and loses one from the ring. Whenever its length divides the age of the episode
        it is replaced by sums built up from complete halves, so that rounding cannot pile up. The spread between
        largest and smallest gain moves by no more than the entries that come and go, so arms are compared only once
        these have used up the slack."""
        n_arms = len(state.active_from)
        gains, afresh = state.gains, state.afresh
        rounds = t - state.start[0] + 1
        mask = len(state.entry) - 1
        levels = len(state.limit)
        place = state.top[0]
        evicted = False
        afresh[arm] += value
        length = 2
        for level in range(levels):
            if length > rounds:
                break
            row = level * n_arms
            if rounds > length:
                gone = (rounds - 1 - length) & mask
                gains[row + arm] += value
                gains[row + state.entry_arm[gone]] -= state.entry[gone]
                state.slack[level] -= abs(value) + abs(state.entry[gone])
            if rounds & (length - 1) == 0:
                for i in range(n_arms):
                    gains[row + i] = afresh[row + i]
                    if level + 1 < levels:
                        afresh[row + n_arms + i] += afresh[row + i]
                    afresh[row + i] = 0.0
            if state.slack[level] < 0.01 * state.limit[level]:
                most = gains[row]
                least = gains[row]
                for i in range(1, n_arms):
                    most = max(most, gains[row + i])
                    least = min(least, gains[row + i])
                limit = state.limit[level]
                state.slack[level] = limit - (most - least)
                if most - least > limit:
                    while t - state.begun[place] + 1 < length:
                        place -= 1
                    for i in range(n_arms):
                        if most - gains[row + i] > limit and state.active_from[i] <= place:
                            state.active_from[i] = place + 1
                            evicted = True
            length *= 2
        state.entry_arm[(rounds - 1) & mask] = arm
        state.entry[(rounds - 1) & mask] = value
        return evicted

    def begin(self, state: MetaState, start: int) -> None:
        """A new episode: the root alone on the stack, all arms active, all windows empty."""
        state.alarms[0] += 1
        state.start[0] = start
        state.top[0] = 0
        state.begun[0] = start
        for i in range(len(state.active_from)):
            state.active_from[i] = 0
        for i in range(len(state.gains)):
            state.gains[i] = 0.0
            state.afresh[i] = 0.0
        for level in range(len(state.slack)):
            state.slack[level] = -1.0

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        n_arms, most = len(state.active_from), len(state.begun) - 2
        fits(state, n_arms, entry_arm=ARM, entry=REALS, gains=REALS, afresh=REALS, slack=REALS, alarms=ROUNDS)
        fits(state, chances=SHARE, start=within(f"[0, {t}]"), top=within(f"[0, {most}]"))
        same(state, like, "limit")
        top = int(state.top[0])
        begun, ends = state.begun[: top + 1], state.ends[: top + 1]
        lengths = [2 ** (power + 1) for power in range(most)]
        need(begun[0] == state.start[0] and ends[0] == 2**62, "the root began with the episode and never ends")
        spans = (ends - begun)[1:]
        need((begun <= t).all() and (np.diff(begun[1:]) > 0).all(), "procedures began one after the other")
        need(all(int(span) in lengths for span in spans), "replays last a power of two")
        need((np.diff(ends) < 0).all() and (np.diff(spans) < 0).all(), "procedures end in turn, the last one first")
        active = state.active_from
        need(active.min() == 0 and active.max() <= top + 1, "some arm is active at the root")

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return 2 * self.horizon + 4 * n_arms * self.horizon.bit_length() + 3 * self.horizon.bit_length()

    def grow(self, state: MetaState, after: MetaState, t: int) -> MetaState:
        """A new arm has no past to be compared by, so an episode begins with it."""
        fresh = self.init(len(after.active_from))
        fresh.alarms[0] = state.alarms[0] - 1
        self.begin(fresh, t)
        return fresh

    def exact_chances(self, state: MetaState, t: int, allowed: list[int]) -> Any:
        """The chances of the allowed arms, whether or not a replay begins; `chances` holds those of one case."""
        since, none = t - int(state.start[0]), 1.0
        if since > 0:
            for power in range(1, len(state.begun) - 1):
                none *= 1.0 - min(1.0, self.replays / math.sqrt(2.0**power * since))
        place = int(state.top[0])
        while state.ends[place] <= t:
            place -= 1
        active = np.array([1.0 if state.active_from[arm] <= place else 0.0 for arm in allowed])
        if active.sum() == 0.0:
            active[:] = 1.0
        return none * active / active.sum() + (1.0 - none) / len(allowed)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "Meta":
        """The practical c0; the number of phases is not used, and the theory's constant is unconfirmed."""
        return cls(horizon)
