"""How rewards are reported: how long after their decisions, in which order, and whether failures are among them.

Counted while events are folded, so that a report reads no rows, and every process counts the same."""

from typing import Any, NamedTuple

from driftbandit.half_life import SECOND
from driftbandit.live.records import DEFAULT, LATE, Config, Event

_ENOUGH = 100  # rewards before anything is said about their delays
_DECISIONS, _REWARDS = 300, 20  # at least so many before reporting is judged
_NEARLY_ALL, _MANY = 0.98, 0.5  # shares: of rewards that are the highest, of decisions without a reward
_RECENT = 4096  # rewards by which their order is judged
_FEW_RUNS, _BACKWARD = 0.2, 0.8
_UNITS = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))


class DelayQuantiles(NamedTuple):
    """Times within which these shares of all rewards have arrived, in microseconds."""

    p50: int
    p90: int
    p99: int

    def __str__(self) -> str:
        return f"90% of rewards arrive within {about(self.p90)}, 99% within {about(self.p99)}"


class Reported:
    """Counts over a bandit's rewards."""

    def __init__(self) -> None:
        self.rewards = 0
        self.highest = 0.0
        self.at_highest = 0  # rewards of that value
        self._delays: dict[int, int] = {}  # rewards by their delay, in buckets of at most 1/8 of it
        # Of the recent rewards: the highest and the lower ones, stretches of either, and how often a lower one follows
        # a highest one, and belongs to an earlier decision.
        self._order = [0, 0, 0, 0, 0]
        self._last = [0, 0]  # whether the last reward was a highest one, and when it was decided

    def add(self, event: Event) -> None:
        """Count an outcome; a default was not reported."""
        if event.kind == DEFAULT:
            return
        place = _bucket(max(0, event.at - event.decided))
        self._delays[place] = self._delays.get(place, 0) + 1
        if event.kind == LATE:
            return
        if self.rewards == 0 or event.value > self.highest:
            self.highest, self.at_highest, self._order = event.value, 0, [0] * 5
        self.rewards += 1
        top = int(event.value == self.highest)
        self.at_highest += top
        order, (before, decided) = self._order, self._last
        order[1 - top] += 1
        order[2] += top != before or order[2] == 0
        if before and not top:
            order[3] += 1
            order[4] += event.decided <= decided
        self._last = [top, event.decided]
        if order[0] + order[1] >= 2 * _RECENT:
            self._order = [count // 2 for count in order]

    @property
    def delays(self) -> DelayQuantiles | None:
        """Quantiles of the delays; None while there are few rewards."""
        total = sum(self._delays.values())
        if total < _ENOUGH:
            return None
        out: list[int] = []
        seen, shares = 0, (0.5, 0.9, 0.99)
        for place in sorted(self._delays):
            seen += self._delays[place]
            while len(out) < 3 and seen >= shares[len(out)] * total:
                out.append(_edge(place))
        return DelayQuantiles(*out)

    def one_sided(self, decisions: int) -> bool:
        """Whether it looks as if only successes were reported: many decisions have no reward, and nearly all rewards
        are the highest seen."""
        return (
            decisions >= _DECISIONS
            and self.rewards >= _REWARDS
            and self.rewards <= (1.0 - _MANY) * decisions
            and self.at_highest >= _NEARLY_ALL * self.rewards
        )

    @property
    def out_of_order(self) -> bool:
        """Whether successes come before the failures of the same time: there are far fewer stretches of either than in
        a random order, and most failures that follow a success were decided before it."""
        top, lower, runs, falls, back = self._order
        if min(top, lower) < _REWARDS or falls < 3:
            return False
        expected = 2.0 * top * lower / (top + lower) + 1.0
        return runs < _FEW_RUNS * expected and back >= _BACKWARD * falls

    def plain(self) -> list[Any]:
        """As a snapshot keeps it."""
        delays = [list(pair) for pair in sorted(self._delays.items())]
        return [self.rewards, self.highest, self.at_highest, delays, self._order, self._last]

    @classmethod
    def read(cls, data: Any) -> "Reported":
        """The inverse of `plain`."""
        out = cls()
        rewards, highest, at_highest, delays, order, last = data
        out.rewards, out.highest, out.at_highest = int(rewards), float(highest), int(at_highest)
        out._delays = {int(place): int(count) for place, count in delays}
        out._order, out._last = [int(count) for count in order], [int(value) for value in last]
        if len(out._order) != 5 or len(out._last) != 2:
            raise ValueError
        return out


def warnings(config: Config, reported: Reported, decisions: int) -> list[str]:
    """What about the reporting of rewards is likely to mislead a policy, and what to do about it."""
    out = []
    if config.wait is None and reported.one_sided(decisions):
        delays = reported.delays
        wait = "1 h" if delays is None else about(max(SECOND, delays.p99))
        out.append(
            f"{reported.at_highest:,} of {reported.rewards:,} rewards are {reported.highest:g}, the highest seen, and "
            f"{decisions - reported.rewards:,} of {decisions:,} decisions have none. If only successes are reported, "
            f'set wait and default, for example change(wait="{wait}", default={config.reward_range[0]:g}).'
        )
    if not config.holds and reported.out_of_order:
        out.append(
            "Successes are reported before the failures of the same time, which looks like a change to a policy. "
            "Report rewards in the order of their decisions, in one reward_many call, or set wait."
        )
    return out


def about(microseconds: int) -> str:
    """A duration to two digits, as `duration` reads it: "41 min"."""
    seconds = microseconds / SECOND
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}"
    return f"{microseconds} us"


def _bucket(microseconds: int) -> int:
    shift = max(0, microseconds.bit_length() - 4)
    return 8 * shift + (microseconds >> shift)


def _edge(bucket: int) -> int:
    """The longest delay of a bucket."""
    shift = max(0, bucket // 8 - 1)
    return ((bucket - 8 * shift + 1) << shift) - 1
