"""Outcomes that wait until their decision is old enough to be learned: 40 bytes each."""

import base64
from typing import Any

import numpy as np

from driftbandit.live.records import REWARD, Event

_ROW = np.dtype(
    [("decided", "<i8"), ("tie", "<u8"), ("slot", "<i4"), ("how", "<i4"), ("value", "<f8"), ("chance", "<f8")]
)


class Waiting:
    """A buffer in the order of the journal, released in the order of the decisions."""

    def __init__(self) -> None:
        self._rows = np.empty(16, _ROW)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, event: Event, tie: int) -> None:
        """Hold an outcome back. `tie` orders the decisions of one moment; it must not depend on the outcome."""
        if self._count == len(self._rows):
            self._rows = np.resize(self._rows, 2 * self._count)
        chance = float("nan") if event.chance is None else event.chance
        self._rows[self._count] = (event.decided, tie, event.slot, event.how, event.value, chance)
        self._count += 1

    def release(self, until: int | None = None) -> list[Event]:
        """Take out the outcomes of decisions made by a time (None: all), in the order of the decisions."""
        rows = self._rows[: self._count]
        due = np.ones(len(rows), bool) if until is None else rows["decided"] <= until
        if not due.any():
            return []
        out, kept = rows[due], rows[~due]
        self._count = len(kept)
        self._rows = np.empty(max(16, 2 * len(kept)), _ROW) if 4 * len(kept) < len(self._rows) else self._rows
        self._rows[: len(kept)] = kept
        out = out[np.lexsort((out["tie"], out["decided"]))]
        return [
            Event(0, REWARD, 0, "", slot, how, value, decided, None, None if chance != chance else chance)
            for decided, _, slot, how, value, chance in out.tolist()
        ]

    def text(self) -> str:
        """As a snapshot keeps it."""
        return base64.b64encode(self._rows[: self._count].tobytes()).decode()

    @classmethod
    def read(cls, text: Any, n_arms: int) -> "Waiting":
        """The inverse of `text`; a ValueError for what it cannot have written."""
        rows = np.frombuffer(base64.b64decode(text, validate=True), _ROW)
        slots = rows["slot"]
        if not (np.isfinite(rows["value"]).all() and (slots >= 0).all() and (slots < n_arms).all()):
            raise ValueError
        out = cls()
        out._rows, out._count = np.resize(rows, max(16, len(rows))), len(rows)
        return out
