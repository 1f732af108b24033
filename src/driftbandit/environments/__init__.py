"""What the world does: abrupt, smooth and given means, and the laws rewards are drawn from."""

from driftbandit.environments.abrupt import Abrupt, AbruptGap, AbruptLimited, PhaseTable
from driftbandit.environments.finite import AbruptFinite
from driftbandit.environments.phased import Phased, from_means, phased
from driftbandit.environments.rewards import Bernoulli, BetaLaw, Constant, Gaussian, TruncatedGaussian
from driftbandit.environments.smooth import Smooth

__all__ = [
    "Abrupt",
    "AbruptFinite",
    "AbruptGap",
    "AbruptLimited",
    "Bernoulli",
    "BetaLaw",
    "Constant",
    "Gaussian",
    "PhaseTable",
    "Phased",
    "Smooth",
    "TruncatedGaussian",
    "from_means",
    "phased",
]
