"""The state of a bandit as a fold over its events: the same events give the same state, bit for bit, in every process.

With `wait`, outcomes are held back until a SETTLED event says that their decisions are old enough; they are then
learned in the order of the decisions. The order is a function of the events alone, so it needs no clock.

Choosing never touches the folded state: it looks at a view, a copy that has faded to the time of the decision."""

import inspect
import json
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import numpy as np

from driftbandit.draws import Stream
from driftbandit.half_life import half_to_the, learn_by_time
from driftbandit.live.errors import Damaged, damage_told
from driftbandit.live.ids import ROUNDS
from driftbandit.live.records import CHANGE, HOLDBACK, LATE, SETTLED, Change, Config, Event
from driftbandit.live.reporting import Reported
from driftbandit.live.settings import MOST_NUMBERS
from driftbandit.live.waiting import Waiting
from driftbandit.primitives import teach_late, weighs
from driftbandit.state import from_plain, grown, started, to_arrays, to_lists, to_plain
from driftbandit.validity import check_state

FORMAT = 2  # of snapshots

Maker = Callable[[str], Any]  # a policy from its text
Reread = Callable[[int], Iterable[Event]]  # so many events, from the first on


class Fold:
    """What is known after n events."""

    def __init__(
        self, make: Maker, reread: Reread | None = None, instead: tuple[str, int | None] | None = None
    ) -> None:
        self.n = 0
        self.learnt = 0  # rewards in the state: the policy's clock
        self.clipped = 0
        self.time = 0  # the state's own time, with a half-life
        self.last_at = 0  # of the latest event
        self.changes = 0
        self.settled = 0  # every decision made until then has its outcome
        self.waiting = Waiting()  # outcomes of later decisions
        self.reported = Reported()
        self.config: Config = None  # type: ignore[assignment]  # until the first change, which makes the bandit
        self.policy: Any = None
        self.state: Any = None
        self._make, self._reread = make, reread
        self._compiled: Any = None
        self._by_chance = False  # whether learning needs random numbers
        self.weighs = False  # whether decisions keep the probability of their arm, for the policy to divide by
        self._instead = instead  # the policy's text and half-life to use whatever the events say

    def apply(self, events: Iterable[Event]) -> None:
        """Fold some more events."""
        with damage_told():
            for event in events:
                for due in self._due(event):
                    self._outcome(due)
                if event.kind == CHANGE:
                    self._change(event)

    def _due(self, event: Event) -> list[Event]:
        """Count an event; the outcomes to learn now, in order. One that is written after its time was settled belongs
        to a decision that was stored late: it is learned at once."""
        self.n += 1
        if event.at > self.last_at:
            self.last_at = event.at
        if event.kind <= LATE:
            self.reported.add(event)
        if event.kind < LATE:
            if not self._holds or event.decided <= self.settled:
                return [event]
            self.waiting.add(event, self._tie(event.decision))
        elif event.kind == SETTLED and event.decided > self.settled:
            self.settled = event.decided
            return self.waiting.release(self.settled)
        return []

    def apply_compiled(self, events: list[Event]) -> None:
        """The same as machine code, for many events at a time."""
        first = 0
        with damage_told():
            for place in [n for n, event in enumerate(events) if event.kind == CHANGE]:
                self._apply_run(events[first:place])
                self.apply([events[place]])
                first = place + 1
            self._apply_run(events[first:])

    def _apply_run(self, events: list[Event]) -> None:
        """Events without a change among them."""
        if self.config is None or (self._by_chance and self._half_life is None):
            self.apply(events)
            return
        from driftbandit.live.compiled import CompiledLearner

        events = [due for event in events for due in self._due(event)]
        if not events:
            return
        learnt = np.ones(len(events), bool) if self.config.learn_holdback else _column(events, "how") != HOLDBACK
        slots = _column(events, "slot")[learnt]
        if not np.all((slots >= 0) & (slots < len(self.config.arms))):  # machine code would not notice
            for due in events:
                self._outcome(due)
            return
        values = (_column(events, "value", np.float64)[learnt] - self._low) / self._width
        if self._clip:
            self.clipped += int(((values < 0.0) | (values > 1.0)).sum())
            values = np.minimum(np.maximum(values, 0.0), 1.0)
        if self._coins is not None:
            seen = [self.policy.seen(value, self._coins.at(self.learnt + n)) for n, value in enumerate(values.tolist())]
            values = np.array(seen)
        if self._compiled is None:
            self._compiled = CompiledLearner(self.policy, self.state, self._half_life is not None)
        n_arms = len(self.config.arms)
        if self._half_life is None:
            columns = [slots, values]
            if self.weighs:  # NaN where none was kept
                columns.append(_column(events, "chance", np.float64)[learnt])
            self.state, _ = self._compiled.learn(self.state, n_arms, (self.learnt,), columns)
        else:
            decided = _column(events, "decided")[learnt]
            numbers = (self.time, self._half_life)
            self.state, time = self._compiled.learn(self.state, n_arms, numbers, [slots, values, decided])
            self.time = int(time)
        self.learnt += len(values)

    def _outcome(self, event: Event) -> None:
        if self.config is None:
            raise Damaged("The journal is damaged: an outcome comes before the event that makes the bandit.")
        if event.how == HOLDBACK and not self.config.learn_holdback:
            return
        if event.slot < 0:
            raise IndexError("an outcome has no arm")
        value = (event.value - self._low) / self._width
        if not 0.0 <= value <= 1.0 and self._clip:
            value = min(max(value, 0.0), 1.0)
            self.clipped += 1
        if self._half_life is None:
            if self.weighs and event.chance is not None:
                rng = self._coins and self._coins.at(self.learnt)
                teach_late(self.policy, self.state, self.learnt, event.slot, value, rng, event.chance)
            else:
                self._learn(self.state, self.learnt, event.slot, value)
        else:
            half_life, decided = self._half_life, event.decided
            if self._coins is not None:
                value = self.policy.seen(value, self._coins.at(self.learnt))
            self.time = learn_by_time(self.policy, self.state, self.time, half_life, event.slot, value, decided)
        self.learnt += 1

    def _change(self, event: Event) -> None:
        change = Change.read(event.body)
        before: Config | None = self.config
        after = change.config
        if self._instead is not None:
            after = after._replace(policy=self._instead[0], half_life=self._instead[1])
        self.changes += 1
        forgetting = before is not None and (before.policy, before.half_life) != (after.policy, after.half_life)
        if before is None:
            self._begin(after, event.at)
        elif forgetting and not change.from_now:
            anew = Fold(self._make, None, (after.policy, after.half_life))
            anew.apply(self._earlier())
            anew._grow(after)
            self._use(after, anew.policy)
            self.state, self.learnt, self.time, self.clipped = anew.state, anew.learnt, anew.time, anew.clipped
        elif forgetting and before.policy != after.policy:
            self._begin(after, event.at)
        else:
            if forgetting:  # the same policy at another pace: what it knows is first brought to this moment
                if before.half_life is not None and event.at > self.time:
                    self.policy.fade(self.state, half_to_the((event.at - self.time) / before.half_life))
                if hasattr(self.policy, "settle"):
                    self.policy.settle(self.state, self.learnt, self.policy.gamma if before.half_life is None else 1.0)
                self.time = max(self.time, event.at)
            self._grow(after)
            self._use(after, self.policy)
        self.settled = min(self.settled, event.at)  # less only where a clock that was ahead has been put right
        if not self._holds:
            for due in self.waiting.release():
                self._outcome(due)

    def _earlier(self) -> Iterable[Event]:
        if self._reread is None:
            raise Damaged("The journal is damaged: a change needs events that cannot be read.")
        return self._reread(self.n - 1)

    def _begin(self, config: Config, at: int) -> None:
        policy = self._make(config.policy)
        self._use(config, policy)
        self.state = to_lists(started(policy, len(config.arms), MOST_NUMBERS))
        self.learnt, self.time = 0, at

    def _grow(self, config: Config) -> None:
        while len(self.config.arms) < len(config.arms):
            count = len(self.config.arms)
            self.state = grown(self.state, self.policy, count, self.learnt)
            self.config = self.config._replace(arms=config.arms[: count + 1])

    def _use(self, config: Config, policy: Any) -> None:
        self.config, self.policy = config, policy
        self._low = config.reward_range[0]
        self._width = config.reward_range[1] - config.reward_range[0]
        self._clip = config.outside == "clip"
        self._half_life = config.half_life
        self._holds, self._tie = config.holds, ROUNDS[config.rounds]
        self._active = None if not config.retired else config.active
        self._learn = policy.learn
        self._compiled = None
        self._by_chance = "rng" in inspect.signature(policy.learn).parameters
        self._coins = None
        self.weighs = weighs(policy)
        if self._by_chance:
            stream = self._coins = Stream(int(config.key))
            self._learn = lambda state, t, arm, reward: policy.learn(state, t, arm, reward, stream.at(t))

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def active(self) -> list[int] | None:
        """The slots that can be chosen; None for all."""
        return self._active

    @property
    def fades(self) -> bool:
        """Whether what is known depends on the time at which one asks."""
        return self._half_life is not None

    def view(self, at: int) -> Any:
        """A copy of the state as it is at a time, to choose from."""
        state = _copied(self.state)
        if self._half_life is not None and at > self.time:
            self.policy.fade(state, half_to_the((at - self.time) / self._half_life))
        return state

    # ---- snapshots ---------------------------------------------------------------------------------------------------

    def dump(self) -> str:
        """Everything, as text."""
        data = {
            "format": FORMAT, "n": self.n, "learnt": self.learnt, "clipped": self.clipped, "time": self.time,
            "last_at": self.last_at, "changes": self.changes, "settled": self.settled, "waiting": self.waiting.text(),
            "reported": self.reported.plain(), "config": self.config._asdict(), "state": to_plain(self.state),
        }  # fmt: skip
        return json.dumps(data, allow_nan=False, sort_keys=True)

    @classmethod
    def load(cls, text: str, make: Maker, reread: Reread | None = None) -> "Fold":
        """The inverse of `dump`."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ValueError
            fold = cls(make, reread)
            low, high = data["config"]["reward_range"]
            config = Config(**{**data["config"], "reward_range": (float(low), float(high))})
            fold._use(config, make(config.policy))
            like = started(fold.policy, len(config.arms), MOST_NUMBERS)
            fold.state = from_plain(data["state"], like)
            check_state(fold.policy, to_arrays(fold.state, like), int(data["learnt"]), like)
            fold.waiting = Waiting.read(data["waiting"], len(config.arms))
            fold.reported = Reported.read(data["reported"])
            for name in ("n", "learnt", "clipped", "time", "last_at", "changes", "settled"):
                setattr(fold, name, int(data[name]))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Damaged("A snapshot cannot be read.") from None
        return fold


def _column(events: list[Event], name: str, kind: Any = np.int64) -> np.ndarray:
    """One field of all events. (A zip of all rows would hold an iterator for each, and is several times slower.)"""
    return np.fromiter(map(itemgetter(Event._fields.index(name)), events), kind, len(events))


def _copied(state: Any) -> Any:
    return tuple.__new__(type(state), [_copied(field) if isinstance(field, tuple) else list(field) for field in state])
