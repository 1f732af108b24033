"""DriftTS: Thompson sampling with nothing to tune."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.parameters import checked, described
from driftbandit.policies.drift_bank import (
    ARM_RATE,
    CHANGED,
    EVERY,
    LEVEL,
    LEVEL_RATE,
    LEVEL_SPREAD,
    MOVER_RECORD,
    MOVERS,
    NEVER,
    OLD_PULLS,
    OLD_SUM,
    PULLS,
    RATES,
    ROOM,
    RUN_RECORD,
    RUNS,
    SHARES,
    SPREAD,
    UNSEEN,
    V0,
    WORLD,
    slots_at,
    weigh_movers,
    weigh_runs,
    weigh_split_runs,
)
from driftbandit.policies.drift_belief import DriftBelief, Explanation, explained, mixture
from driftbandit.policies.drift_births import give_birth
from driftbandit.policies.drift_draw import BLOCKS, SHARE, TIDE, TO_DRIFTER, TO_TIDE, add_up, draw_hypothesis, share_out
from driftbandit.policies.drift_valid import validate
from driftbandit.primitives import anywhere, argmax_of_pairs, index, where
from driftbandit.state import to_lists


@described(apart=True)
class DriftTSKnown(NamedTuple):
    """All hypotheses; `drift_bank` says what stands where. Learning goes through many numbers of one arm, so in
    lockstep every lane has its own arrays and learns for itself, a vector of hypotheses at a time."""

    world: Any  # weights, changes seen, levels: what is not about an arm
    cumulative: Any  # sums of the weights up to every eighth
    sums: Any  # sum of an arm's rewards, since ever
    pulls: Any  # number of its rewards
    last: Any  # round of the last one, counted from 1
    runs: Any  # what runs know of each arm
    movers: Any  # what movers know of it
    heir_sums: Any  # scratch: what a new run of bank S is to keep of each arm
    heir_pulls: Any


class DriftTSState(NamedTuple):
    """What is known, and the scratch of a choice."""

    known: Any
    a: Any  # Beta parameters of the hypothesis drawn
    b: Any
    draws: Any  # the samples of the last choice
    scores: Any  # the same, not below the mean


@described(
    short="drift-ts",
    forgets="by inference: weighs runs since a change, drifts and tides by how well they predict",
    knows="nothing",
    rewards="[0, 1]",
    cost="O(K + log t), memory O(K)",
    reference="driftbandit",
    lockstep=True,
)
@checked
class DriftTS(NamedTuple):
    """Thompson sampling that finds out for itself how the world changes. It has no parameters.

    Many hypotheses run side by side on the same rewards, weighed by how well they predicted them, with a little weight
    always flowing to newcomers: that all arms changed at some moment in the past and nothing since (the oldest of these
    is the world that stands still), that some arms changed then, that every arm drifts at some rate, that all arms rise
    and fall together while the differences between them stay. To choose, a hypothesis is drawn by its weight and every
    arm from its posterior there, but not below its mean; the largest is played.

    Suited to rewards in [0, 1] whenever nothing is known about how they change. What it costs: some regret where
    nothing ever changes, where TS is at home; and it may stay long with a good arm while one that nobody plays becomes
    better. Repeated rewards, or rewards that depend on each other, look to it like change. No regret bound is known.

    Its constants stand in `drift_bank`, `drift_births` and `drift_draw`, with what is known of their effect.

    >>> from driftbandit import Agent
    >>> agent = Agent(DriftTS(), arms=["red", "green"], seed=7)
    >>> for _ in range(40):
    ...     agent.learn("red", reward=1.0)
    ...     agent.learn("green", reward=0.0)
    >>> agent.choose()
    'red'

    Reference: our own; the parts are Bayesian change-point detection (Adams and MacKay 2007; Mellor and Shapiro 2013),
    exponential weights that share (Herbster and Warmuth 1998) and Kalman filters."""

    def init(self, n_arms: int) -> DriftTSState:
        """No reward yet: the world has just begun, drifts, or has tides."""
        world, cumulative = np.zeros(WORLD), np.zeros(BLOCKS)
        rates = 4.0 ** -np.arange(3.0, 3.0 + RATES)
        drifters, tides = np.arange(RATES), np.arange(RATES, MOVERS)
        world[[0, ROOM]] = 0.5 / (1 + RATES)
        world[RUNS + drifters] = (1.0 - TIDE) / (1 + RATES)
        world[RUNS + tides] = TIDE / (1 + RATES)
        world[LEVEL + tides] = 0.5
        world[LEVEL_SPREAD + tides] = V0
        world[LEVEL_RATE + tides] = world[ARM_RATE + drifters] = rates
        world[UNSEEN + drifters] = 2.0
        world[SHARES + drifters], world[SHARES + tides] = TO_DRIFTER, TO_TIDE
        add_up(world, cumulative, slots_at(0))
        run_record, mover_record = np.zeros(RUN_RECORD), np.zeros(MOVER_RECORD)
        run_record[CHANGED : CHANGED + ROOM] = 1.0
        mover_record[drifters] = 0.5
        mover_record[SPREAD + drifters] = NEVER
        mover_record[SPREAD + tides] = V0
        sums, pulls, last, heir_sums, heir_pulls, a, b, draws, scores = np.zeros((9, n_arms))
        runs, movers = np.tile(run_record, n_arms), np.tile(mover_record, n_arms)
        known = DriftTSKnown(world, cumulative, sums, pulls, last, runs, movers, heir_sums, heir_pulls)
        return DriftTSState(known, a, b, draws, scores)

    def choose(self, state: DriftTSState, t: int, rng: Any) -> Any:
        """Draw a hypothesis by its weight, draw every arm from what it knows of it, never below the mean, and play the
        largest."""
        a, b, draws, scores = state.a, state.b, state.draws, state.scores
        drawn = draw_hypothesis(state.known.world, state.known.cumulative, rng.uniform(0))
        moving = drawn >= RUNS
        if anywhere(drawn < RUNS):
            self.believe_run(state, rng, min(drawn, RUNS - 1))
        if anywhere(moving):
            self.believe_mover(state, t, moving, max(drawn - RUNS, 0))
        rng.betas(a, b, draws)
        for arm in range(len(a)):
            scores[arm] = max(draws[arm], a[arm] / (a[arm] + b[arm]))
        return argmax_of_pairs(scores, draws)

    def believe_run(self, state: DriftTSState, rng: Any, run: Any) -> None:
        """Beta parameters of every arm by what a run knows; in bank S a coin for each arm says whether it changed."""
        sums, pulls, runs = state.known.sums, state.known.pulls, state.known.runs
        split = run >= ROOM
        some_split = anywhere(split)
        for arm in range(len(sums)):
            at = index(arm * RUN_RECORD + run)
            tries = pulls[arm] - runs[at + PULLS]
            won = sums[arm] - runs[at]
            if some_split:
                old = index(arm * RUN_RECORD + max(run - ROOM, 0))
                same = split & (rng.uniform(1 + arm) >= runs[old + CHANGED])
                tries = where(same, pulls[arm] - runs[old + OLD_PULLS], tries)
                won = where(same, sums[arm] - runs[old + OLD_SUM], won)
            won = min(max(won, 0.0), tries)
            state.a[arm] = 1.0 + won
            state.b[arm] = 1.0 + (tries - won)

    def believe_mover(self, state: DriftTSState, t: int, moving: Any, mover: Any) -> None:
        """Beta parameters of every arm by what a mover knows, where one was drawn.

        A drifter's are multiplied by 1 + (a + b) / 2**g: what is learnt of a drifting arm is of use for a while only,
        so there is less to explore for. The constant, 8 in 8 sqrt(q) = 2**-g, was chosen on the design worlds."""
        world, movers, last = state.known.world, state.known.movers, state.known.last
        rate = world[index(mover + ARM_RATE)]
        level = world[index(mover + LEVEL)]
        prior = where(mover < RATES, 0.0, 1.0 / V0)
        haste = 8.0 * math.sqrt(rate)
        for arm in range(len(last)):
            at = index(arm * MOVER_RECORD + mover)
            tries = max(1.0 / (movers[at + SPREAD] + rate * (t - last[arm])) - prior, 0.0)
            won = tries * min(max(level + movers[at], 0.0), 1.0)
            wins = 1.0 + won
            losses = 1.0 + (tries - won)
            sharper = 1.0 + haste * (wins + losses)
            state.a[arm] = where(moving, wins * sharper, state.a[arm])
            state.b[arm] = where(moving, losses * sharper, state.b[arm])

    def learn(self, state: DriftTSState, t: int, arm: Any, reward: Any) -> None:
        """Weigh all hypotheses by how well they predicted the reward, and let them learn from it."""
        world, cumulative = state.known.world, state.known.cumulative
        now = t + 1
        slots = slots_at(t)
        y = min(max(reward, 0.0), 1.0)
        if anywhere((y != 0.0) & (y != 1.0)):
            self.weigh(state, now, slots, arm, y, True)
        else:
            self.weigh(state, now, slots, arm, y, False)
        state.known.sums[arm] += y
        state.known.pulls[arm] += 1.0
        state.known.last[arm] = now + 0.0 * y
        whole, seen = add_up(world, cumulative, slots)
        gift = whole * (SHARE / now)
        gift_changes = seen * (SHARE / now)
        if now % EVERY == 0:
            keep = 1.0 / (whole + gift)
            give_birth(state.known, now, slots, keep)
            add_up(world, cumulative, slots_at(now))
            share_out(world, cumulative, keep * gift, keep * gift_changes)
        else:
            share_out(world, cumulative, gift, gift_changes)

    def weigh(self, state: DriftTSState, now: int, slots: int, arm: Any, y: Any, odd: bool) -> None:
        """Weigh all hypotheses by the reward y; `odd` says that it may be neither 0 nor 1."""
        won = state.known.sums[arm]
        played = state.known.pulls[arm]
        weigh_runs(state.known.world, state.known.runs, arm, slots, won, played, y, odd)
        weigh_split_runs(state.known.world, state.known.runs, arm, slots, won, played, y, odd)
        weigh_movers(state.known.world, state.known.movers, arm, now - state.known.last[arm], y, odd)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        validate(state, t, like)

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return WORLD + BLOCKS + n_arms * (RUN_RECORD + MOVER_RECORD + 9)

    def belief(self, state: DriftTSState) -> DriftBelief:
        """The mixture that the next choice is drawn from; every reward is a pull, so the pulls tell the time."""
        return mixture(self, to_lists(state), int(sum(state.known.pulls)))[1]

    def explain(self, state: DriftTSState, names: Iterable[Any]) -> Explanation:
        """What it believes of the world, and of the arms under these names."""
        return explained(self, to_lists(state), int(sum(state.known.pulls)), names)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "DriftTS":
        """There is nothing to tune."""
        return cls()
