"""Questions about a bandit: arms, contexts, decisions, history, charts, uplift, changes, health, audit, why."""

import asyncio
import contextlib
from datetime import timedelta
from itertools import islice
from typing import Any

import msgspec

from driftbandit.bandit import settings
from driftbandit.bandit.beliefs import beliefs_of
from driftbandit.bandit.fold import Fold
from driftbandit.bandit.inputs import to_json_arm
from driftbandit.bandit.opening import latest, policy_maker
from driftbandit.bandit.records import (
    FIRST,
    FIXED,
    FLOOR,
    HOLDBACK,
    POLICY,
    ROUNDS,
    WAYS,
    as_microseconds,
    check_id,
    decision_stream,
    parse_slots,
)
from driftbandit.errors import NotFound
from driftbandit.policies.drift.belief import Explanation
from driftbandit.service import types as t
from driftbandit.service.calls import Call, operation, parameter, read_arms
from driftbandit.service.charts import ChartsInfo, HistoryInfo
from driftbandit.service.deciding import CANDIDATES, to_message

_FARTHEST = 300_000  # events folded for one answer
_REASONS = {
    POLICY: "The policy chose it: the largest of the numbers it compared.",
    FLOOR: "The floor chose it: a small share of decisions is drawn uniformly, so that every arm is tried.",
    HOLDBACK: "It was held back: a share of decisions follows the baseline, to measure the uplift of the policy.",
    FIRST: "It was tried first: no outcome of it had been learned yet.",
    FIXED: "The arm was fixed by hand.",
}
_LATEST = 250_000_000_000_000_000  # the year 9892: a datetime cannot hold later times
_SPAN = {
    "since": parameter(int, "microseconds since 1970; the first decision, if left out", ge=0, le=_LATEST),
    "until": parameter(int, "microseconds since 1970; now, if left out", ge=0, le=_LATEST),
}


def _check_span(query: Any) -> None:
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise ValueError(f"since must lie before until; got {query.since} and {query.until}.")


_AVAILABLE = parameter(str, 'only these can be chosen: a list as JSON, ["red", "green"]', max_length=4000)


def _read_available(call: Call) -> list[Any] | None:
    text = call.query.available
    return None if text is None else read_arms(msgspec.json.decode(text, type=t.Arms))


@operation("GET", "/v1/bandits/{bandit}/greedy", "decide", t.GreedyInfo, query={"available": _AVAILABLE})
async def greedy(call: Call) -> t.GreedyInfo:
    """The arm with the best believed mean reward, for previews and crawlers. Nothing is recorded or learned."""
    return t.GreedyInfo(to_json_arm(await call.ask("greedy", available=_read_available(call))))


@operation(
    "GET", "/v1/bandits/{bandit}/arms", "read", t.ArmsInfo,
    query={
        "available": _AVAILABLE,
        "draws": parameter(int, "draws for probabilities that have no formula", 2000, ge=1, le=10_000),
    },
)  # fmt: skip
async def arms(call: Call) -> t.ArmsInfo:
    """Each arm now: the probability that it is chosen, all rules included, and the policy's belief about it."""
    return await asyncio.to_thread(_arms, await call.bandit(), _read_available(call), call.query.draws)


def _arms(bandit: Any, available: list[Any] | None, draws: int) -> t.ArmsInfo:
    if bandit.stored.candidates:
        return t.ArmsInfo([], 0.0)
    probabilities = bandit.probabilities(available=available, draws=draws)
    belief, config = beliefs_of(bandit), bandit.stored
    retired, names = set(config.retired), settings.names_of(config)
    last = {name: slot for slot, name in enumerate(names)}  # an arm that was retired and added again is listed once
    out = [
        t.ArmInfo(to_json_arm(name), slot in retired, 0.0 if slot in retired else probabilities.get(name, 0.0),
                  belief.mean[slot], belief.spread[slot], belief.weight[slot])
        for slot, name in enumerate(names) if slot == last[name]
    ]  # fmt: skip
    return t.ArmsInfo(out, probabilities.error)


@operation("POST", "/v1/bandits/{bandit}/greedy", "decide", t.GreedyInfo, t.Greedy, limit=CANDIDATES)
async def greedy_in(call: Call) -> t.GreedyInfo:
    """The arm with the best believed mean reward in a context, or the best candidate. Nothing is recorded or
    learned."""
    ask = call.body
    among = {"candidates": ask.candidates, "available": read_arms(ask.available)}
    return t.GreedyInfo(to_json_arm(await call.ask("greedy", ask.context, **among)))


@operation("POST", "/v1/bandits/{bandit}/what-if", "read", t.ArmsInfo, t.WhatIf, limit=CANDIDATES)
async def what_if(call: Call) -> t.ArmsInfo:
    """Each arm in a context, or each candidate: the probability that it would be chosen now, and the reward that the
    policy expects of it. Nothing is decided or written."""
    return await asyncio.to_thread(_arms_in, await call.bandit(), call.body)


def _arms_in(bandit: Any, ask: t.WhatIf) -> t.ArmsInfo:
    among = {"available": read_arms(ask.available), "candidates": ask.candidates}
    probabilities = bandit.probabilities(ask.context, draws=ask.draws, **among)
    expected: dict[Any, Any] = {}
    with contextlib.suppress(ValueError):  # the policy has no such belief
        expected = bandit.expected(ask.context, candidates=ask.candidates)
    out = []
    for arm in bandit.arms if ask.candidates is None else ask.candidates:
        mean, sd = expected.get(arm, (None, None))
        out.append(t.ArmInfo(to_json_arm(arm), False, probabilities.get(arm, 0.0), mean, sd, None))
    return t.ArmsInfo(out, probabilities.error, bool(expected))


@operation("GET", "/v1/bandits/{bandit}/effects", "read", t.EffectsInfo)
async def effects(call: Call) -> Any:
    """What each feature does for every arm, the best arm by level and by hour, and how much context gains."""
    bandit = await call.bandit()
    return t.to_plain(await asyncio.to_thread(call.service.charts.cached, "effects", bandit, bandit.effects))


@operation(
    "GET", "/v1/bandits/{bandit}/decisions", "read", t.Records,
    query={"limit": parameter(int, "how many", 20, ge=1, le=1000)},
)  # fmt: skip
async def decisions(call: Call) -> t.Records:
    """The last decisions, newest first, with their outcomes."""
    return t.Records([_record(outcome) for outcome in await call.ask("recent", call.query.limit)])


@operation("GET", "/v1/bandits/{bandit}/decisions/{id}", "read", t.Record)
async def decision(call: Call) -> t.Record:
    """A decision's record."""
    return _record(await call.ask("outcome", call.path("id")))


def _record(outcome: Any) -> t.Record:
    came = None if outcome.came is None else as_microseconds(outcome.came)
    made = to_message(outcome.decision)
    return t.Record(made, outcome.kind, outcome.reward, outcome.late, came, outcome.waiting, outcome.context,
                    outcome.added)  # fmt: skip


@operation(
    "GET", "/v1/bandits/{bandit}/history", "read", HistoryInfo,
    query={**_SPAN, "points": parameter(int, "number of intervals", 200, ge=1, le=2000)},
)  # fmt: skip
async def history(call: Call) -> Any:
    """Decisions, outcomes and rewards over time and arms, counted by the store."""
    _check_span(call.query)
    return await call.chart("counts", call.query.since, call.query.until, call.query.points)


@operation(
    "GET", "/v1/bandits/{bandit}/uplift", "read", t.UpliftInfo,
    query={
        "since": parameter(str, 'decisions of the last "7 days" only', max_length=40),
        "confidence": parameter(float, "of the interval", 0.95, ge=0.5, le=0.9999),
    },
)  # fmt: skip
async def uplift(call: Call) -> Any:
    """What the policy gains over the baseline, with an interval."""
    found = await call.chart("uplift", call.query.since, call.query.confidence)
    return {**t.to_plain(found), "text": str(found)}


@operation("GET", "/v1/bandits/{bandit}/changes", "read", t.ChangesInfo)
async def changes(call: Call) -> t.ChangesInfo:
    """Every change of configuration: when, what, who."""
    found = await call.chart("changes")
    return t.ChangesInfo([t.ChangeInfo(as_microseconds(row["at"]), row["what"], row["who"]) for row in found])


@operation("GET", "/v1/bandits/{bandit}/health", "read", t.HealthInfo)
async def health(call: Call) -> t.HealthInfo:
    """Counts and lags."""
    found = await call.ask("health")
    times = {name: value.total_seconds() for name, value in found.items() if isinstance(value, timedelta)}
    found |= {f"{name}_seconds": seconds for name, seconds in times.items()}
    return t.HealthInfo(*(found.get(name) for name in t.HealthInfo.__struct_fields__))


@operation(
    "GET", "/v1/bandits/{bandit}/charts", "read", ChartsInfo,
    query={**_SPAN, "points": parameter(int, "number of intervals", 240, ge=10, le=1000)},
)  # fmt: skip
async def charts(call: Call) -> Any:
    """Everything the page of a bandit draws: counts and beliefs over time, delays, densities."""
    _check_span(call.query)
    return await call.chart("draw", call.query.since, call.query.until, call.query.points)


@operation("GET", "/v1/bandits/{bandit}/explanation", "read", t.Explained)
async def explanation(call: Call) -> Any:
    """What the policy believes about the environment and every arm; only some policies support it, DriftAuto does."""
    found = await call.ask("explain")
    features, environment = getattr(found, "features", None), getattr(found, "environment", found)
    beliefs = dict.fromkeys(Explanation._fields) if environment is None else environment._asdict()
    means, among_changes = (
        [{"arm": to_json_arm(arm), **expected._asdict()} for arm, expected in arms.items()]
        for arms in (found.arms, beliefs["arms"] or {})
    )
    more = {"arms": means, "environment_arms": among_changes, "text": str(found), "features": features}
    return {**beliefs, **more}


@operation("GET", "/v1/bandits/{bandit}/audit", "read", t.AuditInfo)
async def audit_report(call: Call) -> t.AuditInfo:
    """The result of the last audit."""
    return call.service.bandits.last_audit((await call.bandit()).name)  # type: ignore[no-any-return]


@operation("POST", "/v1/bandits/{bandit}/audit", "read", t.AuditInfo, t.Nothing)
async def audit(call: Call) -> t.AuditInfo:
    """Begin an audit: every decision and the state are recomputed from the journal. GET returns the result."""
    return call.service.bandits.begin_audit((await call.bandit()).name)  # type: ignore[no-any-return]


@operation("GET", "/v1/bandits/{bandit}/decisions/{id}/why", "read", t.WhyInfo)
async def why(call: Call) -> t.WhyInfo:
    """Why this arm: the decision recomputed from the state at decision time, with the numbers it compared."""
    bandit, id = await call.bandit(), check_id(call.path("id"))
    return await asyncio.to_thread(explain_choice, call.service.bandits.journal, bandit.name, id)


def explain_choice(journal: Any, name: str, id: str) -> t.WhyInfo:
    """A decision recomputed, and whether it is the one in the journal."""
    number = journal.number(name)
    standing = journal.standing(number, [id]).get(id)
    if standing is None:
        raise NotFound(f"There is no decision {id!r:.140}.")
    row = standing.row
    fold = _fold_at(journal, number, row.known)
    config, (names, chosen) = fold.config, fold.choices(row)
    names = [to_json_arm(name) for name in names]
    slots = parse_slots(row.available)
    allowed = fold.active if slots is None else slots
    features = fold.encode(row)
    probabilities, error = fold.probabilities(allowed, row.at, features=features)
    rng = decision_stream(int(config.key), [ROUNDS[config.rounds](row.id)]).at(0)
    slot, how = fold.choose(rng, allowed, row.at, features)
    compared = getattr(fold.player.view(row.at), "scores", None) if how == POLICY else None
    if compared is not None and len(compared) != len(names):
        compared = None
    shown = range(len(names)) if allowed is None else allowed
    scores = [
        t.Score(names[s], None if compared is None else _finite(compared[s]), float(probabilities[s])) for s in shown
    ]
    text = "The policy chose it." if how == POLICY and compared is None else _REASONS[how]
    if slots is not None:
        text += f" {len(slots)} of {len(config.active)} arms were available."
    decision = t.Made(row.id, names[chosen], row.at, row.known, WAYS[row.how], float(probabilities[chosen]))
    return t.WhyInfo(decision, (slot, how) == (chosen, row.how), scores, float(error), text)


def _finite(value: float) -> float | None:
    return float(value) if abs(value) < 1e300 else None


def _fold_at(journal: Any, number: int, known: int) -> Fold:
    """The fold after `known` events, from the nearest earlier snapshot."""
    fold, cursor = latest(journal, number, policy_maker(), known)
    left = known - fold.n
    if left > _FARTHEST:
        raise ValueError(f"This decision is {left} events after the last snapshot; `driftbandit audit` recomputes it.")
    if left:
        fold.apply(event for _, event in islice(journal.events(number, cursor, left), left))
    return fold
