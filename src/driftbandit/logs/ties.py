"""Rows of equal time: put in an order by chance, and tested for an order that tells.

A file is often sorted by something that is known only afterwards: departures by when they really left, answers by when
they came. Within a minute the first row is then a good one and the last a bad one, and whoever learns row by row reads
the future. So rows of equal time are shuffled, always the same way."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from driftbandit.draws import mix
from driftbandit.primitives import stride


def in_order(pieces: Iterable[Any], seed: int) -> Iterator[Any]:
    """The events with ties shuffled. A group of ties that reaches a piece's end waits for the next piece."""
    held: Any = None
    for events in pieces:
        if held is not None:
            events = held.joined(events)
        if not events.n:
            continue
        last = int(np.searchsorted(events.time, events.time[-1], side="left"))
        held = events.take(slice(last, None))
        if last:
            yield shuffled(events.take(slice(0, last)), seed)
    if held is not None:
        yield shuffled(held, seed)


def shuffled(events: Any, seed: int) -> Any:
    """The events in order of time, those of equal time by a hash of their row and the seed."""
    if events.n < 2 or not (np.diff(events.time) == 0).any():
        return events
    chance = mix(np.asarray(events.row, np.uint64) * stride(1) + stride(seed + 1))
    return events.take(np.lexsort((chance, events.time)))


class CopyTest:
    """Are rows written twice? Two to four rows of equal time that agree in everything are copies, unless rows of
    different times agree as often: copies would pass for evidence that was never there."""

    _SURE = 4.4  # standard deviations, one log in 100,000 by chance
    _FEW = 0.01  # of the rows: fewer do no harm

    def __init__(self) -> None:
        self.rows = self.groups = self.alike = self.copies = 0
        self.pairs = self.agree = 0  # rows of successive times, and those that agree in all else

    def take(self, events: Any) -> None:
        """Take in rows in file order; times do not go back."""
        self.rows += events.n
        starts = np.flatnonzero(np.append(True, np.diff(events.time) != 0))
        sizes = np.diff(np.append(starts, events.n))
        some = (sizes > 1) & (sizes <= 4)
        if not some.any():
            return
        first = np.repeat(starts, sizes)
        columns = [events.arm, events.reward, np.nan_to_num(events.propensity), events.known]
        same = np.logical_and.reduce([column == column[first] for column in columns])
        whole = np.logical_and.reduceat(same, starts) & some
        self.groups += int(some.sum())
        self.alike += int(whole.sum())
        self.copies += int((sizes[whole] - 1).sum())
        self.pairs += len(starts) - 1
        heads = [column[starts] for column in columns[:3]]
        self.agree += int(np.logical_and.reduce([column[1:] == column[:-1] for column in heads]).sum())

    def warning(self) -> str:
        """A sentence, if rows are copies."""
        if self.copies < self._FEW * self.rows or not self.groups:
            return ""
        usual = (self.agree + 1.0) / (self.pairs + 2.0)
        share = self.alike / self.groups
        error = (usual * (1.0 - usual) * (1.0 / self.groups + 1.0 / (self.pairs + 2.0))) ** 0.5
        if share < 0.5 * (1.0 + usual) or share - usual < self._SURE * error:
            return ""
        return (
            f"{self.copies:,} of {self.rows:,} rows are copies of another row (same time, arm and reward): was the log "
            "written twice? Copies pass for evidence that was never there; leave them out."
        )


class OrderTest:
    """Do the rewards of rows of equal time fall or rise with their place in the file? A permutation test: under no
    order, each group's sum of place times reward has a known mean and variance, and the groups add up."""

    def __init__(self) -> None:
        self.sum = self.variance = 0.0
        self.groups = self.rows = 0
        self.first = [0.0, 0]  # sum and number of the first rewards of groups of three or more
        self.last = [0.0, 0]

    def take(self, time: np.ndarray, reward: np.ndarray) -> None:
        """Take in rows in file order; `time` does not go back."""
        if len(time) < 2:
            return
        starts = np.flatnonzero(np.append(True, np.diff(time) != 0))
        sizes = np.diff(np.append(starts, len(time)))
        many = sizes > 1
        if not many.any():
            return
        group = np.repeat(np.arange(len(starts)), sizes)
        place = np.arange(len(time)) - starts[group]
        centred = place - (sizes[group] - 1) / 2.0
        mean = np.bincount(group, reward) / sizes
        deviation = reward - mean[group]
        spread = np.bincount(group, centred * centred)
        noise = np.bincount(group, deviation * deviation)
        self.sum += float((centred * deviation).sum())
        self.variance += float((spread[many] * noise[many] / (sizes[many] - 1)).sum())
        self.groups += int(many.sum())
        self.rows += int(sizes[many].sum())
        longer = sizes > 2
        self.first[0] += float(reward[starts[longer]].sum())
        self.last[0] += float(reward[(starts + sizes - 1)[longer]].sum())
        self.first[1] += int(longer.sum())
        self.last[1] += int(longer.sum())

    @property
    def z(self) -> float:
        """How many standard deviations the order is from none; above 0 if later rows earn more."""
        return self.sum / self.variance**0.5 if self.variance > 0.0 else 0.0

    def warning(self) -> str:
        """A sentence, if the order tells; 4.4 standard deviations are met by chance in one log of 100,000."""
        if abs(self.z) < 4.4:
            return ""
        ends = ""
        if self.first[1]:
            ends = f": the first earns {self.first[0] / self.first[1]:.2f}, the last {self.last[0] / self.last[1]:.2f}"
        return (
            f"{self.rows} rows share their time with others and stand in an order that tells their reward{ends}. "
            "They were shuffled; is the file sorted by something known only afterwards?"
        )
