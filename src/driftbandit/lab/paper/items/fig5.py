"""Figure 5: the means of two smooth worlds."""

from driftbandit.environments import Smooth
from driftbandit.lab.paper.items.means import Means

ITEMS = tuple(
    Means(
        id=f"fig5{letter}",
        title=f"Figure 5({letter}): means of a smooth world, K = 5, T = 10\u2009000, σ = {sigma:g}",
        place=f"Figure 5({letter})",
        shows="A world in which the best arm wanders to and fro along a line of arms.",
        world=Smooth(n_arms=5, horizon=10_000, sigma=sigma, start=0),
    )
    for letter, sigma in (("a", 1e-3), ("b", 1e-4))
)
