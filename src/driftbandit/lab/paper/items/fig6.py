"""Figure 6: smooth worlds. The policies that look for abrupt changes do not take part."""

from driftbandit.environments import Smooth
from driftbandit.lab.paper.items.curves import RegretCurves
from driftbandit.lab.paper.items.item import SIX

_SETTINGS = {"a": (5, 10_000, 1e-3), "b": (5, 10_000, 1e-4), "c": (5, 100_000, 1e-4), "d": (10, 100_000, 1e-4)}
ITEMS = tuple(
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
