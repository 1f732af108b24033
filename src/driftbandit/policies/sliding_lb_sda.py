"""SW-LB-SDA: subsampling duels on a sliding window, the policy the paper runs under the name LB-SDA."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.parameters import checked, described, within
from driftbandit.policies.blocks import beats, elect, held_fits, moment, new_blocks, queue_fits, tail_of, take_turn
from driftbandit.primitives import index, shuffle
from driftbandit.validity import ARM, ARM_OR_NONE, FLAG, ROUNDS, fits, same


class SlidingLBSDAState(NamedTuple):
    """The plays in the window, who leads since when, and the plays of the present round."""

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
    knows="how often the world changes, to set window",
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
    """Subsampling duels that see only the last `window` plays.

    The arm held most often in the window leads; every other arm duels with its rewards in the window against as many of
    the leader's latest. All winners are played, in random order, or the leader if there is none. Two rules keep the
    window from going blind: an arm held fewer than (ln window)**forced_power times is played, and when nothing has
    happened for d = int((K - 1)(ln window)**2) rounds, so is every arm not played for that long and held at most (ln
    window)**2 times.

    Suited to abrupt changes when their number is roughly known; it needs no range, prior or noise level of the rewards:
    any real numbers will do, and scaling or shifting them changes nothing. With U changes in T rounds and window = 2
    sqrt(T ln(T) / U) the authors prove regret of order sqrt(T U) up to a logarithm. Equal means favour the challenger,
    so constant rewards make it play all arms in turn.

    `forced_power` 1/2 is the published value as far as we could confirm; the code the paper runs has 0.333, which
    `text` and `code` take. With window >= T it is not LB-SDA: the rules of leadership differ.

    >>> from driftbandit.policies.sliding_lb_sda import SlidingLBSDA
    >>> SlidingLBSDA.text(horizon=100_000, phases=10)
    SlidingLBSDA(window=678, forced_power=0.333)

    Reference: Baudry, Russac and Cappé 2021, section 5."""

    window: Annotated[int, within(">= 1", "tuned(horizon, phases) gives the theory's value.")] = 1000
    forced_power: Annotated[float, within("(0, 10]")] = 0.5  # an arm held less than (ln window)**forced_power is played

    def init(self, n_arms: int) -> SlidingLBSDAState:
        """Nothing held: in the first round every arm wins."""
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
        """The next play of the round under way, or the first of a new round, planned in scratch until `learn` begins
        it."""
        queue = state.queue
        if queue[0] == queue[1]:
            self.plan(state, rng)
            state.planned[0] = moment(len(state.order), rng)
            return state.order[0]
        return state.order[index(queue[0])]

    def plan(self, state: SlidingLBSDAState, rng: Any) -> None:
        """Plan the round to come, where no play of the last one is left: leader, winners and their order."""
        order = state.order
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
                order[index(winners)] = k
                winners += 1
        if winners == 0:
            order[0] = leader
            winners = 1
        else:
            shuffle(order, winners, rng)
        state.queue[2] = winners
        state.leader[1] = leader

    def lead(self, state: SlidingLBSDAState, rng: Any) -> Any:
        """The leader of the round to come.

        A leader is deposed only by a winner of the last round with a fair share of the window, unless it has itself
        lost half of its own."""
        count, eligible, drawn = state.blocks.count, state.eligible, state.drawn
        n_arms = len(count)
        previous, last_round = state.leader[0], state.rounds[0]
        reach = min(last_round + 1, self.window)
        settled = previous >= 0 and 2 * n_arms * count[previous] >= reach
        if settled and state.queue[1] == 1 and drawn[previous] == last_round:
            return previous  # the leader played alone, so nobody won; most rounds are of this kind
        for k in range(n_arms):
            # Any arm played in the last round had won it, except a leader alone, who is eligible anyway.
            may = not settled or k == previous or (drawn[k] == last_round and n_arms * count[k] >= reach)
            eligible[k] = 1 if may else 0
        return elect(eligible, count, state.blocks.sums, previous, rng)

    def learn(self, state: SlidingLBSDAState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Begin a new round if the last one is over, then let the reward take the place of the oldest in the window.

        The round is planned here, as `choose` plans it: what `choose` left behind may be the plan of another moment, or
        no plan at all."""
        queue = state.queue
        if queue[0] == queue[1]:
            if state.planned[0] != moment(len(state.order), rng):
                self.plan(state, rng)
            state.rounds[0] += 1
            if state.leader[1] != state.leader[0]:
                state.leader[0] = state.leader[1]
                state.since[0] = state.rounds[0]
            for i in range(queue[2]):
                state.drawn[index(state.order[i])] = state.rounds[0]
            queue[0] = 0
            queue[1] = queue[2]
            queue[2] = 0
        queue[0] += 1
        state.planned[0] = -1.0
        take_turn(state.blocks, state.recent, state.cursor, arm, reward)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        n_arms = len(state.drawn)
        fits(state, n_arms, order=ARM, leader=ARM_OR_NONE, since=ROUNDS, rounds=ROUNDS, drawn=ROUNDS, eligible=FLAG)
        same(state, like, "forced", "spread")
        queue_fits(state.queue, n_arms)
        held_fits(state.blocks, state.recent, state.cursor)

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return 4 * self.window + 20 * n_arms * (math.isqrt(self.window) + 10)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "SlidingLBSDA":
        """The authors' window, 2 sqrt(T ln(T) / U) for U = phases - 1 changes."""
        return cls(_window(horizon, max(1, phases - 1)))

    @classmethod
    def text(cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False) -> "SlidingLBSDA":
        """What the discounted-Thompson-sampling paper uses: the same with phases instead of changes (1 in smooth
        worlds). It does not print forced_power; its code, which drew its figures, has 0.333."""
        return cls(_window(horizon, 1 if smooth else phases), 0.333)

    @classmethod
    def code(cls, horizon: int, phases: int, n_arms: int = 0, smooth: bool = False) -> "SlidingLBSDA":
        """What that paper's code runs: as `text`."""
        return cls.text(horizon, phases, n_arms, smooth)


def _window(horizon: int, changes: int) -> int:
    return max(1, int(2.0 * math.sqrt(horizon * math.log(horizon) / changes)))
