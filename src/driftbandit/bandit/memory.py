"""The store of a bandit without a journal, and its writer in one.

It keeps at least the last 100,000 decisions with their outcomes, and drops older ones; with `wait`, a decision stays
until it is settled. It answers the same asks as a journal, at once and in the caller's thread. Events are folded and
not kept."""

import json
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

from driftbandit.bandit import records
from driftbandit.bandit.asks import AddChange, AddReward, Ask, DecisionState, Settle, Settled, judge, match_decision
from driftbandit.bandit.candidates import digest
from driftbandit.bandit.features import is_context
from driftbandit.bandit.fold import Fold
from driftbandit.bandit.inputs import check_whole
from driftbandit.bandit.records import Change, Decision, DecisionRow, Event
from driftbandit.bandit.writer import StoreCall
from driftbandit.core.parameters import LARGEST
from driftbandit.errors import NotFound, RecordConflict
from driftbandit.spec.half_life import SECOND

KEPT = 100_000  # decisions kept at least
_PAUSE = 60 * SECOND  # the longest between two looks at decisions that may be old enough
_OPEN = (None, None, None, None)  # no outcome yet
_make = tuple.__new__

# A decision by its id: (at, slot, how, known, available, probability, context) of its row, then (kind, value, late,
# came) of its outcome. A tuple of numbers and texts costs the garbage collector nothing, however many there are.
Kept = tuple[Any, ...]


class Memory:
    """The store of one bandit, with the methods of `Journal` and `Writer` that a bandit uses, where they are described.
    Every call holds the bandit's lock."""

    live = False
    waiting = failed = 0
    now = staticmethod(records.system_time)

    def __init__(self) -> None:
        self.listeners: dict[int, list[Callable[[list[Event]], None]]] = {}
        self.idle: list[Callable[[], None]] = []
        self.lock: Any = threading.RLock()
        self.commits = 0
        self.next = 0  # number of the next decision without an id from the caller
        self._decided = 0  # decisions so far
        self._events = 0  # so far
        self._changes: list[tuple[int, Event]] = []
        self._kept: dict[str, Kept] = {}  # in the order in which they were made
        self._parts: dict[str, Any] = {}  # of rewards that are added up
        self._full = 0  # decisions at which old ones are dropped next
        self._waits = False
        self.next_look = 0  # at decisions that may be old enough, when the store was loaded
        # With `wait`, times and ids of decisions that are not settled; after `load`, no id where an outcome was there.
        self._unsettled: deque[tuple[int, str]] = deque()

    # ---- deciding and rewards ----------------------------------------------------------------------------------------

    def make_ids(self, count: int) -> list[str]:
        """The next ids: "0", "1", ..., the numbers of rounds, without those that a caller has used."""
        out: list[str] = []
        while len(out) < count:
            id = str(self.next)
            self.next += 1
            if id not in self._kept:
                out.append(id)
        return out

    def decide(self, replica: Any, given: Any = None) -> Decision:
        """The next decision among all arms: what `Requests` does, without the steps that are not needed here."""
        id = str(self.next)
        if id in self._kept:
            (id,) = self.make_ids(1)
            self.next = int(id)
        fold = replica.fold
        at, rng, player, known = replica.clock.now(), replica.stream.at(self.next), fold.player, fold.n
        context = features = None
        if given is not None or fold.features:
            context, features = fold.read_context(given, at)
        slot, how = fold.choose(rng, fold.active, at, features)
        probability = player.probability_of(slot, rng, at) if player.uses_probability else None
        self.next += 1
        self._kept[id] = at, slot, how, known, None, probability, context, None, None, None, None
        self._decided += 1
        if self._waits or len(self._kept) > self._full:
            self._make_room(id)
        return _make(Decision, (id, replica.names[slot], at, known, records.WAYS[how], None))

    def learn(self, fold: Fold, id: str, value: float, clock: Any) -> bool:
        """Learn the reward of a decision that has no outcome yet, for a bandit that does not wait; False where it has
        one, or is not there."""
        kept = self._kept.get(id)
        if kept is None or kept[7] is not None or self._waits:
            return False
        came = clock.now()
        at, slot, how, known, available, probability, context, _, _, _, _ = kept
        self._kept[id] = at, slot, how, known, available, probability, context, records.REWARD, value, None, came
        self._events += 1
        fold.learn_reward(came, slot, how, value, at, probability, context)
        return True

    def _make_room(self, id: str) -> None:
        """After a decision: old ones are dropped now and then, but with `wait` none that has to be settled."""
        if self._waits:
            self._unsettled.append((self._kept[id][0], id))
        if len(self._kept) > self._full:
            if len(self._kept) > 2 * KEPT:
                due = {id for _, id in self._unsettled}
                for old in list(self._kept)[:-KEPT]:
                    if old not in due:
                        del self._kept[old]
                        self._parts.pop(old, None)
            self._full = max(2 * KEPT - 1, len(self._kept) + KEPT - 1)

    def state(self, id: str) -> DecisionState | None:
        """A decision, with its outcome if it has one."""
        kept = self._kept.get(id)
        return None if kept is None else DecisionState(_row(id, kept), *kept[7:])._replace(parts=self._parts.get(id))

    def commit(self, asks: list[Ask]) -> list[Any]:
        """Carry out the requests, and have the events folded."""
        self.commits += 1
        added: list[Event] = []
        answers = [self._answer(ask, added) for ask in asks]
        added.sort(
            key=lambda event: (
                (event.decided, records.number_round(event.decision)) if event.kind <= records.LATE else (1 << 62, 0)
            )
        )
        numbered = [event._replace(n=n) for n, event in enumerate(added, self._events + 1)]
        self._events += len(added)
        for listener in self.listeners.get(0, ()) if added else ():
            listener(numbered)
        return answers

    def _answer(self, ask: Ask, added: list[Event]) -> Any:
        match ask:
            case DecisionRow():
                state = self.state(ask.id)
                if state is not None:
                    return match_decision(ask._replace(available=digest(ask.available)), state)
                self._kept[ask.id] = _keep(ask._replace(available=digest(ask.available)))
                self._decided += 1
                self._make_room(ask.id)
                return ask
            case AddReward():
                state = self.state(ask.id)
                if state is None:
                    return NotFound(f"There is no decision {ask.id!r:.140} to reward, or it is too old to be kept.")
                events, answer = judge(ask, state)
                self._add(events, added)
                return answer
            case Settle():
                return self._settle(ask, added)
            case AddChange():
                if ask.serial != len(self._changes) + 1:
                    return RecordConflict("The configuration was changed meanwhile.")
                event = ask.event()
                self._changes.append((ask.serial, event))
                waits = Change.read(ask.body).config.wait is not None
                if waits and not self._waits:
                    self._unsettled = deque((kept[0], id) for id, kept in self._kept.items() if kept[7] is None)
                self._waits = waits
                added.append(event)
        return None

    def _add(self, events: list[Event], added: list[Event]) -> None:
        """Note the outcomes of decisions, and that they are to be folded."""
        for event in events:
            id = event.decision.partition("+")[0]
            state = self.state(id)
            if state is not None:
                row, *outcome, parts = state.add(event)
                self._kept[id] = _keep(row, tuple(outcome))
                if parts:
                    self._parts[id] = parts
        added += events

    def _settle(self, ask: Settle, added: list[Event]) -> Settled:
        due = []
        while self._unsettled and self._unsettled[0][0] <= ask.until:
            due.append(self.state(self._unsettled.popleft()[1]))
        until = ask.until if due else None
        events = ask.events([state for state in due if state is not None and state.kind is None], until)
        self._add(events, added)
        return Settled(sum(event.kind == records.DEFAULT for event in events), True, until)

    # ---- what a writer does: all is done when these return -----------------------------------------------------------

    def submit(self, asks: list[Ask]) -> StoreCall:
        call = StoreCall(asks)
        with self.lock:
            call.finish(self.commit(asks))
        return call

    def request(self, chooser: Any, call: StoreCall, here: bool = True) -> None:
        with self.lock:
            chooser.choose_all([call])

    def enqueue(self, calls: list[StoreCall]) -> None:
        for call in calls:
            call.finish(self.commit(call.asks))

    # ---- the requests to a journal ---------------------------------------------------------------------------------

    def _all(self) -> list[DecisionState]:
        """The decisions that are kept, in order."""
        with self.lock:
            return [state for id in self._kept if (state := self.state(id)) is not None]

    def recent(self, bandit: int, limit: int) -> list[DecisionRow]:
        with self.lock:
            return [_row(id, kept) for id, kept in islice(reversed(self._kept.items()), limit)]

    def standing(self, bandit: int, ids: list[str]) -> dict[str, DecisionState]:
        return {id: found for id in ids if (found := self.state(id)) is not None}

    def changes(self, bandit: int) -> list[tuple[int, Event]]:
        return list(self._changes)

    def first_at(self, bandit: int) -> int | None:
        with self.lock:
            return next((kept[0] for kept in self._kept.values()), None)

    def tally(
        self, bandit: int, since: int, until: int, width: int, due: tuple[int, int] | None = None
    ) -> list[tuple[Any, ...]]:
        out: list[tuple[Any, ...]] = []
        for row, kind, value, _, came, _ in self._all():
            if since <= row.at < until:
                out.append(((row.at - since) // width, row.slot, row.how, 1, 0, 0.0))
            counted = came if due is None else row.at + due[0] if row.at <= due[1] else None
            if kind is not None and counted is not None and since <= counted < until:
                out.append(((counted - since) // width, row.slot, row.how, 0, 1, value))
        return out

    def groups(self, bandit: int, starts: list[int], until: int) -> list[tuple[int, int, int, float, float]]:
        return [
            (sum(start <= row.at for start in starts) - 1, row.how, 1, value, value * value)
            for row, kind, value, *_ in self._all()
            if kind is not None and value is not None and starts[0] <= row.at < until
        ]

    def count_decisions(self, bandit: int) -> int:
        return self._decided

    # ---- snapshots ---------------------------------------------------------------------------------------------------

    def dump(self, next_look: int) -> dict[str, Any]:
        """What a snapshot has of the store: decisions without an outcome, times of others that are not settled, changes
        and counts."""
        closed = [at for at, id in self._unsettled if id not in self._kept or self._kept[id][7] is not None]
        return {
            "next": self.next, "next_look": next_look, "decided": self._decided, "events": self._events,
            "open": [_row(id, kept)[:-1] for id, kept in self._kept.items() if kept[7] is None],
            "unsettled": closed,
            "changes": [[event.at, event.body] for _, event in self._changes],
            "parts": {id: parts for id, parts in self._parts.items() if self._kept[id][7] is None},
        }  # fmt: skip

    @classmethod
    def load(cls, data: dict[str, Any], fold: Fold) -> "Memory":
        """The inverse of `dump`."""
        out = cls()
        out.next, out._decided, out._events = (_check_number(data[name]) for name in ("next", "decided", "events"))
        if out._events != fold.n:
            raise ValueError("events are missing.")
        for serial, (at, body) in enumerate(data["changes"], 1):
            Change.read(body)
            out._changes.append((serial, AddChange(0, serial, _check_number(at), body).event()))
        if len(out._changes) != fold.changes:
            raise ValueError("changes are missing.")
        last = 0
        for fields in data["open"]:
            row = DecisionRow(*fields)
            records.check_id(row.id)
            slots = [row.slot, *(records.parse_slots(row.available) or [])]
            arms = len(fold.config.arms)
            if not all(_check_number(slot) < arms for slot in slots) or row.how not in records.WAYS:
                raise ValueError("an open decision has an unknown arm.")
            if row.probability is not None and not 0.0 <= row.probability <= 1.000001:
                raise ValueError("an open decision has no probability.")
            if row.context is not None and not is_context(row.context):
                raise ValueError("an open decision has no context.")
            if row.id in out._kept or _check_number(row.at) < last or _check_number(row.known) > fold.n:
                raise ValueError("open decisions are not in order.")
            last, out._kept[row.id] = row.at, _keep(row)
        if len(out._kept) > out._decided:
            raise ValueError("there are more open decisions than decisions.")
        for id, parts in data["parts"].items():
            values = [value for value, _ in parts.values()]
            if (
                id not in out._kept
                or not values
                or not all(type(value) is float and abs(value) <= LARGEST for value in values)
            ):
                raise ValueError("parts of a reward do not fit an open decision.")
            out._parts[id] = {part: (value, False) for part, (value, _) in parts.items()}
        out._waits = fold.config.wait is not None
        times = [(_check_number(at), "") for at in data["unsettled"]]
        times += [(kept[0], id) for id, kept in out._kept.items() if kept[0] > fold.settled]
        out._unsettled = deque(sorted(times) if out._waits else ())
        out.next_look = min(_check_number(data["next_look"]), max([fold.last_at, *(at for at, _ in times)]) + _PAUSE)
        return out


def _keep(row: DecisionRow, outcome: tuple[Any, ...] = _OPEN) -> Kept:
    """A decision as it is kept, with its context as a mapping."""
    return (*row[1:7], None if row.context is None else json.loads(row.context), *outcome)


def _row(id: str, kept: Kept) -> DecisionRow:
    """The inverse of `_keep`."""
    at, slot, how, known, available, probability, context = kept[:7]
    text = None if context is None else json.dumps(context)
    return DecisionRow(id, at, slot, how, known, available, probability, text)


def _check_number(value: Any) -> int:
    return check_whole(value, "a number of a snapshot", 0, records.LATEST)
