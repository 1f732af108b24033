"""The clock of a live bandit, which never goes back.

Every time is a whole number of microseconds since 1970, by the store's clock."""

import time
import warnings
from collections.abc import Callable

from driftbandit.half_life import SECOND


class Clock:
    """Microseconds that never go back: the largest seen so far where the source has been set back, which is reported
    once for each time it happens."""

    REPORTED = SECOND  # a source may waver by less than this without a word

    def __init__(self, source: Callable[[], int] | None = None) -> None:
        self.source = source or system_time
        self.last = 0
        self.set_back = 0  # by how much the source is behind what it once said
        self.ahead = 0  # added to the source, after it was far ahead once: `Changing.resume_clock`

    def now(self) -> int:
        """The time, at least that of the last call."""
        seen = self.source() + self.ahead
        if seen >= self.last:
            self.last = seen
            self.set_back = 0
            return seen
        behind = self.last - seen
        if behind > self.REPORTED and self.set_back == 0:
            self.set_back = behind
            warnings.warn(
                f"The clock was set back by {behind / SECOND:.1f} s; times stand still until it has caught up. "
                "`driftbandit live clock FILE_OR_URL NAME` lets them go on at once.",
                RuntimeWarning,
                stacklevel=3,
            )
        return self.last

    def behind(self) -> int:
        """By how much the source is behind the latest time."""
        return max(0, self.last - self.source() - self.ahead)

    def at_least(self, microseconds: int) -> None:
        """Never tell a time before this one, which the journal holds."""
        self.last = max(self.last, microseconds)


def system_time() -> int:
    """The system's clock."""
    return time.time_ns() // 1000
