"""The claims of the paper's section on abrupt changes (7.1) about the gap: Figure 4."""

import numpy as np

from driftbandit.paper.claims.abrupt import in_all
from driftbandit.paper.claims.evidence import AtLeast, Claim, MeasuredStatement, Reader, Unsettled, every, jackknife

FIG4 = ("fig4a", "fig4b", "fig4c", "fig4d")
_DULL = 0.8  # share of uniform play's wrong choices that counts as not telling arms apart


def _over_gaps(reader: Reader, item: str, label: str) -> np.ndarray:
    """Final regret, runs × gaps."""
    return np.column_stack([reader.final(item, label, gap) for gap in reader.run.items[item].gaps])


def _steadier(reader: Reader, item: str, calm: str, lively: str) -> MeasuredStatement:
    """The mean regret of one policy varies less over the gaps (standard deviation) than that of another."""
    a, b = _over_gaps(reader, item, calm), _over_gaps(reader, item, lively)
    values = jackknife(lambda one, other: float(other.std() - one.std()), a, b)
    return MeasuredStatement(
        item, f"sd over gaps: {calm} {a.mean(0).std():.0f}, {lively} {b.mean(0).std():.0f}", values
    )


def _rises_then_not(reader: Reader, item: str, label: str) -> AtLeast:
    """Over the first third of the gaps regret rises; over the last third it rises at most a tenth as fast."""
    regret, gaps = _over_gaps(reader, item, label), np.array(reader.run.items[item].gaps)
    third = max(2, len(gaps) // 3)

    def slope(part: slice) -> np.ndarray:
        x = gaps[part] - gaps[part].mean()
        return np.asarray(regret[:, part] @ x / (x @ x))

    first, last = slope(slice(0, third)), slope(slice(len(gaps) - third, len(gaps)))
    small = regret[:, 0]
    return every(
        [
            MeasuredStatement(item, f"{label}: {small.mean():.0f} at the smallest gap, {regret.mean():.0f} on average",
                 regret.mean(axis=1) - small),
            MeasuredStatement(item, f"{label}: slope {first.mean():.0f} over the first third", first),
            MeasuredStatement(item, f"{label}: slope {last.mean():.0f} over the last third", 0.1 * first - last),
        ]
    )  # fmt: skip


def _blind(reader: Reader, item: str, label: str) -> MeasuredStatement:
    """At the smallest gap nearly as many rounds go to wrong arms as under uniform play."""
    world, gap = reader.run.items[item].environment(reader.run.options.environment), reader.run.items[item].gaps[0]
    wrong = reader.final(item, label, gap) / (gap * world.horizon)
    uniform = (world.n_arms - 1) / world.n_arms
    numbers = f"{label}: {wrong.mean():.0%} of rounds wrong, uniform play {uniform:.0%}"
    return MeasuredStatement(item, numbers, wrong - _DULL * uniform)


CLAIMS = (
    Claim(
        "gap-less-affected",
        "section 7.1, Impact of the gap, sentence 4",
        "The gap affects CUSUM and SW-TS less than D-UCB and DS-TS.",
        "In each of Figures 4(a)-(d) the standard deviation over the gaps of mean regret is smaller for each of the "
        "first two than for each of the last two.",
        "'Affected' is how far the curve over the gaps is from flat; intervals from jackknife pseudo-values.",
        FIG4,
        in_all(FIG4, lambda r, item: every(
            [_steadier(r, item, a, b) for a in ("cusum-ucb", "sw-ts") for b in ("d-ucb", "ds-ts")])),
    ),
    Claim(
        "gap-order-of-bounds",
        "section 7.1, Impact of the gap, sentences 5 to 8",
        "How much the gap matters follows the bounds of Table 1: CUSUM least, then SW-TS, then D-UCB and DS-TS.",
        "In Figures 4(a)-(d) the standard deviation over the gaps rises from CUSUM to SW-TS to D-UCB and to DS-TS.",
        "If the bounds are the reason, the measured order is theirs: no power of the gap beside sqrt(T), one, two.",
        FIG4,
        in_all(FIG4, lambda r, item: every(
            [_steadier(r, item, "cusum-ucb", "sw-ts"), *(_steadier(r, item, "sw-ts", b) for b in ("d-ucb", "ds-ts"))])),
    ),
    *(
        Claim(
            f"gap-rises-then-falls-{label}",
            "section 7.1, Impact of the gap, sentence 9",
            f"{name}'s regret is small for small gaps, rises with the gap, then falls or levels off.",
            "In Figures 4(a)-(d): below average at the smallest gap; rising over the first third of the gaps; over the "
            "last third rising at most a tenth as fast.",
            "Slopes are those of straight lines fitted to a third of the gaps; a tenth counts as level.",
            FIG4, in_all(FIG4, lambda r, item, label=label: _rises_then_not(r, item, label)),  # type: ignore[misc]
        )
        for label, name in (("d-ucb", "D-UCB"), ("ds-ts", "DS-TS"))
    ),
    Claim(
        "gap-blind",
        "section 7.1, Impact of the gap, sentence 10",
        "At very small gaps D-UCB and DS-TS cannot tell the arms apart; it only costs little.",
        f"In Figures 4(a)-(d), at the smallest gap, both play wrong arms at least {_DULL:.0%} as often as uniform "
        "play.",
        "All gaps being equal, regret divided by the gap is the number of wrong choices.",
        FIG4, in_all(FIG4, lambda r, item: every([_blind(r, item, label) for label in ("d-ucb", "ds-ts")])),
    ),
)  # fmt: skip

UNSETTLED: tuple[Unsettled, ...] = ()
