"""The state of a bandit as a fold over its events: the same events give the same state, bit for bit, in every process.

With `wait`, outcomes are held back until a SETTLED event says that their decisions are old enough; they are then
learned in the order of the decisions. The order is a function of the events alone, so it needs no clock.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from driftbandit.agent.playing import make_player
from driftbandit.live.errors import Damaged, damage_told
from driftbandit.live.ids import ROUNDS
from driftbandit.live.records import CHANGE, HOLDBACK, LATE, SETTLED, Change, Config, Event
from driftbandit.live.reporting import Reported
from driftbandit.live.settings import MOST_NUMBERS
from driftbandit.live.waiting import Waiting
from driftbandit.player import Player

FORMAT = 2  # of snapshots

Maker = Callable[[str], Any]  # a policy from its text
Reread = Callable[[int], Iterable[Event]]  # so many events, from the first on


class Fold:
    """What is known after n events."""

    def __init__(
        self,
        make: Maker,
        reread: Reread | None = None,
        compiled: bool = False,
        instead: tuple[str, int | None] | None = None,
    ) -> None:
        self.n = 0
        self.clipped = 0
        self.last_at = 0  # of the latest event
        self.changes = 0
        self.settled = 0  # every decision made until then has its outcome
        self.waiting = Waiting()  # outcomes of later decisions
        self.reported = Reported()
        self.config: Config = None  # type: ignore[assignment]  # until the first change, which makes the bandit
        self.player: Player = None  # type: ignore[assignment]
        self.compiled = compiled
        self.active: list[int] | None = None
        self._holds = False
        self._make, self._reread = make, reread
        self._instead = instead  # the policy's text and half-life to use whatever the events say

    def apply(self, events: Iterable[Event]) -> None:
        """Fold some more events."""
        batch: list[Event] = []  # machine code learns many outcomes in one call
        with damage_told():
            for event in events:
                batch += self._due(event)
                if batch and (event.kind == CHANGE or not self.compiled):
                    self._learn(batch)
                    batch = []
                if event.kind == CHANGE:
                    self._change(event)
            self._learn(batch)

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

    def _learn(self, outcomes: Iterable[Event]) -> None:
        """Learn outcomes in this order."""
        config, rows = self.config, []
        for event in outcomes:
            if config is None:
                raise Damaged("The journal is damaged: an outcome comes before the event that makes the bandit.")
            if event.how == HOLDBACK and not config.learn_holdback:
                continue
            if event.slot < 0:
                raise IndexError("an outcome has no arm")
            value = (event.value - self._low) / self._width
            if not 0.0 <= value <= 1.0 and self._clip:
                value = min(max(value, 0.0), 1.0)
                self.clipped += 1
            rows.append((event.slot, value, event.decided, event.chance))
        if rows:
            self.player.learn_many(rows)

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
            anew = Fold(self._make, None, self.compiled, (after.policy, after.half_life))
            anew.apply(self._earlier())
            self.player, self.clipped = anew.player, anew.clipped
        elif forgetting and before.policy != after.policy:
            self._begin(after, event.at)
        elif forgetting:  # the same policy at another pace
            self.player.change_half_life(after.half_life, event.at)
        self._use(after)
        self.settled = min(self.settled, event.at)  # less only where a clock that was ahead has been put right
        if not self._holds:
            self._learn(self.waiting.release())

    def _earlier(self) -> Iterable[Event]:
        if self._reread is None:
            raise Damaged("The journal is damaged: a change needs events that cannot be read.")
        return self._reread(self.n - 1)

    def _begin(self, config: Config, at: int) -> None:
        policy = self._make(config.policy)
        n_arms, key = len(config.arms), int(config.key)
        self.player = make_player(policy, n_arms, key, config.half_life, at, self.compiled, MOST_NUMBERS)

    def _use(self, config: Config) -> None:
        """Go on with this configuration, of the player's policy and half-life."""
        self.config = config
        while self.player.n_arms < len(config.arms):
            self.player.add_arm()
        self._low = config.reward_range[0]
        self._width = config.reward_range[1] - config.reward_range[0]
        self._clip = config.outside == "clip"
        self._holds, self._tie = config.holds, ROUNDS[config.rounds]
        self.active = None if not config.retired else config.active  # the slots that can be chosen; None for all

    # ---- snapshots ---------------------------------------------------------------------------------------------------

    def dump(self) -> str:
        """Everything, as text."""
        data = {
            "format": FORMAT, "n": self.n, "clipped": self.clipped, "last_at": self.last_at, "changes": self.changes,
            "settled": self.settled, "waiting": self.waiting.text(), "reported": self.reported.plain(),
            "config": self.config._asdict(), "player": self.player.dump(),
        }  # fmt: skip
        return json.dumps(data, allow_nan=False, sort_keys=True)

    @classmethod
    def load(cls, text: str, make: Maker, reread: Reread | None = None, compiled: bool = False) -> "Fold":
        """The inverse of `dump`."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ValueError
            fold = cls(make, reread, compiled)
            low, high = data["config"]["reward_range"]
            config = Config(**{**data["config"], "reward_range": (float(low), float(high))})
            fold._begin(config, 0)
            fold.player.load(data["player"])
            fold._use(config)
            fold.waiting = Waiting.read(data["waiting"], len(config.arms))
            fold.reported = Reported.read(data["reported"])
            for name in ("n", "clipped", "last_at", "changes", "settled"):
                setattr(fold, name, int(data[name]))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Damaged("A snapshot cannot be read.") from None
        return fold
