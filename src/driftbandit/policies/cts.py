"""Global-CTS: Thompson sampling with a belief about when the world last changed."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.parameters import Domain, checked, described, within
from driftbandit.policies.beta_ts import PRIOR
from driftbandit.primitives import COIN, argmax, compilable, index
from driftbandit.validity import COUNTS, SCRATCH, SHARE, close, fits, need

NEGLIGIBLE = 1e-12  # runs less likely than this are forgotten
HAZARD: Domain = within("[0, 1]", "tuned(horizon, phases) gives changes / horizon.")


# Sums and minima over a thousand runs go four at a time: each step waits for the one before it, and one long chain of
# them would take longer than everything else.


@compilable
def smallest_from(weights: Any, start: int, count: int) -> int:
    """The position of the smallest of `count` weights from `start` on, the first among equals."""
    a = weights[start]
    b = a
    c = a
    d = a
    fours = start + count // 4 * 4
    for i in range(start, fours, 4):
        a = min(a, weights[index(i)])
        b = min(b, weights[index(i + 1)])
        c = min(c, weights[index(i + 2)])
        d = min(d, weights[index(i + 3)])
    for i in range(fours, start + count):
        a = min(a, weights[index(i)])
    least = min(min(a, b), min(c, d))
    at = start
    while at < start + count - 1 and weights[index(at)] != least:
        at += 1
    return at


@compilable
def total_of(weights: Any, start: int, count: int) -> Any:
    """The sum of `count` weights from `start` on."""
    a = 0.0
    b = 0.0
    c = 0.0
    d = 0.0
    fours = start + count // 4 * 4
    for i in range(start, fours, 4):
        a += weights[index(i)]
        b += weights[index(i + 1)]
        c += weights[index(i + 2)]
        d += weights[index(i + 3)]
    for i in range(fours, start + count):
        a += weights[index(i)]
    return (a + b) + (c + d)


@compilable
def add_up(weights: Any, cumulative: Any, start: int, count: int) -> None:
    """The sums of the first 1, 2, .. of `count` weights from `start` on, at the same places of `cumulative`."""
    mass = 0.0
    fours = start + count // 4 * 4
    for i in range(start, fours, 4):
        two = weights[index(i)] + weights[index(i + 1)]
        three = two + weights[index(i + 2)]
        four = three + weights[index(i + 3)]
        cumulative[index(i)] = mass + weights[index(i)]
        cumulative[index(i + 1)] = mass + two
        cumulative[index(i + 2)] = mass + three
        cumulative[index(i + 3)] = mass + four
        mass += four
    for i in range(fours, start + count):
        mass += weights[index(i)]
        cumulative[index(i)] = mass


class GlobalCTSState(NamedTuple):
    """The runs under consideration, oldest first, and all arms' counts now and at the birth of each run."""

    weights: Any  # probability of each run
    slots: Any  # where a run's counts at birth lie; the slots after the last run's are free
    size: Any  # number of runs
    wins: Any  # binarised wins of each arm, since ever
    losses: Any  # and losses
    wins_at_birth: Any  # arm * (max_runs + 1) + slot
    losses_at_birth: Any
    a: Any  # scratch: Beta parameters of the run drawn
    b: Any
    scores: Any  # scratch: the samples of the last choice


@described(
    short="global-cts",
    family="infers",
    scratch=("a", "b", "scores"),
    forgets="by inference: draws the time of the last change from its posterior and ignores what came before",
    knows="how often the world changes, to set hazard",
    rewards="[0, 1]",
    cost="O(max_runs + K), memory O(max_runs K)",
    formula=r"""
        r \sim P, \quad \theta_i \sim \mathrm{Beta}\bigl(\alpha_r(i), \beta_r(i)\bigr)
        a = \operatorname{argmax}_i \theta_i
        P(r + 1) \leftarrow (1 - \mathtt{hazard})\, \ell_r P(r)
        P(0) \leftarrow \mathtt{hazard} \sum_r \ell_r P(r), \quad \text{then normalise}
        \ell_r = \frac{\alpha_r(a)}{\alpha_r(a) + \beta_r(a)} \text{ if } x = 1
        \ell_r = \frac{\beta_r(a)}{\alpha_r(a) + \beta_r(a)} \text{ if } x = 0
        \alpha_r(i), \beta_r(i) = \text{prior} + \text{wins, losses of arm } i \text{ in the last } r \text{ rounds}
    """,
    reference="Mellor, Shapiro 2013",
)
@checked
class GlobalCTS(NamedTuple):
    """Thompson sampling that infers the last change, when all arms change together.

    It holds a belief over "the last change was r rounds ago". To choose, it draws an r and then samples every arm from
    the rewards since; each reward makes the values of r that predicted it more likely, and with probability `hazard`
    per round the world is believed to start over. So it forgets when the rewards say so.

    Suited to abrupt changes of all arms at once, at a roughly known rate; if only some arms change, use `PerArmCTS`.
    Rewards in [0, 1] are turned into 0 or 1 by a coin of that probability. It does well in experiments; we know of no
    regret bound.

    At most `max_runs` values of r are kept, the likeliest ones, and none with probability below 1e-12. A run's counts
    are differences of cumulative counts, so a round costs max_runs + K.

    Reference: Mellor and Shapiro 2013. Which runs to drop is our choice (they use stratified resampling)."""

    hazard: Annotated[float, HAZARD] = 1e-4  # probability of a change in a round
    max_runs: Annotated[int, within(">= 1")] = 1000  # times of the last change kept under consideration
    prior_wins: Annotated[float, PRIOR] = 1.0
    prior_losses: Annotated[float, PRIOR] = 1.0

    def init(self, n_arms: int) -> GlobalCTSState:
        """One run, without evidence."""
        room = self.max_runs + 1
        weights = np.zeros(room)
        weights[0] = 1.0
        return GlobalCTSState(
            weights,
            np.arange(room, dtype=np.int64),
            np.ones(1, np.int64),
            np.zeros(n_arms, np.int64),
            np.zeros(n_arms, np.int64),
            np.zeros(n_arms * room, np.int64),
            np.zeros(n_arms * room, np.int64),
            np.zeros(n_arms),
            np.zeros(n_arms),
            np.zeros(n_arms),
        )

    def choose(self, state: GlobalCTSState, t: int, rng: Any) -> Any:
        """Draw a run, sample every arm from the rewards since its birth, play the largest sample."""
        room = len(state.weights)
        u = rng.uniform(0)
        run = 0
        mass = state.weights[0]
        while run < state.size[0] - 1 and mass <= u:
            run += 1
            mass += state.weights[run]
        slot = state.slots[run]
        for i in range(len(state.wins)):
            state.a[i] = self.prior_wins + (state.wins[i] - state.wins_at_birth[i * room + slot])
            state.b[i] = self.prior_losses + (state.losses[i] - state.losses_at_birth[i * room + slot])
        rng.betas(state.a, state.b, state.scores)
        return argmax(state.scores)

    def learn(self, state: GlobalCTSState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Weigh every run by how well it predicted the reward, add a new one, and drop the unlikely."""
        weights, slots = state.weights, state.slots
        room = len(weights)
        size = state.size[0]
        won = rng.uniform(COIN) < reward
        wins, losses = state.wins[arm], state.losses[arm]
        for run in range(size):
            at = index(arm * room + slots[run])
            a = self.prior_wins + (wins - state.wins_at_birth[at])
            b = self.prior_losses + (losses - state.losses_at_birth[at])
            weights[run] *= (a if won else b) / (a + b)
        if won:
            state.wins[arm] += 1
        else:
            state.losses[arm] += 1
        # The old runs keep 1 - hazard of all probability, and a new one gets the hazard.
        scale = (1.0 - self.hazard) / total_of(weights, 0, size)
        unlikely = 0
        for run in range(size):
            weights[run] *= scale
            unlikely += 1 if weights[run] < NEGLIGIBLE else 0
        weights[size] = self.hazard
        # The new run does not count the reward: it begins with the next round.
        for i in range(len(state.wins)):
            at = index(i * room + slots[size])
            state.wins_at_birth[at] = state.wins[i]
            state.losses_at_birth[at] = state.losses[i]
        state.size[0] = self.prune(weights, slots, size + 1, unlikely + (1 if self.hazard < NEGLIGIBLE else 0))

    def prune(self, weights: Any, slots: Any, size: int, unlikely: int) -> int:
        """Drop what is negligible or too much and make up for it; the number of runs left.

        Slots of dropped runs change places with those of later ones, so that the free ones always come last."""
        kept = size
        if unlikely > 0:
            kept = 0
            for run in range(size):
                if weights[run] >= NEGLIGIBLE:
                    slot = slots[run]
                    slots[run] = slots[kept]
                    slots[kept] = slot
                    weights[kept] = weights[run]
                    kept += 1
        if kept > self.max_runs:
            kept -= 1
            drop = smallest_from(weights, 0, kept + 1)
            slot = slots[drop]
            for i in range(drop, kept):
                run = index(i)
                weights[run] = weights[run + 1]
                slots[run] = slots[run + 1]
            slots[kept] = slot
        if kept < size:
            scale = 1.0 / total_of(weights, 0, kept)
            for run in range(kept):
                weights[run] *= scale
        return kept

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        room, size = len(state.weights), int(state.size[0])
        fits(state, weights=SHARE, wins=COUNTS, losses=COUNTS, wins_at_birth=COUNTS, losses_at_birth=COUNTS)
        fits(state, a=SCRATCH, b=SCRATCH)
        need(1 <= size <= self.max_runs, f"size lies between 1 and {self.max_runs}")
        need(np.array_equal(np.sort(state.slots), np.arange(room)), "slots holds each place once")
        live = state.weights[:size]
        need(close(live.sum(), 1.0) and live.min() >= 0.5 * NEGLIGIBLE, "the weights of the runs add up to 1")
        for now, born in ((state.wins, state.wins_at_birth), (state.losses, state.losses_at_birth)):
            held = born.reshape(-1, room)[:, state.slots[:size]]
            need((held <= now[:, None]).all(), "no run was born with more than there is")

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return 2 * (self.max_runs + 1) * (n_arms + 1) + 5 * n_arms

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "GlobalCTS":
        """The rate of changes as hazard: (phases - 1) / horizon, at least one change."""
        return cls(max(1, phases - 1) / horizon)
