"""Where the rows of a log come from, and what is wrong with them.

CSV and Parquet files and data frames go through pyarrow, JSON lines through the standard library; journals and dicts of
columns need NumPy only. Rows are read some at a time, and no line may have more than a megabyte, so a small .gz file
cannot fill the memory. No file is opened but the one that was named."""

import codecs
import csv
import gzip
import importlib.util
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.live.opening import is_url

PIECE = 1 << 16  # rows read together
_ENDINGS = (".csv", ".jsonl", ".ndjson", ".parquet")
_LONGEST = 1 << 20  # bytes of a line
_DELIMITERS = ",;\t|"
_SQLITE = b"SQLite format 3\0"
_NAT = np.iinfo(np.int64).min
_SHOWN = 6  # kinds of fault in one message; the others are counted


class Fault(NamedTuple):
    """One kind of fault: what is wrong, in how many rows, and the first of them."""

    what: str  # "reward is NaN"
    cure: str  # what to do about it
    row: int  # the first such row, counted from 1 without the head; 0 if the fault is in no row
    rows: int = 1

    def __str__(self) -> str:
        where = f"Row {self.row}: " if self.row else ""
        more = f" (and {self.rows - 1} more such row{'s' if self.rows > 2 else ''})" if self.rows > 1 else ""
        sentence = f"{where}{self.what}{more}. {self.cure}".strip()
        return sentence[0].upper() + sentence[1:] if sentence.split()[0].isalpha() else sentence


class LogError(ValueError):
    """A log that cannot be used; `faults` holds every kind of fault with its first row."""

    def __init__(self, faults: list[Fault], name: str = "") -> None:
        self.faults = sorted(faults, key=lambda fault: fault.row)
        lines = [str(fault) for fault in self.faults[:_SHOWN]]
        if len(self.faults) > _SHOWN:
            lines.append(f"And {len(self.faults) - _SHOWN} more kinds of fault.")
        super().__init__((f"{name}: " if name else "") + "\n".join(lines))


class Faults:
    """The faults found so far: one entry per kind, so ten million bad rows take no more memory than one."""

    LIMIT = 50  # kinds

    def __init__(self) -> None:
        self._kinds: dict[str, Fault] = {}

    def add(self, what: str, cure: str, rows: "int | np.ndarray" = 0, kind: str = "") -> None:
        """Record a fault in one row or in an array of rows; `kind` groups faults whose words differ by row."""
        several = np.atleast_1d(rows)
        if not len(several):
            return
        held = self._kinds.get(kind or what)
        if held is not None:
            first = min(held.row, int(several[0]))
            self._kinds[kind or what] = held._replace(rows=held.rows + len(several), row=first)
        elif len(self._kinds) < self.LIMIT:
            self._kinds[kind or what] = Fault(what, cure, int(several[0]), len(several))

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def raise_if_any(self, name: str = "") -> None:
        """Refuse the log if anything was wrong with it."""
        if self._kinds:
            raise LogError(list(self._kinds.values()), name)


def refuse(what: str, cure: str, row: int = 0) -> LogError:
    """A single fault, to be raised at once."""
    return LogError([Fault(what, cure, row)])


class Piece(NamedTuple):
    """Some consecutive rows: raw columns by name (lists, NumPy or Arrow arrays), and the rows' numbers from 1."""

    columns: dict[str, Any]
    rows: np.ndarray


class Source:
    """Something with rows, to be read once from the beginning."""

    def __init__(self, given: Any, bandit: str | None = None, delimiter: str | None = None) -> None:
        self.given, self.bandit, self.delimiter = given, bandit, delimiter
        self.name = "the log"
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise refuse(f"{delimiter!r:.20} is not a delimiter", "A delimiter is one character, as in ; or |.")
        if is_journal(given):
            self.kind = "journal"
            self.name = bandit or ("the journal" if is_url(given) else Path(given).name)
            return
        if bandit is not None:
            raise refuse("this log is not a journal", f"The bandit {bandit!r:.60} can only be looked for in a journal.")
        if isinstance(given, str | Path):
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
        endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
        kind = endings[-1] if endings else ""
        if kind not in _ENDINGS:
            raise refuse(
                f"the name {path.name!r:.60} does not show the format",
                f"A log is a file ending in {', '.join(_ENDINGS)} (.csv.gz and .jsonl.gz too), a data frame, or the "
                "journal of a live bandit.",
            )
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise refuse(f"{str(path)!r:.200} {what}", "Name a file with one row per decision.")
        return kind

    @property
    def decimal_comma(self) -> bool:
        """May numbers be written as 0,25? Only where commas do not separate fields."""
        return self.kind == ".csv" and self.delimiter != ","

    def pieces(self, faults: Faults, used: Callable[[list[str]], list[str]], probabilities: bool) -> Iterator[Piece]:
        """The rows, some at a time. `used` checks the names of all columns and returns those to read; a journal's
        probabilities are recomputed unless they are not needed."""
        if self.kind == "journal":
            return self._journal(used, probabilities)
        if self.kind == "dict":
            return self._dict(used)
        if self.kind in (".jsonl", ".ndjson"):
            return self._json_lines(faults, used)
        if importlib.util.find_spec("pyarrow") is None:
            what = "A data frame" if self.kind == "frame" else f"A {self.kind} file"
            raise ImportError(f"{what} is read with pyarrow: pip install 'driftbandit[lab]'.", name="pyarrow")
        return self._csv(faults, used) if self.kind == ".csv" else self._arrow(used)

    def _opened(self) -> Any:
        path = Path(self.given)
        return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")

    def _head(self) -> list[str]:
        """The names of a CSV file's columns; the delimiter is found here if nobody named it."""
        try:
            with self._opened() as file:
                line, *rest = re.split(rb"[\r\n]", file.read(_LONGEST), maxsplit=1)
        except (OSError, EOFError, zlib.error) as error:
            raise refuse(f"the file cannot be read: {error!s:.100}", "Is it cut short?") from None
        if len(line) == _LONGEST and not rest:
            raise _too_long()
        try:
            text = line.removeprefix(codecs.BOM_UTF8).decode()
        except UnicodeDecodeError:
            raise refuse("the text is not UTF-8", "Save the file as UTF-8.") from None
        if self.delimiter is None:
            self.delimiter = max(_DELIMITERS, key=text.count)
        head = [name.strip() for name in next(csv.reader([text], delimiter=self.delimiter), [])]
        if not any(head):
            raise refuse(f"{self.name} is empty", "A CSV log begins with a line of column names.")
        return _different(head)

    def _csv(self, faults: Faults, used: Callable[[list[str]], list[str]]) -> Iterator[Piece]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        head = self._head()
        names, bad = used(head), []

        def skip(row: Any) -> str:
            number = int(row.number) - 1  # the head is the first
            bad.append(number)
            faults.add(
                f"{row.actual_columns} fields where the head has {row.expected_columns}",
                "Every row needs as many fields as there are column names.",
                number,
                "fields",
            )
            return "skip"

        first = 1
        try:
            with self._opened() as file:
                reader = arrow_csv.open_csv(
                    file,
                    arrow_csv.ReadOptions(use_threads=False, block_size=_LONGEST, skip_rows=1, column_names=head),
                    arrow_csv.ParseOptions(delimiter=self.delimiter, invalid_row_handler=skip),
                    arrow_csv.ConvertOptions(column_types=dict.fromkeys(head, pa.string()), include_columns=names),
                )
                for batch in reader:
                    numbers = np.setdiff1d(np.arange(first, first + len(batch) + len(bad)), bad)[: len(batch)]
                    first = int(numbers[-1]) + 1 if len(numbers) else first
                    bad = [number for number in bad if number >= first]
                    yield Piece(dict(zip(names, batch.columns, strict=True)), numbers)
        except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
            if "Empty CSV" in message:
                return
            if "straddl" in message:
                raise _too_long(first) from None
            if "UTF8" in message:
                raise refuse("the text is not UTF-8", "Save the file as UTF-8.", first) from None
            raise refuse(
                f"the file cannot be read: {message:.100}", "Is it whole, and are its quotes closed?"
            ) from None

    def _json_lines(self, faults: Faults, used: Callable[[list[str]], list[str]]) -> Iterator[Piece]:
        names: list[str] | None = None
        row, held, numbers = 0, [], []
        with self._opened() as file:
            while True:
                try:
                    line = file.readline(_LONGEST)
                except (OSError, EOFError, zlib.error) as error:
                    raise refuse(f"the file cannot be read: {error!s:.100}", "Is it cut short?", row) from None
                if len(line) == _LONGEST:
                    raise _too_long(row + 1)
                if line.strip():
                    row += 1
                    event = _json_object(line, row, faults)
                    if event is not None:
                        held.append(event)
                        numbers.append(row)
                if held and (len(held) == PIECE or not line):
                    there = list(dict.fromkeys(name for event in held for name in event))
                    names = used(there) if names is None else names
                    yield Piece({name: [event.get(name) for event in held] for name in names}, np.array(numbers))
                    held, numbers = [], []
                if not line:
                    return

    def _journal(self, used: Callable[[list[str]], list[str]], probabilities: bool) -> Iterator[Piece]:
        from driftbandit.live.export import rows_of

        first = 1
        with rows_of(self.given, self.bandit, "arm" if probabilities else "none") as rows:
            while held := list(islice(rows, PIECE)):
                names = used(list(held[0]))
                columns: dict[str, Any] = {name: [row[name] for row in held] for name in names}
                for name in ("time", "reward_time"):
                    if name in columns:  # microseconds since 1970
                        raw = [_NAT if at is None else at for at in columns[name]]
                        columns[name] = np.array(raw, np.int64).view("datetime64[us]")
                yield Piece(columns, np.arange(first, first + len(held)))
                first += len(held)

    def _arrow(self, used: Callable[[list[str]], list[str]]) -> Iterator[Piece]:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        first = 1
        try:
            if self.kind == ".parquet":
                file = parquet.ParquetFile(self.given)
                names = used(_different(file.schema_arrow.names))
                batches: Any = file.iter_batches(batch_size=PIECE, columns=names)
            else:
                batches = pa.RecordBatchReader.from_stream(self.given)
                names = used(_different(batches.schema.names))
            for whole in batches:
                for start in range(0, len(whole), PIECE):
                    batch = whole.slice(start, PIECE)
                    columns = {name: batch.column(name) for name in names}
                    yield Piece(columns, np.arange(first, first + len(batch)))
                    first += len(batch)
        except (pa.ArrowException, OSError) as error:
            cure = "Every column needs values of one type." if self.kind == "frame" else "Is it Parquet, and whole?"
            raise refuse(f"{self.name} cannot be read: {str(error).splitlines()[0]:.120}", cure) from None

    def _dict(self, used: Callable[[list[str]], list[str]]) -> Iterator[Piece]:
        columns = {str(name): column for name, column in self.given.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise refuse(
                f"the columns have different lengths: {lengths!r:.120}", "Every row needs a value in every column."
            )
        names, n = used(list(columns)), next(iter(lengths.values()), 0)
        for start in range(0, n, PIECE):
            piece = {name: columns[name][start : start + PIECE] for name in names}
            yield Piece(piece, np.arange(start + 1, min(start + PIECE, n) + 1))


def is_journal(given: Any) -> bool:
    """Is this the journal of a live bandit: a database's address, or a SQLite file by whatever name?"""
    if is_url(given):
        return True
    if not isinstance(given, str | Path) or not Path(given).is_file():
        return False
    with open(given, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _different(names: list[str]) -> list[str]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise refuse(f"two columns are named {twice!r:.60}", "Column names must differ.")
    return names


def _too_long(row: int = 0) -> LogError:
    return refuse(f"a line has more than {_LONGEST:,} bytes", "Is this a text file with one row per line?", row)


def _json_object(line: bytes, row: int, faults: Faults) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # of which text that is not UTF-8 is one
        faults.add("the line is not valid JSON", "Every line is one JSON object, as UTF-8.", row, "json")
        return None
    if not isinstance(event, dict):
        faults.add("the line is not a JSON object", 'Write {"time": ..., "arm": ..., "reward": ...}.', row, "object")
        return None
    return event
