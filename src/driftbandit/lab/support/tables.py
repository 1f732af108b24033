"""Tables on their way out: CSV, Markdown, Parquet, and data frames of whichever library the user has."""

import csv
import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.support.files import replacing, writable

NOTE = b"driftbandit"  # where in a Parquet file's metadata the note stands
BACKENDS = ("pandas", "polars", "pyarrow")  # in the order in which they are looked for


def to_frame(columns: Mapping[str, Any], backend: str | None = None) -> Any:
    """The columns as a pandas, Polars or PyArrow table: the one asked for, else the first that is installed.

    >>> to_frame({"run": [0, 1], "regret": [1.5, 2.5]}, "pyarrow").column_names
    ['run', 'regret']
    """
    if backend is None:
        backend = next((name for name in BACKENDS if importlib.util.find_spec(name) is not None), "pyarrow")
    if backend not in BACKENDS:
        raise ValueError(f"A frame is made by one of {', '.join(BACKENDS)}; got {backend!r}.")
    if importlib.util.find_spec(backend) is None:
        raise ImportError(f"This needs {backend}: pip install {backend}.", name=backend)
    plain = {name: column if isinstance(column, np.ndarray) else list(column) for name, column in columns.items()}
    library = importlib.import_module(backend)
    return library.table(plain) if backend == "pyarrow" else library.DataFrame(plain)


def save_rows(head: Sequence[str], rows: Sequence[Sequence[Any]], path: str | Path) -> Path:
    """A table as CSV, or as Markdown when the name ends in .md."""
    path = writable(path, (".csv", ".md"))
    with replacing(path) as draft, open(draft, "w", newline="", encoding="utf-8") as out:
        if path.suffix == ".csv":
            csv.writer(out, lineterminator="\n").writerows([head, *rows])
        else:
            for line in [head, ["---"] * len(head), *rows]:
                out.write("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n")
    return path


def save_columns(columns: Mapping[str, Any], path: str | Path, note: Mapping[str, Any], key: bytes = NOTE) -> Path:
    """Columns of equal length as Parquet, with where they come from as JSON in the file's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = writable(path, (".parquet",))
    made = pa.table(dict(columns)).replace_schema_metadata({key: json.dumps(dict(note)).encode()})
    with replacing(path) as draft:
        pq.write_table(made, draft, compression="zstd", write_page_checksum=True)
    return path


def encoded(column: Any) -> Any:
    """The column for `save_columns`, with texts that repeat stored once."""
    import pyarrow as pa

    if isinstance(column, np.ndarray) or not any(isinstance(value, str) for value in column):
        return pa.array(column)
    return pa.array([None if value is None else str(value) for value in column]).dictionary_encode()


def note_in(path: str | Path, key: bytes = NOTE) -> dict[str, Any]:
    """What is noted in a Parquet file of ours; nothing if it is absent, damaged or not ours."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = json.loads((pq.read_schema(path).metadata or {})[key])
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return {}
    return found if isinstance(found, dict) else {}
