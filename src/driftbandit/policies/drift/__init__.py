"""Policies with nothing to tune: DriftTS for successes and failures, DriftLinTS for any rewards, DriftAuto for both."""

from driftbandit.policies.drift.drift_auto import DriftAuto
from driftbandit.policies.drift.drift_lin_ts import DriftLinTS
from driftbandit.policies.drift.drift_ts import DriftTS

__all__ = ["DriftAuto", "DriftLinTS", "DriftTS"]
