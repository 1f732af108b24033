"""Reads the rows of a log from a file, a data frame, a dict of columns or a journal, as Arrow columns, and the features
among them.

Rows are read in pieces, and a line has at most a megabyte, so a small .gz file cannot fill the memory."""

import csv
import gzip
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.bandit.features import MOST_COLUMNS, Features
from driftbandit.bandit.opening import is_url
from driftbandit.core.checks import nearest
from driftbandit.errors import DriftbanditError, LogError

PIECE = 1 << 16  # rows read together
_ENDINGS = (".csv", ".jsonl", ".ndjson", ".parquet")
_LONGEST = 1 << 20  # bytes of a line


def refuse(what: str, cure: str, row: int = 0) -> LogError:
    """A fault, what to do about it, and its row, counted from 1 without the header."""
    sentence = f"Row {row}: {what}" if row else what[0].upper() + what[1:]
    return LogError(f"{sentence}. {cure}")


Piece = dict[str, Any]  # Arrow arrays by the names of their columns
Select = Callable[[list[str]], list[str]]  # checks the names of all columns and returns those to read


class Source:
    """A source of rows, to be read once."""

    def __init__(self, given: Any, bandit: str | None = None) -> None:
        self.given, self.bandit, self.name = given, bandit, "the log"
        self.delimiter = ","
        self.declared: dict[str, Any] = {}  # the kinds of a journal's features, by their names
        if _is_journal(given):
            self.kind = "journal"
            self.name = bandit or ("the journal" if is_url(given) else Path(given).name)
        elif bandit is not None:
            raise refuse("this log is not a journal", f"Only a journal can hold the bandit {bandit!r:.60}.")
        elif isinstance(given, str | Path):
            self.kind = self._file_kind(Path(given))
        elif isinstance(given, Mapping):
            self.kind = "dict"
        elif hasattr(given, "__arrow_c_stream__"):
            self.kind = "frame"
        else:
            raise refuse(
                f"a log cannot be made of {type(given).__name__}",
                "Give the path of a file, a data frame (pandas, Polars, Arrow, DuckDB) or a dict of columns.",
            )

    def _file_kind(self, path: Path) -> str:
        self.name = path.name
        kind = Path(path.name.removesuffix(".gz")).suffix.lower()
        if kind not in _ENDINGS:
            raise refuse(
                f"the format of {path.name!r:.60} is not known",
                f"A log is a file ending in {', '.join(_ENDINGS)} (.csv.gz and .jsonl.gz too) or a journal.",
            )
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise refuse(f"{str(path)!r:.200} {what}", "Name a file with one row per decision.")
        return kind.replace("ndjson", "jsonl")

    def pieces(self, select: Select, probabilities: bool) -> Iterator[Piece]:
        """The rows in pieces. `probabilities` is whether those of a journal are needed, which are recomputed."""
        try:
            import pyarrow as pa
        except ImportError:
            raise ImportError("A log is read with pyarrow: pip install '.[lab]'.", name="pyarrow") from None
        try:
            if self.kind == "journal":
                yield from self._journal(select, probabilities)
            else:
                readers = {"dict": self._dict, ".csv": self._csv, ".jsonl": self._json_lines}
                yield from readers.get(self.kind, self._arrow)(select)
        except (pa.ArrowException, OverflowError, zlib.error, EOFError, OSError) as error:
            if isinstance(error, DriftbanditError):  # of a journal
                raise
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
            if "straddl" in message:
                raise _too_long() from None
            raise refuse(
                f"it cannot be read: {message.rstrip('.'):.160}",
                "Is the file whole and in UTF-8, and does every column have values of one type?",
            ) from None

    def _open(self) -> Any:
        path = Path(self.given)
        return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")

    def _head(self) -> list[str]:
        """The names of a CSV file's columns. The delimiter is the one that occurs most often in the first line."""
        with self._open() as file:
            line = re.split(rb"[\r\n]", file.read(_LONGEST), maxsplit=1)[0]
        if len(line) == _LONGEST:
            raise _too_long()
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise refuse("the text is not UTF-8", "Save the file as UTF-8.") from None
        self.delimiter = max(",;\t|", key=text.count)
        head = [name.strip() for name in next(csv.reader([text], delimiter=self.delimiter), [])]
        if not any(head):
            raise refuse("the file is empty", "A CSV log begins with a line of column names.")
        return _check_names(head)

    def _csv(self, select: Select) -> Iterator[Piece]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        head = self._head()
        names = select(head)
        types = dict.fromkeys(head, pa.string())
        with self._open() as file:
            try:
                reader = arrow_csv.open_csv(
                    file,
                    arrow_csv.ReadOptions(use_threads=False, block_size=_LONGEST, skip_rows=1, column_names=head),
                    arrow_csv.ParseOptions(delimiter=self.delimiter),
                    arrow_csv.ConvertOptions(column_types=types, include_columns=names, strings_can_be_null=True),
                )
            except pa.ArrowInvalid as error:
                if "Empty CSV" in str(error):
                    return
                raise
            for batch in reader:
                yield dict(zip(names, batch.columns, strict=True))

    def _json_lines(self, select: Select) -> Iterator[Piece]:
        import pyarrow as pa

        row, names = 0, list[str]()
        with self._open() as file:
            lines = _limit_lines(file)
            while held := list(islice(lines, PIECE)):
                events = [_json_object(line, row + at) for at, line in enumerate(held, 1) if line.strip()]
                names = names or select(_check_names(list(dict.fromkeys(name for event in events for name in event))))
                yield {name: pa.array([event.get(name) for event in events]) for name in names}
                row += len(held)

    def _journal(self, select: Select, probabilities: bool) -> Iterator[Piece]:
        import pyarrow as pa

        from driftbandit.bandit.export import features_of, rows_of

        features, candidates = features_of(self.given, self.bandit)
        if candidates:
            raise _has_candidates()
        self.declared = features.declaration()
        times = {name: pa.timestamp("us", "UTC") for name in ("time", "reward_time")}
        with rows_of(self.given, self.bandit, "arm" if probabilities else "none") as rows:
            while held := list(islice(rows, PIECE)):
                yield {name: pa.array([row[name] for row in held], times.get(name)) for name in select(list(held[0]))}

    def _arrow(self, select: Select) -> Iterator[Piece]:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        if self.kind == ".parquet":
            file = parquet.ParquetFile(self.given)
            names = select(_check_names(file.schema_arrow.names))
            batches: Any = file.iter_batches(batch_size=PIECE, columns=names)
        else:
            batches = pa.RecordBatchReader.from_stream(self.given)
            names = select(_check_names(batches.schema.names))
        for batch in batches:
            yield {name: batch.column(name) for name in names}

    def _dict(self, select: Select) -> Iterator[Piece]:
        import pyarrow as pa

        columns = {str(name): column for name, column in self.given.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise refuse(
                f"the columns have different lengths: {lengths!r:.120}", "Every row needs a value in every column."
            )
        yield {name: pa.array(columns[name]) for name in select(list(columns))}


def _is_journal(given: Any) -> bool:
    if isinstance(given, str) and "://" in given:
        return is_url(given)
    if not isinstance(given, str | Path) or not Path(given).is_file():
        return False
    with open(given, "rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _check_names(names: list[str]) -> list[str]:
    if {"candidates", "known", "how", "policy"} <= set(names):
        raise _has_candidates()  # an export
    if twice := [name for name in names if names.count(name) > 1]:
        raise refuse(f"two columns are named {twice[0]!r:.60}", "Column names must differ.")
    return names


def _has_candidates() -> LogError:
    return refuse(
        "every decision of this log had its own candidates, so there are no arms to compare over time",
        "Choose the log of a bandit with arms; an export has all candidates and their features for other programs.",
    )


def _limit_lines(file: Any) -> Iterator[bytes]:
    while line := file.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise _too_long()
        yield line


def _too_long() -> LogError:
    return refuse(f"a line has more than {_LONGEST:,} bytes", "Is this a text file with one row per line?")


def _json_object(line: bytes, row: int) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # ValueError includes text that is not UTF-8
        event = None
    if not isinstance(event, dict):
        raise refuse(
            "the line is not a JSON object", 'Write {"time": ..., "arm": ..., "reward": ...} on each line.', row
        )
    return event


def as_texts(column: Any) -> Any:
    """Texts of any kind as plain strings without spaces around them; other columns as they are."""
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        column = as_texts(column.dictionary).take(column.indices)
    if types.is_large_string(column.type) or types.is_string_view(column.type):
        column = column.cast("string")
    return compute.utf8_trim_whitespace(column) if types.is_string(column.type) else column


def is_number(text: str) -> bool:
    """Whether a text is a number, perhaps with a decimal comma."""
    try:
        return math.isfinite(float(text.replace(",", ".")))
    except ValueError:
        return False


def coded(column: Any) -> tuple[list[str | None], np.ndarray]:
    """The different texts of a column, and which of them each row has; the number after the last if it has none."""
    coded = as_texts(as_texts(column).cast("string")).dictionary_encode()
    texts = coded.dictionary.to_pylist()
    return texts, coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)


def no_column(name: str, what: str, present: list[str], how: str) -> LogError:
    """The error for a column that is not there."""
    return refuse(
        f"there is no column {name!r:.60} for {what}{nearest(name, present).rstrip('?')}",
        f"The columns are {', '.join(present)[:200]}; {how}",
    )


_KINDS = {"number": "number", "log": "log number", "flag": "flag", "levels": "levels"}
_CLOCK = {"hour": ("hour", "hour of day"), "day": ("weekday", "day of week")}  # name and kind


class FeatureColumns:
    """Reads the features as numbers: a level as its place among the levels, a cycle of the clock as the time."""

    def __init__(self, given: Any, source: Source) -> None:
        self.given, self.source = given, source
        self.kinds: dict[str, Any] = {}  # by the features' names; None if to be inferred
        self.levels: dict[str, dict[str, int]] = {}
        self.columns: dict[str, str] = {}  # where the values of each feature are

    def select(self, present: list[str], other: list[str], time: str) -> list[str]:
        """The features' columns among those that are present; `other` are read for something else."""
        if not self.kinds:
            declared = self.source.declared
            given = declared if self.given is None or (self.given == "all" and declared) else self.given
            given = [name for name in present if name not in other] if given == "all" else given
            parsed = _parse_features(given, time).items()
            self.kinds = {name: declared.get(name) if kind is None else kind for name, kind in parsed}
            _declare({name: kind for name, kind in self.kinds.items() if kind not in (None, "levels")})
        for name in (name for name, kind in self.kinds.items() if not _is_clock(kind)):
            both = [name, f"x_{name}"]  # the second in a journal and in its export
            found = [one for one in (reversed(both) if self.source.kind == "journal" else both) if one in present]
            if not found:
                raise no_column(
                    name, "a feature", present, "features are written as in device,basket:number,time:hour."
                )
            self.columns[name] = found[0]
        return list(self.columns.values())

    def read(self, piece: Piece, time: np.ndarray, reader: Any) -> np.ndarray:
        """Rows × features."""
        out = np.empty((len(time), len(self.kinds)))
        for at, name in enumerate(self.kinds):
            if _is_clock(self.kinds[name]):
                out[:, at] = time
                continue
            column = piece[self.columns[name]]
            kind = self.kinds[name] = self.kinds[name] or _infer(column)
            if kind in (None, "levels") or isinstance(kind, list):  # None: no value yet
                out[:, at] = self._codes(name, column)
                continue
            out[:, at] = reader.numbers(column, name)
            bad = ~(np.isnan(out[:, at]) | np.isin(out[:, at], (0.0, 1.0))) & (kind == "flag")
            reader.refuse_rows(bad, f"{name} is neither true nor false", "Name another kind of feature.")
        return out

    def _codes(self, name: str, column: Any) -> np.ndarray:
        """Each row's place among the levels; the place after them for one that was not declared."""
        texts, which = coded(column)
        kind = self.kinds[name]
        declared = dict.fromkeys(kind) if isinstance(kind, list) else {}
        levels = self.levels.setdefault(name, {level: at for at, level in enumerate(declared)})
        if kind == "levels":
            for text in filter(None, texts):
                levels.setdefault(text, len(levels))
            if len(levels) > MOST_COLUMNS:
                raise refuse(
                    f"feature {name!r:.60} has more than {MOST_COLUMNS} levels",
                    f"Name those that matter, as in {name:.60}:a|b|c; the others count as one. Or leave it out.",
                )
        codes = [float(levels.get(text, len(levels))) if text else math.nan for text in texts]
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
        return _declare({name: kind or "number" for name, kind in self.kinds.items()}), values


def _declare(kinds: dict[str, Any]) -> Features:
    try:
        return Features.declare(kinds) if kinds else Features()
    except ValueError as error:
        raise LogError(str(error)) from None


def _is_clock(kind: Any) -> bool:
    return isinstance(kind, str) and kind.partition(" in ")[0] in (kind for _, kind in _CLOCK.values())


def _parse_features(given: Any, time: str) -> dict[str, Any]:
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


def _infer(column: Any) -> str | None:
    """The kind of a column by its first values: true and false are a flag, other texts levels. None if it is empty."""
    from pyarrow import types

    column = as_texts(column)
    if not types.is_string(column.type):
        return "flag" if types.is_boolean(column.type) else None if types.is_null(column.type) else "number"
    texts = {text.lower() for text in column.unique().to_pylist() if text}
    if texts <= {"true", "false"}:
        return "flag" if texts else None
    return "number" if all(map(is_number, texts)) else "levels"
