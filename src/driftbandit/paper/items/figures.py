"""The figures that show regret over time or the means of an environment, and the experiments that the paper announces
and does not show."""

from driftbandit.environments import Abrupt, AbruptFinite, AbruptLimited, Smooth
from driftbandit.paper.items.curves import Means, RegretCurves
from driftbandit.paper.items.item import EIGHT, KNOWN, SIX

# The means of the environment of Figure 3(a).
FIGURE_2 = (
    Means(
        id="fig2",
        title="Figure 2: means of an abrupt world, K = 5, B_T = 10",
        place="Figure 2",
        shows="The world of Figure 3(a): five means, redrawn in each of ten phases.",
        world=Abrupt(n_arms=5, horizon=100_000, phases=10, world="authors"),
    ),
)

# Abrupt changes: 5, 10, 20 and 30 arms, ten phases.
FIGURE_3 = tuple(
    RegretCurves(
        id=f"fig3{letter}",
        title=f"Figure 3({letter}): abrupt changes, K = {arms}, B_T = 10",
        place=f"Figure 3({letter})",
        shows="How eight policies cope with means that are redrawn in each of ten phases.",
        world=Abrupt(n_arms=arms, horizon=100_000, phases=10, world="authors"),
        labels=EIGHT,
    )
    for letter, arms in zip("abcd", (5, 10, 20, 30), strict=True)
)

# The means of two environments that change smoothly.
FIGURE_5 = tuple(
    Means(
        id=f"fig5{letter}",
        title=f"Figure 5({letter}): means of a smooth world, K = 5, T = 10\u2009000, σ = {sigma:g}",
        place=f"Figure 5({letter})",
        shows="A world in which the best arm wanders to and fro along a line of arms.",
        world=Smooth(n_arms=5, horizon=10_000, sigma=sigma, start=0),
    )
    for letter, sigma in (("a", 1e-3), ("b", 1e-4))
)

# Smooth changes. The policies that look for abrupt changes do not take part.
_SETTINGS = {"a": (5, 10_000, 1e-3), "b": (5, 10_000, 1e-4), "c": (5, 100_000, 1e-4), "d": (10, 100_000, 1e-4)}
FIGURE_6 = tuple(
    RegretCurves(
        id=f"fig6{letter}",
        title=f"Figure 6({letter}): smooth changes, K = {arms}, T = {horizon:,}, σ = {sigma:g}".replace(
            ",0", "\u20090"
        ),
        place=f"Figure 6({letter})",
        shows="How six policies follow means that drift as a sine.",
        world=Smooth(n_arms=arms, horizon=horizon, sigma=sigma, start=0),  # the authors' code counts rounds from 0
        labels=SIX,
    )
    for letter, (arms, horizon, sigma) in _SETTINGS.items()
)

# Environments whose means stay low, with and without telling DS-TS the largest mean.
FIGURE_7 = (
    RegretCurves(
        id="fig7a",
        title="Figure 7(a): abrupt changes, no mean above 0.7, K = 10, B_T = 10",
        place="Figure 7(a)",
        shows="What low means cost, and what it is worth to DS-TS to know the largest.",
        world=AbruptLimited(n_arms=10, horizon=100_000, phases=10, world="authors"),
        labels=(*EIGHT, KNOWN),
        mu_max=0.7,
    ),
    RegretCurves(
        id="fig7b",
        title="Figure 7(b): smooth changes, no mean above 0.5, K = 5, T = 10\u2009000, σ = 0.001",
        place="Figure 7(b)",
        shows="The same in a smooth world whose means are scaled to at most one half.",
        world=Smooth(n_arms=5, horizon=10_000, sigma=1e-3, start=0, rescaled=True),
        labels=(*SIX, KNOWN),
        mu_max=0.5,
    ),
)

# What the paper announces and does not show: other numbers of phases, smooth environments with many arms, rewards from
# a finite support.
_ARMS = (5, 10, 20, 30)
ANNOUNCED = (
    *(
        RegretCurves(
            id=f"abrupt-b{phases}-k{arms}",
            title=f"Abrupt changes, K = {arms}, B_T = {phases} (announced, not shown)",
            place='Section "Abruptly Changing Settings", announced',
            shows=f"Figure 3 with {phases} phases instead of 10.",
            world=Abrupt(n_arms=arms, horizon=100_000, phases=phases, world="authors"),
            labels=EIGHT,
        )
        for phases in (5, 20)
        for arms in _ARMS
    ),
    *(
        RegretCurves(
            id=f"smooth-k{arms}",
            title=f"Smooth changes, K = {arms}, T = 100\u2009000, σ = 0.0001 (announced, not shown)",
            place='Section "Smoothly Changing Settings", announced',
            shows="Figure 6(c) and (d) with more arms.",
            world=Smooth(n_arms=arms, horizon=100_000, sigma=1e-4, start=0),
            labels=SIX,
        )
        for arms in (20, 30)
    ),
    *(
        RegretCurves(
            id=f"finite-k{arms}",
            title=f"Rewards from a finite support, K = {arms}, B_T = 10 (announced, not shown)",
            place='Section "Experiments", announced: "an arbitrarily generated bounded reward distribution"',
            shows="Figure 3 with rewards that take one of five amounts per arm, instead of 0 and 1.",
            world=AbruptFinite(n_arms=arms, horizon=100_000, phases=10, world="authors"),
            labels=EIGHT,
        )
        for arms in _ARMS
    ),
)
