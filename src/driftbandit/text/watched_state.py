"""States for a rehearsal: lists that refuse what an array of compiled code would change in silence."""

from typing import Any

import numpy as np

_EXACT = 1 << 53  # beyond this a float64 does not hold every whole number
_LARGEST = 1 << 63


class UnsafeStore(TypeError):
    """Something was written that interpreter and machine code would keep differently."""


class _Field(list[Any]):
    """One field of a state, as the interpreter plays it."""

    def __init__(self, values: Any, name: str) -> None:
        super().__init__(values)
        self.name = name

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(at, slice):  # as `rng.normals(out)` fills a field
            value = list(value)
            if len(value) != len(self[at]):
                raise UnsafeStore(
                    f"{len(value)} numbers are written into {len(self[at])} places of field {self.name!r}."
                )
        for item in value if isinstance(at, slice) else [value]:
            self.check(item)
        super().__setitem__(at, value)

    def check(self, value: Any) -> None:
        """Refuse a value that an array would not hold as it is."""
        raise NotImplementedError

    def __reduce__(self) -> Any:
        return list, (list(self),)


class _Floats(_Field):
    def check(self, value: Any) -> None:
        if isinstance(value, bool | int | float | np.number | np.bool_):
            if isinstance(value, int) and abs(value) > _EXACT:
                raise UnsafeStore(
                    f"{value} is written into field {self.name!r}, whose numbers hold 53 bits; write float(...), "
                    "or make the field of whole numbers with dtype=np.int64 in init."
                )
            return
        raise UnsafeStore(
            f"{value!r:.40} ({type(value).__name__}) is written into field {self.name!r}, which holds numbers."
        )


class _Wholes(_Field):
    def check(self, value: Any) -> None:
        if isinstance(value, float | np.floating):
            raise UnsafeStore(
                f"{value!r} is written into field {self.name!r}, which init made of whole numbers (int64): compiled "
                "code would cut off its fraction. Make the field np.zeros(...) without a dtype, or write int(...)."
            )
        if not isinstance(value, int | np.integer | np.bool_):
            raise UnsafeStore(
                f"{value!r:.40} ({type(value).__name__}) is written into field {self.name!r}, which holds whole "
                "numbers."
            )
        if not -_LARGEST <= int(value) < _LARGEST:
            raise UnsafeStore(f"{value} is written into field {self.name!r}, whose whole numbers hold 64 bits.")


class _Flags(_Field):
    def check(self, value: Any) -> None:
        if not isinstance(value, bool | np.bool_):
            raise UnsafeStore(
                f"{value!r:.40} is written into field {self.name!r}, which init made of truth values; write True or "
                "False, or make the field of numbers."
            )


def watched(state: Any) -> Any:
    """The state with every array as a list that watches what is written into it."""
    kinds = {"f": _Floats, "i": _Wholes, "b": _Flags}
    return tuple.__new__(
        type(state),
        [
            watched(field) if isinstance(field, tuple) else kinds[field.dtype.kind](field.tolist(), name)
            for name, field in zip(state._fields, state, strict=True)
        ],
    )
