"""LB-SDA: the arm played most defends its place in duels on equal numbers of rewards."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.parameters import checked, described, within
from driftbandit.policies.blocks import (
    beats,
    elect,
    held_fits,
    moment,
    new_blocks,
    queue_fits,
    tail_of,
    take_turn,
)
from driftbandit.primitives import compilable, shuffle
from driftbandit.validity import ARM, ARM_OR_NONE, REALS, ROUNDS, fits, same

_LONGEST_LOG = math.log(2.0**63)  # ln of more rounds than anybody will play


class DuelState(NamedTuple):
    """What LB-SDA knows: all counts and sums, the rewards duels may look at, and the plays of the present
    round."""

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


def _new_state(n_arms: int, blocks: Any, recent: int, power: float) -> DuelState:
    """Before the first play: round 1 plays every arm once, in order."""
    return DuelState(
        np.zeros(n_arms, np.int64),
        np.zeros(n_arms),
        blocks,
        np.arange(n_arms, dtype=np.int64),
        np.array([0, n_arms, 0], np.int64),
        np.full(1, -1.0),
        np.array([-1, -1], np.int64),
        np.ones(1, np.int64),
        np.array([_LONGEST_LOG**power]),
        np.ones(n_arms, np.int64),
        np.full(recent, -1, np.int64),
        np.zeros(1, np.int64),
    )


def _duels_fit(state: DuelState, like: DuelState) -> None:
    """Refuse a state that no duels lead to; the rewards held are looked at apart."""
    n_arms = len(state.pulls)
    fits(state, n_arms, pulls=ROUNDS, wins=REALS, order=ARM, leader=ARM_OR_NONE)
    fits(state, rounds=within("[1, 4e18]"))
    same(state, like, "forced", "everybody")
    queue_fits(state.queue, n_arms)


@compilable
def next_play(state: Any, power: float, rng: Any) -> Any:
    """The arm to play: the next of the round under way, or the first of a new round, which is planned in scratch until
    `learn` begins it."""
    queue = state.queue
    if queue[0] < queue[1]:
        return state.order[queue[0]]
    plan_round(state, power, rng)
    state.planned[0] = moment(len(state.order), rng)
    return state.order[0]


@compilable
def plan_round(state: Any, power: float, rng: Any) -> None:
    """Plan the round to come, where no play of the last one is left: leader, winners and their order."""
    r = state.rounds[0] + 1
    leader = elect(state.everybody, state.pulls, state.wins, state.leader[0], rng)
    most = state.pulls[leader]
    tail = tail_of(state.blocks, leader)
    winners = 0
    for k in range(len(state.pulls)):
        mine = state.pulls[k]
        if mine < most:  # never true of the leader itself
            # The logarithm is taken only where it can matter: counts soon leave its reach.
            forced = mine < state.forced[0] and mine < math.log(r) ** power
            if forced or state.blocks.count[k] == 0 or tail.count == 0 or beats(state.blocks, k, tail):
                state.order[winners] = k
                winners += 1
    if winners == 0:
        state.order[0] = leader
        winners = 1
    else:
        shuffle(state.order, winners, rng)
    state.queue[2] = winners
    state.leader[1] = leader


@compilable
def count_play(state: Any, arm: int, reward: float, power: float, rng: Any) -> None:
    """Begin a new round if the last one is over, and count the play.

    The round is planned here, as `choose` plans it: what `choose` left behind may be the plan of another moment, or no
    plan at all."""
    queue = state.queue
    if queue[0] == queue[1]:
        if state.planned[0] != moment(len(state.order), rng):
            plan_round(state, power, rng)
        state.rounds[0] += 1
        state.leader[0] = state.leader[1]
        queue[0] = 0
        queue[1] = queue[2]
        queue[2] = 0
    queue[0] += 1
    state.planned[0] = -1.0
    state.pulls[arm] += 1
    state.wins[arm] += reward


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
    the leader's own recent luck does the exploring. It forgets nothing and is meant for worlds that do not change,
    where its regret is optimal for one-parameter exponential families; the last block makes it recover somewhat faster
    than UCB1 from a change. In changing worlds use `SlidingLBSDA`.

    Rewards may be any real numbers: scaling or shifting them all changes no decision. `forced_power` 1/2 is the
    published forced exploration: an arm with fewer than (ln r)**(1/2) plays in round r is played whatever its duel
    says; the code the paper runs has 0.333.

    Duels reach back as far as the loser has been played, so the whole past is needed. It is kept for the last
    `capacity` plays, 24 bytes each: up to that many rounds this is LB-SDA to the letter; beyond them duels see only
    those plays, while leadership goes by all plays ever.

    Reference: Baudry, Russac and Cappé 2021."""

    forced_power: Annotated[float, within("(0, 10]")] = 0.5  # an arm played less than (ln r)**forced_power is played
    capacity: Annotated[int, within(">= 1")] = 100_000  # plays that duels can look back on

    def init(self, n_arms: int) -> DuelState:
        """Nothing played; the first round will play every arm once."""
        return _new_state(n_arms, new_blocks(n_arms, self.capacity, self.capacity), self.capacity, self.forced_power)

    def choose(self, state: DuelState, t: int, rng: Any) -> Any:
        """The next play of the round, planning a new round if this one is over."""
        return next_play(state, self.forced_power, rng)

    def learn(self, state: DuelState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Count the play and store the reward, in the place of the oldest if the store is full."""
        count_play(state, arm, reward, self.forced_power, rng)
        take_turn(state.blocks, state.recent, state.cursor, arm, reward)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        _duels_fit(state, like)
        held_fits(state.blocks, state.recent, state.cursor)

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return 4 * self.capacity + 20 * n_arms * (math.isqrt(self.capacity) + 10)

    @classmethod
    def tuned(cls, horizon: int, phases: int = 1, n_arms: int = 0) -> "LBSDA":
        """Nothing to tune but the room for the past: all of the horizon."""
        return cls(capacity=horizon)
