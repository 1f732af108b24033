"""Every policy that can play live, with parameters under which much happens within a few hundred rounds."""

from typing import Any

from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.spec.parse import policies
from naive.plays import PARAMETERS

_MORE: dict[str, dict[str, Any]] = {
    "BetaTS": {"binarise": True},
    "LBSDA": {"capacity": 300},
    "PeriodicRestart": {"base": DiscountedTS(gamma=0.97), "period": 90},
}
LIVE = sorted(name for name, cls in policies().items() if not hasattr(cls, "with_environment"))


def make(name: str) -> Any:
    return policies()[name](**_MORE.get(name, PARAMETERS.get(name, {})))
