"""Checks of whole numbers and rewards, suggestions for misspelt names, plurals, values as JSON holds them, tables."""

import difflib
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np


def whole(name: str, value: Any, least: int, error: type[Exception] = ValueError) -> int:
    """The value as an int if it is a whole number of at least `least`; True, False and 3.0 are not."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise error(f"{name} needs a whole number, {least} or more; got {value!r:.60}.")
    return int(value)


def parse_whole(value: Any, least: int) -> int | None:
    """The value as an int if it is one, also when it is written 1e5; else, or below `least`, None."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value != int(value) or value < least:
        return None
    return int(value)


def nearest(name: str, known: Iterable[str], most: int = 1) -> str:
    """ "; did you mean X?" for the known names most similar to this one, or an empty string if none is.

    >>> nearest("gap.1", ["gap.1-K2", "gap.1-K20", "trap"], most=2)
    '; did you mean gap.1-K2 or gap.1-K20?'
    """
    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(other.casefold(), other)
    close = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=most, cutoff=0.5)]
    return f"; did you mean {' or '.join(filter(None, [', '.join(close[:-1]), close[-1]]))}?" if close else ""


def counted(number: int, thing: str) -> str:
    """So many of a thing.

    >>> counted(1, "decision"), counted(2, "decision")
    ('1 decision', '2 decisions')
    """
    return f"{number} {thing}" + ("" if number == 1 else "s")


# ---- rewards ---------------------------------------------------------------------------------------------------------

# A Beta posterior of a reward of -3 is not a posterior, yet the arithmetic goes on for a while and prints a regret. So
# every policy declares `rewards="[0, 1]"` or `"any"`, meaning the rewards it can compute with, and reward laws declare
# what they pay. The two are compared before anything is played.
UNIT, ANY = "[0, 1]", "any"
LARGEST_REWARD = 1e30  # the largest size of a reward that is not scaled by a range: its fourth power is finite


def accepted_rewards(policy: Any) -> str:
    """The rewards a policy can compute with; for a wrapper those of its base. A class that declares nothing accepts
    any."""
    said = getattr(policy, "rewards", None)
    if said is None and hasattr(policy, "base"):
        return accepted_rewards(policy.base)
    return ANY if said is None else str(said)


def paid_rewards(environment: Any) -> str | None:
    """What an environment pays: "[0, 1]", "any", or None if it does not declare it."""
    said = getattr(environment, "pays", None)
    if said is not None:
        return str(said)
    if hasattr(environment, "law"):
        paid = getattr(environment.law, "pays", None)
        return _means(environment) if paid == "the mean" else paid
    return paid_rewards(environment.base) if hasattr(environment, "base") else None


def _means(environment: Any) -> str:
    """What an environment without noise pays: its means."""
    table = getattr(environment, "table", None)
    inside = table is None or bool(((np.asarray(table) >= 0.0) & (np.asarray(table) <= 1.0)).all())
    return UNIT if inside else ANY


def check_rewards(policy: Any, environment: Any) -> None:
    """Refuse to play a policy in an environment whose rewards it does not accept."""
    if accepted_rewards(policy) == UNIT and paid_rewards(environment) == ANY:
        law = getattr(environment, "law", None) or environment
        raise ValueError(
            f"{type(policy).__name__} accepts rewards in [0, 1] only, and {law!r:.60} pays others; use a law such as "
            "TruncatedGaussian(sd=0.1), or a policy for any rewards such as DiscountedTS()."
        )


def as_plain(value: Any) -> Any:
    """The value as JSON can hold it: NaN and infinity become None, durations seconds, dates ISO texts."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [as_plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return as_plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def layout_table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[tuple[int, str]]:
    """(number of the row, line) for each line, the head being row 0. Columns of text are wrapped to make the table fit
    into `width`, if that is not None; numbers never are."""
    table = [list(head), *map(list, rows)]
    numbers = [
        bool(rows) and all(row[column][:1] in "0123456789-+\u2212" for row in rows) for column in range(len(head))
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    words = [[len(word) for cell in column for word in _split(cell)] for column in zip(*table, strict=True)]
    least = [max([16, *found]) for found in words]
    while width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
        able = [column for column, number in enumerate(numbers) if not number and widths[column] > least[column]]
        if not able:
            break
        widths[max(able, key=lambda column: widths[column])] -= 1
    out = []
    for number, row in enumerate(table):
        cells = [_wrap(cell, space) for cell, space in zip(row, widths, strict=True)]
        for step in range(max(map(len, cells))):
            line = []
            for cell, space, flush in zip(cells, widths, numbers, strict=True):
                text = cell[step] if step < len(cell) else ""
                line.append(text.rjust(space) if flush else text.ljust(space))
            out.append((number, "  ".join(line).rstrip()))
    return out


def _split(text: str) -> list[str]:
    """Where a text may be broken: at spaces, and after a comma."""
    return text.replace(",", ", ").split()


def _wrap(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(" ".join(_split(text)), width, break_on_hyphens=False, break_long_words=False) or [""]
