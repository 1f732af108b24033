"""Figure 7: worlds whose means stay low, with and without telling DS-TS how low."""

from driftbandit.environments import AbruptLimited, Smooth
from driftbandit.lab.paper.items.curves import RegretCurves
from driftbandit.lab.paper.items.item import EIGHT, KNOWN, SIX

ITEMS = (
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
