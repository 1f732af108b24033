"""Prove a journal: recompute every decision and every snapshot from the events, and name the first difference.

An arm is a pure function of the configuration, the state after `known` events, the time and the decision's id. All of
them are in the journal; so the audit needs nothing else, and works while the bandits are running."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from driftbandit.checks import counted
from driftbandit.draws import Stream
from driftbandit.live import rules
from driftbandit.live.errors import Damaged, StoreError, Unknown, damage_told
from driftbandit.live.fold import Fold
from driftbandit.live.ids import ROUNDS, decision_stream
from driftbandit.live.journal import Journal
from driftbandit.live.opening import arithmetic, policy_maker, reading, rereader
from driftbandit.live.records import WAYS, DecisionRow, slots_from

_BLOCK = 256
_STORE = "(the store)"


class Audit(NamedTuple):
    """What was found in one bandit's journal."""

    bandit: str
    decisions: int
    events: int
    snapshots: int
    differences: list[str]
    unproved: tuple[str, ...] = ()  # stretches that this version cannot recompute


class Known(NamedTuple):
    """A decision, and what its decider knew: everything needed to make it again."""

    row: DecisionRow
    fold: Fold  # after row.known events; valid until the next one
    rng: Stream  # at the decision's numbers
    allowed: list[int] | None


class UnknownEvents(Damaged):
    """A decision knows more events than the journal holds."""


def audit(target: Any, name: str | None = None, policies: Mapping[str, type] | None = None) -> list[Audit]:
    """Every bandit of a journal, or the one of this name."""
    journal = reading(target)
    out: list[Audit] = []
    try:
        try:
            with damage_told():
                wrong = journal.check()
                found = journal.bandits()
        except Damaged as error:
            return [Audit(_STORE, 0, 0, 0, [str(error).rstrip(".")])]
        if name is not None:
            if name not in found:
                raise Unknown(f"There is no bandit {name!r:.60} in this journal.")
            found = {name: found[name]}
        for title, number in found.items():
            try:
                out.append(audit_bandit(journal, title, number, policies))
            except Damaged as error:
                out.append(Audit(title, 0, 0, 0, [str(error).rstrip(".")]))
    finally:
        journal.close()
    if wrong:
        out.append(Audit(_STORE, 0, 0, 0, wrong))
    return out


def audit_bandit(journal: Journal, name: str, number: int, policies: Mapping[str, type] | None = None) -> Audit:
    """One bandit: its decisions in the order of what they knew, its snapshots on the way."""
    differences: list[str] = []
    walk = Walk(journal, number, policies)
    count = 0
    others: list[list[Any]] = []  # arithmetic that this version does not have: text, decisions, first and last event
    ended = True  # whether the next such decision begins a stretch
    try:
        with damage_told():
            for known in walk.decisions():
                count += 1
                row, fold = known.row, known.fold
                if not walk.comparable:
                    if ended or others[-1][0] != fold.config.arithmetic:
                        others.append([fold.config.arithmetic, 0, row.known, row.known])
                    others[-1][1], others[-1][3], ended = others[-1][1] + 1, row.known, False
                    continue
                ended = True
                slot, how = rules.choose(fold.config, fold.player, known.rng, known.allowed, row.at)
                if (slot, how) != (row.slot, row.how):
                    differences.append(
                        f"decision {row.id} (after {row.known} events) says arm {row.slot} by "
                        f"{WAYS.get(row.how, row.how)}; recomputed it is arm {slot} by {WAYS[how]}"
                    )
                    break
                if row.chance is not None and fold.player.weighs:
                    chance = fold.player.probability_of(slot, known.rng, row.at)
                    if chance != row.chance:
                        differences.append(
                            f"decision {row.id} (after {row.known} events) says its arm had the chance {row.chance!r}; "
                            f"recomputed it is {chance!r}"
                        )
                        break
            else:
                walk.finish()
    except UnknownEvents as error:
        differences.append(str(error))
    except StoreError:
        raise
    except ValueError as error:
        differences.append(f"after {walk.fold.n} events: {error}")
    except Exception as error:  # a policy of the user's fails at what it once learnt
        differences.append(f"after {walk.fold.n} events: {type(error).__name__}: {' '.join(str(error).split())}")
    unproved = tuple(
        f"{counted(made, 'decision')} after {first} to {last} events by {text}: this version computes other bits"
        for text, made, first, last in others
    )
    return Audit(name, count, walk.fold.n, walk.snapshots, differences + walk.differences, unproved)


class Walk:
    """A fold that moves along the events, and stops at each decision where its decider stood."""

    def __init__(self, journal: Journal, number: int, policies: Mapping[str, type] | None = None) -> None:
        self.journal, self.number = journal, number
        self.fold = Fold(policy_maker(dict(policies or {})), rereader(journal, number))
        self.snapshots = 0
        self.differences: list[str] = []
        self._kept = dict(journal.snapshots(number))
        self._events = (event for _, event in journal.events(number))
        self._asked: Any = None
        self._arithmetic = ""

    def decisions(self) -> Iterator[Known]:
        """Every decision with what was known."""
        rows = self.journal.decisions(self.number, checked=False)  # whether they are altered is proved here
        while block := list(islice(rows, _BLOCK)):
            self._advance(block[0].known)
            config = self.fold.config
            numbers = decision_stream(int(config.key), [ROUNDS[config.rounds](row.id) for row in block])
            for column, row in enumerate(block):
                self._advance(row.known)
                slots = slots_from(row.available)
                allowed = self.fold.active if slots is None else slots
                yield Known(row, self.fold, numbers.at(column), allowed)

    @property
    def comparable(self) -> bool:
        """Whether the journal was written here with the arithmetic that this version has."""
        policy, config = self.fold.player.policy, self.fold.config
        if policy is not self._asked:
            self._asked, self._arithmetic = policy, arithmetic(policy)
        return bool(config.arithmetic == self._arithmetic)

    def finish(self) -> None:
        """Fold what no decision knew yet."""
        for event in self._events:
            self.fold.apply([event])
            self._compare()

    def _advance(self, known: int) -> None:
        while self.fold.n < known:
            event = next(self._events, None)
            if event is None:
                raise UnknownEvents(f"a decision knew {known} events, and the journal holds {self.fold.n}")
            self.fold.apply([event])
            self._compare()

    def _compare(self) -> None:
        body = self._kept.get(self.fold.n)
        if body is not None and self.comparable:
            self.snapshots += 1
            if not _same(body, self.fold):
                self.differences.append(f"the snapshot after {self.fold.n} events differs from what they give")


def _same(body: str, fold: Fold) -> bool:
    import json

    try:
        return bool(json.loads(body)["fold"] == json.loads(fold.dump()))
    except (ValueError, KeyError, TypeError):
        return False
