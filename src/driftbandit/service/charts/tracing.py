"""A journal folded once more, from its beginning, with samples of what was believed on the way.

It fills the charts of a journal that was written without a service, and answers "what if I forgot faster?": the same
events, another policy or half-life."""

import time
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from driftbandit.half_life import SECOND
from driftbandit.live.fold import Fold
from driftbandit.live.opening import policy_maker, rereader
from driftbandit.live.records import CHANGE, Change
from driftbandit.service.charts.beliefs import Believed, alarms_of, believed

_STEP = 400  # events between two rests: requests are answered meanwhile
_REST = 0.004  # seconds


class Sample(NamedTuple):
    """What was believed at a time."""

    at: int
    belief: Believed
    alarms: int | None
    n: int


def sample(fold: Any, at: int) -> Sample:
    """What a fold believes, seen from a time."""
    state = fold.player.arrays(at)
    return Sample(at, believed(fold.player.policy, state, fold.config), alarms_of(state), fold.n)


class ChartTrace:
    """A fold that moves along a journal and samples at the end of every stretch of `width` in which something came."""

    def __init__(self, journal: Any, number: int, width: int, instead: tuple[str, int | None] | None = None,
                 most: int | None = None) -> None:  # fmt: skip
        self._journal, self._number = journal, number
        self._instead = instead
        self.fold = Fold(policy_maker(), rereader(journal, number))
        self.width, self.most = width, most
        self.samples: list[Sample] = []
        self._cursor: Any = None
        self._stretch: int | None = None

    def use(self, journal: Any) -> None:
        """Read from this journal from now on: each job opens one of its own."""
        self._journal = journal
        self.fold._reread = rereader(journal, self._number)

    def advance(
        self, until: Callable[[Fold], bool] = lambda fold: False, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Fold what has come since, with rests; until says when it is enough."""
        while not until(self.fold) and not stop():
            found = list(islice(self._journal.events(self._number, self._cursor, _STEP), _STEP))
            for cursor, event in found:
                stretch = event.at // self.width
                if self._stretch is not None and stretch > self._stretch and self.fold.config is not None:
                    self._take(self._stretch)
                self._stretch = stretch if self._stretch is None else max(stretch, self._stretch)
                self._cursor = cursor
                self._apply(event)
            if not found:
                return
            time.sleep(_REST)

    def _apply(self, event: Any) -> None:
        """As the journal has it, but with the other policy from the first event on."""
        if self._instead is not None and event.kind == CHANGE:
            change = Change.read(event.body)
            config = change.config._replace(policy=self._instead[0], half_life=self._instead[1])
            event = event._replace(body=change._replace(config=config).text())
        self.fold.apply([event])

    def _take(self, stretch: int) -> None:
        self.samples.append(sample(self.fold, (stretch + 1) * self.width))
        if self.most is not None and len(self.samples) > 2 * self.most:  # twice as wide, half as many
            self.width *= 2
            self.samples = self.samples[1::2]
            self._stretch = None if self._stretch is None else self._stretch // 2

    def now(self, at: int) -> list[Sample]:
        """All samples, and one of this moment."""
        return [*self.samples, sample(self.fold, at)] if self.fold.config is not None else list(self.samples)


SMALLEST = SECOND  # the width to begin with
