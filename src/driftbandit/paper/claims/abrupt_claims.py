"""The claims of the paper's section on abrupt changes (7.1): Figures 3 and 4."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit.lab.work import Cell
from driftbandit.paper.claims.evidence import (
    ALMOST,
    COMPETITIVE,
    AtLeast,
    Claim,
    ComputedStatement,
    Evidence,
    MeasuredStatement,
    compare,
    every,
    extra_final,
    in_all,
    jackknife,
    most,
)
from driftbandit.paper.items.item import Item, PaperOptions
from driftbandit.policies.detecting_ucb import MonitoredUCB

FIG3 = ("fig3a", "fig3b", "fig3c", "fig3d")
FIG4 = ("fig4a", "fig4b", "fig4c", "fig4d")
_MANY_ARMS = ("fig3c", "fig3d")
_EXPONENT = 0.9  # of regret within phases, from which growth is near-linear
_DRIFT = 0.05  # epsilon of CUSUM in the paper
_WRONG = 0.8  # share of uniform play's wrong choices from which arms are not distinguished
_GUARANTEED = "claim/m-ucb-guaranteed"


def _make_guaranteed_cells(options: PaperOptions, items: Mapping[str, Item]) -> dict[str, Cell]:
    """M-UCB of the text with the exploration that its guarantee needs."""
    item = items["fig3a"]
    environment = item.make_environment(options.environment)
    horizon, phases, arms = environment.horizon, environment.phases, environment.n_arms
    text = MonitoredUCB.text(horizon, phases, arms)
    rate = (phases - 1) * arms * (2.0 * text.threshold + 3.0 * math.sqrt(text.window))
    policy = text._replace(explore=min(1.0, math.sqrt(rate / (2.0 * horizon))))
    return {_GUARANTEED: Cell(policy, environment, options.runs, options.seed, item.checkpoints)}


def _less_exploration(evidence: Evidence) -> MeasuredStatement:
    guaranteed = extra_final(evidence.run, _GUARANTEED)
    return compare("fig3a", evidence.final("fig3a", "m-ucb"), "as in the paper", guaranteed, "as guaranteed")


def _alike_as_drawn(evidence: Evidence, item: str) -> MeasuredStatement:
    ds, sw = evidence.final(item, "ds-ts"), evidence.final(item, "sw-ts")
    finals = (evidence.final(item, label) for label in evidence.run.items[item].labels)
    top = max(finals, key=lambda regret: float(regret.mean()))
    share = abs(ds.mean() - sw.mean()) / top.mean()
    sign = 1.0 if ds.mean() >= sw.mean() else -1.0
    return MeasuredStatement(item, f"{share:.1%} of the height {top.mean():.0f}", 0.05 * top - sign * (ds - sw))


def regret_at(outcome: Any, rounds: np.ndarray) -> np.ndarray:
    """Regret after these many rounds, runs × rounds, on straight lines between the checkpoints."""
    marks = np.append(0, outcome.rounds)
    curves = np.column_stack([np.zeros(len(outcome.regret)), outcome.regret])
    return np.array([np.interp(rounds, marks, curve) for curve in curves])


def _kinks(evidence: Evidence, item: str, label: str) -> np.ndarray:
    """How much the slope of regret changes at a breakpoint, mean over breakpoints, one number per run."""
    starts = np.asarray(evidence.realised(item).breakpoints)
    width = (starts[1] - starts[0]) / 10.0
    edges = np.concatenate([starts[1:] - width, starts[1:], starts[1:] + width])
    before, at, after = np.split(regret_at(evidence.outcome(item, label), edges), 3, axis=1)
    return np.asarray(np.abs((after - at) - (at - before)).mean(axis=1) / width)


def _larger_kinks(evidence: Evidence, item: str, label: str) -> MeasuredStatement:
    ts, kink = _kinks(evidence, item, "ts"), _kinks(evidence, item, label)
    numbers = f"change of slope: ts {ts.mean():.3f}, {label} {kink.mean():.3f} a round"
    return MeasuredStatement(item, numbers, ts - 2.0 * kink)


def _undetectable(evidence: Evidence, item: str) -> ComputedStatement:
    least = 1.0
    for realised in evidence.all_realised(item):
        rows = np.array([realised.means(start, start + 1)[0] for start in realised.breakpoints])
        least = min(least, float(np.abs(np.diff(rows, axis=0)).min()))
    return ComputedStatement(item, f"smallest change of a mean {least:.2g}", least < 3 * _DRIFT)


def _near_linear(evidence: Evidence, item: str, label: str) -> MeasuredStatement:
    outcome = evidence.outcome(item, label)
    starts = np.append(np.asarray(evidence.realised(item).breakpoints), outcome.rounds[-1])
    at = regret_at(outcome, np.sort(np.concatenate([starts, (starts[1:] + starts[:-1]) / 2.0])))
    pieces = np.diff(at, axis=1)
    first, second = pieces[:, 0::2].sum(axis=1), pieces[:, 1::2].sum(axis=1)
    power = math.log2(1.0 + second.mean() / first.mean()) if first.mean() > 0 else 0.0
    return MeasuredStatement(item, f"{label}: exponent {power:.2f}", second - (2.0**_EXPONENT - 1.0) * first)


def _below_half(evidence: Evidence, item: str, *labels: str) -> AtLeast:
    return every([evidence.below(item, label, slow, 0.5) for label in labels for slow in ("exp3s", "d-ucb")])


def _over_gaps(evidence: Evidence, item: str, label: str) -> np.ndarray:
    """Final regret, runs × gaps."""
    return np.column_stack([evidence.final(item, label, gap) for gap in evidence.run.items[item].gaps])


def _steadier(evidence: Evidence, item: str, *pairs: tuple[str, str]) -> AtLeast:
    """The mean regret of the first varies less over the gaps than that of the second, for each pair."""
    parts = []
    for one, other in pairs:
        a, b = _over_gaps(evidence, item, one), _over_gaps(evidence, item, other)
        values = jackknife(lambda a, b: float(b.std() - a.std()), a, b)
        numbers = f"sd over gaps: {one} {a.mean(0).std():.0f}, {other} {b.mean(0).std():.0f}"
        parts.append(MeasuredStatement(item, numbers, values))
    return every(parts)


def _rises_then_not(evidence: Evidence, item: str, label: str) -> AtLeast:
    regret, gaps = _over_gaps(evidence, item, label), np.array(evidence.run.items[item].gaps)
    third = max(2, len(gaps) // 3)

    def slope(part: slice) -> np.ndarray:
        x = gaps[part] - gaps[part].mean()
        return np.asarray(regret[:, part] @ x / (x @ x))

    first, last, small = slope(slice(0, third)), slope(slice(len(gaps) - third, len(gaps))), regret[:, 0]
    ends = f"{label}: {small.mean():.0f} at the smallest gap, {regret.mean():.0f} on average"
    return every(
        [
            MeasuredStatement(item, ends, regret.mean(axis=1) - small),
            MeasuredStatement(item, f"{label}: slope {first.mean():.0f} over the first third", first),
            MeasuredStatement(item, f"{label}: slope {last.mean():.0f} over the last third", 0.1 * first - last),
        ]
    )


def _often_wrong(evidence: Evidence, item: str, label: str) -> MeasuredStatement:
    environment, gap = evidence.run.items[item].environment, evidence.run.items[item].gaps[0]
    wrong = evidence.final(item, label, gap) / (gap * environment.horizon)
    uniform = (environment.n_arms - 1) / environment.n_arms
    numbers = f"{label}: {wrong.mean():.0%} of rounds wrong, uniform play {uniform:.0%}"
    return MeasuredStatement(item, numbers, wrong - _WRONG * uniform)


CLAIMS = (
    Claim(
        "m-ucb-exploration", "section 7.1, Experimental Setting, the sentence after M-UCB's exploration",
        "The smaller exploration chosen for M-UCB does better in practice than the guaranteed one.",
        "In the environment of Figure 3(a) M-UCB's regret is below that of M-UCB exploring at the rate "
        "sqrt(changes K (2b + 3 sqrt(w)) / (2T)).",
        "The guarantee needs that rate; all else is as printed.",
        ("fig3a",), _less_exploration, cells=_make_guaranteed_cells,
    ),
    Claim(
        "abrupt-almost-equal", "section 7.1, Results, sentence 2",
        "DS-TS and SW-TS perform almost the same.",
        f"In each of Figures 3(a)-(d) the two regrets differ by less than {ALMOST:.0%} of the smaller.",
        "A tenth is more than the difference between two runs of SW-TS.",
        FIG3, in_all(FIG3, lambda e, item: e.alike(item, "ds-ts", "sw-ts", ALMOST)),
    ),
    Claim(
        "abrupt-almost-equal-as-drawn", "section 7.1, Results, sentence 2, read off the figure",
        "DS-TS and SW-TS perform almost the same.",
        "In each of Figures 3(a)-(d) the curves end less than 5% of the figure's height apart.",
        "The figures reach up to the worst policy; curves this close look almost the same on their axes.",
        FIG3, in_all(FIG3, _alike_as_drawn),
    ),
    Claim(
        "ts-oscillates", "section 7.1, Results, sentence 3",
        "TS, made for environments that do not change, swings a lot at breakpoints.",
        "In Figures 3(a)-(d) TS's regret changes slope at breakpoints (a tenth of a phase before and after) at least "
        "twice as much as that of DS-TS and of SW-TS.",
        "A swing of a regret curve is a change of slope; 'a lot' is compared with the two policies that forget.",
        FIG3, in_all(FIG3, lambda e, item: every([_larger_kinks(e, item, label) for label in ("ds-ts", "sw-ts")])),
    ),
    Claim(
        "ts-fails", "section 7.1, Results, sentence 3",
        "TS, made for environments that do not change, fails here.",
        "In Figures 3(a)-(d) TS's regret is more than twice that of DS-TS and of SW-TS.",
        "The effect of the swings on the final regret; up to twice counts as competitive.",
        FIG3, in_all(FIG3, lambda e, item: every([e.below(item, label, "ts", 0.5) for label in ("ds-ts", "sw-ts")])),
    ),
    Claim(
        "cusum-competitive", "section 7.1, Results, sentence 4",
        "CUSUM is competitive too.",
        f"In Figures 3(a)-(d) its regret is at most {COMPETITIVE:g} times that of every other policy.",
        "Competitive is read as never more than twice the regret of another policy.",
        FIG3, in_all(FIG3, lambda e, item: e.below_all(item, "cusum-ucb", COMPETITIVE)),
    ),
    Claim(
        "cusum-assumption", "section 7.1, Results, sentence 5",
        "The experiment does not meet CUSUM's detectability assumption.",
        f"In each environment of Figure 3 some mean changes by less than 3 epsilon = {3 * _DRIFT:g}.",
        f"Liu, Lee and Shroff assume that every change is at least 3 epsilon; epsilon is {_DRIFT:g}.",
        FIG3, in_all(FIG3, _undetectable), parameters=False,
    ),
    Claim(
        "many-arms-near-linear", "section 7.1, Results, sentence 6, first half",
        "With many arms EXP3.S and D-UCB have near-linear regret.",
        f"In Figures 3(c) and 3(d), within phases, the regret of both grows like a power of at least {_EXPONENT:g} "
        "of the rounds.",
        "Every policy has new regret in each phase, so the second half of each phase is compared with the first.",
        _MANY_ARMS,
        in_all(_MANY_ARMS, lambda e, item: every([_near_linear(e, item, label) for label in ("exp3s", "d-ucb")])),
    ),
    Claim(
        "many-arms-near-linear-size", "section 7.1, Results, sentence 6, first half, read as size",
        "With many arms EXP3.S and D-UCB have near-linear regret.",
        "In Figures 3(c) and 3(d) the regret of both is more than half of uniform play's.",
        "The regret of uniform play is a straight line in each phase; growth within phases is the other reading.",
        _MANY_ARMS,
        in_all(_MANY_ARMS, lambda e, item: every([e.above_half_of_uniform(item, b) for b in ("exp3s", "d-ucb")])),
    ),
    Claim(
        "many-arms-ds-ts-well", "section 7.1, Results, sentence 6, second half",
        "With many arms DS-TS still does well.",
        "In Figures 3(c) and 3(d) its regret is below half of EXP3.S's and half of D-UCB's.",
        "The sentence compares it with these two.",
        _MANY_ARMS, in_all(_MANY_ARMS, lambda e, item: _below_half(e, item, "ds-ts")),
    ),
    Claim(
        "many-arms-both-well", "section 7.1, Results, sentence 7",
        "With many arms both DS-TS and SW-TS still work.",
        "In Figures 3(c) and 3(d) the regret of each is below half of EXP3.S's and half of D-UCB's.",
        "As for the sentence before.",
        _MANY_ARMS, in_all(_MANY_ARMS, lambda e, item: _below_half(e, item, "ds-ts", "sw-ts")),
    ),
    Claim(
        "many-arms-thompson", "section 7.1, Results, sentence 8",
        "With many arms Thompson sampling is often better than upper confidence bounds.",
        "In more than half of 12 comparisons (DS-TS, SW-TS against D-UCB, CUSUM, M-UCB in Figures 3(c), 3(d)) it has "
        "less regret.",
        "'Often' is more than half.",
        _MANY_ARMS, lambda e: most([e.below(item, thompson, bound) for item in _MANY_ARMS
                                    for thompson in ("ds-ts", "sw-ts") for bound in ("d-ucb", "cusum-ucb", "m-ucb")]),
    ),
    Claim(
        "gap-less-affected", "section 7.1, Impact of the gap, sentence 4",
        "The gap affects CUSUM and SW-TS less than D-UCB and DS-TS.",
        "In each of Figures 4(a)-(d) the standard deviation over the gaps of mean regret is smaller for each of the "
        "first two than for each of the last two.",
        "'Affected' is how far the curve over the gaps is from flat; intervals from jackknife pseudo-values.",
        FIG4, in_all(FIG4, lambda e, item: _steadier(e, item, ("cusum-ucb", "d-ucb"), ("cusum-ucb", "ds-ts"),
                                                     ("sw-ts", "d-ucb"), ("sw-ts", "ds-ts"))),
    ),
    Claim(
        "gap-order-of-bounds", "section 7.1, Impact of the gap, sentences 5 to 8",
        "How much the gap matters follows the bounds of Table 1: CUSUM least, then SW-TS, then D-UCB and DS-TS.",
        "In Figures 4(a)-(d) the standard deviation over the gaps rises from CUSUM to SW-TS to D-UCB and to DS-TS.",
        "If the bounds are the reason, the measured order is theirs: no power of the gap with sqrt(T), one, two.",
        FIG4, in_all(FIG4, lambda e, item: _steadier(e, item, ("cusum-ucb", "sw-ts"), ("sw-ts", "d-ucb"),
                                                     ("sw-ts", "ds-ts"))),
    ),
    *(
        Claim(
            f"gap-rises-then-falls-{label}", "section 7.1, Impact of the gap, sentence 9",
            f"{name}'s regret is small for small gaps, rises with the gap, then falls or levels off.",
            "In Figures 4(a)-(d): below average at the smallest gap; rising over the first third of the gaps; over the "
            "last third rising at most a tenth as fast.",
            "Slopes are those of straight lines fitted to a third of the gaps; a tenth counts as level.",
            FIG4, in_all(FIG4, lambda e, item, label=label: _rises_then_not(e, item, label)),  # type: ignore[misc]
        )
        for label, name in (("d-ucb", "D-UCB"), ("ds-ts", "DS-TS"))
    ),
    Claim(
        "gap-blind", "section 7.1, Impact of the gap, sentence 10",
        "At very small gaps D-UCB and DS-TS cannot tell the arms apart; it only costs little.",
        f"In Figures 4(a)-(d), at the smallest gap, both play wrong arms at least {_WRONG:.0%} as often as uniform "
        "play.",
        "All gaps are equal, so regret divided by the gap is the number of wrong choices.",
        FIG4, in_all(FIG4, lambda e, item: every([_often_wrong(e, item, label) for label in ("d-ucb", "ds-ts")])),
    ),
)  # fmt: skip
