"""Last-block subsampling duels: the leading arm defends its place in duels on equal numbers of rewards."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import compilable, index, shuffle
from driftbandit.core.validity import ARM, ARM_OR_NONE, FLAG, REALS, ROUNDS, fits, same
from driftbandit.policies.blocks import (
    beats,
    elect,
    moment,
    need_held_plays,
    new_blocks,
    queue_fits,
    tail_of,
    take_turn,
)
from driftbandit.policies.forgetting import changes, log_window

_SHUFFLE = 100  # slots of the numbers that shuffle a round begin after this
_LONGEST_LOG = math.log(2.0**63)  # ln of more rounds than anybody will play


class DuelState(NamedTuple):
    """All counts and sums, the rewards that duels compare, and the plays of the present round."""

    pulls: Any  # times each arm was played
    wins: Any  # sum of all its rewards
    blocks: Any  # its latest rewards
    order: Any  # the plays of this round, or of the next one as `choose` plans it
    queue: Any  # plays of this round done, plays of this round, plays planned for the next
    planned: Any  # the `moment` of the plan, -1 without one
    leader: Any  # the leader, and the one planned (-1: none)
    rounds: Any  # rounds begun
    forced: Any  # no more pulls than this are ever forced
    everybody: Any  # ones: all arms may lead
    recent: Any  # the arms of the plays held, as a ring
    cursor: Any  # where in it the next one goes


@compilable
def next_play(policy: Any, state: Any, rng: Any) -> Any:
    """The next play of the round under way, or the first of a new round, which is planned in scratch until `learn`
    begins it."""
    queue = state.queue
    if queue[0] == queue[1]:
        policy.plan(state, rng)
        state.planned[0] = moment(len(state.order), rng)
        return state.order[0]
    return state.order[index(queue[0])]


@compilable
def count_play(policy: Any, state: Any, rng: Any) -> Any:
    """Count a play; begin a new round if the last one is over, and return whether it did.

    The round is planned again unless `choose` has planned it from the same random numbers: it may have been asked at
    another time, or not at all."""
    queue = state.queue
    begins = queue[0] == queue[1]
    if begins:
        if state.planned[0] != moment(len(state.order), rng):
            policy.plan(state, rng)
        state.rounds[0] += 1
        queue[0] = 0
        queue[1] = queue[2]
        queue[2] = 0
    queue[0] += 1
    state.planned[0] = -1.0
    return begins


@compilable
def finish_plan(state: Any, leader: int, winners: int, rng: Any) -> None:
    """Shuffle the winners; without any, only the leader plays."""
    if winners == 0:
        state.order[0] = leader
        winners = 1
    else:
        shuffle(state.order, winners, rng, _SHUFFLE)
    state.queue[2] = winners
    state.leader[1] = leader


@described(
    short="lb-sda",
    family="never forgets",
    forgets="never (duels look at the leader's latest rewards only)",
    knows="nothing; the horizon, to set capacity",
    rewards="any",
    cost="O(K), memory O(horizon)",
    formula=r"""
        L = \operatorname{argmax}_i k_i, \quad \bar x_{L:n} = \text{mean of the leader's last } n \text{ rewards}
        f = (\ln r)^{\mathtt{forced\_power}}
        C = \{i \ne L,\ k_i < k_L :\ k_i < f \ \text{ or }\ \bar x_i \ge \bar x_{L:k_i}\}
        \text{round } r \text{ plays every arm in } C, \text{ or } L \text{ if } C = \emptyset
    """,
    reference="Baudry, Russac, Cappé 2021",
)
@checked
class LBSDA(NamedTuple):
    """Last-block subsampling duels: an arm challenges the most played one with all its rewards against as many of the
    leader's last.

    A round plays every arm that wins its duel, or the leader if none does. There is no confidence bound and no prior:
    the random variation of the leader's recent rewards makes it explore. It forgets nothing and is meant for stationary
    rewards, where its regret is optimal for one-parameter exponential families. Where rewards change use
    `SlidingLBSDA`.

    Rewards may be any real numbers: scaling or shifting them all changes no decision. `forced_power` 1/2 is the
    published forced exploration: an arm with fewer than (ln r)**(1/2) plays in round r is played whatever its duel's
    result; the code the paper runs has 0.333.

    Duels may need the whole past. It is kept for the last `capacity` plays, 24 bytes each: up to that many rounds this
    is exactly LB-SDA; beyond them duels see only those plays, while all plays decide who leads.

    Reference: Baudry, Russac and Cappé 2021."""

    forced_power: Annotated[float, within("(0, 10]")] = 0.5  # an arm played less than (ln r)**forced_power is played
    capacity: Annotated[int, within(">= 1")] = 100_000  # plays that duels can look back on

    def init(self, n_arms: int) -> DuelState:
        return DuelState(
            np.zeros(n_arms, np.int64),
            np.zeros(n_arms),
            new_blocks(n_arms, self.capacity, self.capacity),
            np.arange(n_arms, dtype=np.int64),  # round 1 plays every arm once, in order
            np.array([0, n_arms, 0], np.int64),
            np.full(1, -1.0),
            np.array([-1, -1], np.int64),
            np.ones(1, np.int64),
            np.array([_LONGEST_LOG**self.forced_power]),
            np.ones(n_arms, np.int64),
            np.full(self.capacity, -1, np.int64),
            np.zeros(1, np.int64),
        )

    def choose(self, state: DuelState, t: int, rng: Any) -> Any:
        return next_play(self, state, rng)

    def plan(self, state: DuelState, rng: Any) -> None:
        """Plan the round to come: leader, winners and their order."""
        r = state.rounds[0] + 1
        leader = elect(state.everybody, state.pulls, state.wins, state.leader[0], rng)
        most = state.pulls[leader]
        tail = tail_of(state.blocks, leader)
        winners = 0
        for k in range(len(state.pulls)):
            mine = state.pulls[k]
            if mine < most:  # never true of the leader itself
                # The logarithm is computed only where it can matter: counts soon exceed it.
                forced = mine < state.forced[0] and mine < math.log(r) ** self.forced_power
                if forced or state.blocks.count[k] == 0 or tail.count == 0 or beats(state.blocks, k, tail):
                    state.order[winners] = k
                    winners += 1
        finish_plan(state, leader, winners, rng)

    def learn(self, state: DuelState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Count the play and store the reward, in the place of the oldest if the store is full."""
        if count_play(self, state, rng):
            state.leader[0] = state.leader[1]
        state.pulls[arm] += 1
        state.wins[arm] += reward
        take_turn(state.blocks, state.recent, state.cursor, arm, reward)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        n_arms = len(state.pulls)
        fits(state, n_arms, pulls=ROUNDS, wins=REALS, order=ARM, leader=ARM_OR_NONE, rounds=within("[1, 4e18]"))
        same(state, like, "forced", "everybody")
        queue_fits(state.queue, n_arms)
        need_held_plays(state.blocks, state.recent, state.cursor)

    def state_size(self, n_arms: int) -> int:
        return 4 * self.capacity + 20 * n_arms * (math.isqrt(self.capacity) + 10)

    @classmethod
    def tuned(cls, horizon: int, phases: int = 1, n_arms: int = 0) -> "LBSDA":
        return cls(capacity=horizon)


class SlidingLBSDAState(NamedTuple):
    """The plays in the window, the leader and since when it leads, and the plays of the present round."""

    blocks: Any  # the rewards in the window, arm by arm
    recent: Any  # their arms in order of play, as a ring (-1: not yet filled)
    cursor: Any  # where in the ring the next play goes
    order: Any  # the plays of this round, or of the next one as `choose` plans it
    queue: Any  # plays of this round done, plays of this round, plays planned for the next
    planned: Any  # the `moment` of the plan, -1 without one
    leader: Any  # the leader, and the one planned (-1: none)
    since: Any  # the round in which the leader came to lead
    rounds: Any  # rounds begun
    drawn: Any  # the last round in which each arm was played
    forced: Any  # an arm held less often is played: (ln window)**forced_power rounded up, at least 1
    spread: Any  # n0 = (ln window)**2
    eligible: Any  # scratch: may the arm lead?


@described(
    short="sw-lb-sda",
    family="window",
    forgets="sees the last window plays, all arms together",
    knows="how often the environment changes, to set window",
    rewards="any",
    cost="O(K), memory O(window + K sqrt(window))",
    formula=r"""
        N_i, \bar x_i \ \text{ from the last } \mathtt{window} \text{ plays}
        L = \text{the leader, held most often}
        f = (\ln \mathtt{window})^{\mathtt{forced\_power}}
        C = \{i : N_i < f\} \cup \{i \ne L : \bar x_i \ge \bar x_{L:\min(N_i, N_L)}\}
        \text{after } d = \lfloor (K-1) (\ln \mathtt{window})^2 \rfloor \text{ rounds without news, add to } C
        \text{the arms idle for } d \text{ rounds and held at most } (\ln \mathtt{window})^2 \text{ times}
        \text{a round plays every arm in } C, \text{ or } L \text{ if } C = \emptyset
    """,
    reference="Baudry, Russac, Cappé 2021",
)
@checked
class SlidingLBSDA(NamedTuple):
    """Subsampling duels that see only the last `window` plays (SW-LB-SDA, which the paper runs under the name LB-SDA).

    The arm held most often in the window leads; every other arm duels with its rewards in the window against as many of
    the leader's latest. All winners are played, in random order, or the leader if there is none. Two rules keep all
    arms in the window: an arm held fewer than (ln window)**forced_power times is played. When nothing has happened
    for d = int((K - 1)(ln window)**2) rounds, so is every arm not played for that long and held at most (ln window)**2
    times.

    Suited to abrupt changes when their number is roughly known; rewards may be any real numbers, and scaling or
    shifting them changes nothing. With U changes in T rounds and window = 2 sqrt(T ln(T) / U) the authors prove regret
    of order sqrt(T U) up to a logarithm. Equal means favour the challenger, so constant rewards make it play all arms
    in turn.

    `forced_power` 1/2 is the published value as far as we could confirm; the code the paper runs has 0.333, which
    `text` and `code` take. With window >= T it is not LB-SDA: the rules of leadership differ.

    >>> SlidingLBSDA.text(horizon=100_000, phases=10)
    SlidingLBSDA(window=678, forced_power=0.333)

    Reference: Baudry, Russac and Cappé 2021, section 5."""

    window: Annotated[int, within(">= 1", "tuned(horizon, phases) gives the theory's value.")] = 1000
    forced_power: Annotated[float, within("(0, 10]")] = 0.5  # an arm held less than (ln window)**forced_power is played

    def init(self, n_arms: int) -> SlidingLBSDAState:
        log = math.log(self.window)
        return SlidingLBSDAState(
            new_blocks(n_arms, self.window, self.window),
            np.full(self.window, -1, np.int64),
            np.zeros(1, np.int64),
            np.zeros(n_arms, np.int64),
            np.zeros(3, np.int64),
            np.full(1, -1.0),
            np.array([-1, -1], np.int64),
            np.zeros(1, np.int64),
            np.zeros(1, np.int64),
            np.zeros(n_arms, np.int64),
            np.array([max(1, math.ceil(log**self.forced_power))], np.int64),
            np.array([log**2]),
            np.zeros(n_arms, np.int64),
        )

    def choose(self, state: SlidingLBSDAState, t: int, rng: Any) -> Any:
        return next_play(self, state, rng)

    def plan(self, state: SlidingLBSDAState, rng: Any) -> None:
        """Plan the round to come: leader, winners and their order."""
        leader = index(self.lead(state, rng))
        r = state.rounds[0] + 1
        blocks, count, drawn = state.blocks, state.blocks.count, state.drawn
        forced, spread = state.forced[0], state.spread[0]
        delay = int((len(count) - 1) * spread)
        tail = tail_of(blocks, leader)
        since = state.since[0] if leader == state.leader[0] else r
        diverse = r - since >= delay and r - drawn[leader] >= delay
        winners = 0
        for k in range(len(count)):
            held = count[k]
            if held < forced:
                wins = True
            elif k == leader:
                wins = False
            else:
                wins = beats(blocks, k, tail) or (diverse and r - drawn[k] >= delay and held <= spread)
            if wins:
                state.order[index(winners)] = k
                winners += 1
        finish_plan(state, leader, winners, rng)

    def lead(self, state: SlidingLBSDAState, rng: Any) -> Any:
        """The leader of the round to come.

        A leader is deposed only by a winner of the last round with a fair share of the window, unless it has lost
        half of that share."""
        count, eligible, drawn = state.blocks.count, state.eligible, state.drawn
        n_arms = len(count)
        previous, last_round = state.leader[0], state.rounds[0]
        reach = min(last_round + 1, self.window)
        settled = previous >= 0 and 2 * n_arms * count[previous] >= reach
        if settled and state.queue[1] == 1 and drawn[previous] == last_round:
            return previous  # only the leader played, so no arm won; most rounds are of this kind
        for k in range(n_arms):
            # Any arm played in the last round had won it, except a leader without winners, which is eligible anyway.
            may = not settled or k == previous or (drawn[k] == last_round and n_arms * count[k] >= reach)
            eligible[k] = 1 if may else 0
        return elect(eligible, count, state.blocks.sums, previous, rng)

    def learn(self, state: SlidingLBSDAState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Count the play and store the reward in the place of the oldest in the window."""
        if count_play(self, state, rng):
            if state.leader[1] != state.leader[0]:
                state.leader[0] = state.leader[1]
                state.since[0] = state.rounds[0]
            for i in range(state.queue[1]):
                state.drawn[index(state.order[i])] = state.rounds[0]
        take_turn(state.blocks, state.recent, state.cursor, arm, reward)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        n_arms = len(state.drawn)
        fits(state, n_arms, order=ARM, leader=ARM_OR_NONE, since=ROUNDS, rounds=ROUNDS, drawn=ROUNDS, eligible=FLAG)
        same(state, like, "forced", "spread")
        queue_fits(state.queue, n_arms)
        need_held_plays(state.blocks, state.recent, state.cursor)

    def state_size(self, n_arms: int) -> int:
        return 4 * self.window + 20 * n_arms * (math.isqrt(self.window) + 10)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "SlidingLBSDA":
        """The authors' window, 2 sqrt(T ln(T) / U) for U = phases - 1 changes."""
        return cls(log_window(horizon, changes(phases)))

    @classmethod
    def text(cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False) -> "SlidingLBSDA":
        """What the discounted-Thompson-sampling paper uses: the same with phases instead of changes (1 in smooth
        environments). It does not print forced_power; its code, which drew its figures, has 0.333."""
        return cls(log_window(horizon, 1 if smooth else phases), 0.333)
