"""The policy DriftTS: its state, how it chooses and learns, and which states are valid."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import argmax, where
from driftbandit.core.state import to_lists
from driftbandit.core.validity import COUNTS, SCRATCH, close, fits, need
from driftbandit.policies.drift.belief import DriftBelief, Explanation, explain_belief, mix_hypotheses
from driftbandit.policies.drift.hypotheses import (
    APART,
    CHANGES,
    COMMON,
    DRIFT_RECORD,
    EVERY,
    FASTEST,
    HASTE,
    HYPOTHESES,
    LEAST,
    LEVEL,
    LEVEL_SPREAD,
    LOSSES,
    LOST,
    OFFSET,
    PLACES,
    RATES,
    RUN_RECORD,
    RUNS,
    SHARED,
    SPREAD,
    SUMS,
    SURE,
    V0,
    count_slots,
    draw_hypothesis,
    update_sums,
    weigh_common_drifts,
    weigh_independent_drifts,
    weigh_runs,
    write_posteriors,
)
from driftbandit.policies.drift.runs import COMMON_SHARE, add_runs


class DriftTSKnown(NamedTuple):
    """All hypotheses; `hypotheses.py` lists the fields of each array."""

    shared: Any  # weights, changes seen, levels: everything that does not belong to one arm
    cumulative: Any  # sums of the weights up to each column
    rates: Any  # of drift
    wins: Any  # sum of all rewards of an arm
    losses: Any  # sum of 1 - reward
    last: Any  # round of the last reward, counted from 1
    runs: Any  # the evidence of runs about each arm
    changed: Any  # probability that each arm changed with a run of bank S
    drifts: Any  # the evidence of drifts about each arm


class DriftTSState(NamedTuple):
    """The hypotheses, and the scratch of a choice."""

    known: Any
    a: Any  # Beta parameters of the hypothesis drawn
    b: Any
    draws: Any  # the samples of the last choice
    scores: Any  # the same, of the arms that can be the largest


@described(
    short="drift-ts",
    family="infers",
    scratch=("a", "b", "draws", "scores"),
    forgets="by inference: weighs runs since a change, drifts and common drifts by how well they predict",
    knows="nothing",
    rewards="[0, 1]",
    cost="O(K + log t), memory O(K)",
    formula=r"""
        h \sim w, \quad b_i \sim \mathrm{Beta}(\alpha_{h,i}, \beta_{h,i})
        \theta_i = \max\bigl(b_i,\ \alpha_{h,i} / (\alpha_{h,i} + \beta_{h,i})\bigr)
        a = \operatorname{argmax}_i \theta_i
        w_h \leftarrow w_h\, p_h^x (1 - p_h)^{1 - x}
        p_h = \text{the mean of arm } a \text{ under } h
        \text{every 16 rounds a little weight moves to new runs, drifts and common drifts}
    """,
    reference="driftbandit",
)
@checked
class DriftTS(NamedTuple):
    """Thompson sampling that infers how the environment changes. It has no parameters.

    Many hypotheses are updated in parallel on the same rewards and weighted by how well they predicted them; a little
    weight always moves to new ones. They are: all arms changed at some moment in the past and not since (the oldest of
    these is the stationary environment), some arms changed then, every arm drifts at some rate, all arms drift together
    while the differences between them stay. To choose, a hypothesis is drawn by its weight, and then a value for every
    arm from its posterior under that hypothesis, but not below its mean. The arm with the largest value is played.

    Suited to rewards in [0, 1] when nothing is known about how they change. Its price is some regret where nothing ever
    changes, which is where TS does best. It may also stay with a good arm for a long time while one that it does not
    play becomes better. It mistakes repeated rewards, or rewards that depend on each other, for change. No regret bound
    is known.

    Its constants are in `hypotheses.py` and `runs.py`, with their measured effects.

    >>> from driftbandit import Bandit
    >>> bandit = Bandit(["red", "green"], DriftTS(), seed=7, reward_range=(0, 1))
    >>> for _ in range(80):
    ...     decision = bandit.decide()
    ...     verdict = bandit.reward(decision, 1.0 if decision.arm == "red" else 0.0)
    >>> bandit.decide().arm
    'red'

    Reference: our own; the parts are Bayesian change-point detection (Adams and MacKay 2007; Mellor and Shapiro 2013),
    exponential weights that share (Herbster and Warmuth 1998) and Kalman filters."""

    def init(self, n_arms: int) -> DriftTSState:
        shared, cumulative, rates = np.zeros(SHARED), np.zeros(SUMS), FASTEST * APART ** -np.arange(RATES)
        shared[[0, PLACES]] = 0.5 / (1 + RATES)
        shared[RUNS:COMMON] = (1.0 - COMMON_SHARE) / (1 + RATES)
        shared[COMMON:HYPOTHESES] = COMMON_SHARE / (1 + RATES)
        shared[LEVEL:LEVEL_SPREAD] = 0.5
        shared[LEVEL_SPREAD:] = V0
        update_sums(shared, cumulative, count_slots(0))
        record = np.zeros(DRIFT_RECORD)
        record[SPREAD:] = V0
        wins, losses, last, a, b, draws, scores = np.zeros((7, n_arms))
        runs, changed, drifts = np.zeros(n_arms * RUN_RECORD), np.ones(n_arms * PLACES), np.tile(record, n_arms)
        known = DriftTSKnown(shared, cumulative, rates, wins, losses, last, runs, changed, drifts)
        return DriftTSState(known, a, b, draws, scores)

    def choose(self, state: DriftTSState, t: int, rng: Any) -> Any:
        """Draw a hypothesis by its weight and a value for every arm from its posterior, never below the mean; play the
        largest."""
        a, b, draws, scores = state.a, state.b, state.draws, state.scores
        drawn = draw_hypothesis(state.known.shared, state.known.cumulative, rng.uniform(0))
        write_posteriors(state, t, rng, drawn, SURE, HASTE)
        for arm in range(len(a)):
            scores[arm] = LEAST * a[arm] / (a[arm] + b[arm])
        best = scores[0]
        for arm in range(1, len(a)):
            best = max(best, scores[arm])
        rng.betas(a, b, draws)
        # Of values that are not below their means the largest is a draw above all means, or else the best mean.
        for arm in range(len(a)):
            scores[arm] = where((draws[arm] >= best) | (scores[arm] == best), draws[arm], -1.0)
        return argmax(scores)

    def learn(self, state: DriftTSState, t: int, arm: Any, reward: Any) -> None:
        """Weigh all hypotheses by how well they predicted the reward, and let them learn from it."""
        known, now, slots, y = state.known, t + 1, count_slots(t), min(max(reward, 0.0), 1.0)
        idle = now - known.last[arm]
        if y == 0.0 or y == 1.0:
            weigh_runs(known, arm, slots, y, False)
            weigh_independent_drifts(known, arm, idle, y, False)
            weigh_common_drifts(known, arm, y, False)
        else:
            weigh_runs(known, arm, slots, y, True)
            weigh_independent_drifts(known, arm, idle, y, True)
            weigh_common_drifts(known, arm, y, True)
        known.wins[arm] += y
        known.losses[arm] += 1.0 - y
        known.last[arm] = 1.0 * now
        whole = update_sums(known.shared, known.cumulative, slots)
        if now % EVERY == 0:
            add_runs(known, now, slots, whole)
            update_sums(known.shared, known.cumulative, count_slots(now))

    def know_arm(self, state: DriftTSState, t: int, arm: int, mean: float, worth: float, features: Any) -> None:
        """Add a new arm to every hypothesis as after so many rewards of this mean; a drift remembers at most
        1 / sqrt(rate) of them. Runs count from less than 0, so that the rewards learned stay the sum of all arms."""
        known, mean = state.known, min(max(mean, 0.0), 1.0)
        known.last[arm] = 1.0 * t
        for i in range(RUN_RECORD):
            known.runs[arm * RUN_RECORD + i] = -worth * (mean if i < LOSSES else 1.0 - mean)
        for g in range(RATES):
            at, pulls = arm * DRIFT_RECORD + g, min(worth, known.rates[g] ** -0.5)
            known.drifts[at], known.drifts[at + LOST] = pulls * mean, pulls * (1.0 - mean)
            known.drifts[at + OFFSET] = mean - known.shared[LEVEL + g]
            known.drifts[at + SPREAD] = 1.0 / (1.0 / V0 + pulls)

    def copy_arm(self, state: DriftTSState, arm: int, like: int) -> None:
        """Add a new arm to every hypothesis as a copy of another; runs as in `know_arm`."""
        known = state.known
        for field, width in ((known.runs, RUN_RECORD), (known.changed, PLACES), (known.drifts, DRIFT_RECORD)):
            field[arm * width : (arm + 1) * width] = field[like * width : (like + 1) * width]
        for i in range(RUN_RECORD):
            known.runs[arm * RUN_RECORD + i] -= (known.wins if i < LOSSES else known.losses)[like]
        known.last[arm] = known.last[like]

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        known = state.known
        shared = np.asarray(known.shared)
        weights, changes = shared[:HYPOTHESES], shared[CHANGES:LEVEL]
        need(((weights >= 0.0) & (weights <= 2.0)).all() and weights.sum() > 1e-100, "weights lie between 0 and 1")
        need(((changes >= 0.0) & (changes <= 1e15)).all(), "a hypothesis has seen 0 changes or more")
        need((np.abs(shared[LEVEL:LEVEL_SPREAD]) <= 1e6).all(), "levels are means of rewards")
        need(((shared[LEVEL_SPREAD:] >= 0.0) & (shared[LEVEL_SPREAD:] <= 2.0)).all(), "levels vary by 0 to 2")
        need(np.array_equal(known.rates, like.known.rates), "the rates are those of the policy")
        sums_up_to = np.array(known.cumulative, float)
        update_sums(shared, sums_up_to, count_slots(t))
        need(close(sums_up_to, known.cumulative), "the cumulative sums are those of the weights")
        fits(known, wins=COUNTS, losses=COUNTS, last=within(f"[0, {t}]"), changed=within("[0, 1]"))
        fits(state, a=SCRATCH, b=SCRATCH, draws=SCRATCH)
        rewards = float(np.sum(known.wins) + np.sum(known.losses))
        need(abs(rewards - t) <= 1e-6 * (1.0 + t), "wins and losses add up to the number of rewards")
        runs = np.asarray(known.runs).reshape(-1, RUN_RECORD)
        for sums, at in ((known.wins, runs[:, :LOSSES]), (known.losses, runs[:, LOSSES:])):
            now = np.asarray(sums)[:, None]
            since = now - at
            need((since >= -1e-6 * (1.0 + now)).all() and (since <= 1e15).all(), "no run counts more than all rewards")
        drifts = np.asarray(known.drifts).reshape(-1, DRIFT_RECORD)
        need(((drifts[:, :OFFSET] >= 0.0) & (drifts[:, :OFFSET] <= 1e15)).all(), "drifts count 0 or more")
        need((np.abs(drifts[:, OFFSET:SPREAD]) <= 1e6).all(), "offsets are differences of means")
        need(((drifts[:, SPREAD:] > 0.0) & (drifts[:, SPREAD:] <= 1.0)).all(), "offsets vary by more than 0")

    def state_size(self, n_arms: int) -> int:
        return SHARED + SUMS + RATES + n_arms * (RUN_RECORD + PLACES + DRIFT_RECORD + 7)

    def belief(self, state: DriftTSState) -> DriftBelief:
        return mix_hypotheses(to_lists(state))[1]

    def explain(self, state: DriftTSState, names: Iterable[Any]) -> Explanation:
        """What it believes about the environment, and about the arms under these names."""
        return explain_belief(to_lists(state), names)
