"""The claims of the paper's section on knowing the largest mean (7.3): Figure 7 against Figures 3(b) and 6(a)."""

import math

import numpy as np

from driftbandit.paper.claims.evidence import (
    ALMOST,
    AtLeast,
    Claim,
    ComputedStatement,
    MeasuredStatement,
    Reader,
    Unsettled,
    every,
    jackknife,
    most,
)
from driftbandit.paper.theory.diagnosis import diagnose

KNOWN = "ds-ts-mu"
_NEAR_ONE = 0.9


def _near_one(reader: Reader) -> AtLeast:
    facts = []
    for item in ("fig3b", "fig3c", "fig3d"):
        best = [float(world.best(int(t))) for world in reader.worlds(item) for t in world.breakpoints]
        mean = sum(best) / len(best)
        facts.append(
            ComputedStatement(item, f"best mean {mean:.3f} on average, {min(best):.3f} at least", mean > _NEAR_ONE)
        )
    return every(facts)


def _half_of_uniform(reader: Reader) -> AtLeast:
    costs = np.array([diagnose(world).uniform_regret for world in reader.worlds("fig3b")])
    labels = ("d-ucb", "cusum-ucb", "m-ucb", "ts", "sw-ts", "ds-ts")
    return most(
        [
            MeasuredStatement(
                "fig3b", f"{label} {regret.mean():.0f}, uniform play {costs.mean():.0f}", 0.5 * costs - regret
            )
            for label in labels
            for regret in [reader.final("fig3b", label)]
        ]
    )


def _limit(reader: Reader, item: str, limit: float) -> ComputedStatement:
    largest = max(diagnose(world).mu_max for world in reader.worlds(item))
    return ComputedStatement(item, f"largest mean {largest:.6g}", largest < limit)


def _slower(reader: Reader) -> ComputedStatement:
    before, after = (diagnose(reader.world(item)).drift for item in ("fig6a", "fig7b"))
    return ComputedStatement("fig7b", f"largest step {after:.3g}, in fig6a {before:.3g}", after < before)


def _pair(reader: Reader, label: str, low: str, high: str) -> MeasuredStatement:
    """The policy's regret in `low` is below that in `high`."""
    a, b = reader.final(low, label), reader.final(high, label)
    return reader.compare(f"{low}, {high}", a, f"{label} in {low}", b, f"in {high}")


def _all_worse(reader: Reader) -> AtLeast:
    return every([_pair(reader, label, "fig3b", "fig7a") for label in reader.labels("fig3b")])


def _all_fall_but_one(reader: Reader) -> AtLeast:
    falling = [_pair(reader, label, "fig7b", "fig6a") for label in reader.labels("fig6a") if label != "ds-ts"]
    return every([*falling, _pair(reader, "ds-ts", "fig6a", "fig7b")])


def _more_influenced(reader: Reader) -> AtLeast:
    """DS-TS's regret rises by a larger factor from Figure 6(a) to 7(b) than every other policy's."""
    own = reader.final("fig7b", "ds-ts"), reader.final("fig6a", "ds-ts")
    tests = []
    for label in reader.labels("fig6a"):
        if label != "ds-ts":
            other = reader.final("fig7b", label), reader.final("fig6a", label)
            values = jackknife(lambda a, b, c, d: math.log(a / b) - math.log(c / d), *own, *other)
            factors = (own[0].mean() / own[1].mean(), other[0].mean() / other[1].mean())
            tests.append(
                MeasuredStatement("fig7b, fig6a", f"ds-ts × {factors[0]:.2f}, {label} × {factors[1]:.2f}", values)
            )
    return every(tests)


CLAIMS = (
    Claim(
        "prior-near-one",
        "section 7.3, paragraph 1, sentence 2",
        "With a reasonable number of arms one of them has a mean close to 1.",
        f"With 10, 20 and 30 arms (Figures 3(b)-(d)) the best mean, averaged over the phases, is above {_NEAR_ONE:g}.",
        "Of K uniform means the largest is K / (K + 1) on average: 0.91 with ten arms.",
        ("fig3b", "fig3c", "fig3d"), _near_one, parameters=False,
    ),
    Claim(
        "prior-most-perform-well",
        "section 7.3, paragraph 1, sentence 3",
        "Most policies based on UCB and TS do well there.",
        "In Figure 3(b) more than half of D-UCB, CUSUM, M-UCB, TS, SW-TS and DS-TS have less than half of uniform "
        "play's regret.",
        "Uniform play learns nothing; its regret follows from the means.",
        ("fig3b",), _half_of_uniform,
    ),
    Claim(
        "prior-limit-abrupt",
        "section 7.3, paragraph 2, sentence 1",
        "In the abrupt world the largest mean is less than 0.7.",
        "In the world of Figure 7(a) every mean is below 0.7.",
        "The world is the one of the authors' code; the text gives no generator.",
        ("fig7a",), lambda r: _limit(r, "fig7a", 0.7), parameters=False,
    ),
    Claim(
        "prior-limit-smooth",
        "section 7.3, paragraph 2, sentence 2",
        "In the smooth world the largest mean is less than 0.5.",
        "In the world of Figure 7(b) every mean is below 0.5.",
        "Computed; counting rounds from 0, as the authors' code does, the world begins with the centre on an arm.",
        ("fig7b",), lambda r: _limit(r, "fig7b", 0.5), parameters=False,
    ),
    Claim(
        "prior-all-worse",
        "section 7.3, paragraph 3, sentence 2",
        "With means below 0.7 every policy has more regret than with means from (0, 1).",
        "Each policy's regret in Figure 7(a) is above its regret in Figure 3(b).",
        "Run r of both figures has the same seed; the difference is taken within runs.",
        ("fig3b", "fig7a"), _all_worse,
    ),
    Claim(
        "prior-slower",
        "section 7.3, paragraph 3, sentence 3",
        "Scaled down, the means change more slowly.",
        "The largest step of a mean in Figure 7(b) is below that in Figure 6(a).",
        "Computed.",
        ("fig6a", "fig7b"), _slower, parameters=False,
    ),
    Claim(
        "prior-all-fall-but-ds-ts",
        "section 7.3, paragraph 3, sentence 4",
        "In the rescaled smooth world every policy's regret falls, except DS-TS's.",
        "Each other policy's regret in Figure 7(b) is below that in Figure 6(a); DS-TS's is above.",
        "The text names 'Figure 1'; 6(a) is the figure with the same setting.",
        ("fig6a", "fig7b"), _all_fall_but_one,
    ),
    Claim(
        "prior-ds-ts-influenced",
        "section 7.3, paragraph 3, sentence 5",
        "The largest mean influences DS-TS more than the other policies.",
        "From Figure 6(a) to 7(b) DS-TS's regret changes by a larger factor than every other policy's.",
        "Rescaling halves what a mistake costs, so an unaffected policy's regret would fall; intervals by jackknife.",
        ("fig6a", "fig7b"), _more_influenced,
    ),
    Claim(
        "prior-improves",
        "section 7.3, paragraph 3, sentence 6 (and section 5.1, remark after Corollary 1)",
        "Knowing the largest mean improves DS-TS significantly.",
        f"In Figures 7(a) and 7(b) DS-TS with tau_max = mu_max / 5 has at most {1 - ALMOST:g} times the regret of "
        "DS-TS.",
        "'Significantly': by more than what counts as almost the same.",
        ("fig7a", "fig7b"),
        lambda r: every([r.below(item, KNOWN, "ds-ts", 1.0 - ALMOST) for item in ("fig7a", "fig7b")]),
    ),
)  # fmt: skip

UNSETTLED = (
    Unsettled(
        "section 7.3, paragraph 1, sentence 3",
        "Policies do well because they explore strongly.",
        "An explanation; exploration was not varied.",
    ),
)
