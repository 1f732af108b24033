"""A log in a file, as Parquet, CSV or JSON lines, or as batches of Arrow."""

import contextlib
import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from driftbandit.bandit.features import Feature
from driftbandit.bandit.records import as_datetime
from driftbandit.errors import StoreError

_BATCH = 20_000  # rows of a batch of Arrow


def check_suffix(path: Path) -> None:
    """Refuse a file of any other format."""
    if path.suffix not in (".parquet", ".csv", ".jsonl"):
        raise ValueError(f"A log is written as .parquet, .csv or .jsonl; got {path.name!r:.60}.")


def write_whole(path: Path, rows: Iterator[dict[str, Any]], features: Mapping[str, Feature]) -> int:
    """Write rows with these features to a file that appears whole or not at all, and is on the disk afterwards; their
    number."""
    writers: dict[str, Callable[[Path, Iterator[dict[str, Any]]], int]]
    writers = {".parquet": partial(_write_parquet, features), ".csv": _write_csv, ".jsonl": _write_jsonl}
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        count = writers[path.suffix](part, map(flatten, rows))
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        os.replace(part, path)
        sync_folder(path.parent)
        return count
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Put the names of new files in a folder on the disk, where the system can flush a folder."""
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def flatten(row: dict[str, Any]) -> dict[str, Any]:
    """A row with one column for the probability of each arm."""
    return row | {f"p_{arm}": probability for arm, probability in row.pop("probabilities", {}).items()}


def _with_dates(row: dict[str, Any]) -> dict[str, Any]:
    """A row for a format that has no type for times."""
    dates = {
        name: None if row[name] is None else as_datetime(row[name]).isoformat(timespec="microseconds")
        for name in ("time", "reward_time")
    }
    return row | dates


def _write_jsonl(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in map(_with_dates, rows):
            file.write(json.dumps(row, allow_nan=False) + "\n")
            count += 1
    return count


def _write_csv(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for count, row in enumerate(map(_with_dates, rows), 1):
            if count == 1:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow(row)
    return count


def _write_parquet(features: Mapping[str, Feature], path: Path, rows: Iterator[dict[str, Any]]) -> int:
    batches, count = arrow_batches(rows, features), 0
    schema = next(batches)
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def arrow_batches(rows: Iterator[dict[str, Any]], features: Mapping[str, Feature]) -> Iterator[Any]:
    """The schema, and then the rows as batches of Arrow. A feature has the type of its kind."""
    try:
        import pyarrow as pa
    except ImportError:
        raise StoreError(
            "Parquet and Arrow need pyarrow: pip install '.[lab]' installs it; .csv and .jsonl do not need it."
        ) from None
    text, moment = pa.string(), pa.timestamp("us", tz="UTC")
    fields = {
        "time": moment, "decision": text, "arm": text, "reward": pa.float64(), "reward_time": moment, "outcome": text,
        "late_reward": pa.float64(), "how": text, "policy": text, "known": pa.int64(), "available": text,
        "propensity": pa.float64(), "propensity_error": pa.float64(), "candidates": text, "propensities": text,
    }  # fmt: skip
    for feature in features.values():
        fields[f"x_{feature.name}"] = {"levels": text, "flag": pa.bool_()}.get(feature.kind, pa.float64())
    block = list(islice(rows, _BATCH))
    schema = pa.schema([(name, fields.get(name, pa.float64())) for name in (block[0] if block else fields)])
    yield schema
    while block:
        columns = {name: [row[name] for row in block] for name in schema.names}
        yield pa.RecordBatch.from_pydict(columns, schema=schema)
        block = list(islice(rows, _BATCH))
