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

_MODULES = {
    "AdSwitch": "adswitch",
    "BetaTS": "beta_ts",
    "CusumLinUCB": "linear.linear_recent",
    "CusumUCB": "detecting_ucb",
    "Delayed": "wrappers",
    "DiscountedBetaTS": "beta_ts",
    "DiscountedGaussianTS": "gaussian_ts",
    "DiscountedKLUCB": "kl_ucb",
    "DiscountedLinTS": "linear.linear_ts",
    "DiscountedLinUCB": "linear.linear_ucb",
    "DiscountedLogisticTS": "linear.linear_ts",
    "DiscountedRandLinUCB": "linear.linear_ucb",
    "DiscountedTS": "discounted_ts",
    "DiscountedUCB": "ucb",
    "DriftAuto": "drift.drift_auto",
    "DriftLinTS": "drift.drift_lin_ts",
    "DriftTS": "drift.drift_ts",
    "EXP3S": "exp3",
    "EpsilonGreedy": "baseline",
    "FixedArm": "baseline",
    "GLRKLUCB": "glr_klucb",
    "GlobalCTS": "cts",
    "KLUCB": "kl_ucb",
    "KalmanTS": "linear.linear_ts",
    "LBSDA": "lb_sda",
    "LinTS": "linear.linear_ts",
    "LinUCB": "linear.linear_ucb",
    "MonitoredUCB": "detecting_ucb",
    "Oracle": "baseline",
    "PerArmCTS": "cts",
    "PeriodicRestart": "wrappers",
    "REXP3": "exp3",
    "RestartLinUCB": "linear.linear_recent",
    "SlidingGaussianTS": "gaussian_ts",
    "SlidingKLUCB": "kl_ucb",
    "SlidingLBSDA": "lb_sda",
    "SlidingLinUCB": "linear.linear_recent",
    "SlidingOSUB": "unimodal",
    "SlidingTS": "beta_ts",
    "SlidingUCB": "ucb",
    "StableLinTS": "linear.linear_ts",
    "Uniform": "baseline",
    "WeightedLinUCB": "linear.linear_ucb",
}
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
