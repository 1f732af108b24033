"""What came out of an experiment: regret curves with everything needed to reproduce them. It does no plotting itself:
`plot` asks `driftbandit.lab.plots.regret`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.checks import nearest
from driftbandit.lab.stats.intervals import t_interval
from driftbandit.lab.support.files import replacing, writable

FORMAT = 1  # raised when an older program could misread a newer file
_KEY = b"driftbandit"
_COLUMNS = ("policy", "run", "round", "regret")


class ResultError(ValueError):
    """A file that holds no result we can trust; the message says why."""


class SummaryRow(NamedTuple):
    """One line of a summary: the regret at the end, its mean over the runs and a 95 % interval of that mean."""

    label: str
    policy: str
    runs: int
    mean: float
    low: float  # NaN for a single run, which says nothing about its own spread
    high: float
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Regret for each label, run and checkpoint, with a record of where it comes from.

    `provenance` is plain JSON: texts of the policies and of the environment (both can be parsed again), seed, versions,
    seconds. Run r of one label met the same world and luck as run r of another, so `final(a) - final(b)` is a paired
    difference."""

    rounds: np.ndarray  # checkpoints: numbers of rounds played
    runs: np.ndarray  # the runs' numbers, which fix their random streams
    regret: dict[str, np.ndarray]  # label: runs × checkpoints
    provenance: dict[str, Any]

    @property
    def labels(self) -> list[str]:
        """The policies' labels, in the experiment's order."""
        return list(self.regret)

    def __repr__(self) -> str:
        name = self.provenance.get("id") or "result"
        return f"<{name}: {', '.join(self.labels)}; {len(self.runs)} runs of {self.rounds[-1]} rounds>"

    def curve(self, label: str) -> np.ndarray:
        """The regret of one policy, runs × checkpoints."""
        if label not in self.regret:
            hint = nearest(label, self.labels) or "."
            raise ValueError(f"No policy {label!r} in this result{hint} It has: {', '.join(self.labels)}.")
        return self.regret[label]

    def final(self, label: str) -> np.ndarray:
        """The regret of one policy at the end, one number per run."""
        return self.curve(label)[:, -1]

    def mean(self, label: str) -> np.ndarray:
        """The mean over runs at each checkpoint."""
        return np.asarray(self.curve(label).mean(axis=0))

    def interval(self, label: str, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of Student's t-interval for the mean at each checkpoint; NaN if there is one run only."""
        return t_interval(self.curve(label), level)

    def summary(self) -> list[SummaryRow]:
        """One row per policy, in the experiment's order."""
        rows = []
        for label in self.labels:
            final = self.final(label)
            low, high = t_interval(final)
            text, seconds = (self.provenance.get(key, {}).get(label) for key in ("policies", "seconds"))
            rows.append(
                SummaryRow(
                    label, text or label, len(final), float(final.mean()), float(low), float(high), seconds or 0.0
                )
            )
        return rows

    def frame(self, backend: str | None = None) -> Any:
        """One row per policy, run and round, as a data frame of the first of pandas, Polars and PyArrow that is
        installed, or of the one named."""
        from driftbandit.lab.experiments.result_view import frame

        return frame(self, backend)

    def plot(self, path: str | Path | None = None, title: str | None = None) -> Any:
        """The regret curves as a matplotlib figure; with a path, drawn to that file."""
        from driftbandit.lab.plots import regret

        return regret.draw(self, title) if path is None else regret.plot(self, path, title)

    def merged(self, *others: "Result") -> "Result":
        """This result and others that differ from it only in their runs, as one."""
        from driftbandit.lab.experiments.result_view import merged

        whole: Result = merged(self, *others)
        return whole

    def _repr_html_(self) -> str:
        from driftbandit.lab.experiments.result_view import to_html

        return to_html(self)

    def save(self, path: str | Path) -> Path:
        """Write Parquet with one row per policy, run and round; any tool that reads Parquet can read it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = writable(path)
        labels, runs, marks = len(self.regret), len(self.runs), len(self.rounds)
        columns = {
            "policy": pa.DictionaryArray.from_arrays(
                np.repeat(np.arange(labels, dtype=np.int32), runs * marks), self.labels
            ),
            "run": np.tile(np.repeat(np.asarray(self.runs, np.int64), marks), labels),
            "round": np.tile(np.asarray(self.rounds, np.int64), labels * runs),
            "regret": np.concatenate([self.regret[label].ravel() for label in self.labels]),
        }
        note = json.dumps({"format": FORMAT, "labels": self.labels, **self.provenance})
        table = pa.table(columns).replace_schema_metadata({_KEY: note.encode()})
        with replacing(path) as draft:
            pq.write_table(table, draft, compression="zstd", write_page_checksum=True)
        return path

    @classmethod
    def load(cls, path: str | Path) -> "Result":
        """Read what `save` wrote; the rows may have been put into another order, but none may be missing or damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = Path(path)
        try:
            table = pq.ParquetFile(path, page_checksum_verification=True).read()
        except FileNotFoundError:
            raise ResultError(f"There is no file {str(path)!r}.") from None
        except (pa.ArrowException, OSError, ValueError):
            raise ResultError(f"{str(path)!r} is no Parquet file, or is damaged.") from None
        note = _note(path, (table.schema.metadata or {}).get(_KEY))
        if not set(_COLUMNS) <= set(table.column_names):
            raise ResultError(f"{str(path)!r} lacks a column: a result has {', '.join(_COLUMNS)}.")
        return _pivoted(path, table, note)


def _note(path: Path, raw: bytes | None) -> dict[str, Any]:
    """The provenance in a file's metadata, if it is ours."""
    try:
        note = json.loads(raw or b"")
        form, labels = note.pop("format"), note["labels"]
    except (ValueError, KeyError, AttributeError, TypeError):
        raise ResultError(f"{str(path)!r} is a Parquet file, but not a result of driftbandit.") from None
    if form != FORMAT:
        raise ResultError(f"{str(path)!r} has format {form}, this version reads {FORMAT}; update driftbandit.")
    if not isinstance(labels, list) or not labels:
        raise ResultError(f"{str(path)!r} names no policies.")
    return dict(note)


def _pivoted(path: Path, table: Any, note: dict[str, Any]) -> Result:
    """The tidy rows as one array per policy."""
    import pyarrow as pa

    labels: list[str] = note.pop("labels")
    place = {label: number for number, label in enumerate(labels)}
    try:
        coded = pa.chunked_array(table["policy"].cast(pa.string())).combine_chunks().dictionary_encode()
        codes = np.array([place[name] for name in coded.dictionary.to_pylist()] or [0], np.int64)
        policy = codes[coded.indices.to_numpy(zero_copy_only=False)]
        run, rounds = (table[name].to_numpy().astype(np.int64) for name in ("run", "round"))
        regret = table["regret"].to_numpy().astype(np.float64)
    except (pa.ArrowException, KeyError, IndexError, TypeError, ValueError):
        raise ResultError(f"{str(path)!r} has columns that are not those of a result.") from None
    order = np.lexsort((rounds, run, policy))
    runs, marks = np.unique(run), np.unique(rounds)
    shape = (len(labels), len(runs), len(marks))
    expected = np.broadcast_arrays(np.arange(len(labels))[:, None, None], runs[:, None], marks)
    whole = len(order) == np.prod(shape) and len(order) > 0 and np.isfinite(regret).all()
    if not whole or any(
        (part[order] != want.ravel()).any() for part, want in zip((policy, run, rounds), expected, strict=True)
    ):
        raise ResultError(
            f"{str(path)!r} is incomplete: some policy, run or round is missing, repeated or not a number."
        )
    values = regret[order].reshape(shape)
    return Result(marks, runs, {label: values[place[label]] for label in labels}, note)
