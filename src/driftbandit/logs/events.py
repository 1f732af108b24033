"""Decisions of a log as arrays: what every reader of a log is handed, some at a time."""

from typing import Any, NamedTuple

import numpy as np

from driftbandit.draws import mix
from driftbandit.primitives import stride


class Events(NamedTuple):
    """Some consecutive decisions of a log, in the order of their times."""

    time: Any  # seconds
    arm: Any  # the number of the arm in `Log.arms`
    reward: Any  # mapped to [0, 1]
    propensity: Any  # the chance with which the logger chose this arm
    known: Any  # when the reward was there to be learnt from; the time of the decision if the log does not say
    row: Any  # the row in the file, from 1
    allowed: Any = None  # events × arms: which were available; None if all were

    @property
    def n(self) -> int:
        """How many."""
        return len(self.time)

    def take(self, which: Any) -> "Events":
        """Some of the events."""
        return Events(*(None if field is None else field[which] for field in self))

    def joined(self, other: "Events") -> "Events":
        """These events and more."""
        allowed = self.allowed
        if allowed is not None or other.allowed is not None:
            width = max(each.allowed.shape[1] for each in (self, other) if each.allowed is not None)
            allowed = np.concatenate([each.widened(width) for each in (self, other)])
        both = (np.concatenate([mine, yours]) for mine, yours in zip(self[:6], other[:6], strict=True))
        return Events._make([*both, allowed])

    def widened(self, width: int) -> np.ndarray:
        """Which arms were available, with room for this many arms. While a log is read its last column stands for arms
        not met so far: they are available where nothing was said."""
        if self.allowed is None:
            return np.ones((self.n, width), bool)
        more = max(width - self.allowed.shape[1], 0)
        return np.pad(self.allowed, ((0, 0), (0, more)), mode="edge")


def half_of(row: Any, seed: int = 0) -> np.ndarray:
    """Which half of a log each row belongs to, 0 or 1: by a hash of its number, so that neither time nor order tells.
    What is chosen on one half is scored on the other."""
    hashed = mix(np.asarray(row, np.uint64) * stride(3) + stride(seed + 7))
    return np.asarray((hashed >> np.uint64(63)).astype(np.int64))
