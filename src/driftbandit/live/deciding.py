"""Choosing for many callers at once.

A call that waits for the disk anyway leaves a wish, and whoever begins the next commit chooses for all who have left
one: from one look at the clock and at what is known, under one lock. A call that does not wait chooses by itself, with
the same lines."""

import contextlib
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from driftbandit.draws import Stream
from driftbandit.live import rules, settings
from driftbandit.live.ids import ROUNDS, Supply, decision_stream, made_ids
from driftbandit.live.journal import Decide
from driftbandit.live.records import Config, DecisionRow, slots_text
from driftbandit.live.replica import Replica
from driftbandit.live.ticket import Ticket


class Wish(NamedTuple):
    """What a caller wants decided: one decision for each id (None: an id is made), among these arms (None: all)."""

    ids: list[str | None]
    available: list[Hashable] | None = None
    probability: bool = False


ANY = Wish([None])  # what most callers want


class Chooser:
    """The part of a bandit that chooses; its lock is the bandit's."""

    def __init__(self, replica: Replica) -> None:
        self._replica, self._fold, self._number = replica, replica.fold, replica.number
        self._known: Config | None = None

    def config(self) -> Config:
        """The configuration now; what follows from it is recomputed when it has changed."""
        config: Config = self._fold.config
        if config is not self._known:
            self.names = settings.names_of(config)
            self._round = ROUNDS[config.rounds]
            if self._known is None:
                self._supply = Supply(int(config.key))
            self._known = config
        return config

    def may_settle(self) -> bool:
        """Whether decisions may be old enough to be settled."""
        return self._replica.may_settle()

    def grant(self, tickets: list[Ticket], settle: bool = True) -> None:
        """Choose for all of these, and put them where the next commit finds them. A wish that cannot be met fails by
        itself."""
        replica = self._replica
        if settle:
            replica.settle_first(replica.writer.commit_first)
        with replica.lock:
            plain = sum(ticket.wish is ANY for ticket in tickets)
            fresh: Iterator[DecisionRow] = iter(())
            if plain > 1:
                with contextlib.suppress(Exception):  # then each of them meets it below
                    fresh = iter(self._made(plain))
            ready = []
            for ticket in tickets:
                try:
                    row = next(fresh, None) if ticket.wish is ANY else None
                    if row is not None:
                        ticket.asks = [Decide(self._number, row)]
                    else:
                        ticket.asks, ticket.chance = self.choose(ticket.wish)
                    ready.append(ticket)
                except Exception as error:
                    ticket.settle([error])
                    ticket.wake()
            replica.writer.enqueue(ready)

    def choose(self, wish: Wish) -> tuple[list[Decide], Any]:
        """The decisions to write, and the chances of all arms where they are wished for. The caller holds the lock."""
        config, number = self.config(), self._number
        slots = None if wish.available is None else settings.slots_of(config, wish.available)
        if wish.ids[0] is None and config.rounds == "hash" and len(wish.ids) == 1:
            asks = [Decide(number, row) for row in self._made(1, slots)]
        else:
            fresh = iter(made_ids(wish.ids.count(None)))
            named = [next(fresh) if id is None else id for id in wish.ids]
            stream = decision_stream(int(config.key), [self._round(name) for name in named])
            numbered = ((name, stream.at(column)) for column, name in enumerate(named))
            asks = [Decide(number, row) for row in self._rows(numbered, slots)]
        if not wish.probability:
            return asks, None
        fold, at = self._fold, asks[0].row.at
        allowed = fold.active if slots is None else slots
        return asks, rules.probabilities(config, fold.player, allowed, at)[0]

    def _made(self, count: int, slots: list[int] | None = None) -> list[DecisionRow]:
        """Decisions with ids of our own."""
        if self.config().rounds != "hash":
            return []
        take = self._supply.take
        return self._rows((take() for _ in range(count)), slots)

    def _rows(self, numbered: Iterable[tuple[str, Stream]], slots: list[int] | None) -> list[DecisionRow]:
        """Decisions with these ids and numbers, from one look at the clock and at what is known."""
        self._replica.whole_or_raise()
        fold, config, at = self._fold, self.config(), self._replica.now()
        player, n = fold.player, fold.n
        allowed, text = (fold.active, None) if slots is None else (slots, slots_text(slots))
        rows, choose, chance = [], rules.choose, None
        for id, rng in numbered:
            slot, how = choose(config, player, rng, allowed, at)
            if player.weighs:
                chance = player.probability_of(slot, rng, at)
            rows.append(DecisionRow(id, at, slot, how, n, text, chance))
        return rows
