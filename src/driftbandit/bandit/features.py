"""Declared features: how a context becomes the numbers that a policy learns from.

The journal keeps a context as it was given. Its numbers are computed again wherever they are needed, from the context,
the decision's time and the means of the columns, which the fold keeps: the audit recomputes them too."""

import json
import math
from collections.abc import Iterable, Mapping, Set
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from driftbandit.bandit.inputs import writable
from driftbandit.core.checks import nearest
from driftbandit.errors import ContextError

MOST_COLUMNS = 64
MOST_BYTES = 4096  # of a context as JSON
_LARGEST = 1e12  # of a number: its fourth power must not overflow together with a reward's
_NAME_LENGTH = 64
_MOST_LEVELS = 100_000  # that are counted
CHOSEN = ""  # where a stored context has the name of its candidate: no feature has this name
_NAMED = 2500  # bytes for the name of the candidate that was chosen
CYCLES = {"hour of day": 2, "day of week": 3}  # harmonics; three describe any course over seven days
_SHAPES = ("number", "log number", "flag")
KINDS = (*_SHAPES, *CYCLES)


class Feature(NamedTuple):
    """One feature. `levels` are set for a list of levels, `zone` for a cycle of the clock."""

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    zone: str = "UTC"

    @property
    def columns(self) -> list[str]:
        """Names of the numbers that it becomes."""
        if self.kind == "levels":
            return [f"{self.name}={level}" for level in self.levels]
        if self.kind in CYCLES:
            waves = range(1, CYCLES[self.kind] + 1)
            return [f"{self.name} {wave}{n}" for n in waves for wave in ("sin", "cos")]
        return [self.name]

    def declaration(self) -> Any:
        """What the user wrote to declare it."""
        if self.kind == "levels":
            return list(self.levels)
        return f"{self.kind} in {self.zone}" if self.zone != "UTC" else self.kind

    def read(self, value: Any) -> Any:
        """A value as JSON keeps it; None where it is missing."""
        value = plain_value(value)
        if value is None:
            return None
        number = isinstance(value, int | float)
        if self.kind == "levels":
            allowed, right = "a text of at most 200 characters", isinstance(value, str) and len(value) <= 200
            if right and not writable(value):
                allowed, right = "a text that a file can hold, without half a character", False
        elif self.kind == "flag":
            allowed, right = "True or False", number and value in (0, 1)
        elif self.kind in CYCLES:
            allowed, right = "taken from the decision's time, so leave it out", False
        else:
            allowed = f"a number between -{_LARGEST:g} and {_LARGEST:g}"
            right = number and not isinstance(value, bool) and abs(value) <= _LARGEST
        if not right:
            raise ContextError(f"Feature {self.name!r} is {allowed}", f"; got {value!a:.60}")
        return value if self.kind == "levels" else bool(value) if self.kind == "flag" else float(value)

    def fit(self, value: Any) -> Any:
        """A value that was read when the feature may have been of another kind; None if it does not fit this one."""
        if self.kind == "levels":
            return value if isinstance(value, str) else None
        if self.kind == "flag":
            return value if isinstance(value, bool) else None
        return None if isinstance(value, str) else value

    def encode(self, value: Any, at: int) -> list[float] | None:
        """Its numbers, given a value as `fit` returns it and the decision's time in microseconds; None if missing. A
        level that was not declared has none of the levels."""
        if self.kind in CYCLES:
            return self.harmonics(self.phase(at))
        if value is None:
            return None
        if self.kind == "levels":
            return [1.0 if value == level else 0.0 for level in self.levels]
        number = float(value)
        return [math.copysign(log_1p(abs(number)), number) if self.kind == "log number" else number]

    def value(self, value: Any, at: int) -> Any:
        """The value as a log shows it; of the clock's, hours since midnight or days since Monday."""
        if self.kind in CYCLES:
            return self.phase(at) * (24.0 if self.kind == "hour of day" else 7.0)
        found = self.fit(value)
        return float(found) if found is not None and self.kind in ("number", "log number") else found

    def harmonics(self, phase: float) -> list[float]:
        """The numbers of a cycle that has come so far."""
        first = sine, cosine = sin_cos(phase)
        out = [*first]
        for _ in range(1, CYCLES[self.kind]):
            sine, cosine = sine * first[1] + cosine * first[0], cosine * first[1] - sine * first[0]
            out += (sine, cosine)
        return out

    def phase(self, at: int) -> float:
        """How far the cycle has come, from 0 to 1, by the clock of the time zone."""
        time = datetime.fromtimestamp(at / 1e6, UTC).astimezone(ZoneInfo(self.zone))
        day = (time.hour * 3600 + time.minute * 60 + time.second + time.microsecond / 1e6) / 86_400
        return day if self.kind == "hour of day" else (time.weekday() + day) / 7.0


class Features(tuple[Feature, ...]):
    """All features of a bandit, in order."""

    @classmethod
    def declare(cls, declared: Any) -> "Features":
        """From a mapping of names to kinds: a list of levels, "number", "log number", "flag", "hour of day" or "day of
        week", the last two also "hour of day in Europe/Berlin"."""
        if not isinstance(declared, Mapping):
            raise ValueError(
                f"features maps names to kinds, such as {{'device': ['mobile', 'desktop'], 'basket': 'number'}}; "
                f"got {declared!r:.60}."
            )
        found = cls(_feature(name, kind) for name, kind in declared.items())
        columns = sum(len(feature.columns) for feature in found)
        if columns > MOST_COLUMNS:
            raise ValueError(
                f"The features become {columns} columns, and at most {MOST_COLUMNS} are allowed; declare fewer levels "
                "(those left out count as other) or fewer features."
            )
        return found

    @classmethod
    def stored(cls, pairs: Any) -> "Features":
        """From the pairs of name and kind that a configuration keeps; None for no features."""
        return cls.declare(dict(pairs or ()))

    def declaration(self) -> dict[str, Any]:
        """The inverse of `declare`."""
        return {feature.name: feature.declaration() for feature in self}

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return [name for feature in self for name in feature.columns]

    @property
    def variances(self) -> list[float]:
        """The variance of every column, where it is known beforehand: 1/2 of the waves of a cycle; otherwise 0."""
        return [0.5 if feature.kind in CYCLES else 0.0 for feature in self for _ in feature.columns]

    @cached_property
    def _known(self) -> dict[str, Feature]:
        return {feature.name: feature for feature in self}

    @property
    def given(self) -> list[str]:
        """The features whose values a context gives; the clock gives the others."""
        return [feature.name for feature in self if feature.kind not in CYCLES]

    def read(self, context: Any) -> dict[str, Any]:
        """A context in the form that the journal keeps, checked. Values that are missing are left out."""
        if context is None:
            if self.given:
                raise ValueError(
                    f"This bandit decides in a context: give context={{...}} with {', '.join(self.given)}; "
                    "an unknown value can be left out."
                )
            return {}
        known = self._known
        out, size = {}, self._size
        for name, value in (context if type(context) is dict else as_mapping(context)).items():
            if name not in known:
                listed = f"The features are {', '.join(known) or 'none'}."
                hint = nearest(str(name)[:60], known) or "."
                raise ContextError(listed, sentence=f"There is no feature {name!r:.60}{hint} {listed}")
            feature = known[name]
            if type(value) is float and feature.kind == "number":
                usual = -_LARGEST <= value <= _LARGEST
            else:
                usual = type(value) is str and value in feature.levels
            value = value if usual else feature.read(value)
            if isinstance(value, str):
                size += 12 * len(value)  # a character is at most 12 bytes
            if value is not None:
                out[name] = value
        if size > MOST_BYTES and (size := len(json.dumps(out))) > MOST_BYTES:
            raise ContextError(f"A context takes at most {MOST_BYTES} bytes as JSON", f"; got {size}")
        return out

    @cached_property
    def _size(self) -> int:
        """The most that a context without texts takes as JSON."""
        return sum(len(json.dumps(feature.name)) + 30 for feature in self)

    @cached_property
    def _plan(self) -> list[tuple[str, str, dict[str, int], list[float], Feature]]:
        """Of each feature: name, kind, the places of its levels, its numbers if they are all 0, and itself."""
        return [
            (one.name, one.kind, {level: n for n, level in enumerate(one.levels)}, [0.0] * len(one.columns), one)
            for one in self
        ]

    def numbers(self, context: Mapping[str, Any], at: int) -> tuple[list[float], list[tuple[int, int]], list[int]]:
        """The numbers of a context that `read` returned, for a decision of this time. Of each feature that is missing,
        its place and that of its first number, which are all 0; the places of features with an undeclared level."""
        out: list[float] = []
        gaps, others, get = [], [], context.get
        for place, (name, kind, levels, zeros, feature) in enumerate(self._plan):
            value = get(name)
            if kind == "number" and type(value) is float:
                out.append(value)
            elif kind == "levels" and type(value) is str:
                out += zeros
                if value in levels:
                    out[levels[value] - len(zeros)] = 1.0
                else:
                    others.append(place)
            elif (values := feature.encode(feature.fit(value), at)) is not None:
                out += values
            else:
                gaps.append((place, len(out)))
                out += zeros
        return out, gaps, others

    def encode(self, context: Mapping[str, Any], at: int, seen: Any = None) -> list[float]:
        """The numbers of a context; a missing feature has the means of its columns, or 0."""
        out, gaps, _ = self.numbers(context, at)
        if gaps and seen is not None:
            seen.fill(out, gaps)
        return out


def as_mapping(context: Any) -> Mapping[str, Any]:
    """A context as a mapping; a row of a frame, which has `to_dict`, is one too."""
    found = context.to_dict() if hasattr(context, "to_dict") else context
    if not isinstance(found, Mapping):
        raise ContextError("A context maps names of features to values", f"; got {context!r:.60}")
    return found


def plain_value(value: Any) -> Any:
    """A value of a context without the types of other libraries; None where it is missing, also as NaN or NA."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:  # a number of NumPy's
        value = value.item()
    if isinstance(value, Decimal):
        value = float(value)
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and math.isnan(value))
    return None if missing else value


def is_context(text: Any) -> bool:
    """Whether a journal can hold this as a context."""
    found = json.loads(text) if isinstance(text, str) and len(text) <= MOST_BYTES + _NAMED else None
    return isinstance(found, dict) and (len(text) <= MOST_BYTES or CHOSEN in found)


def _feature(name: Any, kind: Any) -> Feature:
    if not isinstance(name, str) or not 1 <= len(name) <= _NAME_LENGTH or not name.isprintable():
        raise ValueError(f"A feature's name is a printable text of 1 to {_NAME_LENGTH} characters; got {name!r:.80}.")
    if isinstance(kind, str):
        cycle, separator, zone = kind.partition(" in ")
        if cycle in CYCLES:
            return Feature(name, cycle, (), _zone(name, zone) if separator else "UTC")
        if kind in _SHAPES:
            return Feature(name, kind)
    elif isinstance(kind, Iterable) and not isinstance(kind, Mapping | bytes | Set):
        levels = tuple(level for level, _ in zip(kind, range(_MOST_LEVELS), strict=False))
        texts = all(isinstance(level, str) and 0 < len(level) <= 200 and writable(level) for level in levels)
        if texts and 1 <= len(set(levels)) == len(levels):
            return Feature(name, "levels", levels)
        raise ValueError(
            f"The levels of feature {name!r} are distinct texts of 1 to 200 characters, at least one; got {kind!a:.60}."
        )
    hint = nearest(kind[:60], KINDS) if isinstance(kind, str) else "; a set has no order" * isinstance(kind, Set)
    raise ValueError(
        f"Feature {name!r} is a list of levels, {', '.join(KINDS[:-1])} or {KINDS[-1]}; got {kind!r:.60}{hint or '.'}"
    )


def _zone(name: str, zone: str) -> str:
    try:
        return ZoneInfo(zone).key
    except (KeyError, ValueError, OSError):
        raise ValueError(f"Feature {name!r} names the time zone {zone!r:.60}, which does not exist here.") from None


# ---- functions with the same bits on every machine -------------------------------------------------------------------
# Those of mathematical libraries differ in the last bit, and replicas of a bandit on different machines must compute
# the same numbers. Sums, products and quotients are the same everywhere.

_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(8, -1, -1)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(9, -1, -1)]
_ODD = [1.0 / k for k in range(25, 0, -2)]
_LN2, _ROOT = 0.6931471805599453, 0.7071067811865476
_TURN = 6.283185307179586


def sin_cos(turns: float) -> tuple[float, float]:
    """The sine and the cosine of an angle in turns, from 0 to 1.

    >>> [round(x, 15) for x in sin_cos(1 / 3)]
    [0.866025403784439, -0.5]
    """
    quarter = int(4.0 * turns + 0.5)
    angle = _TURN * (turns - 0.25 * quarter)
    square, sine, cosine = angle * angle, 0.0, 0.0
    for term in _SINE:
        sine = sine * square + term
    for term in _COSINE:
        cosine = cosine * square + term
    sine *= angle
    return ((sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine))[quarter % 4]


def log_1p(x: float) -> float:
    """The logarithm of 1 + x, for x of 0 or more.

    >>> [round(log_1p(x), 14) for x in (0.0, 1e-9, 1.0, 1e12)]
    [0.0, 1e-09, 0.69314718055995, 27.63102111592955]
    """
    exponent, share = 0, x / (2.0 + x)
    if x > 0.4:
        part, exponent = math.frexp(1.0 + x)
        if part < _ROOT:
            part, exponent = 2.0 * part, exponent - 1
        share = (part - 1.0) / (part + 1.0)
    square, total = share * share, 0.0
    for term in _ODD:
        total = total * square + term
    return exponent * _LN2 + 2.0 * share * total
