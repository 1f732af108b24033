"""The probabilities behind a journal's decisions, computed again and no more often than needed.

Decisions between two learnt rewards are made from one view, and share its probabilities. Beliefs whose integrals are
cheaper together are integrated together."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from driftbandit.live import rules
from driftbandit.live.audit import Known
from driftbandit.live.records import Config, DecisionRow

_BLOCK = 256  # decisions at a time


class Drawn(NamedTuple):
    """A decision, its configuration, the probability that each slot had, and how far that may be off."""

    row: DecisionRow
    config: Config
    values: np.ndarray
    error: float


class _Question(NamedTuple):
    """What is still to be integrated for a view: the belief, and the slots that could be chosen."""

    config: Config
    allowed: list[int] | None
    belief: Any
    slots: list[int]


def with_chances(decisions: Iterable[Known]) -> Iterator[Drawn]:
    """Each decision with the probabilities it was drawn by."""
    last: dict[Any, Any] = {}  # what is known of the view of the last decision, by the slots that could be chosen
    viewed: Any = None
    walk = iter(decisions)
    while True:
        block: list[tuple[DecisionRow, Config, Any]] = []
        for made in islice(walk, _BLOCK):  # a fold is valid until the next decision: what is asked of it is asked here
            player = made.fold.player
            state = player, player.learned, made.fold.config, 0 if player.half_life is None else made.row.at
            if state != viewed:
                viewed, last = state, {}
            key = None if made.allowed is None else tuple(made.allowed)
            if key not in last:
                last[key] = _asked(made)
            block.append((made.row, made.fold.config, last[key]))
        if not block:
            return
        answers = _answered([question for *_, question in block if isinstance(question, _Question)])
        for row, config, found in block:
            values, error = answers[id(found)] if isinstance(found, _Question) else found
            yield Drawn(row, config, values, error)
        last = {key: answers.get(id(found), found) for key, found in last.items()}


def _asked(made: Known) -> Any:
    """The probabilities of a view, or a question that is better answered together with others."""
    config, player, at = made.fold.config, made.fold.player, made.row.at
    slots = list(range(len(config.arms))) if made.allowed is None else made.allowed
    if len(slots) > 1 and config.fixed not in slots and not hasattr(player.policy, "exact_chances"):
        belief = player.belief(at)
        if hasattr(belief, "together"):
            return _Question(config, made.allowed, belief, slots)
    return rules.probabilities(config, player, made.allowed, at)


def _answered(questions: list[_Question]) -> dict[int, tuple[np.ndarray, float]]:
    """The answers by the identity of the question; those with as many slots are found together."""
    distinct = {id(question): question for question in questions}
    by_size: dict[tuple[type, int], list[_Question]] = {}
    for question in distinct.values():
        by_size.setdefault((type(question.belief), len(question.slots)), []).append(question)
    out = {}
    for (kind, _), some in by_size.items():
        own = kind.together([one.belief for one in some], [one.slots for one in some])  # type: ignore[attr-defined]
        for one, found in zip(some, own, strict=True):
            out[id(one)] = rules.probabilities(one.config, None, one.allowed, 0, own=found)
    return out
