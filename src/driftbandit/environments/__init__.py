"""What the world does: abrupt, smooth and given means, worlds that change in other ways, and the laws that rewards are
drawn from."""

from driftbandit.environments.abrupt import Abrupt, AbruptGap, AbruptLimited, PhaseTable
from driftbandit.environments.bursts import Bursts
from driftbandit.environments.common import CommonShift
from driftbandit.environments.finite import AbruptFinite
from driftbandit.environments.local import Local
from driftbandit.environments.mixed import Mixed
from driftbandit.environments.phased import Phased, from_means, phased
from driftbandit.environments.rare import Rare
from driftbandit.environments.rewards import Bernoulli, BetaLaw, Constant, Gaussian, TruncatedGaussian
from driftbandit.environments.rising import Rising
from driftbandit.environments.seasonal import Seasonal
from driftbandit.environments.smooth import Smooth
from driftbandit.environments.trap import Trap

__all__ = [
    "Abrupt",
    "AbruptFinite",
    "AbruptGap",
    "AbruptLimited",
    "Bernoulli",
    "BetaLaw",
    "Bursts",
    "CommonShift",
    "Constant",
    "Gaussian",
    "Local",
    "Mixed",
    "PhaseTable",
    "Phased",
    "Rare",
    "Rising",
    "Seasonal",
    "Smooth",
    "Trap",
    "TruncatedGaussian",
    "from_means",
    "phased",
]
