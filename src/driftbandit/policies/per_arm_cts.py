"""PA-CTS: Thompson sampling with a belief about when each arm last changed."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.parameters import checked, described, within
from driftbandit.policies.beta_ts import PRIOR
from driftbandit.policies.cts import HAZARD, NEGLIGIBLE, add_up, smallest_from, total_of
from driftbandit.primitives import COIN, argmax, index
from driftbandit.validity import COUNTS, SCRATCH, SHARE, close, fits, need


class PerArmCTSState(NamedTuple):
    """For each arm its runs with evidence, oldest first, as they were when it was last played, and what has happened to
    them since."""

    cumulative: Any  # arm * (max_runs + 2) + run: probability of this run and all older ones
    weights: Any  # laid out alike: probability of the run
    wins: Any  # laid out alike: wins since its birth
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
        \ell_r = \text{the chance of } x \text{ under } \mathrm{Beta}\bigl(\alpha_r(a), \beta_r(a)\bigr)
    """,
    reference="Mellor, Shapiro 2013",
)
@checked
class PerArmCTS(NamedTuple):
    """Thompson sampling that infers the last change of every arm separately.

    Like `GlobalCTS`, but each arm has a belief of its own about when it last changed, fed by its own rewards. An arm
    left alone has probability (1 - hazard)**d of being unchanged after d rounds; the rest is back to the prior. So it
    forgets by evidence where it plays and by the clock where it does not.

    Suited to arms that change independently, at a roughly known rate. Rewards in [0, 1] are turned into 0 or 1 by a
    coin of that probability. We know of no regret bound.

    Runs of an arm with the same counts are one run, so an arm holds at most one for each play (and at most `max_runs`);
    an arm not played costs one multiplication to forget and one bisection to sample.

    Reference: Mellor and Shapiro 2013. Which runs to drop is our choice (they use stratified resampling)."""

    hazard: Annotated[float, HAZARD] = 1e-4  # probability that an arm changes in a round
    max_runs: Annotated[int, within(">= 1")] = 1000  # times of the last change kept under consideration, for each arm
    prior_wins: Annotated[float, PRIOR] = 1.0
    prior_losses: Annotated[float, PRIOR] = 1.0

    def init(self, n_arms: int) -> PerArmCTSState:
        """Every arm as if it had just changed."""
        room = n_arms * (self.max_runs + 2)
        return PerArmCTSState(
            np.zeros(room),
            np.zeros(room),
            np.zeros(room, np.int64),
            np.zeros(room, np.int64),
            np.zeros(n_arms, np.int64),
            np.ones(n_arms),
            np.ones(n_arms),
            np.zeros(n_arms),
            np.zeros(n_arms),
            np.zeros(n_arms),
        )

    def choose(self, state: PerArmCTSState, t: int, rng: Any) -> Any:
        """For every arm draw a run and sample from its evidence; play the largest sample."""
        for i in range(len(state.size)):
            run = self.draw_run(state, i, rng.uniform(100 + i))
            state.a[i] = self.prior_wins + (state.wins[run] if run >= 0 else 0)
            state.b[i] = self.prior_losses + (state.losses[run] if run >= 0 else 0)
        rng.betas(state.a, state.b, state.scores)
        return argmax(state.scores)

    def draw_run(self, state: PerArmCTSState, arm: int, u: float) -> Any:
        """Where the run lies that the uniform number points at; -1 for the one without evidence, which takes what the
        others leave."""
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
        """Bring the arm's runs up to date and weigh them by the reward; all other arms rest."""
        self.weigh(state, arm, rng.uniform(COIN) < reward)
        for i in range(len(state.size)):
            # Cut off before numbers become so small that processors slow down over them.
            if i != arm:
                state.kept[i] = (1.0 - self.hazard) * state.kept[i] if state.kept[i] > 1e-300 else 0.0
                state.fresh[i] = (1.0 - self.hazard) * state.fresh[i] + self.hazard

    def weigh(self, state: PerArmCTSState, arm: int, won: bool) -> None:
        """Weigh the arm's runs by how well they predicted the outcome, and let them count it."""
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
        if won:
            for at in range(first, end):
                run = index(at)
                wins[run] += 1
        else:
            for at in range(first, end):
                run = index(at)
                losses[run] += 1
        # The old runs keep 1 - hazard of all probability, and a new one gets the hazard.
        scale = (1.0 - self.hazard) / total_of(weights, first, end - first)
        unlikely = 0
        for at in range(first, end):
            run = index(at)
            weights[run] *= scale
            unlikely += 1 if weights[run] < NEGLIGIBLE else 0
        self.prune(state, arm, end, unlikely)

    def prune(self, state: PerArmCTSState, arm: int, end: int, unlikely: int) -> None:
        """Drop what is negligible, then the smallest until max_runs remain, the newest run included; make up for what
        was dropped, and add up."""
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
        """What a snapshot may hold."""
        fits(state, cumulative=SHARE, weights=SHARE, wins=COUNTS, losses=COUNTS, fresh=SHARE, kept=SHARE)
        fits(state, a=SCRATCH, b=SCRATCH, size=within(f"[0, {self.max_runs}]"))
        weights = state.weights.reshape(len(state.size), -1)
        held = np.array([row[:size].sum() for row, size in zip(weights, state.size, strict=True)])
        need(close(state.kept * held + state.fresh, 1.0), "the weights of an arm's runs add up to 1")

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return 4 * n_arms * (self.max_runs + 2) + 6 * n_arms

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "PerArmCTS":
        """The rate of changes as hazard: (phases - 1) / horizon, at least one change."""
        return cls(max(1, phases - 1) / horizon)
