"""What to play: every policy in the paper, and its relatives. `driftbandit list policies` shows them.

A class is loaded when it is first asked for, so that a program pays for the policy it names alone. Written by
`make format` from the modules of this folder.

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
    from driftbandit.policies.cts import GlobalCTS
    from driftbandit.policies.cusum_ucb import CusumUCB
    from driftbandit.policies.delayed import Delayed
    from driftbandit.policies.discounted_ts import DiscountedTS
    from driftbandit.policies.drift_ts import DriftTS
    from driftbandit.policies.exp3 import EXP3S, REXP3
    from driftbandit.policies.glr_klucb import GLRKLUCB
    from driftbandit.policies.kl_ucb import KLUCB, DiscountedKLUCB, SlidingKLUCB
    from driftbandit.policies.lb_sda import LBSDA
    from driftbandit.policies.m_ucb import MonitoredUCB
    from driftbandit.policies.meta import Meta
    from driftbandit.policies.per_arm_cts import PerArmCTS
    from driftbandit.policies.restart import PeriodicRestart
    from driftbandit.policies.sliding_lb_sda import SlidingLBSDA
    from driftbandit.policies.ucb import DiscountedUCB, SlidingUCB
    from driftbandit.policies.unimodal import SlidingOSUB

_MODULES = {
    "AdSwitch": "driftbandit.policies.adswitch",
    "BetaTS": "driftbandit.policies.beta_ts",
    "CusumUCB": "driftbandit.policies.cusum_ucb",
    "Delayed": "driftbandit.policies.delayed",
    "DiscountedBetaTS": "driftbandit.policies.beta_ts",
    "DiscountedKLUCB": "driftbandit.policies.kl_ucb",
    "DiscountedTS": "driftbandit.policies.discounted_ts",
    "DiscountedUCB": "driftbandit.policies.ucb",
    "DriftTS": "driftbandit.policies.drift_ts",
    "EXP3S": "driftbandit.policies.exp3",
    "EpsilonGreedy": "driftbandit.policies.baseline",
    "FixedArm": "driftbandit.policies.baseline",
    "GLRKLUCB": "driftbandit.policies.glr_klucb",
    "GlobalCTS": "driftbandit.policies.cts",
    "KLUCB": "driftbandit.policies.kl_ucb",
    "LBSDA": "driftbandit.policies.lb_sda",
    "Meta": "driftbandit.policies.meta",
    "MonitoredUCB": "driftbandit.policies.m_ucb",
    "Oracle": "driftbandit.policies.baseline",
    "PerArmCTS": "driftbandit.policies.per_arm_cts",
    "PeriodicRestart": "driftbandit.policies.restart",
    "REXP3": "driftbandit.policies.exp3",
    "SlidingKLUCB": "driftbandit.policies.kl_ucb",
    "SlidingLBSDA": "driftbandit.policies.sliding_lb_sda",
    "SlidingOSUB": "driftbandit.policies.unimodal",
    "SlidingTS": "driftbandit.policies.beta_ts",
    "SlidingUCB": "driftbandit.policies.ucb",
    "Uniform": "driftbandit.policies.baseline",
}
__all__ = [  # noqa: RUF022
    "AdSwitch",
    "BetaTS",
    "CusumUCB",
    "Delayed",
    "DiscountedBetaTS",
    "DiscountedKLUCB",
    "DiscountedTS",
    "DiscountedUCB",
    "DriftTS",
    "EXP3S",
    "EpsilonGreedy",
    "FixedArm",
    "GLRKLUCB",
    "GlobalCTS",
    "KLUCB",
    "LBSDA",
    "Meta",
    "MonitoredUCB",
    "Oracle",
    "PerArmCTS",
    "PeriodicRestart",
    "REXP3",
    "SlidingKLUCB",
    "SlidingLBSDA",
    "SlidingOSUB",
    "SlidingTS",
    "SlidingUCB",
    "Uniform",
]
if not TYPE_CHECKING:  # a type checker knows the names above and no others, so that it finds a misspelt one

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return getattr(import_module(_MODULES[name]), name)
        if name.startswith("_"):
            raise AttributeError(name)
        from driftbandit.checks import nearest

        hint = nearest(name, _MODULES) or "."
        raise AttributeError(f"There is no policy {name!r}{hint} `driftbandit list policies` shows all.")


def __dir__() -> list[str]:
    return list(__all__)
