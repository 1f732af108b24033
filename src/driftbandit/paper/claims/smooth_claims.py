"""The claims of the paper's sections on smooth changes (7.2) and on the largest mean (7.3): Figures 5 to 7."""

import math
from typing import Any

import numpy as np

from driftbandit.paper.claims.evidence import (
    ALMOST,
    SIMILAR,
    AtLeast,
    Claim,
    ComputedStatement,
    Evidence,
    MeasuredStatement,
    compare,
    every,
    in_all,
    jackknife,
    most,
)
from driftbandit.paper.items.item import KNOWN
from driftbandit.paper.theory.diagnosis import blocks, close_rounds, diagnose, separations
from driftbandit.paper.theory.theorem import D, smallest_beta

FIG6 = ("fig6a", "fig6b", "fig6c", "fig6d")
_GAP0 = 1.0 / 3.0  # the paper's Delta_0
_NEAR_ONE = 0.9


def _lipschitz(evidence: Evidence, item: str) -> ComputedStatement:
    step, sigma = diagnose(evidence.realised(item)).drift, evidence.run.items[item].environment.sigma
    return ComputedStatement(item, f"largest step {step:.3g}, sigma {sigma:g}", step <= sigma)


def _constant(realised: Any) -> float:
    """The paper's F = 4K / (sigma (K - 1))."""
    return float(4 * realised.n_arms / (realised.sigma * (realised.n_arms - 1)))


def _few_close_rounds(evidence: Evidence, item: str) -> AtLeast:
    realised = evidence.realised(item)
    distances, parts = separations(realised), []
    gaps = [0.01 * step for step in range(1, 34) if 0.01 * step < _GAP0]
    worst = max(gaps, key=lambda gap: close_rounds(distances, gap) / gap)
    count = close_rounds(distances, worst)
    for beta in (0.0, 0.5, 1.0):
        allowed = _constant(realised) * worst * realised.horizon**beta
        numbers = f"beta {beta:g}: {count} rounds with arms closer than {worst:.2f}, allowed {allowed:.0f}"
        parts.append(ComputedStatement(item, numbers, count <= allowed))
    return every(parts)


def _beta_half(evidence: Evidence, item: str) -> ComputedStatement:
    realised = evidence.realised(item)
    crossings = diagnose(realised).crossings
    low = smallest_beta(realised.horizon, 1.0, realised.sigma, _constant(realised), crossings)
    return ComputedStatement(item, f"smallest admissible beta {low:.3f}", low <= 0.5)


def _condition(evidence: Evidence, item: str, tenfold: bool) -> ComputedStatement:
    realised = evidence.realised(item)
    eps = (10.0 if tenfold else 1.0) / math.sqrt(realised.horizon)
    drift = 2.0 * realised.sigma * D(eps) if eps < 1.0 / math.e else math.inf
    name = "1 - 10 / sqrt(T)" if tenfold else "1 - 1 / sqrt(T)"
    numbers = f"gamma = {name}: 2 sigma D = {drift:.3f}, limit {_GAP0:.3f}"
    return ComputedStatement(item, numbers, (drift < _GAP0) == tenfold)


def _two_switches(evidence: Evidence) -> ComputedStatement:
    count = diagnose(evidence.realised("fig6b")).switches
    return ComputedStatement("fig6b", f"{count} switches", count == 2)


def _close_second(evidence: Evidence) -> ComputedStatement:
    total, realised = 0.0, evidence.realised("fig6b")
    for _, rows in blocks(realised):
        top = np.sort(rows, axis=1)[:, -2:]
        total += float((top[:, 1] - top[:, 0]).sum())
    mean = total / realised.horizon
    return ComputedStatement("fig6b", f"mean distance {mean:.3f}", mean < 0.1)


def _near_one(evidence: Evidence, item: str) -> ComputedStatement:
    best = [float(realised.best(int(t))) for realised in evidence.all_realised(item) for t in realised.breakpoints]
    mean = sum(best) / len(best)
    return ComputedStatement(item, f"best mean {mean:.3f} on average, {min(best):.3f} at least", mean > _NEAR_ONE)


def _all_means_below(evidence: Evidence, item: str, limit: float) -> ComputedStatement:
    largest = max(diagnose(realised).mu_max for realised in evidence.all_realised(item))
    return ComputedStatement(item, f"largest mean {largest:.6g}", largest < limit)


def _slower(evidence: Evidence) -> ComputedStatement:
    before, after = (diagnose(evidence.realised(item)).drift for item in ("fig6a", "fig7b"))
    return ComputedStatement("fig7b", f"largest step {after:.3g}, in fig6a {before:.3g}", after < before)


def _between(evidence: Evidence, label: str, low: str, high: str) -> MeasuredStatement:
    """The policy's regret in `low` is below that in `high`."""
    a, b = evidence.final(low, label), evidence.final(high, label)
    return compare(f"{low}, {high}", a, f"{label} in {low}", b, f"in {high}")


def _all_fall_but_ds_ts(evidence: Evidence) -> AtLeast:
    others = [label for label in evidence.run.items["fig6a"].labels if label != "ds-ts"]
    falling = [_between(evidence, label, "fig7b", "fig6a") for label in others]
    return every([*falling, _between(evidence, "ds-ts", "fig6a", "fig7b")])


def _more_influenced(evidence: Evidence, label: str) -> MeasuredStatement:
    samples = [evidence.final(item, name) for name in ("ds-ts", label) for item in ("fig7b", "fig6a")]
    a, b, c, d = (sample.mean() for sample in samples)
    values = jackknife(lambda a, b, c, d: math.log(a / b) - math.log(c / d), *samples)
    return MeasuredStatement("fig7b, fig6a", f"ds-ts × {a / b:.2f}, {label} × {c / d:.2f}", values)


CLAIMS = (
    Claim(
        "smooth-lipschitz", "section 7.2, Experimental Setting, sentence 3",
        "The smooth environments satisfy the Lipschitz assumption.",
        "In the environments of Figures 6(a)-(d) no mean changes by more than sigma in a round.",
        "That is Assumption 1 on whole rounds.",
        FIG6, in_all(FIG6, _lipschitz), parameters=False,
    ),
    Claim(
        "smooth-constant", "section 7.2, Experimental Setting, sentence 4",
        "F = 4K / (sigma (K - 1)) and Delta_0 = 1/3 satisfy Assumption 2 whatever beta is.",
        "In the environments of Figures 6(a)-(d) at most F gap T^beta rounds have two arms closer than the gap, for "
        "beta 0, 1/2, 1 and every gap of 0.01, 0.02, ... below 1/3.",
        "The rounds can be counted.",
        FIG6, in_all(FIG6, _few_close_rounds), parameters=False,
    ),
    Claim(
        "smooth-beta", "section 7.2, Experimental Setting, on beta",
        "beta may be taken as 1/2.",
        "In the environments of Figures 6(a)-(d) 1/2 lies in the interval of the remark after Corollary 2, with the "
        "largest gap, 1.",
        "The remark gives the beta that the theory admits; a larger gap admits more.",
        FIG6, in_all(FIG6, _beta_half), parameters=False,
    ),
    Claim(
        "smooth-theorem", "section 7.2, Experimental Setting, last sentences",
        "gamma = 1 - 10 / sqrt(T) meets Theorem 2's condition where gamma = 1 - 1 / sqrt(T) does not.",
        "2 sigma D(gamma) < 1/3 for the first and not for the second, in the settings of Figures 6(a) and 6(c).",
        "The condition is 2 sigma D(gamma) < Delta / 3 <= Delta_0 = 1/3; the largest Delta is the mildest.",
        ("fig6a", "fig6c"),
        in_all(("fig6a", "fig6c"), lambda e, item: every([_condition(e, item, True), _condition(e, item, False)])),
        parameters=False,
    ),
    Claim(
        "smooth-similar", "section 7.2, Results, sentence 2",
        "SW-TS and SW-LB-SDA perform similarly in several settings.",
        f"In at least three of Figures 6(a)-(d) the two regrets differ by less than {SIMILAR:.0%} of the smaller.",
        "'Similar' is weaker than 'almost the same'; 'several' is more than two.",
        FIG6, lambda e: AtLeast(3, [e.alike(item, "sw-ts", "sw-lb-sda", SIMILAR) for item in FIG6]),
    ),
    Claim(
        "smooth-ds-ts-behind", "section 7.2, Results, sentence 3",
        "DS-TS is behind SW-TS and SW-LB-SDA.",
        "In each of Figures 6(a)-(d) its regret is above that of both.",
        "The sentence, without its explanation.",
        FIG6, in_all(FIG6, lambda e, item: every([e.below(item, b, "ds-ts") for b in ("sw-ts", "sw-lb-sda")])),
    ),
    Claim(
        "smooth-ts-excellent", "section 7.2, Results, sentence 4",
        "TS does excellently at T = 10^4, sigma = 10^-4.",
        f"In Figure 6(b) its regret is at most {1 + ALMOST:g} times that of every other policy.",
        "Excellent: the best, or almost the same as the best.",
        ("fig6b",), lambda e: e.below_all("fig6b", "ts", 1.0 + ALMOST),
    ),
    Claim(
        "smooth-two-switches", "section 7.2, Results, sentence 6, first half",
        "There the best arm changes only twice.",
        "In the environment of Figure 6(b) the best arm changes twice.",
        "Counted.",
        ("fig6b",), _two_switches, parameters=False,
    ),
    Claim(
        "smooth-close-second", "section 7.2, Results, sentence 6, second half",
        "There the best arm is not much better than the second best.",
        "In the environment of Figure 6(b) it is better by less than 0.1 on average over the rounds.",
        "A tenth of the range of rewards; with five arms no more than 0.2 is possible.",
        ("fig6b",), _close_second, parameters=False,
    ),
    Claim(
        "prior-near-one", "section 7.3, paragraph 1, sentence 2",
        "With a reasonable number of arms one of them has a mean close to 1.",
        f"With 10, 20 and 30 arms (Figures 3(b)-(d)) the best mean, averaged over the phases, is above {_NEAR_ONE:g}.",
        "Of K uniform means the largest is K / (K + 1) on average: 0.91 with ten arms.",
        ("fig3b", "fig3c", "fig3d"), in_all(("fig3b", "fig3c", "fig3d"), _near_one), parameters=False,
    ),
    Claim(
        "prior-most-perform-well", "section 7.3, paragraph 1, sentence 3",
        "Most policies based on UCB and TS do well there.",
        "In Figure 3(b) more than half of D-UCB, CUSUM, M-UCB, TS, SW-TS and DS-TS have less than half of uniform "
        "play's regret.",
        "Uniform play does not learn; its regret follows from the means.",
        ("fig3b",), lambda e: most([e.above_half_of_uniform("fig3b", label, -1.0)
                                    for label in ("d-ucb", "cusum-ucb", "m-ucb", "ts", "sw-ts", "ds-ts")]),
    ),
    Claim(
        "prior-limit-abrupt", "section 7.3, paragraph 2, sentence 1",
        "In the abrupt environment the largest mean is less than 0.7.",
        "In the environment of Figure 7(a) every mean is below 0.7.",
        "The environment is that of the authors' code; the text gives no generator.",
        ("fig7a",), lambda e: _all_means_below(e, "fig7a", 0.7), parameters=False,
    ),
    Claim(
        "prior-limit-smooth", "section 7.3, paragraph 2, sentence 2",
        "In the smooth environment the largest mean is less than 0.5.",
        "In the environment of Figure 7(b) every mean is below 0.5.",
        "Computed; the authors' code counts rounds from 0, where the centre is on an arm.",
        ("fig7b",), lambda e: _all_means_below(e, "fig7b", 0.5), parameters=False,
    ),
    Claim(
        "prior-all-worse", "section 7.3, paragraph 3, sentence 2",
        "With means below 0.7 every policy has more regret than with means from (0, 1).",
        "Each policy's regret in Figure 7(a) is above its regret in Figure 3(b).",
        "Run r of both figures has the same seed; the difference is taken within runs.",
        ("fig3b", "fig7a"),
        lambda e: every([_between(e, label, "fig3b", "fig7a") for label in e.run.items["fig3b"].labels]),
    ),
    Claim(
        "prior-slower", "section 7.3, paragraph 3, sentence 3",
        "Scaled down, the means change more slowly.",
        "The largest step of a mean in Figure 7(b) is below that in Figure 6(a).",
        "Computed.",
        ("fig6a", "fig7b"), _slower, parameters=False,
    ),
    Claim(
        "prior-all-fall-but-ds-ts", "section 7.3, paragraph 3, sentence 4",
        "In the rescaled smooth environment every policy's regret falls, except DS-TS's.",
        "Each other policy's regret in Figure 7(b) is below that in Figure 6(a); DS-TS's is above.",
        "The text names 'Figure 1'; 6(a) is the figure with the same setting.",
        ("fig6a", "fig7b"), _all_fall_but_ds_ts,
    ),
    Claim(
        "prior-ds-ts-influenced", "section 7.3, paragraph 3, sentence 5",
        "The largest mean influences DS-TS more than the other policies.",
        "From Figure 6(a) to 7(b) DS-TS's regret changes by a larger factor than every other policy's.",
        "Rescaling halves the cost of a mistake, so an unaffected policy's regret falls; intervals by jackknife.",
        ("fig6a", "fig7b"),
        lambda e: every([_more_influenced(e, label) for label in e.run.items["fig6a"].labels if label != "ds-ts"]),
    ),
    Claim(
        "prior-improves", "section 7.3, paragraph 3, sentence 6 (and section 5.1, remark after Corollary 1)",
        "Knowing the largest mean improves DS-TS significantly.",
        f"In Figures 7(a) and 7(b) DS-TS with tau_max = mu_max / 5 has at most {1 - ALMOST:g} times the regret of "
        "DS-TS.",
        "'Significantly': by more than what counts as almost the same.",
        ("fig7a", "fig7b"), in_all(("fig7a", "fig7b"), lambda e, item: e.below(item, KNOWN, "ds-ts", 1.0 - ALMOST)),
    ),
)  # fmt: skip
