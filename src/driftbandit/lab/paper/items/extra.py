"""What the paper announces and does not show: other numbers of phases, smooth worlds of many arms, rewards from a
finite support."""

from driftbandit.environments import Abrupt, AbruptFinite, Smooth
from driftbandit.lab.paper.items.curves import RegretCurves
from driftbandit.lab.paper.items.item import EIGHT, SIX

_ARMS = (5, 10, 20, 30)
ITEMS = (
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
