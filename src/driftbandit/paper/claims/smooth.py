"""The claims of the paper's section on smooth changes (7.2): Figures 5 and 6."""

import math

import numpy as np

from driftbandit.paper.claims.abrupt import in_all
from driftbandit.paper.claims.evidence import (
    ALMOST,
    SIMILAR,
    AtLeast,
    Claim,
    ComputedStatement,
    Reader,
    Unsettled,
    every,
)
from driftbandit.paper.theory import paper_functions
from driftbandit.paper.theory.bound import beta_interval
from driftbandit.paper.theory.diagnosis import blocks, close_rounds, diagnose, separations

FIG6 = ("fig6a", "fig6b", "fig6c", "fig6d")
_GAP0 = 1.0 / 3.0  # the paper's Delta_0


def _lipschitz(reader: Reader, item: str) -> ComputedStatement:
    world = reader.world(item)
    step = diagnose(world).drift
    return ComputedStatement(item, f"largest step {step:.3g}, sigma {world.sigma:g}", step <= world.sigma)


def _constant(world: object) -> float:
    """The paper's F = 4K / (sigma (K - 1))."""
    return float(4 * world.n_arms / (world.sigma * (world.n_arms - 1)))  # type: ignore[attr-defined]


def _close(reader: Reader, item: str) -> AtLeast:
    """|H(gap, T)| <= F gap T^beta for beta = 0, 1/2 and 1 and gaps of 0.01, 0.02, .. below Delta_0."""
    world = reader.world(item)
    distances, facts = separations(world), []
    gaps = [0.01 * step for step in range(1, 34) if 0.01 * step < _GAP0]
    for beta in (0.0, 0.5, 1.0):
        worst = max(gaps, key=lambda gap: close_rounds(distances, gap) / gap)
        allowed = _constant(world) * worst * world.horizon**beta
        count = close_rounds(distances, worst)
        numbers = f"beta {beta:g}: {count} rounds with arms closer than {worst:.2f}, allowed {allowed:.0f}"
        facts.append(ComputedStatement(item, numbers, count <= allowed))
    return every(facts)


def _beta_half(reader: Reader, item: str) -> ComputedStatement:
    world = reader.world(item)
    interval = beta_interval(
        horizon=world.horizon,
        gap=1.0,
        drift=world.sigma,
        constant=_constant(world),
        crossings=diagnose(world).crossings,
    )
    return ComputedStatement(item, f"smallest admissible beta {interval.low:.3f}", interval.admits(0.5))


def _theorem2(reader: Reader, item: str, tenfold: bool) -> ComputedStatement:
    """Is 2 sigma D(gamma) below Delta / 3 for the largest gap allowed, Delta / 3 = Delta_0?"""
    world = reader.world(item)
    eps = (10.0 if tenfold else 1.0) / math.sqrt(world.horizon)
    drift = 2.0 * world.sigma * paper_functions.D(eps) if eps < 1.0 / math.e else math.inf
    name = "1 - 10 / sqrt(T)" if tenfold else "1 - 1 / sqrt(T)"
    return ComputedStatement(
        item, f"gamma = {name}: 2 sigma D = {drift:.3f}, limit {_GAP0:.3f}", (drift < _GAP0) == tenfold
    )


def _switches(reader: Reader) -> ComputedStatement:
    count = diagnose(reader.world("fig6b")).switches
    return ComputedStatement("fig6b", f"{count} switches", count == 2)


def _second_best(reader: Reader) -> ComputedStatement:
    total = 0.0
    world = reader.world("fig6b")
    for _, rows in blocks(world):
        top = np.sort(rows, axis=1)[:, -2:]
        total += float((top[:, 1] - top[:, 0]).sum())
    return ComputedStatement("fig6b", f"mean distance {total / world.horizon:.3f}", total / world.horizon < 0.1)


def _similar(reader: Reader) -> AtLeast:
    return AtLeast(3, [reader.alike(item, "sw-ts", "sw-lb-sda", SIMILAR) for item in FIG6])


CLAIMS = (
    Claim(
        "smooth-lipschitz",
        "section 7.2, Experimental Setting, sentence 3",
        "The smooth worlds satisfy the Lipschitz assumption.",
        "In the worlds of Figures 6(a)-(d) no mean changes by more than sigma in a round.",
        "That is Assumption 1 on whole rounds.",
        FIG6, in_all(FIG6, _lipschitz), parameters=False,
    ),
    Claim(
        "smooth-constant",
        "section 7.2, Experimental Setting, sentence 4",
        "F = 4K / (sigma (K - 1)) and Delta_0 = 1/3 satisfy Assumption 2 whatever beta is.",
        "In the worlds of Figures 6(a)-(d) at most F gap T^beta rounds have two arms closer than the gap, for beta "
        "0, 1/2, 1 and every gap of 0.01, 0.02, ... below 1/3.",
        "The rounds can be counted.",
        FIG6, in_all(FIG6, _close), parameters=False,
    ),
    Claim(
        "smooth-beta",
        "section 7.2, Experimental Setting, on beta",
        "beta may be taken as 1/2.",
        "In the worlds of Figures 6(a)-(d) 1/2 lies in the interval of the remark after Corollary 2, with the largest "
        "gap, 1.",
        "The remark says which beta the theory admits; a larger gap admits more.",
        FIG6, in_all(FIG6, _beta_half), parameters=False,
    ),
    Claim(
        "smooth-theorem",
        "section 7.2, Experimental Setting, last sentences",
        "gamma = 1 - 10 / sqrt(T) meets Theorem 2's condition where gamma = 1 - 1 / sqrt(T) does not.",
        "2 sigma D(gamma) < 1/3 for the first and not for the second, in the settings of Figures 6(a) and 6(c).",
        "The condition is 2 sigma D(gamma) < Delta / 3 <= Delta_0 = 1/3; the largest Delta is the mildest.",
        ("fig6a", "fig6c"),
        lambda r: every([_theorem2(r, item, ten) for item in ("fig6a", "fig6c") for ten in (True, False)]),
        parameters=False,
    ),
    Claim(
        "smooth-similar",
        "section 7.2, Results, sentence 2",
        "SW-TS and SW-LB-SDA perform similarly in several settings.",
        f"In at least three of Figures 6(a)-(d) the two regrets differ by less than {SIMILAR:.0%} of the smaller.",
        "'Similar' is weaker than 'almost the same'; 'several' is more than two.",
        FIG6, _similar,
    ),
    Claim(
        "smooth-ds-ts-behind",
        "section 7.2, Results, sentence 3",
        "DS-TS is behind SW-TS and SW-LB-SDA.",
        "In each of Figures 6(a)-(d) its regret is above that of both.",
        "The sentence, without its explanation.",
        FIG6, in_all(FIG6, lambda r, item: every([r.below(item, b, "ds-ts") for b in ("sw-ts", "sw-lb-sda")])),
    ),
    Claim(
        "smooth-ts-excellent",
        "section 7.2, Results, sentence 4",
        "TS does excellently at T = 10^4, sigma = 10^-4.",
        f"In Figure 6(b) its regret is at most {1 + ALMOST:g} times that of every other policy.",
        "Excellent: the best, or almost the same as the best.",
        ("fig6b",), lambda r: r.beats_all("fig6b", "ts", 1.0 + ALMOST),
    ),
    Claim(
        "smooth-two-switches",
        "section 7.2, Results, sentence 6, first half",
        "There the best arm changes only twice.",
        "In the world of Figure 6(b) the best arm changes twice.",
        "Counted.",
        ("fig6b",), _switches, parameters=False,
    ),
    Claim(
        "smooth-close-second",
        "section 7.2, Results, sentence 6, second half",
        "There the best arm is not much better than the second best.",
        "In the world of Figure 6(b) it is better by less than 0.1 on average over the rounds.",
        "A tenth of the range of rewards; with five arms no more than 0.2 is possible.",
        ("fig6b",), _second_best, parameters=False,
    ),
)  # fmt: skip

UNSETTLED = (
    Unsettled(
        "section 7.2, Experimental Setting",
        "CUSUM and M-UCB rest on an assumption opposite to smoothness.",
        "A statement about proofs of others; the two were not run in smooth worlds.",
    ),
    Unsettled(
        "section 7.2, Results, sentence 3",
        "DS-TS is behind because discounting costs an extra logarithm.",
        "An explanation by an upper bound; a bound does not say what happens.",
    ),
)
