"""The records of a journal: decisions, and the events that a bandit folds.

Events have numbers 1, 2, 3 ... within their bandit; a decision records in `known` how many of them its decider had
folded. Everything a bandit does follows from its events and that number."""

import json
import logging
import time
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from driftbandit.errors import DamagedJournal

log = logging.getLogger("driftbandit.bandit")
DAY = 86_400 * 1_000_000  # microseconds
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
    reward_range: tuple[float, float] | None  # None: any finite reward
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
