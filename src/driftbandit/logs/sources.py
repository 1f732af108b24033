"""Where the rows of a log come from: CSV, JSON lines, Parquet, a data frame or a dict of columns, a piece at a time.

A piece is a dict of raw columns; nothing is converted here but what the format itself says. Reading a piece at a time
is what keeps a log of ten million rows in the memory of one piece."""

import csv
import gzip
import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs.faults import Faults, refuse

PIECE = 1 << 16  # rows read together
_ENDINGS = (".csv", ".jsonl", ".ndjson", ".parquet")


class Piece(NamedTuple):
    """Some consecutive rows: raw columns by name, and the number of the first row (1 is the first of the log)."""

    first: int
    columns: dict[str, Any]  # lists of texts or of JSON values, NumPy arrays, or Arrow arrays
    rows: np.ndarray  # the rows' numbers; a row that could not be read at all is missing

    def __len__(self) -> int:
        return len(self.rows)


class Source:
    """Something with rows: `columns` names what there is, `pieces` reads it from the beginning, as often as asked."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = "the log"
        if isinstance(given, str | Path):
            path = Path(given)
            self.name = path.name
            endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
            self.kind = endings[-1] if endings else ""
            if self.kind not in _ENDINGS:
                raise refuse(
                    f"the name {path.name!r:.60} does not say what it is",
                    f"A log is a file ending in {', '.join(_ENDINGS)} (.csv.gz and .jsonl.gz too), or a data frame.",
                )
            if not path.is_file():
                what = "is a folder" if path.is_dir() else "does not exist"
                raise refuse(f"{str(path)!r:.200} {what}", "Name a file with one row a decision.")
        elif isinstance(given, Mapping):
            self.kind = "dict"
        elif hasattr(given, "__arrow_c_stream__"):
            self.kind = "frame"
        else:
            raise refuse(
                f"a log cannot be made of {type(given).__name__}",
                "Give the path of a file, a data frame (pandas, Polars, Arrow, DuckDB) or a dict of columns.",
            )

    def pieces(self, faults: Faults) -> Iterator[Piece]:
        """The rows, a piece at a time."""
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
            reader = csv.reader(file, strict=True)
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

    def _next(self, reader: Any, row: int) -> list[str] | None:
        try:
            return next(reader, None)
        except csv.Error as error:
            raise refuse(f"the text is not CSV: {error}", "Check the quotes around this place.", row) from None
        except UnicodeDecodeError:
            raise refuse("the text is not UTF-8", "Save the file as UTF-8.", self._undecodable(1)) from None
        except (OSError, EOFError) as error:
            raise refuse(f"the file cannot be read: {error!s:.100}", "Is it cut short?", row) from None

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
            first, row, held, numbers = 1, 0, [], []
            names: dict[str, None] = {}
            while True:
                try:
                    line = file.readline()
                except UnicodeDecodeError:
                    raise refuse("the text is not UTF-8", "Save the file as UTF-8.", self._undecodable(0)) from None
                except (OSError, EOFError) as error:
                    raise refuse(f"the file cannot be read: {error!s:.100}", "Is it cut short?", row + 1) from None
                if line.strip():
                    row += 1
                    event = _json_object(line, row, faults)
                    if event is not None:
                        held.append(event)
                        numbers.append(row)
                        names.update(dict.fromkeys(event))
                if held and (len(held) == PIECE or not line):
                    columns = {name: [event.get(name) for event in held] for name in names}
                    yield Piece(first, columns, np.array(numbers, np.int64))
                    first, held, numbers = row + 1, [], []
                if not line:
                    return

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
            raise refuse(
                f"{self.name} cannot be read: {message:.120}", "Is it Parquet, and whole? Write it again."
            ) from None

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
