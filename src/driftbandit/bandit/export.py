"""A journal as a log for `driftbandit.logs`: one row per decision with its outcome and its arm's exact probability; as
Parquet, CSV or JSON lines, or as batches of Arrow."""

import contextlib
import csv
import heapq
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.bandit import records
from driftbandit.bandit.audit import Known, Walk
from driftbandit.bandit.candidates import parse_candidates, split_context
from driftbandit.bandit.features import Feature, Features
from driftbandit.bandit.journal import Journal
from driftbandit.bandit.opening import bandit_number, only_bandit, reading
from driftbandit.bandit.probabilities import mix_rules
from driftbandit.bandit.records import Change, DecisionRow, StoredConfig
from driftbandit.bandit.replica import Replica
from driftbandit.bandit.settings import names_of
from driftbandit.errors import StoreError, report_damage
from driftbandit.spec.half_life import SECOND

_LATE = 60 * SECOND  # decisions of different processes may be this much out of order
_BLOCK = 5000
_BATCH = 20_000  # rows of a batch of Arrow
_TOGETHER = 256  # decisions whose beliefs are integrated together
PROPENSITIES = ("none", "arm", "all")


def export(
    target: Any, out: Any, name: str | None = None, propensity: str = "arm", policies: Mapping[str, type] | None = None
) -> int:
    """Write one bandit's log as .parquet, .csv or .jsonl, and return its number of decisions. The file appears whole or
    not at all."""
    path = Path(out)
    if path.suffix not in (".parquet", ".csv", ".jsonl"):
        raise ValueError(f"A log is written as .parquet, .csv or .jsonl; got {path.name!r:.60}.")
    with report_damage(), _read(target, name, propensity, policies) as (rows, features):
        return write_whole(path, rows, features)


@dataclass(frozen=True)  # not a tuple, which libraries take for a list of columns
class JournalLog:
    """One bandit's log for any library that reads Arrow, without a file: `polars.DataFrame(JournalLog("shop.db"))`.

    The rows are those of `export`. They are computed while they are read, and every reader gets those of its moment."""

    target: Any
    name: str | None = None
    propensity: str = "arm"
    policies: Mapping[str, type] | None = None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows as a stream of Arrow."""

        def read() -> Iterator[Any]:
            with report_damage(), _read(self.target, self.name, self.propensity, self.policies) as (rows, features):
                yield from arrow_batches(map(flatten, rows), features)

        batches = read()
        schema = next(batches)
        from pyarrow import RecordBatchReader  # here: without it, the line above explains how to install it

        return RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)


@contextlib.contextmanager
def rows_of(
    target: Any, name: str | None = None, propensity: str = "arm", policies: Mapping[str, type] | None = None
) -> Iterator[Iterator[dict[str, Any]]]:
    """One bandit's rows in order of time, while its journal is open; `name` may be left out where there is one."""
    with _read(target, name, propensity, policies) as (rows, _):
        yield rows


@contextlib.contextmanager
def _read(target: Any, name: str | None, propensity: str, policies: Any) -> Iterator[tuple[Any, dict[str, Feature]]]:
    if propensity not in PROPENSITIES:
        raise ValueError(f"propensity is one of {', '.join(PROPENSITIES)}; got {propensity!r:.60}.")
    with _open(target, name) as (journal, number):
        yield in_order(log_rows(journal, number, propensity, policies)), all_features(journal, number)


def features_of(target: Any, name: str | None = None) -> tuple[Features, bool]:
    """The features that one bandit has now, and whether they are those of candidates."""
    with _open(target, name) as (journal, number):
        configs = _configs(journal, number)
        return (Features.stored(configs[-1].features), configs[-1].candidates) if configs else (Features(), False)


@contextlib.contextmanager
def _open(target: Any, name: str | None) -> Iterator[tuple[Journal, int]]:
    journal = reading(target)
    try:
        yield journal, bandit_number(journal, only_bandit(journal.bandits()) if name is None else name)
    finally:
        journal.close()


def log_rows(
    journal: Journal,
    number: int,
    propensity: str = "arm",
    policies: Mapping[str, type] | None = None,
    decisions: Iterable[Known] | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows in order of `known`, of these decisions or of all. They end where an arm was added after the reading
    began, since earlier rows do not list it. An outcome that waits to be learned is left open: as long as only
    successes are reported, a log of young decisions would hold nothing else."""
    configs = _configs(journal, number)
    names_now = names_of(configs[-1]) if configs else []
    everyone = list(dict.fromkeys(map(_arm_text, names_now)))  # a name that was retired and added again is one arm
    features = all_features(journal, number)
    settled: int | None = None  # until when decisions are settled, where outcomes wait for that
    if configs and configs[-1].holds:
        replica = Replica(journal, None, number, dict(policies or {}))
        replica.catch_up()
        settled = replica.fold.settled
    if decisions is None:
        decisions = Walk(journal, number, policies).decisions()
    known = (
        with_probabilities(decisions)
        if propensity != "none"
        else ((made.row, made.fold.config, None, 0.0) for made in decisions)
    )
    config: Any = None
    while block := list(islice(known, _BLOCK)):
        standing = journal.standing(number, [row.id for row, *_ in block])
        for row, its_config, values, error in block:
            if its_config is not config:
                config, names = its_config, [_arm_text(name) for name in names_of(its_config)]
                active = _list_arms([names[slot] for slot in config.active], everyone)
                if not set(names) <= set(everyone):
                    return
            found = standing.get(row.id)
            if found is None:
                raise StoreError("Decisions were dropped (retention) while they were read; try again.")
            waits = settled is not None and row.at > settled and found.kind is not None
            out = {
                "time": row.at, "decision": row.id, "arm": names[row.slot],
                "reward": None if waits else found.value, "reward_time": None if waits else found.came,
                "outcome": "waiting" if waits else records.KINDS.get(found.kind or 0), "late_reward": found.late,
                "how": records.WAYS[row.how], "policy": config.policy, "known": row.known,
                "available": active if (slots := records.parse_slots(row.available)) is None
                else _list_arms([names[slot] for slot in slots], everyone),
            }  # fmt: skip
            if features:
                context = json.loads(row.context or "{}")
                out |= {f"x_{name}": feature.value(context.get(name), row.at) for name, feature in features.items()}
            if config.candidates:
                yield out | _describe_candidates(row, values, error, propensity)
                continue
            if values is not None:
                out |= {"propensity": float(values[row.slot]), "propensity_error": float(error)}
                if propensity == "all":
                    out["probabilities"] = dict.fromkeys(everyone, 0.0)
                    for name, value in zip(names, values, strict=True):  # a name used twice: once retired, with 0
                        out["probabilities"][name] += float(value)
                if features and row.id[0] == "=":  # they depended on a context that was erased
                    out |= {"propensity": None, "propensity_error": None}
                    out |= {"probabilities": dict.fromkeys(everyone)} if propensity == "all" else {}
            yield out


def with_probabilities(decisions: Iterable[Known]) -> Iterator[tuple[DecisionRow, StoredConfig, np.ndarray, float]]:
    """Each decision, its configuration, the probability that every slot had, and how far that may be off.

    Decisions between two learned rewards share their probabilities, and beliefs whose integrals are cheaper together
    are integrated together."""
    found: dict[Any, Any] = {}  # of the state of the last decision, by the slots that could be chosen
    last: Any = None
    walk = iter(decisions)
    while True:
        block: list[tuple[DecisionRow, StoredConfig, Any]] = []
        for made in islice(walk, _TOGETHER):  # a fold is valid until the next decision
            player = made.fold.player
            state = player, player.learned, made.fold.config, 0 if player.half_life is None else made.row.at
            if state != last:
                last, found = state, {}
            key = *(() if made.allowed is None else made.allowed), *(made.features or ())
            if key not in found:
                found[key] = _probabilities_or_belief(made)
            block.append((made.row, made.fold.config, found[key]))
        if not block:
            return
        integrated = _integrate([one for *_, one in block if isinstance(one, _Open)])
        for row, config, one in block:
            yield row, config, *(integrated[id(one)] if isinstance(one, _Open) else one)
        found = {key: integrated.get(id(one), one) for key, one in found.items()}


class _Open(NamedTuple):
    """A belief that is still to be integrated, and the slots that could be chosen."""

    config: StoredConfig
    belief: Any
    slots: list[int]


def _probabilities_or_belief(made: Known) -> Any:
    """The probabilities and their error, or a belief that is better integrated together with others."""
    config, player, at = made.fold.config, made.fold.player, made.row.at
    slots = list(range(len(config.arms))) if made.allowed is None else made.allowed
    ruled = config.fixed in slots or made.fold.first_arms(slots)
    belief = None if ruled or len(slots) < 2 or made.features is not None else player.belief(at)
    if hasattr(belief, "together"):
        return _Open(config, belief, slots)
    return made.fold.probabilities(made.allowed, at, features=made.features)


def _integrate(questions: list[_Open]) -> dict[int, tuple[np.ndarray, float]]:
    """Probabilities and errors by the identity of the question; those with as many slots are found together."""
    by_size: dict[tuple[type, int], dict[int, _Open]] = {}
    for one in questions:
        by_size.setdefault((type(one.belief), len(one.slots)), {})[id(one)] = one
    out = {}
    for (kind, _), some in by_size.items():
        values = kind.together([one.belief for one in some.values()], [one.slots for one in some.values()])  # type: ignore[attr-defined]
        for (key, one), own in zip(some.items(), values, strict=True):
            out[key] = mix_rules(one.config, one.slots, *own)
    return out


def _configs(journal: Journal, number: int) -> list[StoredConfig]:
    """All configurations that a bandit had."""
    return [Change.read(event.body).config for _, event in journal.changes(number)]


def all_features(journal: Journal, number: int) -> dict[str, Feature]:
    """All features that ever were declared, as they were last."""
    configs = _configs(journal, number)
    return {feature.name: feature for config in configs for feature in Features.stored(config.features)}


def _describe_candidates(row: DecisionRow, values: Any, error: float, propensity: str) -> dict[str, Any]:
    """What is different in a row of a bandit with candidates: they are its arms, and all of them are kept with their
    features. The probabilities of all are one column."""
    found, arm = parse_candidates(row.available), split_context(row.context)[0]
    out = {"arm": arm, "available": json.dumps(found.names), "candidates": found.text}
    if values is not None:
        every = {name: float(value) for name, value in zip(found.names, values, strict=True)}
        out |= {"propensity": every[arm], "propensity_error": float(error)}
        if propensity == "all":
            out["propensities"] = json.dumps(every)
        if row.id[0] == "=":  # they depended on features that were erased
            out |= dict.fromkeys(name for name in out if name.startswith("propensit"))
    return out


def _list_arms(arms: list[str], everyone: list[str]) -> str | None:
    """The arms a decision could choose among; None where these are all arms of the log."""
    return None if len(arms) == len(everyone) else json.dumps(arms)


def _arm_text(arm: Any) -> str:
    return arm if isinstance(arm, str) else json.dumps(arm)


def in_order(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows by time: different processes write a little out of order."""
    heap: list[tuple[int, str, dict[str, Any]]] = []
    for row in rows:
        heapq.heappush(heap, (row["time"], row["decision"], row))
        while heap[0][0] < row["time"] - _LATE:
            yield heapq.heappop(heap)[2]
    while heap:
        yield heapq.heappop(heap)[2]


# ---- files -----------------------------------------------------------------------------------------------------------


def write_whole(path: Path, rows: Iterator[dict[str, Any]], features: Mapping[str, Feature]) -> int:
    """Write rows with these features to a file that appears whole or not at all, and is on the disk afterwards; their
    number."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        flat = map(flatten, rows)
        if path.suffix == ".parquet":
            count = _write_parquet(features, part, flat)
        else:
            count = _write_lines(part, flat, path.suffix == ".csv")
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
        name: None if row[name] is None else records.as_datetime(row[name]).isoformat(timespec="microseconds")
        for name in ("time", "reward_time")
    }
    return row | dates


def _write_lines(path: Path, rows: Iterator[dict[str, Any]], as_csv: bool) -> int:
    count, writer = 0, None
    with path.open("w", encoding="utf-8", newline="" if as_csv else None) as file:
        for row in map(_with_dates, rows):
            count += 1
            if not as_csv:
                file.write(json.dumps(row, allow_nan=False) + "\n")
                continue
            if writer is None:
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
