"""DriftTS: Thompson sampling with nothing to tune."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.parameters import checked, described
from driftbandit.policies.drift_bank import (
    APART,
    EVERY,
    FASTEST,
    LEVEL,
    LEVEL_SPREAD,
    MOVER_RECORD,
    RATES,
    ROOM,
    RUN_RECORD,
    RUNS,
    SPREAD,
    TIDES,
    V0,
    WORLD,
    slots_at,
    weigh_drifters,
    weigh_runs,
    weigh_tides,
)
from driftbandit.policies.drift_belief import DriftBelief, Explanation, explained, mixture
from driftbandit.policies.drift_births import TIDE, give_birth
from driftbandit.policies.drift_draw import HASTE, LEAST, SUMS, SURE, add_up, draw_hypothesis, take_its_word
from driftbandit.policies.drift_valid import validate
from driftbandit.primitives import argmax, where
from driftbandit.state import to_lists


class DriftTSKnown(NamedTuple):
    """All hypotheses; `drift_bank` lists the fields of each array."""

    world: Any  # weights, changes seen, levels: what is not about an arm
    cumulative: Any  # sums of the weights up to each column
    rates: Any  # at which movers wander
    wins: Any  # sum of an arm's rewards, since ever
    losses: Any  # and of what they fell short of 1
    last: Any  # round of the last one, counted from 1
    runs: Any  # what runs know of each arm
    changed: Any  # how likely each changed with a run of bank S
    movers: Any  # what movers know of it


class DriftTSState(NamedTuple):
    """What is known, and the scratch of a choice."""

    known: Any
    a: Any  # Beta parameters of the hypothesis drawn
    b: Any
    draws: Any  # the samples of the last choice
    scores: Any  # the same, of the arms that can be the largest


@described(
    short="drift-ts",
    family="infers",
    scratch=("a", "b", "draws", "scores"),
    forgets="by inference: weighs runs since a change, drifts and tides by how well they predict",
    knows="nothing",
    rewards="[0, 1]",
    cost="O(K + log t), memory O(K)",
    formula=r"""
        h \sim w, \quad b_i \sim \mathrm{Beta}(\alpha_{h,i}, \beta_{h,i})
        \theta_i = \max\bigl(b_i,\ \alpha_{h,i} / (\alpha_{h,i} + \beta_{h,i})\bigr)
        a = \operatorname{argmax}_i \theta_i
        w_h \leftarrow w_h\, p_h^x (1 - p_h)^{1 - x}
        p_h = \text{the mean that } h \text{ expects of arm } a
        \text{every 16 rounds a little weight flows to newborn runs, drifts and tides}
    """,
    reference="driftbandit",
)
@checked
class DriftTS(NamedTuple):
    """Thompson sampling that works out by itself how the world changes. It has no parameters.

    Many hypotheses run side by side on the same rewards, weighed by how well they predicted them, with a little weight
    always flowing to newcomers: that all arms changed at some moment in the past and nothing since (the oldest of these
    is the world that stands still), that some arms changed then, that every arm drifts at some rate, that all arms rise
    and fall together while the differences between them stay. To choose, a hypothesis is drawn by its weight, and then
    a value for every arm from its posterior under that hypothesis, but not below its mean; the arm with the largest
    value is played.

    Suited to rewards in [0, 1] whenever nothing is known about how they change. What it costs: some regret where
    nothing ever changes, which is where TS does best; and it may stay with a good arm for a long time while one that it
    does not play becomes better. It mistakes repeated rewards, or rewards that depend on each other, for change. No
    regret bound is known.

    Its constants are in `drift_bank`, `drift_births` and `drift_draw`, with what is known about their effect.

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
        world, cumulative, rates = np.zeros(WORLD), np.zeros(SUMS), FASTEST * APART ** -np.arange(RATES)
        world[[0, ROOM]] = 0.5 / (1 + RATES)
        world[RUNS:TIDES] = (1.0 - TIDE) / (1 + RATES)
        world[TIDES : TIDES + RATES] = TIDE / (1 + RATES)
        world[LEVEL:LEVEL_SPREAD] = 0.5
        world[LEVEL_SPREAD:] = V0
        add_up(world, cumulative, slots_at(0))
        record = np.zeros(MOVER_RECORD)
        record[SPREAD:] = V0
        wins, losses, last, a, b, draws, scores = np.zeros((7, n_arms))
        runs, changed, movers = np.zeros(n_arms * RUN_RECORD), np.ones(n_arms * ROOM), np.tile(record, n_arms)
        known = DriftTSKnown(world, cumulative, rates, wins, losses, last, runs, changed, movers)
        return DriftTSState(known, a, b, draws, scores)

    def choose(self, state: DriftTSState, t: int, rng: Any) -> Any:
        """Draw a hypothesis by its weight, draw a value for every arm from what it knows, never below the mean, and
        play the largest."""
        a, b, draws, scores = state.a, state.b, state.draws, state.scores
        drawn = draw_hypothesis(state.known.world, state.known.cumulative, rng.uniform(0))
        take_its_word(state, t, rng, drawn, SURE, HASTE)
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
        known, now, slots, y = state.known, t + 1, slots_at(t), min(max(reward, 0.0), 1.0)
        idle = now - known.last[arm]
        if y == 0.0 or y == 1.0:
            weigh_runs(known, arm, slots, y, False)
            weigh_drifters(known, arm, idle, y, False)
            weigh_tides(known, arm, y, False)
        else:
            weigh_runs(known, arm, slots, y, True)
            weigh_drifters(known, arm, idle, y, True)
            weigh_tides(known, arm, y, True)
        known.wins[arm] += y
        known.losses[arm] += 1.0 - y
        known.last[arm] = 1.0 * now
        whole = add_up(known.world, known.cumulative, slots)
        if now % EVERY == 0:
            give_birth(known, now, slots, whole)
            add_up(known.world, known.cumulative, slots_at(now))

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        validate(state, t, like)

    def room(self, n_arms: int) -> int:
        """The numbers that the state holds."""
        return WORLD + SUMS + RATES + n_arms * (RUN_RECORD + ROOM + MOVER_RECORD + 7)

    def belief(self, state: DriftTSState) -> DriftBelief:
        """The mixture that the next choice is drawn from."""
        return mixture(to_lists(state))[1]

    def explain(self, state: DriftTSState, names: Iterable[Any]) -> Explanation:
        """What it believes about the world, and about the arms under these names."""
        return explained(to_lists(state), names)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0) -> "DriftTS":
        """There is nothing to tune."""
        return cls()
