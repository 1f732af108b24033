"""Slow, obvious twins of every policy, written from the specification alone, to hold the fast ones against.

`TWINS[name](n_arms, **parameters)` has the parameters of the policy class `name`; `choose(t, rng)` and
`learn(t, arm, reward)` as described in `draws.py`. A docstring says which random number decides what (its line
"Draws:") and settles everything a reader could do in two ways; twin and policy then choose the same arms.
"""

from .adaptive import NaiveAdSwitch, NaiveMeta
from .adversarial import NaiveEXP3S, NaiveREXP3
from .baseline import (
    NaiveEpsilonGreedy,
    NaiveFixedArm,
    NaiveOracle,
    NaiveOracleRestart,
    NaivePeriodicRestart,
    NaiveUniform,
)
from .changepoint import NaiveGlobalCTS, NaivePerArmCTS
from .detectors import NaiveCusumUCB, NaiveMonitoredUCB, NaivePHTUCB
from .duels import NaiveLBSDA, NaiveLBSDALM, NaiveSlidingLBSDA
from .gaussian import (
    NaiveDiscountedGaussianTS,
    NaiveGaussianTS,
    NaiveSlidingGaussianTS,
    NaiveSlidingPrecisionTS,
)
from .glr import NaiveGLRKLUCB
from .thompson import NaiveBetaTS, NaiveDiscountedBetaTS, NaiveDiscountedTS, NaiveSlidingTS
from .ucb import (
    NaiveDiscountedKLUCB,
    NaiveDiscountedUCB,
    NaiveKLUCB,
    NaiveSlidingKLUCB,
    NaiveSlidingUCB,
    NaiveUCB1,
)
from .unimodal import NaiveOSUB, NaiveSlidingOSUB

TWINS: dict[str, type] = {
    twin.__name__.removeprefix("Naive"): twin
    for twin in (
        NaiveAdSwitch,
        NaiveBetaTS,
        NaiveCusumUCB,
        NaiveDiscountedBetaTS,
        NaiveDiscountedGaussianTS,
        NaiveDiscountedKLUCB,
        NaiveDiscountedTS,
        NaiveDiscountedUCB,
        NaiveEXP3S,
        NaiveEpsilonGreedy,
        NaiveFixedArm,
        NaiveGLRKLUCB,
        NaiveGaussianTS,
        NaiveGlobalCTS,
        NaiveKLUCB,
        NaiveLBSDA,
        NaiveLBSDALM,
        NaiveMeta,
        NaiveMonitoredUCB,
        NaiveOSUB,
        NaiveOracle,
        NaiveOracleRestart,
        NaivePHTUCB,
        NaivePerArmCTS,
        NaivePeriodicRestart,
        NaiveREXP3,
        NaiveSlidingGaussianTS,
        NaiveSlidingKLUCB,
        NaiveSlidingLBSDA,
        NaiveSlidingOSUB,
        NaiveSlidingPrecisionTS,
        NaiveSlidingTS,
        NaiveSlidingUCB,
        NaiveUCB1,
        NaiveUniform,
    )
}
