"""Figure 2: the means of one abrupt world."""

from driftbandit.environments import Abrupt
from driftbandit.lab.paper.items.means import Means

ITEMS = (
    Means(
        id="fig2",
        title="Figure 2: means of an abrupt world, K = 5, B_T = 10",
        place="Figure 2",
        shows="The world of Figure 3(a): five means, redrawn in each of ten phases.",
        world=Abrupt(n_arms=5, horizon=100_000, phases=10, world="authors"),
    ),
)
