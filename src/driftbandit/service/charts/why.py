"""Why an arm was chosen: the decision made again from what its decider knew, with the numbers it compared."""

from itertools import islice
from typing import Any

from driftbandit.agent.inputs import to_json_arm
from driftbandit.live import rules, settings
from driftbandit.live.errors import Unknown
from driftbandit.live.fold import Fold
from driftbandit.live.ids import ROUNDS, decision_stream
from driftbandit.live.opening import policy_maker
from driftbandit.live.records import FIXED, FLOOR, HOLDBACK, POLICY, WAYS, slots_from
from driftbandit.live.replica import latest
from driftbandit.service.types import Made, Score, WhyInfo

_FARTHEST = 300_000  # events folded for one answer

_TEXTS = {
    POLICY: "The policy chose it: the largest of the numbers it compared.",
    FLOOR: "The floor chose it: a small share of decisions is drawn evenly, so that no arm is forgotten.",
    HOLDBACK: "It was held back: a share of decisions follows the baseline, to measure what the policy brings.",
    FIXED: "The arm was fixed by hand.",
}


def why(journal: Any, number: int, id: str) -> WhyInfo:
    """The decision again, and whether it comes out as it stands in the journal."""
    standing = journal.standing(number, [id]).get(id)
    if standing is None:
        raise Unknown(f"There is no decision {id!r:.140}.")
    row = standing.row
    fold = _fold_at(journal, number, row.known)
    config, names = fold.config, [to_json_arm(name) for name in settings.names_of(fold.config)]
    slots = slots_from(row.available)
    allowed = fold.active if slots is None else slots
    chances, error = rules.probabilities(config, fold.player, allowed, row.at)
    rng = decision_stream(int(config.key), [ROUNDS[config.rounds](row.id)]).at(0)
    slot, how = rules.choose(config, fold.player, rng, allowed, row.at)
    compared = getattr(fold.player.view(row.at), "scores", None) if how == POLICY else None
    if compared is not None and len(compared) != len(names):
        compared = None
    shown = range(len(names)) if allowed is None else allowed
    scores = [Score(names[s], None if compared is None else _finite(compared[s]), float(chances[s])) for s in shown]
    text = _TEXTS[how] if how != POLICY or compared is not None else "The policy chose it."
    if slots is not None:
        text += f" {len(slots)} of {len(config.active)} arms were available."
    made = Made(row.id, names[row.slot], row.at, row.known, WAYS[row.how], float(chances[row.slot]))
    return WhyInfo(made, (slot, how) == (row.slot, row.how), scores, float(error), text)


def _finite(value: float) -> float | None:
    return float(value) if abs(value) < 1e300 else None


def _fold_at(journal: Any, number: int, known: int) -> Fold:
    """The fold after `known` events, from the nearest snapshot before."""
    fold, cursor, _ = latest(journal, number, policy_maker(), known)
    left = known - fold.n
    if left > _FARTHEST:
        raise ValueError(f"This decision lies {left} events after the nearest snapshot; `driftbandit audit` proves it.")
    if left:
        fold.apply(event for _, event in islice(journal.events(number, cursor, left), left))
    return fold
