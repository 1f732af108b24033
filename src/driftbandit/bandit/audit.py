"""Prove a journal: recompute every decision and every snapshot from the events, and name the first difference.

An arm is a pure function of the configuration, the state after `known` events, the time, the context and the decision's
id. All of them are in the journal, so the audit needs nothing else, and works while the bandits are running."""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from typing import Any, NamedTuple

from driftbandit.bandit.fold import FORMAT, Fold
from driftbandit.bandit.journal import Journal
from driftbandit.bandit.opening import arithmetic, bandit_number, earliest, latest, policy_maker, reading
from driftbandit.bandit.records import DAY, PART, REWARD, ROUNDS, WAYS, DecisionRow, Event, decision_stream, parse_slots
from driftbandit.core.checks import counted
from driftbandit.core.draws import Stream
from driftbandit.errors import DamagedJournal, StoreError, report_damage

_BLOCK = 256
_STORE = "(the store)"


class Audit(NamedTuple):
    """The result for one bandit."""

    bandit: str
    decisions: int
    events: int
    snapshots: int
    differences: list[str]
    unproved: tuple[str, ...] = ()  # stretches that this version cannot recompute
    dropped: int = 0  # events from before the journal's beginning; decisions that knew fewer were dropped as well


class Known(NamedTuple):
    """A decision with everything needed to make it again."""

    row: DecisionRow
    fold: Fold  # after row.known events; valid until the next decision
    rng: Stream  # at the decision's random numbers
    allowed: list[int] | None
    features: list[float] | None  # the numbers of its context, or of all candidates

    @property
    def incomplete(self) -> bool:
        """Whether the context that it was made in was erased."""
        return self.features is not None and self.row.id[0] == "="


def audit(target: Any, name: str | None = None, policies: Mapping[str, type] | None = None) -> list[Audit]:
    """Audit every bandit of a journal, or the one of this name."""
    journal = reading(target)
    try:
        if name is not None:
            return [audit_bandit(journal, name, bandit_number(journal, name), policies)]
        try:
            with report_damage():
                wrong, found = journal.check_file(), journal.bandits()
        except DamagedJournal as error:
            return [Audit(_STORE, 0, 0, 0, [_sentence(error)])]
        out = [audit_bandit(journal, title, number, policies) for title, number in found.items()]
        return out + ([Audit(_STORE, 0, 0, 0, wrong)] if wrong else [])
    finally:
        journal.close()


def _sentence(error: Exception) -> str:
    return str(error).rstrip(".")


def audit_bandit(
    journal: Journal, name: str, number: int, policies: Mapping[str, type] | None = None, known: int | None = None
) -> Audit:
    """Audit one bandit: the checksums and the number of its rows, its decisions in the order of `known`, and the
    snapshots in between. If `known` is given, only decisions that knew so many events, and some before them, and of
    other rows only the number and the sum of the checksums. Where old rows are dropped while it reads, it begins
    again."""
    base = journal.base(number)
    try:
        found = _audit(journal, name, number, policies, known)
    except DamagedJournal:
        if journal.base(number) == base:
            raise
        return audit_bandit(journal, name, number, policies, known)
    return found if journal.base(number) == base else audit_bandit(journal, name, number, policies, known)


def _audit(
    journal: Journal, name: str, number: int, policies: Mapping[str, type] | None, least: int | None = None
) -> Audit:
    try:
        with report_damage():
            differences = journal.check(number, rows=least is None)
    except DamagedJournal as error:
        return Audit(name, 0, 0, 0, [_sentence(error)])
    walk = Walk(journal, number, policies, least)
    count = 0
    others: list[list[Any]] = []  # arithmetic that this version does not have: text, decisions, first and last event
    erased = 0  # decisions whose context was erased
    ended = True  # whether the next such decision begins a stretch
    try:
        with report_damage():
            for known in walk.decisions():
                count += 1
                row = known.row
                if known.incomplete:
                    erased += 1
                    continue
                if not walk.comparable:
                    text = known.fold.config.arithmetic
                    if ended or others[-1][0] != text:
                        others.append([text, 0, row.known, row.known])
                    others[-1][1], others[-1][3], ended = others[-1][1] + 1, row.known, False
                    continue
                ended = True
                difference = compare_decision(known)
                if difference:
                    differences.append(f"decision {row.id} (after {row.known} events) {difference}")
                    break
            else:
                walk.finish()
    except StoreError:
        raise
    except DamagedJournal as error:
        differences.append(_sentence(error))
    except ValueError as error:
        differences.append(f"after {walk.fold.n} events: {error}")
    except Exception as error:  # a policy of the user's fails
        differences.append(f"after {walk.fold.n} events: {type(error).__name__}: {' '.join(str(error).split())}")
    unproved = tuple(
        f"{counted(made, 'decision')} after {first} to {last} events by {text}: this version computes other bits"
        for text, made, first, last in others
    )
    if erased:
        unproved += (f"{counted(erased, 'decision')} whose context was erased",)
    differences += walk.differences
    return Audit(name, count, walk.fold.n, walk.snapshots, differences, unproved, walk.begin)


def compare_decision(known: Known) -> str:
    """How a decision differs from what its decider would have decided, or ""."""
    row, fold = known.row, known.fold
    slot, how = fold.choose(known.rng, known.allowed, row.at, known.features)
    _, chosen = fold.choices(row)
    if (slot, how) != (chosen, row.how):
        stored, recomputed = WAYS.get(row.how, row.how), WAYS[how]
        return f"has arm {chosen} by {stored}; recomputed it is arm {slot} by {recomputed}"
    if row.probability is not None and fold.player.uses_probability:
        probability = fold.player.probability_of(slot, known.rng, row.at)
        if probability != row.probability:
            return f"has the probability {row.probability!r} of its arm; recomputed it is {probability!r}"
    return ""


class Walk:
    """A fold that moves along the events from the journal's beginning (or from the last snapshot of at most `known`
    events), and stops at each decision where its decider stood."""

    def __init__(
        self, journal: Journal, number: int, policies: Mapping[str, type] | None = None, known: int | None = None
    ) -> None:
        self.journal, self.number = journal, number
        make = policy_maker(dict(policies or {}))
        whole = earliest(journal, number, make)
        self.fold, self.cursor = whole if known is None else latest(journal, number, make, max(known, whole[0].n))
        self.begin = self.fold.n
        self.snapshots = 0
        self.differences: list[str] = []
        self._kept = dict(journal.snapshots(number))
        self._events = journal.events(number, self.cursor)
        self._policy: Any = None
        self._arithmetic = ""
        base = journal.base(number)
        self._whole_since = 0 if base is None else base.at + DAY  # parts of earlier decisions may have been dropped
        self._parts: dict[str, list[float]] = {}  # of rewards that are not whole yet

    def decisions(self, fewer: int | None = None, until: int | None = None) -> Iterator[Known]:
        """Every decision, also one that was altered, with the fold of its decider; or those that knew `fewer` events
        and were made before a time. Decisions from before the beginning are about to be dropped."""
        stored = self.journal.decisions(self.number, until, self.begin)
        most = 1 << 62 if fewer is None else fewer
        rows = (row for row in takewhile(lambda row: row.known < most, stored) if row.known >= self.begin)
        while block := list(islice(rows, _BLOCK)):
            self.advance(block[0].known)
            config = self.fold.config
            numbers = decision_stream(int(config.key), [ROUNDS[config.rounds](row.id) for row in block])
            for column, row in enumerate(block):
                self.advance(row.known)
                slots, features = parse_slots(row.available), self.fold.encode(row)
                allowed = self.fold.active if slots is None else slots
                yield Known(row, self.fold, numbers.at(column), allowed, features)

    @property
    def comparable(self) -> bool:
        """Whether the journal was written here with the arithmetic that this version has."""
        policy, config = self.fold.player.policy, self.fold.config
        if policy is not self._policy:
            self._policy, self._arithmetic = policy, arithmetic(policy)
        return bool(config.arithmetic == self._arithmetic)

    def finish(self) -> None:
        """Fold the events that no decision knew."""
        while self._fold_next():
            pass

    def advance(self, known: int) -> None:
        """Fold events until there are so many."""
        while self.fold.n < known:
            if not self._fold_next():
                raise DamagedJournal(f"a decision knew {known} events, and the journal holds {self.fold.n}")

    def _fold_next(self) -> bool:
        found = next(self._events, None)
        if found is None:  # more may have been written meanwhile
            self._events = self.journal.events(self.number, self.cursor)
            found = next(self._events, None)
        if found is None:
            return False
        self.cursor, event = found
        self.fold.apply([event])
        self._compare_parts(event)
        body = self._kept.get(self.fold.n)
        if body is not None and self.comparable:
            self.snapshots += 1
            if not _matches(body, self.fold):
                self.differences.append(f"the snapshot after {self.fold.n} events differs from the recomputed state")
        return True

    def _compare_parts(self, event: Event) -> None:
        """Compare every outcome with the sum of its parts."""
        if event.kind == PART and event.decided >= self._whole_since:
            self._parts.setdefault(event.decision.partition("+")[0], []).append(event.value)
        elif event.kind < PART and event.decision in self._parts:
            total, wait = math.fsum(self._parts.pop(event.decision)), self.fold.config.wait
            whole = event.kind == REWARD and wait is not None and event.at <= event.decided + wait
            if (event.kind, event.value) != (REWARD, total) and not whole:
                text = f"the reward of decision {event.decision} is not {total:g}, the sum of its parts"
                self.differences.append(text)


def _matches(body: str, fold: Fold) -> bool:
    try:
        kept = json.loads(body)["fold"]
        return bool(kept["format"] != FORMAT or kept == json.loads(fold.dump()))  # another version's is not used
    except (ValueError, KeyError, TypeError):
        return False
