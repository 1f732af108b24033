"""Outcomes that are not learned yet."""

import base64
from itertools import compress
from typing import Any

import numpy as np

from driftbandit.bandit.features import is_context
from driftbandit.bandit.records import REWARD, Event

_ROW = np.dtype(
    [("decided", "<i8"), ("tie", "<u8"), ("slot", "<i4"), ("how", "<i4"), ("value", "<f8"), ("probability", "<f8")]
)


class Waiting:
    """Outcomes that wait until their decision is old enough, 40 bytes each and a context, released in the order of the
    decisions."""

    def __init__(self) -> None:
        self._rows = np.empty(16, _ROW)
        self._count = 0
        self._contexts: list[str | None] = []

    def __len__(self) -> int:
        return self._count

    def add(self, event: Event, tie: int) -> None:
        """Hold an outcome back. `tie` orders the decisions of one moment; it must not depend on the outcome."""
        if self._count == len(self._rows):
            self._rows = np.resize(self._rows, 2 * self._count)
        probability = float("nan") if event.probability is None else event.probability
        self._rows[self._count] = (event.decided, tie, event.slot, event.how, event.value, probability)
        self._count += 1
        self._contexts.append(event.body)

    def release(self, until: int | None = None) -> list[Event]:
        """Take out the outcomes of decisions made by a time (None: all), in the order of the decisions."""
        rows = self._rows[: self._count]
        due = np.ones(len(rows), bool) if until is None else rows["decided"] <= until
        if not due.any():
            return []
        out, kept = rows[due], rows[~due]
        contexts = list(compress(self._contexts, due))
        self._contexts = list(compress(self._contexts, ~due))
        self._count = len(kept)
        self._rows = np.empty(max(16, 2 * len(kept)), _ROW) if 4 * len(kept) < len(self._rows) else self._rows
        self._rows[: len(kept)] = kept
        order = np.lexsort((out["tie"], out["decided"])).tolist()
        rest = zip(out[order].tolist(), [contexts[place] for place in order], strict=True)
        return [
            Event(0, REWARD, 0, "", slot, how, value, decided, context, None if np.isnan(chance) else chance)
            for (decided, _, slot, how, value, chance), context in rest
        ]

    def plain(self) -> list[Any]:
        """As a snapshot keeps it."""
        contexts = self._contexts if any(self._contexts) else []
        return [base64.b64encode(self._rows[: self._count].tobytes()).decode(), contexts]

    @classmethod
    def read(cls, data: Any, n_arms: int) -> "Waiting":
        """The inverse of `plain`; a ValueError for anything it cannot have written."""
        text, contexts = data
        rows = np.frombuffer(base64.b64decode(text, validate=True), _ROW)
        slots, contexts = rows["slot"], contexts or [None] * len(rows)
        if len(contexts) != len(rows) or not all(context is None or is_context(context) for context in contexts):
            raise ValueError
        if not (np.isfinite(rows["value"]).all() and (slots >= 0).all() and (slots < n_arms).all()):
            raise ValueError
        out = cls()
        out._rows, out._count = np.resize(rows, max(16, len(rows))), len(rows)
        out._contexts = list(contexts)
        return out
