"""Environments: means that change abruptly, smoothly or in other ways, and the laws of the rewards."""

from driftbandit.environments.abrupt import Abrupt, AbruptFinite, AbruptGap, AbruptLimited, PhaseTable
from driftbandit.environments.further import Bursts, CommonShift, Local, Mixed, Rare, Rising, Seasonal, Trap
from driftbandit.environments.linear import Linear
from driftbandit.environments.phased import Phased, from_means, phased
from driftbandit.environments.rewards import Bernoulli, BetaLaw, Constant, Gaussian, TruncatedGaussian
from driftbandit.environments.smooth import Smooth

__all__ = [
    "Abrupt", "AbruptFinite", "AbruptGap", "AbruptLimited", "Bernoulli", "BetaLaw", "Bursts", "CommonShift",
    "Constant", "Gaussian", "Linear", "Local", "Mixed", "PhaseTable", "Phased", "Rare", "Rising", "Seasonal",
    "Smooth", "Trap", "TruncatedGaussian", "from_means", "phased",
]  # fmt: skip
