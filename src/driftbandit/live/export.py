"""The journal as a log: one row per decision with its outcome and the probability its arm had, exactly recomputed.

This is what `driftbandit.logs` reads, and what an estimate of another policy's worth needs."""

import csv
import datetime
import heapq
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from driftbandit.half_life import SECOND
from driftbandit.live.audit import Walk
from driftbandit.live.errors import StoreError, Unknown, damage_told
from driftbandit.live.journal import Journal
from driftbandit.live.opening import only_bandit, policy_maker, reading
from driftbandit.live.propensity import with_chances
from driftbandit.live.records import CHANGE, KINDS, SETTLED, WAYS, Change
from driftbandit.live.replica import latest
from driftbandit.live.settings import names_of

_LATE = 60 * SECOND  # decisions of different processes may be this much out of order
_BLOCK = 5000
_START = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
PROPENSITIES = ("none", "arm", "all")


def export(
    target: Any,
    out: Any,
    name: str | None = None,
    propensity: str = "arm",
    policies: Mapping[str, type] | None = None,
) -> int:
    """Write one bandit's log as .parquet, .csv or .jsonl, and say how many decisions it holds. The file appears whole
    or not at all."""
    if propensity not in PROPENSITIES:
        raise ValueError(f"propensity is one of {', '.join(PROPENSITIES)}; got {propensity!r:.60}.")
    path = Path(out)
    writers = {".parquet": _write_parquet, ".csv": _write_csv, ".jsonl": _write_jsonl}
    if path.suffix not in writers:
        raise ValueError(f"A log is written as .parquet, .csv or .jsonl; got {path.name!r:.60}.")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with damage_told(), rows_of(target, name, propensity, policies) as rows:
            count = writers[path.suffix](part, map(_flat, rows))
        os.replace(part, path)
        return count
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def rows_of(
    target: Any, name: str | None = None, propensity: str = "arm", policies: Mapping[str, type] | None = None
) -> Iterator[Iterator[dict[str, Any]]]:
    """One bandit's rows in order of time, while its journal is open; `name` may be left out where there is one."""
    journal = reading(target)
    try:
        found = journal.bandits()
        name = only_bandit(found) if name is None else name
        if name not in found:
            raise Unknown(f"There is no bandit {name!r:.60} in this journal.")
        yield in_order(log_rows(journal, found[name], propensity, policies))
    finally:
        journal.close()


def log_rows(
    journal: Journal, number: int, propensity: str = "arm", policies: Mapping[str, type] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows in order of what each decision knew. They end where an arm was added after the reading began: rows
    before it could not know of it. An outcome that waits to be learned is left open: while only successes are reported,
    a log of young decisions would hold nothing else."""
    everyone = _all_arms(journal, number)
    settled = _settled(journal, number)
    walk = Walk(journal, number, policies)
    known = (
        with_chances(walk.decisions())
        if propensity != "none"
        else ((made.row, made.fold.config, None, 0.0) for made in walk.decisions())
    )
    config: Any = None
    while block := list(islice(known, _BLOCK)):
        standing = journal.standing(number, [row.id for row, *_ in block])
        for row, its_config, values, error in block:
            if its_config is not config:
                config, names = its_config, [_text(name) for name in names_of(its_config)]
                active = _listed([names[slot] for slot in config.active], everyone)
                if not set(names) <= set(everyone):
                    return
            found = standing[row.id]
            waits = settled is not None and row.at > settled and found.kind is not None
            out = {
                "time": row.at, "decision": row.id, "arm": names[row.slot],
                "reward": None if waits else found.value, "reward_time": None if waits else found.came,
                "outcome": "waiting" if waits else KINDS.get(found.kind or 0), "late_reward": found.late,
                "how": WAYS[row.how], "policy": config.policy, "known": row.known,
                "available": active if row.available is None
                else _listed([names[int(slot)] for slot in row.available.split(",")], everyone),
            }  # fmt: skip
            if values is not None:
                out |= {"propensity": float(values[row.slot]), "propensity_error": float(error)}
                if propensity == "all":
                    out["probabilities"] = dict.fromkeys(everyone, 0.0)
                    for name, chance in zip(names, values, strict=True):  # a name used twice: once retired, with 0
                        out["probabilities"][name] += float(chance)
            yield out


def _settled(journal: Journal, number: int) -> int | None:
    """Until when decisions are settled, where outcomes wait for that."""
    fold, cursor, _ = latest(journal, number, policy_maker())
    settled, config = fold.settled, fold.config
    for _, event in journal.events(number, cursor):
        if event.kind == SETTLED:
            settled = max(settled, event.decided)
        elif event.kind == CHANGE:
            settled, config = min(settled, event.at), Change.read(event.body).config
    return settled if config is not None and config.holds else None


def _all_arms(journal: Journal, number: int) -> list[str]:
    """All arms there ever were, as text. A name that was retired and added again is one arm."""
    changes = journal.changes(number)
    config = Change.read(changes[-1][1].body).config if changes else None
    return [] if config is None else list(dict.fromkeys(_text(name) for name in names_of(config)))


def _listed(arms: list[str], everyone: list[str]) -> str | None:
    """The arms a decision could choose among; None, which stands for all, if they are all that the log ever had."""
    return None if len(arms) == len(everyone) else json.dumps(arms)


def _text(arm: Any) -> str:
    return arm if isinstance(arm, str) else json.dumps(arm)


def in_order(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows by time: those of different processes may come a little out of order."""
    heap: list[tuple[int, str, dict[str, Any]]] = []
    for row in rows:
        heapq.heappush(heap, (row["time"], row["decision"], row))
        while heap[0][0] < row["time"] - _LATE:
            yield heapq.heappop(heap)[2]
    while heap:
        yield heapq.heappop(heap)[2]


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with every arm's chance in a column of its own, as `driftbandit.logs` reads them."""
    return row | {f"p_{arm}": chance for arm, chance in row.pop("probabilities", {}).items()}


def _as_text(row: dict[str, Any]) -> dict[str, Any]:
    """A row for a format that has no type for times: a date with its offset, since a bare number would not say what it
    counts."""
    return row | {name: None if row[name] is None else _date(row[name]) for name in ("time", "reward_time")}


def _date(micros: int) -> str:
    return (_START + datetime.timedelta(microseconds=micros)).isoformat(timespec="microseconds")


def _write_jsonl(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(_as_text(row), allow_nan=False) + "\n")
            count += 1
    return count


def _write_csv(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer: Any = None
        for row in map(_as_text, rows):
            writer = writer or csv.DictWriter(file, list(row))
            if count == 0:
                writer.writeheader()
            writer.writerow(row)
            count += 1
    return count


def _write_parquet(path: Path, rows: Iterator[dict[str, Any]]) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise StoreError(
            "Parquet needs pyarrow: pip install 'driftbandit[lab]' brings it; .csv and .jsonl need nothing."
        ) from None
    text, moment = pa.string(), pa.timestamp("us", tz="UTC")
    fields = {
        "time": moment, "decision": text, "arm": text, "reward": pa.float64(), "reward_time": moment, "outcome": text,
        "late_reward": pa.float64(), "how": text, "policy": text, "known": pa.int64(), "available": text,
        "propensity": pa.float64(), "propensity_error": pa.float64(),
    }  # fmt: skip
    count, writer = 0, None
    try:
        while block := list(islice(rows, 20_000)):
            if writer is None:
                schema = pa.schema([(name, fields.get(name, pa.float64())) for name in block[0]])
                writer = pq.ParquetWriter(path, schema, compression="zstd")
            columns = {name: [row[name] for row in block] for name in block[0]}
            writer.write_table(pa.table(columns, schema=schema))
            count += len(block)
        if writer is None:
            writer = pq.ParquetWriter(path, pa.schema(list(fields.items())))
    finally:
        if writer is not None:
            writer.close()
    return count
