"""Thompson sampling with a belief about when the last change was: of all arms together, or of each arm."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import Domain, checked, described, within
from driftbandit.core.primitives import COIN, argmax, compilable, index
from driftbandit.core.validity import COUNTS, SCRATCH, SHARE, close, fits, need
from driftbandit.policies.beta_ts import PRIOR

NEGLIGIBLE = 1e-12  # runs less likely than this are forgotten
HAZARD: Domain = within("[0, 1]", "tuned(horizon, phases) gives changes / horizon.")


# Sums over a thousand runs go four at a time: each addition waits for the one before it, and one long chain of them
# would take longer than everything else.


@compilable
def smallest_from(weights: Any, start: int, count: int) -> int:
    """The position of the smallest of `count` weights from `start` on, the first among equals."""
    at = start
    for i in range(start + 1, start + count):
        if weights[index(i)] < weights[index(at)]:
            at = i
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
    """The runs under consideration, oldest first, and all arms' counts now and at the start of each run."""

    weights: Any  # probability of each run
    slots: Any  # where a run's counts at its start lie; the slots after the last run's are free
    size: Any  # number of runs
    wins: Any  # binarised wins of each arm, in total
    losses: Any  # and losses
    wins_at_start: Any  # arm * (max_runs + 1) + slot
    losses_at_start: Any
    a: Any  # scratch: Beta parameters of the run drawn
    b: Any
    scores: Any  # scratch: the samples of the last choice


@described(
    short="global-cts",
    family="infers",
    scratch=("a", "b", "scores"),
    forgets="by inference: draws the time of the last change from its posterior and ignores what came before",
    knows="how often the environment changes, to set hazard",
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

    It holds a belief over "the last change was r rounds ago". To choose, it draws an r and samples every arm from the
    rewards since. Each reward makes the values of r that predicted it more likely, and with probability `hazard` per
    round everything is believed to change.

    Suited to abrupt changes of all arms at once, at a roughly known rate; if only some arms change, use `PerArmCTS`.
    Rewards in [0, 1] are turned into 0 or 1 with that probability. No regret bound is known. At most `max_runs`
    values of r are kept, the likeliest ones, and none with probability below 1e-12.

    Reference: Mellor and Shapiro 2013. Which runs to drop is our choice (they use stratified resampling)."""

    hazard: Annotated[float, HAZARD] = 1e-4  # probability of a change in a round
    max_runs: Annotated[int, within(">= 1")] = 1000  # times of the last change kept under consideration
    prior_wins: Annotated[float, PRIOR] = 1.0
    prior_losses: Annotated[float, PRIOR] = 1.0

    def init(self, n_arms: int) -> GlobalCTSState:
        weights = np.zeros(self.max_runs + 1)
        weights[0] = 1.0
        wins, losses = np.zeros((2, n_arms), np.int64)
        wins_at_start, losses_at_start = np.zeros((2, n_arms * len(weights)), np.int64)
        slots, size = np.arange(len(weights), dtype=np.int64), np.ones(1, np.int64)
        a, b, scores = np.zeros((3, n_arms))
        return GlobalCTSState(weights, slots, size, wins, losses, wins_at_start, losses_at_start, a, b, scores)

    def choose(self, state: GlobalCTSState, t: int, rng: Any) -> Any:
        places = len(state.weights)
        u = rng.uniform(0)
        run = 0
        mass = state.weights[0]
        while run < state.size[0] - 1 and mass <= u:
            run += 1
            mass += state.weights[run]
        slot = state.slots[run]
        for i in range(len(state.wins)):
            state.a[i] = self.prior_wins + (state.wins[i] - state.wins_at_start[i * places + slot])
            state.b[i] = self.prior_losses + (state.losses[i] - state.losses_at_start[i * places + slot])
        rng.betas(state.a, state.b, state.scores)
        return argmax(state.scores)

    def learn(self, state: GlobalCTSState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Weigh every run by how well it predicted the reward, add a new one, and drop the unlikely."""
        weights, slots = state.weights, state.slots
        places = len(weights)
        size = state.size[0]
        won = rng.uniform(COIN) < reward
        wins, losses = state.wins[arm], state.losses[arm]
        for run in range(size):
            at = index(arm * places + slots[run])
            a = self.prior_wins + (wins - state.wins_at_start[at])
            b = self.prior_losses + (losses - state.losses_at_start[at])
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
            at = index(i * places + slots[size])
            state.wins_at_start[at] = state.wins[i]
            state.losses_at_start[at] = state.losses[i]
        state.size[0] = self.prune(weights, slots, size + 1, unlikely + (1 if self.hazard < NEGLIGIBLE else 0))

    def prune(self, weights: Any, slots: Any, size: int, unlikely: int) -> int:
        """Drop runs that are negligible or too many, and normalise; return how many are left. Free slots come last."""
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
        places, size = len(state.weights), int(state.size[0])
        fits(state, weights=SHARE, wins=COUNTS, losses=COUNTS, wins_at_start=COUNTS, losses_at_start=COUNTS)
        fits(state, a=SCRATCH, b=SCRATCH)
        need(1 <= size <= self.max_runs, f"size lies between 1 and {self.max_runs}")
        need(np.array_equal(np.sort(state.slots), np.arange(places)), "slots holds each place once")
        live = state.weights[:size]
        need(close(live.sum(), 1.0) and live.min() >= 0.5 * NEGLIGIBLE, "the weights of the runs add up to 1")
        for now, at_start in ((state.wins, state.wins_at_start), (state.losses, state.losses_at_start)):
            held = at_start.reshape(-1, places)[:, state.slots[:size]]
            need((held <= now[:, None]).all(), "no run started with more than there is")

    def state_size(self, n_arms: int) -> int:
        return 2 * (self.max_runs + 1) * (n_arms + 1) + 5 * n_arms

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "GlobalCTS":
        """The rate of changes as hazard: (phases - 1) / horizon, at least one change."""
        return cls(max(1, phases - 1) / horizon)


class PerArmCTSState(NamedTuple):
    """For each arm its runs with evidence, oldest first, as they were when it was last played, and the changes
    since."""

    cumulative: Any  # arm * (max_runs + 2) + run: probability of this run and all older ones
    weights: Any  # same layout: probability of the run
    wins: Any  # same layout: wins since its start
    losses: Any
    size: Any  # number of runs with evidence, one per arm
    fresh: Any  # probability that the arm has changed since it was last played, or just then
    kept: Any  # probability that the arm has not changed since: (1 - hazard)**rounds of rest
    a: Any  # scratch: Beta parameters of the runs drawn
    b: Any
    scores: Any  # scratch: the samples of the last choice


@described(
    short="pa-cts",
    family="infers",
    scratch=("a", "b", "scores"),
    forgets="by inference, arm by arm; an idle arm returns to the prior at the rate hazard",
    knows="how often an arm changes, to set hazard",
    rewards="[0, 1]",
    cost="O(runs of the arm played + K log max_runs), memory O(max_runs K)",
    formula=r"""
        r_i \sim P_i, \quad \theta_i \sim \mathrm{Beta}\bigl(\alpha_{r_i}(i), \beta_{r_i}(i)\bigr)
        a = \operatorname{argmax}_i \theta_i
        \text{arm } a:\ P_a(r + 1) \leftarrow (1 - \mathtt{hazard})\, \ell_r P_a(r)
        P_a(0) \leftarrow \mathtt{hazard} \sum_r \ell_r P_a(r), \quad \text{then normalise}
        \text{others:}\ P_i(r + 1) \leftarrow (1 - \mathtt{hazard})\, P_i(r)
        P_i(0) \leftarrow \mathtt{hazard}
        \ell_r = \text{the probability of } x \text{ under } \mathrm{Beta}\bigl(\alpha_r(a), \beta_r(a)\bigr)
    """,
    reference="Mellor, Shapiro 2013",
)
@checked
class PerArmCTS(NamedTuple):
    """Thompson sampling that infers the last change of every arm separately.

    Like `GlobalCTS`, but each arm has its own belief about when it last changed, from its own rewards. An idle arm has
    probability (1 - hazard)**d of being unchanged after d rounds; the rest is back at the prior. Suited to arms that
    change independently, at a roughly known rate. No regret bound is known.

    Runs of an arm with the same counts are one run, so an arm holds at most one for each play (and at most `max_runs`).
    An arm not played costs one multiplication to forget and one bisection to sample.

    Reference: Mellor and Shapiro 2013. Which runs to drop is our choice (they use stratified resampling)."""

    hazard: Annotated[float, HAZARD] = 1e-4  # probability that an arm changes in a round
    max_runs: Annotated[int, within(">= 1")] = 1000  # times of the last change kept under consideration, for each arm
    prior_wins: Annotated[float, PRIOR] = 1.0
    prior_losses: Annotated[float, PRIOR] = 1.0

    def init(self, n_arms: int) -> PerArmCTSState:
        cumulative, weights = np.zeros((2, n_arms * (self.max_runs + 2)))
        wins, losses = np.zeros((2, n_arms * (self.max_runs + 2)), np.int64)
        size, fresh, kept = np.zeros(n_arms, np.int64), np.ones(n_arms), np.ones(n_arms)
        a, b, scores = np.zeros((3, n_arms))
        return PerArmCTSState(cumulative, weights, wins, losses, size, fresh, kept, a, b, scores)

    def choose(self, state: PerArmCTSState, t: int, rng: Any) -> Any:
        for i in range(len(state.size)):
            run = self.draw_run(state, i, rng.uniform(100 + i))
            state.a[i] = self.prior_wins + (state.wins[run] if run >= 0 else 0)
            state.b[i] = self.prior_losses + (state.losses[run] if run >= 0 else 0)
        rng.betas(state.a, state.b, state.scores)
        return argmax(state.scores)

    def draw_run(self, state: PerArmCTSState, arm: int, u: float) -> Any:
        """The position of the run that a uniform number selects; -1 for the one without evidence, which has the
        rest."""
        first = arm * (self.max_runs + 2)
        kept = state.kept[arm]
        low = 0
        high = state.size[arm]
        while low < high:
            middle = (low + high) // 2
            if kept * state.cumulative[first + middle] > u:
                high = middle
            else:
                low = middle + 1
        if low < state.size[arm]:
            return first + low
        if state.fresh[arm] > 0.0:
            return -1
        return first + state.size[arm] - 1

    def learn(self, state: PerArmCTSState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        """Update the arm's runs and weigh them by the reward; discount those of all other arms."""
        self.weigh(state, arm, rng.uniform(COIN) < reward)
        for i in range(len(state.size)):
            # Cut off before numbers become so small that processors slow down over them.
            if i != arm:
                state.kept[i] = (1.0 - self.hazard) * state.kept[i] if state.kept[i] > 1e-300 else 0.0
                state.fresh[i] = (1.0 - self.hazard) * state.fresh[i] + self.hazard

    def weigh(self, state: PerArmCTSState, arm: int, won: bool) -> None:
        """Weigh the arm's runs by how well they predicted the outcome, and count it in them."""
        first = index(arm * (self.max_runs + 2))
        weights, wins, losses = state.weights, state.wins, state.losses
        kept = state.kept[arm]
        end = first + state.size[arm]
        if kept != 1.0:
            for at in range(first, end):
                run = index(at)
                weights[run] *= kept
        if state.fresh[arm] > 0.0:
            weights[end] = state.fresh[arm]
            wins[end] = 0
            losses[end] = 0
            end += 1
        for at in range(first, end):
            run = index(at)
            a = self.prior_wins + wins[run]
            b = self.prior_losses + losses[run]
            weights[run] *= (a if won else b) / (a + b)
        outcomes = wins if won else losses
        for at in range(first, end):
            run = index(at)
            outcomes[run] += 1
        # The old runs keep 1 - hazard of all probability, and a new one gets the hazard.
        scale = (1.0 - self.hazard) / total_of(weights, first, end - first)
        unlikely = 0
        for at in range(first, end):
            run = index(at)
            weights[run] *= scale
            unlikely += 1 if weights[run] < NEGLIGIBLE else 0
        self.prune(state, arm, end, unlikely)

    def prune(self, state: PerArmCTSState, arm: int, end: int, unlikely: int) -> None:
        """Drop negligible runs, then the smallest until max_runs remain, the newest included; normalise and add up."""
        first = index(arm * (self.max_runs + 2))
        weights, wins, losses = state.weights, state.wins, state.losses
        size = end - first
        if unlikely > 0:
            size = 0
            for at in range(first, end):
                run = index(at)
                if weights[run] >= NEGLIGIBLE:
                    weights[first + size] = weights[run]
                    wins[first + size] = wins[run]
                    losses[first + size] = losses[run]
                    size += 1
        newest = self.hazard if self.hazard >= NEGLIGIBLE else 0.0
        while size + (1 if newest > 0.0 else 0) > self.max_runs:
            drop = smallest_from(weights, first, size)
            if size == 0 or (newest > 0.0 and newest < weights[drop]):
                newest = 0.0
            else:
                size -= 1
                for at in range(drop, first + size):
                    run = index(at)
                    weights[run] = weights[run + 1]
                    wins[run] = wins[run + 1]
                    losses[run] = losses[run + 1]
        rest = total_of(weights, first, size) + newest
        scale = 1.0 / rest
        for at in range(first, first + size):
            run = index(at)
            weights[run] *= scale
        add_up(weights, state.cumulative, first, size)
        state.size[arm] = size
        state.fresh[arm] = newest / rest
        state.kept[arm] = 1.0

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        fits(state, cumulative=SHARE, weights=SHARE, wins=COUNTS, losses=COUNTS, fresh=SHARE, kept=SHARE)
        fits(state, a=SCRATCH, b=SCRATCH, size=within(f"[0, {self.max_runs}]"))
        weights = state.weights.reshape(len(state.size), -1)
        held = np.array([row[:size].sum() for row, size in zip(weights, state.size, strict=True)])
        need(close(state.kept * held + state.fresh, 1.0), "the weights of an arm's runs add up to 1")

    def state_size(self, n_arms: int) -> int:
        return 4 * n_arms * (self.max_runs + 2) + 6 * n_arms

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "PerArmCTS":
        return cls(max(1, phases - 1) / horizon)
