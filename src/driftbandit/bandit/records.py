"""The records of a journal: decisions with their ids and random numbers, and the events that a bandit folds.

Events have numbers 1, 2, 3 ... within their bandit; a decision records in `known` how many of them its decider had
folded. Everything a bandit does follows from its events and that number.

The random numbers of a decision are a hash of (the bandit's key, the decision's id, slot): `draws` with the id in the
place of the round. Processes share no counter, and the key and the id are enough to recompute them."""

import hashlib
import json
import logging
import os
import re
import time
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.checks import LARGEST_REWARD
from driftbandit.core.draws import Stream, mix
from driftbandit.errors import DamagedJournal

log = logging.getLogger("driftbandit.bandit")
DAY = 86_400 * 1_000_000  # microseconds
LATEST = 1 << 57  # no snapshot has a later time: in the year 6536
ARCHIVED = "archived "  # begins the name of a note: the bandit is archived, which keeps it out of lists
_ID = re.compile(r"[A-Za-z0-9_.:~-]{1,128}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:~-]{0,127}")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REWARD, DEFAULT, LATE, CHANGE, SETTLED, PART = 1, 2, 3, 4, 5, 6
KINDS = {REWARD: "reward", DEFAULT: "default", LATE: "late", CHANGE: "change", SETTLED: "settled", PART: "part"}
POLICY, FLOOR, HOLDBACK, FIXED, FIRST = 0, 1, 2, 3, 4
WAYS = {POLICY: "policy", FLOOR: "floor", HOLDBACK: "holdback", FIXED: "fixed", FIRST: "first"}


class Decision(NamedTuple):
    """A decision as a caller sees it."""

    id: str
    arm: Any
    microseconds: int  # when, since 1970
    known: int  # events the decider had folded
    how: str  # "policy", "floor", "first", "holdback" or "fixed"
    probability: float | None = None  # of this arm, if requested

    @property
    def at(self) -> datetime:
        return as_datetime(self.microseconds)


def as_datetime(microseconds: int) -> datetime:
    """A time of a journal as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def as_microseconds(time: datetime) -> int:
    """The inverse of `as_datetime`."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def system_time() -> int:
    """The system's clock, in microseconds since 1970."""
    return time.time_ns() // 1000


class DecisionRow(NamedTuple):
    """A decision as the journal keeps it, with the numbers of its arm and of its bandit. Handed to a store, it is
    written, or the one that already has its id is found; the answer is the decision that stands."""

    id: str
    at: int
    slot: int
    how: int
    known: int
    available: str | None  # the arms it was restricted to, as "0,2,5"; or its candidates, as JSON
    probability: float | None = None  # of this arm, for a policy that divides rewards by it
    context: str | None = None  # the context it was made in, as JSON
    bandit: int = 0


class Event(NamedTuple):
    """An outcome, a part of one, a change of the configuration, or SETTLED: every decision made until `decided` has its
    outcome."""

    n: int
    kind: int
    at: int  # when it came
    decision: str  # the decision's id; of a change, its own id
    slot: int = -1
    how: int = -1  # of the decision
    value: float = 0.0
    decided: int = 0  # when the decision was made
    body: str | None = None  # as JSON: of a change, what it is; of an outcome, the context of the decision
    probability: float | None = None  # of the decision


def mark(row: tuple[Any, ...]) -> int:
    """The checksum of a row, stored in the same row. It finds accidents, not forgeries."""
    return zlib.crc32(repr(tuple(row)).encode())


def describe_altered(table: str, name: Any, bandit: int) -> str:
    """One sentence about a row whose checksum differs."""
    return f"{table} {name} of bandit {bandit} was altered: its checksum differs"


def make_erased_text(fields: tuple[Any, ...]) -> str:
    """What a row keeps in the place of its text (the last field but one) once its id was erased: a checksum of the rest
    and the text."""
    return f"={mark(fields):08x}{fields[-2] or ''}"


def restore_fields(fields: tuple[Any, ...]) -> tuple[Any, ...]:
    """The fields of a row whose id was erased, with their text; other rows as they are."""
    text = fields[-2]
    erased = isinstance(text, str) and text.startswith("=")
    return (*fields[:-2], text[9:] or None, fields[-1]) if erased else fields


def intact(fields: tuple[Any, ...], found: int) -> tuple[Any, ...] | None:
    """The fields of a row that fit its checksum, or that were erased and fit their own; None if they were altered."""
    if mark(fields) == found:
        return fields
    whole = restore_fields(fields)
    return whole if whole is not fields and make_erased_text(whole) == fields[-2] else None


def check_row(table: str, bandit: int, name: Any, fields: tuple[Any, ...], found: int) -> tuple[Any, ...]:
    """The fields of a row; one whose checksum differs is refused."""
    whole = intact(fields, found)
    if whole is None:
        raise DamagedJournal(
            f"The journal is damaged: {describe_altered(table, name, bandit)}; `driftbandit audit` shows what can "
            "still be proved."
        )
    return whole


def read_decision(row: tuple[Any, ...]) -> DecisionRow:
    """The decision of a row that ends with its checksum."""
    made = DecisionRow(*row[:-1])
    return made if mark(made) == row[-1] else DecisionRow(*check_row("decision", made.bandit, made.id, made, row[-1]))


def format_slots(slots: list[int] | None) -> str | None:
    """Arm numbers as the journal keeps them."""
    return None if slots is None else ",".join(map(str, slots))


def parse_slots(text: str | None) -> list[int] | None:
    """The inverse of `format_slots`; None for candidates, which may all be chosen."""
    try:
        return None if text is None or text[:1] == "{" else [int(part) for part in text.split(",")]
    except ValueError:
        raise DamagedJournal(f"The journal is damaged: expected arm numbers, found {text!r:.40}.") from None


LEARNER = ("policy", "half_life", "features")  # a change of any of these learns all events again, unless from now on


class StoredConfig(NamedTuple):
    """The configuration of a bandit. Every change is an event with the whole new configuration."""

    policy: str
    arms: list[Any]  # names by slot, as JSON holds them
    retired: list[int]
    reward_range: tuple[float, float] | None  # None: any up to 1e30
    goal: str  # "maximise" or "minimise"
    half_life: int | None  # microseconds
    floor: float
    holdback: float
    baseline: int | None  # a slot; None for a uniform choice
    learn_holdback: bool
    wait: int | None  # microseconds
    default: float
    learn: str  # with `wait`: "wait" (when the decision is that old) or "arrival"
    fixed: int | None
    key: str  # of the random stream, an integer
    rounds: str  # how a decision's id gives its numbers: `ids.ROUNDS`
    ahead: int = 0  # microseconds by which the bandit's time is ahead of the store's clock: `Bandit.resume_clock`
    first: bool = True  # whether arms without any outcome are drawn first: `Fold.first_arms`
    arithmetic: str = ""  # the versions of the policy's arithmetic: `opening.arithmetic`
    features: list[Any] | None = None  # pairs of name and kind, as declared
    retention: int | None = None  # microseconds for which rows are kept at least; None: forever
    erased: int | None = None  # how many ids were erased
    archived: int | None = None  # when it was archived, in microseconds since 1970
    adds: bool | None = None  # whether rewards are added up: `parts`
    candidates: bool = False  # whether every request brings its own arms: `candidates`
    labels: dict[str, str] | None = None  # by which lists can be searched; no choice depends on them

    @classmethod
    def read(cls, data: dict[str, Any]) -> "StoredConfig":
        """From JSON, which has lists for tuples; an unknown option is refused."""
        config = cls(**data)
        if config.reward_range is None:
            return config
        low, high = config.reward_range
        return config._replace(reward_range=(float(low), float(high)))

    def learns_otherwise(self, other: "StoredConfig") -> bool:
        """Whether the other would have learned something else from the same events."""
        return any(getattr(self, name) != getattr(other, name) for name in LEARNER)

    @property
    def holds(self) -> bool:
        """Whether outcomes are held back until their decision is old enough."""
        return self.wait is not None and self.learn == "wait"

    @property
    def scale(self) -> tuple[float, float]:
        """The origin and the unit: a policy learns (reward - origin) / unit. That is larger for a better reward, and
        from 0 to 1 if the range is declared."""
        if self.reward_range is None:
            return (0.0, 1.0) if self.goal == "maximise" else (0.0, -1.0)
        low, high = self.reward_range
        return (low, high - low) if self.goal == "maximise" else (high, low - high)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest reward."""
        return self.reward_range or (-LARGEST_REWARD, LARGEST_REWARD)

    @property
    def active(self) -> list[int]:
        """The slots that can be chosen."""
        return [slot for slot in range(len(self.arms)) if slot not in self.retired]


class Change(NamedTuple):
    """The body of a change: what was changed, by whom, the configuration from then on, and the prior of an arm that
    it adds (`Player.add_arm`)."""

    what: str
    who: str
    from_now: bool
    config: StoredConfig
    past: dict[str, Any] | None = None

    def text(self) -> str:
        return json.dumps({**self._asdict(), "config": self.config._asdict()}, allow_nan=False, sort_keys=True)

    @classmethod
    def read(cls, text: str | None) -> "Change":
        try:
            data = json.loads(text or "")
            return cls(config=StoredConfig.read(data.pop("config")), **data)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise DamagedJournal("The journal is damaged: a change of configuration cannot be read.") from None


# ---- ids and random numbers ------------------------------------------------------------------------------------------


def check_id(value: Any, of: str = "decision") -> str:
    """A valid id, of a decision also from the `Decision`."""
    if type(value) is Decision:
        value = value.id
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError(f"A {of}'s id is a text of 1 to 128 letters, digits or _ . : ~ -; got {value!r:.60}.")
    return value


def check_name(value: Any) -> str:
    """A valid name of a bandit."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(
            "A bandit's name is a text of 1 to 128 letters, digits or _ . : ~ - that begins with a letter, a digit "
            f"or _; got {value!r:.60}."
        )
    return value


def make_ids(count: int) -> list[str]:
    """New ids. They begin with 12 hexadecimal digits of milliseconds, so that a store appends them to its index, and
    end with 80 random bits, so that they cannot be guessed."""
    stamp = f"{time.time_ns() // 1_000_000 & 0xFFFFFFFFFFFF:012x}"
    random = os.urandom(10 * count).hex()
    return [stamp + random[i : i + 20] for i in range(0, 20 * count, 20)]


def hash_round(decision: str) -> int:
    """63 bits of an id, which take the place of a simulation's round; an id that was erased begins with them."""
    if decision[:1] == "=":
        return int(decision[1:17], 16)
    return int.from_bytes(hashlib.blake2b(decision.encode(), digest_size=8).digest(), "little") >> 1


def number_round(decision: str) -> int:
    """The id itself as the round, where it is "0", "1", "2" ...: a bandit in memory then plays the arms of a
    simulation. Other ids are hashed."""
    plain = len(decision) <= 12 and decision.isascii() and decision.isdigit() and str(int(decision)) == decision
    return int(decision) if plain else hash_round(decision)


ROUNDS = {"hash": hash_round, "number": number_round}


def decision_stream(key: int, rounds: list[int]) -> Stream:
    """The random numbers of the decisions with these rounds (`ROUNDS`); `at(n)` moves to the n-th."""
    places = np.array(rounds, np.uint64) + np.uint64(1)
    return Stream.of(np.asarray(mix(np.uint64(key) + places * _GOLDEN)))


class Supply:
    """Ids made ahead with their random numbers, since NumPy is slow with one at a time and fast with 256."""

    SMALLEST, LARGEST = 8, 256

    def __init__(self, key: int) -> None:
        self._key = key
        self._size = self.SMALLEST // 2
        self._block: tuple[list[str], Stream] = [], Stream(0)
        self._column = 0

    def take(self) -> tuple[str, Stream]:
        """The next id and its random numbers, valid until the next call. An interrupt at any line leaves every id with
        its own numbers."""
        column = self._column
        if column >= len(self._block[0]):
            self._size = min(2 * self._size, self.LARGEST)
            made = make_ids(self._size)
            block = made, decision_stream(self._key, [hash_round(id) for id in made])
            self._column, self._block, column = len(made), block, 0
        self._column = column + 1
        ids, stream = self._block
        stream._column = column
        return ids[column], stream
