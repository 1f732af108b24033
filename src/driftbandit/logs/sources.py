"""Where the rows of a log come from: CSV, JSON lines, Parquet, a data frame, a dict of columns or the journal of a live
bandit, a piece at a time.

A piece is a dict of raw columns; nothing is converted here but what the format itself says. Reading a piece at a time
is what keeps a log of ten million rows in the memory of one piece."""

import csv
import gzip
import importlib.util
import json
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.live.opening import is_url
from driftbandit.logs.faults import Faults, refuse

PIECE = 1 << 16  # rows read together
_ENDINGS = (".csv", ".jsonl", ".ndjson", ".parquet")
_LONGEST = 1 << 20  # letters of a line; a longer one is no row, and a small .gz file may hold gigabytes of one
_SQLITE = b"SQLite format 3\0"


class Piece(NamedTuple):
    """Some consecutive rows: raw columns by name, and the number of the first row (1 is the first of the log)."""

    first: int
    columns: dict[str, Any]  # lists of texts or of JSON values, NumPy arrays, or Arrow arrays
    rows: np.ndarray  # the rows' numbers; a row that could not be read at all is missing

    def __len__(self) -> int:
        return len(self.rows)


class Source:
    """Something with rows: `columns` names what there is, `pieces` reads it from the beginning, as often as asked."""

    def __init__(self, given: Any, bandit: str | None = None) -> None:
        self.given, self.bandit = given, bandit
        self.name = "the log"
        if is_journal(given):
            self.kind = "journal"
            self.name = bandit or ("the journal" if is_url(given) else Path(given).name)
            return
        if bandit is not None:
            raise refuse("this log is not a journal", f"The bandit {bandit!r:.60} can only be looked for in a journal.")
        if isinstance(given, str | Path):
            path = Path(given)
            self.name = path.name
            endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
            self.kind = endings[-1] if endings else ""
            if self.kind not in _ENDINGS:
                raise refuse(
                    f"the name {path.name!r:.60} does not say what it is",
                    f"A log is a file ending in {', '.join(_ENDINGS)} (.csv.gz and .jsonl.gz too), a data frame, or "
                    "the journal of a live bandit.",
                )
            if not path.is_file():
                what = "is a folder" if path.is_dir() else "does not exist"
                raise refuse(f"{str(path)!r:.200} {what}", "Name a file with one row per decision.")
        elif isinstance(given, Mapping):
            self.kind = "dict"
        elif hasattr(given, "__arrow_c_stream__"):
            self.kind = "frame"
            if type(given).__name__ == "RecordBatchReader":  # a stream ends where it was read to
                self.given = given.read_all()
        else:
            raise refuse(
                f"a log cannot be made of {type(given).__name__}",
                "Give the path of a file, a data frame (pandas, Polars, Arrow, DuckDB) or a dict of columns.",
            )

    def pieces(self, faults: Faults, chances: bool = True) -> Iterator[Piece]:
        """The rows, a piece at a time; of a journal with the arms' chances recomputed, unless they are not asked
        for."""
        if self.kind == "journal":
            return self._journal(chances)
        if self.kind == ".csv":
            return self._csv(faults)
        if self.kind in (".jsonl", ".ndjson"):
            return self._json_lines(faults)
        return self._dict() if self.kind == "dict" else self._arrow()

    def _opened(self) -> Any:
        path = Path(self.given)
        opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
        return opener(path, "rt", encoding="utf-8-sig", newline="")

    def _csv(self, faults: Faults) -> Iterator[Piece]:
        with self._opened() as file:
            reader = csv.reader(self._lines(file), strict=True)
            head = [name.strip() for name in self._next(reader, 0) or []]
            if not head:
                raise refuse(f"{self.name} is empty", "A CSV log begins with a line of column names.")
            twice = next((name for name in head if head.count(name) > 1), None)
            if twice is not None:
                raise refuse(f"two columns are named {twice!r:.60}", "Column names must differ.")
            first, done = 1, False
            while not done:
                lines: list[list[str]] = []
                numbers: list[int] = []
                read = 0
                while read < PIECE:
                    line = self._next(reader, first + read)
                    if line is None:
                        done = True
                        break
                    if not line:  # a blank line is no row
                        continue
                    if len(line) == len(head):
                        lines.append(line)
                        numbers.append(first + read)
                    else:
                        faults.add(
                            f"{len(line)} fields where the head has {len(head)}",
                            "Every row needs as many fields as there are column names.",
                            first + read,
                            "fields",
                        )
                    read += 1
                columns = list(zip(*lines, strict=True)) if lines else [()] * len(head)
                yield Piece(first, dict(zip(head, columns, strict=True)), np.array(numbers, np.int64))
                first += read

    def _next(self, reader: Any, row: int) -> Any:
        """The next item of a reader of CSV or of lines, or None at the end."""
        try:
            return next(reader, None)
        except csv.Error as error:
            raise refuse(f"the text is not CSV: {error}", "Check the quotes around this place.", row) from None
        except UnicodeDecodeError:
            head = 1 if self.kind == ".csv" else 0
            raise refuse("the text is not UTF-8", "Save the file as UTF-8.", self._undecodable(head)) from None
        except _Strange as error:
            raise refuse(str(error), "Is this a text file with one row per line?", row) from None
        except (OSError, EOFError, zlib.error) as error:
            raise refuse(f"the file cannot be read: {error!s:.100}", "Is it cut short?", row) from None

    @staticmethod
    def _lines(file: Any) -> Iterator[str]:
        """The lines of a text, none of them longer than a row can be."""
        while line := file.readline(_LONGEST):
            if len(line) == _LONGEST and line[-1] not in "\r\n":
                raise _Strange(f"a line has more than {_LONGEST:,} letters")
            if "\0" in line:
                raise _Strange("the line holds a NUL byte")
            yield line

    def _undecodable(self, head: int) -> int:
        """The first row that is not UTF-8; the decoder itself reads far ahead and cannot tell."""
        opener: Any = gzip.open if Path(self.given).suffix.lower() == ".gz" else open
        with opener(self.given, "rb") as file:
            for number, line in enumerate(file, 1 - head):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return number
        return 0

    def _json_lines(self, faults: Faults) -> Iterator[Piece]:
        with self._opened() as file:
            lines = self._lines(file)
            first, row, held, numbers = 1, 0, [], []
            names: dict[str, None] = {}
            while True:
                line = self._next(lines, row + 1)
                if line is not None and line.strip():
                    row += 1
                    event = _json_object(line, row, faults)
                    if event is not None:
                        held.append(event)
                        numbers.append(row)
                        names.update(dict.fromkeys(event))
                if held and (len(held) == PIECE or line is None):
                    columns = {name: [event.get(name) for event in held] for name in names}
                    yield Piece(first, columns, np.array(numbers, np.int64))
                    first, held, numbers = row + 1, [], []
                if line is None:
                    return

    def _journal(self, chances: bool) -> Iterator[Piece]:
        from driftbandit.live.export import rows_of

        first = 1
        with rows_of(self.given, self.bandit, "arm" if chances else "none") as rows:
            while held := list(islice(rows, PIECE)):
                columns: dict[str, Any] = {name: [row[name] for row in held] for name in held[0]}
                columns["time"] = np.array(columns["time"], "datetime64[us]")
                columns["reward_time"] = [
                    None if at is None else np.datetime64(at, "us").item() for at in columns["reward_time"]
                ]
                yield Piece(first, columns, np.arange(first, first + len(held)))
                first += len(held)

    def _arrow(self) -> Iterator[Piece]:
        if importlib.util.find_spec("pyarrow") is None:
            raise ImportError("Parquet and data frames need pyarrow: pip install 'driftbandit[lab]'.", name="pyarrow")
        import pyarrow as pa
        import pyarrow.parquet as parquet

        try:
            if self.kind == ".parquet":
                file = parquet.ParquetFile(self.given)
                batches, names = file.iter_batches(batch_size=PIECE), file.schema_arrow.names
            else:
                stream = pa.RecordBatchReader.from_stream(self.given)
                batches, names = iter(stream), stream.schema.names
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise refuse(f"two columns are named {twice!r:.60}", "Column names must differ.")
            first = 1
            for whole in batches:
                for start in range(0, max(len(whole), 1), PIECE):
                    batch = whole.slice(start, PIECE)
                    columns = {name: batch.column(at) for at, name in enumerate(names)}
                    yield Piece(first, columns, np.arange(first, first + len(batch)))
                    first += len(batch)
        except (pa.ArrowException, OSError) as error:
            message = str(error).splitlines()[0]
            cure = "Is it Parquet, and whole? Write it again."
            if self.kind == "frame":
                cure = "Every column needs values of one type."
            raise refuse(f"{self.name} cannot be read: {message:.120}", cure) from None

    def _dict(self) -> Iterator[Piece]:
        columns = {str(name): column for name, column in self.given.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise refuse(
                f"the columns have different lengths: {lengths!r:.120}", "Every row needs a value in every column."
            )
        n = next(iter(lengths.values()), 0)
        for start in range(0, max(n, 1), PIECE):
            piece = {name: column[start : start + PIECE] for name, column in columns.items()}
            yield Piece(start + 1, piece, np.arange(start + 1, min(start + PIECE, n) + 1))


class _Strange(Exception):
    """A line that no text file has."""


def is_journal(given: Any) -> bool:
    """Is this the journal of a live bandit: a database's address, or a SQLite file by whatever name?"""
    if is_url(given):
        return True
    if not isinstance(given, str | Path) or not Path(given).is_file():
        return False
    with open(given, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _json_object(line: str, row: int, faults: Faults) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        faults.add("the line is not valid JSON", "Every line is one JSON object.", row, "json")
        return None
    if not isinstance(event, dict):
        faults.add("the line is not a JSON object", 'Write {"time": ..., "arm": ..., "reward": ...}.', row, "object")
        return None
    return event
