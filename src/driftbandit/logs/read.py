"""Reads the rows of a log from a file, a data frame, a dict of columns or a journal, as Arrow columns.

Rows are read in pieces, and a line has at most a megabyte, so a small .gz file cannot fill the memory."""

import codecs
import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from driftbandit.bandit.opening import is_url
from driftbandit.errors import DriftbanditError, LogError

PIECE = 1 << 16  # rows read together
_ENDINGS = (".csv", ".jsonl", ".ndjson", ".parquet")
_LONGEST = 1 << 20  # bytes of a line
_SQLITE = b"SQLite format 3\0"


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
        return kind

    def pieces(self, select: Select, probabilities: bool) -> Iterator[Piece]:
        """The rows in pieces. `probabilities` is whether those of a journal are needed, which are recomputed."""
        try:
            import pyarrow as pa
        except ImportError:
            raise ImportError("A log is read with pyarrow: pip install '.[lab]'.", name="pyarrow") from None
        try:
            if self.kind == "journal":
                yield from self._journal(select, probabilities)
            elif self.kind == "dict":
                yield from self._dict(select)
            elif self.kind == ".csv":
                yield from self._csv(select)
            elif self.kind in (".jsonl", ".ndjson"):
                yield from self._json_lines(select)
            else:
                yield from self._arrow(select)
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
            line, *rest = re.split(rb"[\r\n]", file.read(_LONGEST), maxsplit=1)
        if len(line) == _LONGEST and not rest:
            raise _too_long()
        try:
            text = line.removeprefix(codecs.BOM_UTF8).decode()
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
    """Is this the journal of a live bandit: the address of a database, or a SQLite file?"""
    if is_url(given):
        return True
    if not isinstance(given, str | Path) or not Path(given).is_file():
        return False
    with open(given, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _check_names(names: list[str]) -> list[str]:
    if {"candidates", "known", "how", "policy"} <= set(names):
        raise _has_candidates()  # an export
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise refuse(f"two columns are named {twice!r:.60}", "Column names must differ.")
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
