"""What a journal holds: decisions, and the events that teach or change a bandit.

Events have numbers 1, 2, 3 ... within their bandit; a decision says in `known` how many of them its decider had folded.
Everything a bandit does follows from its events and that number."""

import json
import zlib
from typing import Any, NamedTuple

from driftbandit.live.errors import Damaged

REWARD, DEFAULT, LATE, CHANGE, SETTLED = 1, 2, 3, 4, 5
KINDS = {REWARD: "reward", DEFAULT: "default", LATE: "late", CHANGE: "change", SETTLED: "settled"}
POLICY, FLOOR, HOLDBACK, FIXED = 0, 1, 2, 3
WAYS = {POLICY: "policy", FLOOR: "floor", HOLDBACK: "holdback", FIXED: "fixed"}


class Decision(NamedTuple):
    """What was decided, as a caller sees it."""

    id: str
    arm: Any
    at: int  # microseconds since 1970
    known: int  # events the decider had folded
    how: str  # "policy", "floor", "holdback" or "fixed"
    probability: float | None = None  # of this arm, if it was asked for


class DecisionRow(NamedTuple):
    """A decision as the journal keeps it: the arm by its number."""

    id: str
    at: int
    slot: int
    how: int
    known: int
    available: str | None  # the arms it was restricted to, as "0,2,5"
    chance: float | None = None  # with which the policy played this arm, where it weighs rewards by it


class Event(NamedTuple):
    """One entry of what a bandit folds, in this order: an outcome, a change of its configuration, or SETTLED, which
    says that every decision made until `decided` has its outcome."""

    n: int
    kind: int
    at: int  # when it came
    decision: str  # the decision it belongs to; for a change, an id of its own
    slot: int = -1
    how: int = -1  # how that decision was made
    value: float = 0.0
    decided: int = 0  # when that decision was made
    body: str | None = None  # of a change: JSON
    chance: float | None = None  # that of the decision


def mark(row: tuple[Any, ...]) -> int:
    """The checksum of a row, stored in the same row: against accidents, not against people."""
    return zlib.crc32(repr(tuple(row)).encode())


def slots_text(slots: list[int] | None) -> str | None:
    """Arm numbers as the journal keeps them."""
    return None if slots is None else ",".join(map(str, slots))


def slots_from(text: str | None) -> list[int] | None:
    """The inverse of `slots_text`."""
    try:
        return None if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise Damaged(f"The journal is damaged: {text!r:.40} stands where arm numbers should.") from None


class Config(NamedTuple):
    """Everything that was chosen about a bandit. Every change of it is an event that holds the whole."""

    policy: str
    arms: list[Any]  # names by slot, as JSON holds them
    retired: list[int]
    reward_range: tuple[float, float]
    outside: str
    half_life: int | None  # microseconds
    floor: float
    holdback: float
    baseline: int | None  # a slot; None for an even choice
    learn_holdback: bool
    wait: int | None  # microseconds
    default: float
    learn: str  # with `wait`: "wait" (when the decision is that old) or "arrival"
    fixed: int | None
    key: str  # of the random stream, a whole number
    rounds: str  # how a decision's id gives its numbers: `ids.ROUNDS`
    ahead: int = 0  # microseconds by which the bandit's time is ahead of the store's clock: `Changing.resume_clock`
    arithmetic: str = ""  # the versions of the policy's arithmetic: `opening.arithmetic`

    @property
    def holds(self) -> bool:
        """Whether outcomes are held back until their decision is old enough."""
        return self.wait is not None and self.learn == "wait"

    @property
    def active(self) -> list[int]:
        """The slots that can be chosen."""
        return [slot for slot in range(len(self.arms)) if slot not in self.retired]


class Change(NamedTuple):
    """The body of a change: what was done, by whom, and the configuration from then on."""

    what: str
    who: str
    from_now: bool
    config: Config

    def text(self) -> str:
        """As the journal keeps it."""
        data = {**self._asdict(), "config": self.config._asdict()}
        return json.dumps(data, allow_nan=False, sort_keys=True)

    @classmethod
    def read(cls, text: str | None) -> "Change":
        """The inverse of `text`."""
        try:
            data = json.loads(text or "")
            config = Config(**data.pop("config"))
            low, high = config.reward_range
            return cls(config=config._replace(reward_range=(float(low), float(high))), **data)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Damaged("The journal is damaged: a change of configuration cannot be read.") from None
