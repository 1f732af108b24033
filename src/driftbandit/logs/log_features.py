"""The features of a log: which columns they are, their kinds and their values.

They are declared as in `Bandit`, or as a text: "device,basket:number,time:hour". Without a kind it is inferred."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit.bandit.features import MOST_COLUMNS, Feature, Features
from driftbandit.core.checks import nearest
from driftbandit.errors import LogError
from driftbandit.logs.read import Piece, Source, refuse
from driftbandit.logs.rows import RowReader, as_texts

ALL = "all"
_KINDS = {"number": "number", "log": "log number", "flag": "flag", "levels": "levels"}
_CLOCK = {"hour": ("hour", "hour of day"), "day": ("weekday", "day of week")}  # name and kind
_CELLS = {"hour of day": 8, "day of week": 7}
_BINS = 4  # of numbers, by quantiles
_OTHER = "\0"  # stands for a level that was not declared


class FeatureColumns:
    """Reads the features' columns, piece by piece. A value is held as one number: a level as its place among the
    levels, a cycle of the clock as the time, NaN where it is missing."""

    def __init__(self, given: Any, source: Source) -> None:
        self.given, self.source = given, source
        self.kinds: dict[str, Any] = {}  # by the features' names; None if to be inferred
        self.levels: dict[str, dict[str, int]] = {}
        self.columns: dict[str, str] = {}  # where the values of each feature are

    def select(self, present: list[str], other: list[str], time: str) -> list[str]:
        """The features' columns among those that are present; `other` are read for something else."""
        if not self.kinds:
            declared, given = self.source.declared, self.given
            if given is None or (given == ALL and declared):
                given = declared
            given = {name: None for name in present if name not in other} if given == ALL else given
            self.kinds = {
                name: declared.get(name) if kind is None else kind for name, kind in _parse(given, time).items()
            }
            _declare({name: kind for name, kind in self.kinds.items() if kind not in (None, "levels")})
            lists = {name: kind for name, kind in self.kinds.items() if isinstance(kind, list)}
            self.levels = {name: {level: at for at, level in enumerate(kind)} for name, kind in lists.items()}
        for name in (name for name, kind in self.kinds.items() if not _is_clock(kind)):
            exported = f"x_{name}"  # the column in a journal and in its export
            both = (exported, name) if self.source.kind == "journal" else (name, exported)
            column = next((one for one in both if one in present), None)
            if column is None:
                hint = (nearest(name, present) or ".").rstrip(".?")
                raise refuse(
                    f"there is no column {name!r:.60} for a feature{hint}",
                    f"The columns are {', '.join(present)[:200]}; features are written as in device,basket:number,"
                    "time:hour.",
                )
            self.columns[name] = column
        return list(self.columns.values())

    def read(self, piece: Piece, time: np.ndarray, reader: RowReader) -> np.ndarray:
        """Rows × features."""
        out = np.empty((len(time), len(self.kinds)))
        for at, name in enumerate(self.kinds):
            if _is_clock(self.kinds[name]):
                out[:, at] = time
                continue
            column = piece[self.columns[name]]
            if self.kinds[name] is None:
                self.kinds[name] = _infer(column)
            if self.kinds[name] == "levels" or isinstance(self.kinds[name], list):
                out[:, at] = self._codes(name, column)
            else:
                out[:, at] = reader.numbers(column, name)
                if self.kinds[name] == "flag":
                    bad = ~(np.isnan(out[:, at]) | np.isin(out[:, at], (0.0, 1.0)))
                    reader.refuse_rows(bad, f"{name} is neither true nor false", "Name another kind of feature.")
        return out

    def _codes(self, name: str, column: Any) -> np.ndarray:
        coded = as_texts(as_texts(column).cast("string")).dictionary_encode()
        texts = coded.dictionary.to_pylist()
        levels = self.levels.setdefault(name, {})
        if self.kinds[name] == "levels":
            for text in filter(None, texts):
                levels.setdefault(text, len(levels))
            if len(levels) > MOST_COLUMNS:
                raise refuse(
                    f"feature {name!r:.60} has more than {MOST_COLUMNS} levels",
                    f"Name those that matter, as in {name:.60}:a|b|c; the others count as one. Or leave it out.",
                )
        codes = [float(levels.get(text, len(levels))) if text else math.nan for text in texts]
        which = coded.indices.fill_null(len(codes)).to_numpy(zero_copy_only=False)
        return np.asarray(np.array([*codes, math.nan])[which])

    def finish(self, values: np.ndarray, dates: bool) -> tuple[Features, np.ndarray]:
        """The features, and the values with levels in the order of their names where they were not declared."""
        values = values.copy()
        for at, (name, kind) in enumerate(self.kinds.items()):
            if kind == "levels":
                names = sorted(self.levels[name])
                place = np.array([float(names.index(level)) for level in self.levels[name]])
                there = ~np.isnan(values[:, at])
                values[there, at] = place[values[there, at].astype(np.int64)]
                self.kinds[name] = names
            elif _is_clock(kind) and not dates:
                raise refuse(f"feature {name!r:.60} is {kind}, and the times are not dates", "Write times as dates.")
        return _declare(self.kinds), values


def _declare(kinds: dict[str, Any]) -> Features:
    try:
        return Features.declare(kinds)
    except ValueError as error:
        raise LogError(str(error)) from None


def _is_clock(kind: Any) -> bool:
    return isinstance(kind, str) and kind.partition(" in ")[0] in _CELLS


def _parse(given: Any, time: str) -> dict[str, Any]:
    """Names and kinds; None for a kind that is to be inferred."""
    if isinstance(given, Mapping):
        return {str(name): list(kind) if isinstance(kind, tuple) else kind for name, kind in given.items()}
    out: dict[str, Any] = {}
    for item in given.split(",") if isinstance(given, str) else given:
        name, colon, word = (part.strip() for part in str(item).partition(":"))
        clock, space, zone = word.partition(" in ")
        kind: Any = _KINDS.get(word)
        if clock in _CLOCK:
            if name != time:
                raise refuse(f"{item!r:.60} is not the time of the decision", f"Write {time}:{word}.")
            name, kind = _CLOCK[clock][0], _CLOCK[clock][1] + space + zone
        elif "|" in word:
            kind = [level.strip() for level in word.split("|")]
        elif colon and kind is None:
            kinds = ", ".join([*_KINDS, *(f"{time}:{cycle}" for cycle in _CLOCK)])
            raise refuse(f"{word!r:.40} is not a kind of feature", f"Kinds are {kinds}, or levels as in a|b|c.")
        if not name or name in out:
            raise refuse(f"{item!r:.60} is not a feature, or given twice", "Write them as in device,basket:number.")
        out[name] = kind
    return out


def _infer(column: Any) -> str:
    """The kind of a column by its first values: true and false are a flag, other texts levels."""
    from pyarrow import types

    column = as_texts(column)
    if not types.is_string(column.type):
        return "flag" if types.is_boolean(column.type) else "number"
    texts = [text.lower() for text in column.unique().to_pylist() if text]
    if texts and set(texts) <= {"true", "false"}:
        return "flag"
    try:
        return "number" if [float(text.replace(",", ".")) for text in texts] else "levels"
    except ValueError:
        return "levels"


def encode(features: Features, values: np.ndarray) -> np.ndarray:
    """Events × columns: the numbers that a policy learns from, as in `Bandit`. A missing value has the mean of the
    events before, 0 without any."""
    parts = [np.zeros((len(values), 0))]
    for at, feature in enumerate(features):
        distinct, which = np.unique(values[:, at], return_inverse=True)
        rows = [_numbers(feature, value) or [math.nan] * len(feature.columns) for value in distinct]
        part = np.array(rows)[which]
        missing = np.isnan(part[:, :1])
        if missing.any():
            before = np.maximum(np.cumsum(~missing), 1)[:, None]
            part = np.where(missing, np.cumsum(np.where(missing, 0.0, part), axis=0) / before, part)
        parts.append(part)
    return np.concatenate(parts, axis=1)


def _numbers(feature: Feature, value: float) -> list[float] | None:
    if math.isnan(value):
        return None
    if feature.kind == "levels":
        return feature.encode((*feature.levels, _OTHER)[int(value)], 0)
    return feature.encode(value, round(value * 1e6) if feature.kind in _CELLS else 0)


def cells(feature: Feature, values: np.ndarray, encoded: np.ndarray) -> np.ndarray:
    """The cell of each event: its level, its quarter of the numbers, its three hours of the day or its weekday; missing
    values are a cell too. `encoded` are the feature's own columns."""
    if feature.kind in _CELLS:
        phase = np.arctan2(encoded[:, 0], encoded[:, 1]) / (2.0 * math.pi) % 1.0
        values = np.floor(phase * _CELLS[feature.kind] + 1e-9) % _CELLS[feature.kind]
    elif feature.kind in ("number", "log number"):
        known = values[~np.isnan(values)]
        edges = np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS)) if len(known) else known
        values = np.where(np.isnan(values), np.nan, np.searchsorted(edges, values))
    return np.asarray(np.unique(values, return_inverse=True)[1])


def describe_gaps(features: Features, values: np.ndarray) -> list[str]:
    """Sentences about missing values and about levels that were not declared."""
    out = []
    for feature, column in zip(features, values.T, strict=True):
        missing = int(np.isnan(column).sum())
        if missing:
            out.append(f"Feature {feature.name:.40} is missing in {missing:,} events; the mean so far stands for it.")
        other = int((column == len(feature.levels)).sum()) if feature.kind == "levels" else 0
        if other:
            out.append(f"Feature {feature.name:.40} has other levels than those named in {other:,} events.")
    return out
