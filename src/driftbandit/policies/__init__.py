"""Every policy in the paper, and related ones. `driftbandit list policies` shows them.

A class is loaded when it is first used, so that a program loads only the policies it names. Written by `make format`
from the modules of this folder.

>>> from driftbandit.policies import SlidingTS
>>> SlidingTS(window=678).window
678
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftbandit.policies.adswitch import AdSwitch
    from driftbandit.policies.baseline import EpsilonGreedy, FixedArm, Oracle, Uniform
    from driftbandit.policies.beta_ts import BetaTS, DiscountedBetaTS, SlidingTS
    from driftbandit.policies.cts import GlobalCTS, PerArmCTS
    from driftbandit.policies.detecting_ucb import CusumUCB, MonitoredUCB
    from driftbandit.policies.discounted_ts import DiscountedTS
    from driftbandit.policies.drift.drift_auto import DriftAuto
    from driftbandit.policies.drift.drift_lin_ts import DriftLinTS
    from driftbandit.policies.drift.drift_ts import DriftTS
    from driftbandit.policies.exp3 import EXP3S, REXP3
    from driftbandit.policies.gaussian_ts import DiscountedGaussianTS, SlidingGaussianTS
    from driftbandit.policies.glr_klucb import GLRKLUCB
    from driftbandit.policies.kl_ucb import KLUCB, DiscountedKLUCB, SlidingKLUCB
    from driftbandit.policies.lb_sda import LBSDA, SlidingLBSDA
    from driftbandit.policies.linear.linear_recent import CusumLinUCB, RestartLinUCB, SlidingLinUCB
    from driftbandit.policies.linear.linear_ts import (
        DiscountedLinTS,
        DiscountedLogisticTS,
        KalmanTS,
        LinTS,
        StableLinTS,
    )
    from driftbandit.policies.linear.linear_ucb import DiscountedLinUCB, DiscountedRandLinUCB, LinUCB, WeightedLinUCB
    from driftbandit.policies.ucb import DiscountedUCB, SlidingUCB
    from driftbandit.policies.unimodal import SlidingOSUB
    from driftbandit.policies.wrappers import Delayed, PeriodicRestart

_NAMES = {
    "adswitch": "AdSwitch",
    "baseline": "EpsilonGreedy FixedArm Oracle Uniform",
    "beta_ts": "BetaTS DiscountedBetaTS SlidingTS",
    "cts": "GlobalCTS PerArmCTS",
    "detecting_ucb": "CusumUCB MonitoredUCB",
    "discounted_ts": "DiscountedTS",
    "drift.drift_auto": "DriftAuto",
    "drift.drift_lin_ts": "DriftLinTS",
    "drift.drift_ts": "DriftTS",
    "exp3": "EXP3S REXP3",
    "gaussian_ts": "DiscountedGaussianTS SlidingGaussianTS",
    "glr_klucb": "GLRKLUCB",
    "kl_ucb": "DiscountedKLUCB KLUCB SlidingKLUCB",
    "lb_sda": "LBSDA SlidingLBSDA",
    "linear.linear_recent": "CusumLinUCB RestartLinUCB SlidingLinUCB",
    "linear.linear_ts": "DiscountedLinTS DiscountedLogisticTS KalmanTS LinTS StableLinTS",
    "linear.linear_ucb": "DiscountedLinUCB DiscountedRandLinUCB LinUCB WeightedLinUCB",
    "ucb": "DiscountedUCB SlidingUCB",
    "unimodal": "SlidingOSUB",
    "wrappers": "Delayed PeriodicRestart",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = [  # noqa: RUF022
    "AdSwitch", "BetaTS", "CusumLinUCB", "CusumUCB", "Delayed", "DiscountedBetaTS", "DiscountedGaussianTS",
    "DiscountedKLUCB", "DiscountedLinTS", "DiscountedLinUCB", "DiscountedLogisticTS", "DiscountedRandLinUCB",
    "DiscountedTS", "DiscountedUCB", "DriftAuto", "DriftLinTS", "DriftTS", "EXP3S", "EpsilonGreedy", "FixedArm",
    "GLRKLUCB", "GlobalCTS", "KLUCB", "KalmanTS", "LBSDA", "LinTS", "LinUCB", "MonitoredUCB", "Oracle", "PerArmCTS",
    "PeriodicRestart", "REXP3", "RestartLinUCB", "SlidingGaussianTS", "SlidingKLUCB", "SlidingLBSDA", "SlidingLinUCB",
    "SlidingOSUB", "SlidingTS", "SlidingUCB", "StableLinTS", "Uniform", "WeightedLinUCB"
]  # fmt: skip
if not TYPE_CHECKING:  # a type checker uses the imports above, so that it finds a misspelt name

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        if name.startswith("_"):
            raise AttributeError(name)
        from driftbandit.core.checks import nearest

        hint = nearest(name, _MODULES) or "."
        raise AttributeError(f"There is no policy {name!r}{hint} `driftbandit list policies` shows all.")


def __dir__() -> list[str]:
    return list(__all__)
