"""Figure 3: abrupt worlds of 5, 10, 20 and 30 arms, ten phases."""

from driftbandit.environments import Abrupt
from driftbandit.lab.paper.items.curves import RegretCurves
from driftbandit.lab.paper.items.item import EIGHT

ITEMS = tuple(
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
