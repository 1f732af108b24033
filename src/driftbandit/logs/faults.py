"""What is wrong with a log, gathered with row numbers and said at the end of the reading, all kinds at once."""

from typing import NamedTuple

import numpy as np

_SHOWN = 6  # kinds of fault told in one message; the others are counted


class Fault(NamedTuple):
    """One kind of fault: what is wrong, in how many rows, and in which first."""

    what: str  # "reward is NaN"
    cure: str  # what to do about it
    row: int  # the first such row, counted from 1 without the head; 0 if the fault is in no row
    rows: int = 1  # how many

    def __str__(self) -> str:
        where = f"Row {self.row}: " if self.row else ""
        more = f" (and {self.rows - 1} more such row{'s' if self.rows > 2 else ''})" if self.rows > 1 else ""
        sentence = f"{where}{self.what}{more}. {self.cure}".strip()
        return sentence[0].upper() + sentence[1:] if sentence.split()[0].isalpha() else sentence


class LogError(ValueError):
    """A log that cannot be used; `faults` holds every kind of fault with the first row it was met in."""

    def __init__(self, faults: list[Fault], name: str = "") -> None:
        self.faults = sorted(faults, key=lambda fault: fault.row)
        lines = [str(fault) for fault in self.faults[:_SHOWN]]
        if len(self.faults) > _SHOWN:
            lines.append(f"And {len(self.faults) - _SHOWN} more kinds of fault.")
        super().__init__((f"{name}: " if name else "") + "\n".join(lines))


class Faults:
    """A list of faults in the making: one entry per kind, however many rows have it, so a log with ten million bad rows
    takes no more room than a log with one."""

    LIMIT = 50  # kinds; a file that is not a log at all may have one in each row

    def __init__(self) -> None:
        self._kinds: dict[str, Fault] = {}

    def add(self, what: str, cure: str, rows: "int | np.ndarray" = 0, kind: str = "") -> None:
        """Note a fault in one row or in an array of rows; `kind` groups faults whose words differ from row to row."""
        several = np.atleast_1d(rows)
        if not len(several):
            return
        kind = kind or what
        held = self._kinds.get(kind)
        if held is not None:
            self._kinds[kind] = held._replace(rows=held.rows + len(several))
        elif len(self._kinds) < self.LIMIT:
            self._kinds[kind] = Fault(what, cure, int(several[0]), len(several))

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def raise_if_any(self, name: str = "") -> None:
        """Refuse the log, if anything was wrong with it."""
        if self._kinds:
            raise LogError(list(self._kinds.values()), name)


def refuse(what: str, cure: str, row: int = 0) -> LogError:
    """A single fault, to be raised at once."""
    return LogError([Fault(what, cure, row)])
