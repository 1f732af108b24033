"""Events put down on disk, for a log too long for memory that cannot be read twice alike: a journal goes on growing
between two readings, and recomputes its chances in each."""

import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from driftbandit.logs.events import Events

_NONE = np.zeros((0, 0), np.uint8)  # stands for: all arms were available


class Spool:
    """A file without a name that is gone with its owner; as often as asked, it gives the pieces back in order."""

    def __init__(self, pieces: Iterable[Events] = ()) -> None:
        self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the log
        self._pieces = 0
        for events in pieces:
            self.add(events)

    def add(self, events: Events) -> None:
        """Put a piece down after the others."""
        self._file.seek(0, 2)
        allowed = _NONE if events.allowed is None else np.packbits(events.allowed, axis=1)
        width = 0 if events.allowed is None else events.allowed.shape[1]
        for column in (*events[:6], allowed, np.array(width)):
            np.save(self._file, column, allow_pickle=False)
        self._pieces += 1

    def __iter__(self) -> Iterator[Events]:
        place = 0
        for _ in range(self._pieces):
            self._file.seek(place)  # another reader may have moved on in between
            *columns, packed, width = (np.load(self._file, allow_pickle=False) for _ in range(8))
            place = self._file.tell()
            allowed = np.unpackbits(packed, axis=1, count=int(width)).astype(bool) if width else None
            yield Events._make([*columns, allowed])
