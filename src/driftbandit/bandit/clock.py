"""The clock of a bandit."""

import warnings
from collections.abc import Callable

from driftbandit.bandit.records import system_time
from driftbandit.spec.half_life import SECOND


class Clock:
    """The clock of a bandit, which never goes back: integer microseconds since 1970. Where the source has been set
    back, the latest time seen so far; a warning is given each time it happens."""

    REPORTED = SECOND  # smaller steps back give no warning

    def __init__(self, source: Callable[[], int] | None = None) -> None:
        self.source = source or system_time
        self.last = 0
        self.set_back = 0  # by how much the source is behind the latest time
        self.ahead = 0  # added to the source, after it was once far ahead: `Bandit.resume_clock`

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
                f"The clock was set back by {behind / SECOND:.1f} s; times stay the same until it has caught up. "
                "`driftbandit live clock JOURNAL BANDIT` lets them advance at once.",
                RuntimeWarning,
                stacklevel=3,
            )
        return self.last

    def behind(self) -> int:
        """By how much the source is behind the latest time."""
        return max(0, self.last - self.source() - self.ahead)

    def at_least(self, microseconds: int) -> None:
        """Never return a time before this one, which is in the journal."""
        self.last = max(self.last, microseconds)
