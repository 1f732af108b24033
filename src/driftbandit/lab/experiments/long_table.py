"""The long table of a result (environment, policy, run, round, regret) in memory and in a Parquet file."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.jobs.work import Cell, Part
from driftbandit.lab.support.files import encoded, save_columns

FORMAT = 2  # raised when a reader of the old format could misread a new file
COLUMNS = ("environment", "policy", "run", "round", "regret")
_KEY = b"driftbandit"


class ResultError(ValueError):
    """A file that does not hold a complete result; the message says why."""


def columns(every: Sequence[Part], runs: np.ndarray, final: bool = False) -> dict[str, Any]:
    """The long table; swept parameters have columns of their own, `policy.gamma` or `environment.gap`."""
    parts = [part._replace(rounds=part.rounds[-1:], regret=part.regret[:, -1:]) if final else part
             for part in every]  # fmt: skip
    sizes = [part.regret.size for part in parts]
    out: dict[str, Any] = {}
    for kind in ("environment", "policy"):
        out[kind] = _repeated([getattr(part, kind) for part in parts], sizes)
        values = [getattr(part.cell, f"{kind}_values") for part in parts]
        for name in dict.fromkeys(name for own in values for name in own):
            out[f"{kind}.{name}"] = _repeated([own.get(name) for own in values], sizes)
    runs = np.asarray(runs, np.int64)
    out["run"] = np.concatenate([np.repeat(runs, len(part.rounds)) for part in parts])
    out["round"] = np.concatenate([np.tile(np.asarray(part.rounds, np.int64), len(runs)) for part in parts])
    out["regret"] = np.concatenate([part.regret.ravel() for part in parts])
    return out


def write_table(every: Sequence[Part], runs: np.ndarray, provenance: Mapping[str, Any], path: Path) -> Path:
    """Write the long table, with everything that is needed to make it again in the file's metadata."""
    parts = [
        {
            "names": [part.cell.policy_name, part.cell.environment_name],
            "values": [_plain(part.cell.policy_values), _plain(part.cell.environment_values)],
            "texts": part.texts(),
            "seconds": part.seconds,
        }
        for part in every
    ]
    table = {name: encoded(column) for name, column in columns(every, runs).items() if name in COLUMNS}
    return save_columns(table, path, {"format": FORMAT, "parts": parts, **provenance}, _KEY)


def read_table(path: Path) -> tuple[list[Part], np.ndarray, dict[str, Any]]:
    """Parts, runs and provenance of a file; a file that is not complete is refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
    except FileNotFoundError:
        raise ResultError(f"There is no file {str(path)!r}.") from None
    except (pa.ArrowException, OSError, ValueError):
        raise ResultError(f"{str(path)!r} is not a Parquet file, or it is damaged.") from None
    note, parts = _note(path, (table.schema.metadata or {}).get(_KEY))
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise ResultError(f"{str(path)!r} has no column {missing[0]!r}; a result has {', '.join(COLUMNS)}.")
    return *_pivoted(path, table, parts), note


def _note(path: Path, raw: bytes | None) -> tuple[dict[str, Any], list[tuple[Cell, float]]]:
    """The provenance and the cells in a file's metadata."""
    try:
        note = json.loads(raw or b"")
        form = note.pop("format")
        if form != FORMAT:
            raise ResultError(
                f"{str(path)!r} has format {form}; this version of driftbandit reads format {FORMAT} only."
            )
        parts = [(_cell(one), float(one["seconds"])) for one in note.pop("parts")]
        if not parts:
            raise KeyError("parts")
        labels = [(cell.world, cell.label) for cell, _ in parts]
    except ResultError:
        raise
    except (ValueError, KeyError, AttributeError, TypeError):
        raise ResultError(f"{str(path)!r} is a Parquet file, but not a result of driftbandit.") from None
    if len(set(labels)) < len(labels):
        raise ResultError(f"{str(path)!r} names a policy twice in one environment.")
    return dict(note), parts


def _cell(one: Mapping[str, Any]) -> Cell:
    policy, environment = (str(text) for text in one["texts"])
    name, place = (str(text) for text in one["names"])
    own, others = (dict(values) for values in one["values"])
    return Cell(
        policy, environment, policy_name=name, environment_name=place, policy_values=own, environment_values=others
    )


def _pivoted(path: Path, table: Any, parts: list[tuple[Cell, float]]) -> tuple[list[Part], np.ndarray]:
    """The long rows as one array per part."""
    import pyarrow as pa

    places = {(cell.world, cell.label): number for number, (cell, _) in enumerate(parts)}
    try:
        texts = [pa.chunked_array(table[name].cast(pa.string())).combine_chunks().dictionary_encode()
                 for name in ("environment", "policy")]  # fmt: skip
        first, second = (np.asarray(text.indices.to_numpy(zero_copy_only=False)) for text in texts)
        names = [text.dictionary.to_pylist() for text in texts]
        pairs, inverse = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
        known = [places[names[0][a], names[1][b]] for a, b in pairs.T]
        code = np.array(known, np.int64)[inverse.ravel()] if len(first) else np.zeros(0, np.int64)
        run, rounds = (table[name].to_numpy().astype(np.int64) for name in ("run", "round"))
        regret = table["regret"].to_numpy().astype(np.float64)
    except (pa.ArrowException, KeyError, IndexError, TypeError, ValueError):
        raise ResultError(f"{str(path)!r} has columns that are not those of a result.") from None
    order = np.lexsort((rounds, run, code))
    runs, sizes = np.unique(run), np.bincount(code, minlength=len(parts))
    made, start = [], 0
    for (cell, seconds), size in zip(parts, sizes, strict=True):
        rows, start = order[start : start + size], start + size
        marks = np.unique(rounds[rows])
        whole = 0 < size == len(runs) * len(marks) and np.isfinite(regret[rows]).all()
        if (
            not whole
            or (run[rows] != np.repeat(runs, len(marks))).any()
            or (rounds[rows] != np.tile(marks, len(runs))).any()
        ):
            raise ResultError(f"{str(path)!r} is incomplete: a row is missing, repeated or not a number.")
        made.append(Part(cell, marks, regret[rows].reshape(len(runs), len(marks)), seconds))
    return made, runs


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Swept values as JSON has them."""
    return {name: value if isinstance(value, int | float | str) else str(value) for name, value in values.items()}


def _repeated(values: list[Any], sizes: list[int]) -> list[Any]:
    return [value for value, size in zip(values, sizes, strict=True) for _ in range(size)]
