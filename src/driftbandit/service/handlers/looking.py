"""Questions about a bandit: arms, decisions, history, charts, uplift, changes, health, audit and explanations."""

import asyncio
from itertools import islice
from typing import Any

import msgspec

from driftbandit.agent.inputs import to_json_arm
from driftbandit.live import rules, settings
from driftbandit.live.errors import Unknown
from driftbandit.live.fold import Fold
from driftbandit.live.ids import ROUNDS, checked_id, decision_stream
from driftbandit.live.opening import policy_maker
from driftbandit.live.records import FIXED, FLOOR, HOLDBACK, POLICY, WAYS, slots_from
from driftbandit.live.replica import latest
from driftbandit.service import types as t
from driftbandit.service.calls import Call, Query, operation, read_arms
from driftbandit.service.charts.beliefs import believed
from driftbandit.service.handlers.deciding import made

_FARTHEST = 300_000  # events folded for one answer
_TEXTS = {
    POLICY: "The policy chose it: the largest of the numbers it compared.",
    FLOOR: "The floor chose it: a small share of decisions is drawn uniformly, so that every arm is tried.",
    HOLDBACK: "It was held back: a share of decisions follows the baseline, to measure the uplift of the policy.",
    FIXED: "The arm was fixed by hand.",
}
SINCE = Query("since", int, "microseconds since 1970; the first decision, if left out", None, 0, 1 << 60)
UNTIL = Query("until", int, "microseconds since 1970; now, if left out", None, 0, 1 << 60)
POINTS = Query("points", int, "number of intervals", 200, 1, 2000)


def checked_span(since: int | None, until: int | None) -> None:
    """Refuse a time range that ends before it begins."""
    if since is not None and until is not None and since >= until:
        raise ValueError(f"since must lie before until; got {since} and {until}.")


@operation(
    "GET", "/v1/bandits/{bandit}/arms", "read", t.ArmsInfo, None,
    (Query("available", str, 'only these can be chosen: a list as JSON, ["red", "green"]', longest=4_000),
     Query("draws", int, "draws for probabilities that have no formula", 2000, 1, 10_000)),
)  # fmt: skip
async def arms(call: Call) -> t.ArmsInfo:
    """Each arm now: the probability that it is chosen, all rules included, and the policy's belief about it."""
    text = call.query["available"]
    available = None if text is None else read_arms(msgspec.json.decode(text, type=t.Arms))
    return await asyncio.to_thread(_arms, await call.bandit(), available, call.query["draws"])


def _arms(bandit: Any, available: list[Any] | None, draws: int) -> t.ArmsInfo:
    chances = bandit.probabilities(available=available, draws=draws)
    config = bandit.config
    belief = believed(bandit.policy, bandit.state, config)
    retired, names = set(config.retired), settings.names_of(config)
    last = {name: slot for slot, name in enumerate(names)}  # an arm that was retired and added again is listed once
    out = [
        t.ArmInfo(to_json_arm(name), slot in retired, 0.0 if slot in retired else chances.get(name, 0.0),
                belief.mean[slot], belief.spread[slot], belief.weight[slot])
        for slot, name in enumerate(names) if slot == last[name]
    ]  # fmt: skip
    return t.ArmsInfo(out, chances.error)


@operation(
    "GET", "/v1/bandits/{bandit}/decisions", "read", t.Records, None,
    (Query("limit", int, "how many", 20, 1, 1000),),
)  # fmt: skip
async def decisions(call: Call) -> t.Records:
    """The last decisions, newest first, with their outcomes."""
    found = await asyncio.to_thread((await call.bandit()).recent, call.query["limit"])
    return t.Records([_record(outcome) for outcome in found])


@operation("GET", "/v1/bandits/{bandit}/decisions/{id}", "read", t.Record)
async def decision(call: Call) -> t.Record:
    """A decision's record."""
    return _record(await asyncio.to_thread((await call.bandit()).outcome, call.path("id")))


def _record(outcome: Any) -> t.Record:
    return t.Record(made(outcome.decision), outcome.kind, outcome.reward, outcome.late, outcome.came, outcome.waiting)


@operation("GET", "/v1/bandits/{bandit}/history", "read", t.HistoryInfo, None, (SINCE, UNTIL, POINTS))
async def history(call: Call) -> t.HistoryInfo:
    """Decisions, outcomes and rewards over time and arms, counted by the store."""
    checked_span(call.query["since"], call.query["until"])
    found = await asyncio.to_thread((await call.bandit())._history, **call.query)
    return t.HistoryInfo(found.starts, found.width, [to_json_arm(arm) for arm in found.arms], *found[3:])


@operation(
    "GET", "/v1/bandits/{bandit}/uplift", "read", t.UpliftInfo, None,
    (Query("since", str, 'decisions of the last "7 days" only'),
     Query("confidence", float, "of the interval", 0.95, 0.5, 0.9999)),
)  # fmt: skip
async def uplift(call: Call) -> t.UpliftInfo:
    """What the policy gains over the baseline, with an interval."""
    found = await asyncio.to_thread(call.service.charts.uplift, await call.bandit(), **call.query)
    values: dict[str, Any] = {name: None if x != x else x for name, x in found._asdict().items()}  # NaN is not itself
    return t.UpliftInfo(**values, text=str(found))


@operation("GET", "/v1/bandits/{bandit}/changes", "read", t.ChangesInfo)
async def changes(call: Call) -> t.ChangesInfo:
    """Every change of configuration: when, what, who."""
    found = await asyncio.to_thread(call.service.charts.changes, await call.bandit())
    return t.ChangesInfo([t.ChangeInfo(row["at"], row["what"], row["who"]) for row in found])


@operation("GET", "/v1/bandits/{bandit}/health", "read", t.HealthInfo)
async def health(call: Call) -> t.HealthInfo:
    """Counts and lags."""
    found = await asyncio.to_thread((await call.bandit()).health)
    return t.HealthInfo(*(found.get(name) for name in t.HealthInfo.__struct_fields__))


@operation(
    "GET", "/v1/bandits/{bandit}/charts", "read", t.ChartsInfo, None,
    (SINCE, UNTIL, Query("points", int, "number of intervals", 240, 10, 1000)),
)  # fmt: skip
async def charts(call: Call) -> t.ChartsInfo:
    """Everything the page of a bandit draws: counts and beliefs over time, marks, delays, densities."""
    checked_span(call.query["since"], call.query["until"])
    return await asyncio.to_thread(call.service.charts.draw, await call.bandit(), **call.query)


@operation("GET", "/v1/bandits/{bandit}/decisions/{id}/why", "read", t.WhyInfo)
async def why(call: Call) -> t.WhyInfo:
    """Why this arm: the decision recomputed from the state at decision time, with the numbers it compared."""
    bandit, id = await call.bandit(), checked_id(call.path("id"))
    return await asyncio.to_thread(explain_choice, call.service.bandits.journal, bandit._number, id)


@operation("GET", "/v1/bandits/{bandit}/explanation", "read", t.Explained)
async def explanation(call: Call) -> t.Explained:
    """What the policy believes about the environment and every arm; only some policies support it, DriftTS does."""
    bandit = await call.bandit()
    found = await asyncio.to_thread(bandit.explain)
    arms = [t.ExpectedInfo(to_json_arm(arm), mean, sd) for arm, (mean, sd) in found.arms.items()]
    return t.Explained(
        found.still,
        found.jumps,
        found.drifts,
        found.tides,
        found.last_change,
        found.memory,
        found.learnt,
        arms,
        str(found),
    )


@operation("GET", "/v1/bandits/{bandit}/audit", "read", t.AuditInfo)
async def audit_report(call: Call) -> t.AuditInfo:
    """The result of the last audit."""
    return call.service.jobs.audit(await call.bandit(), begin=False)  # type: ignore[no-any-return]


@operation("POST", "/v1/bandits/{bandit}/audit", "read", t.AuditInfo, t.Nothing)
async def audit(call: Call) -> t.AuditInfo:
    """Begin an audit: every decision and the state are recomputed from the journal. GET returns the result."""
    return call.service.jobs.audit(await call.bandit(), begin=True)  # type: ignore[no-any-return]


@operation(
    "GET", "/v1/bandits/{bandit}/whatif", "read", t.WhatIf, None,
    (Query("policy", str, "a policy of the library; the bandit's own, if left out"),
     Query("half_life", str, '"3 h", or "none"; the bandit\'s own, if both are left out')),
)  # fmt: skip
async def what_if(call: Call) -> t.WhatIf:
    """What if I forgot faster: the same journal folded with another policy or half-life, in the background. Repeat the
    request until `state` is "done"."""
    return await asyncio.to_thread(call.service.jobs.what_if, await call.bandit(), **call.query)


# ---- why an arm was chosen -------------------------------------------------------------------------------------------


def explain_choice(journal: Any, number: int, id: str) -> t.WhyInfo:
    """A decision recomputed, and whether it is the one in the journal."""
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
    scores = [t.Score(names[s], None if compared is None else _finite(compared[s]), float(chances[s])) for s in shown]
    text = _TEXTS[how] if how != POLICY or compared is not None else "The policy chose it."
    if slots is not None:
        text += f" {len(slots)} of {len(config.active)} arms were available."
    decision = t.Made(row.id, names[row.slot], row.at, row.known, WAYS[row.how], float(chances[row.slot]))
    return t.WhyInfo(decision, (slot, how) == (row.slot, row.how), scores, float(error), text)


def _finite(value: float) -> float | None:
    return float(value) if abs(value) < 1e300 else None


def _fold_at(journal: Any, number: int, known: int) -> Fold:
    """The fold after `known` events, from the nearest earlier snapshot."""
    fold, cursor, _ = latest(journal, number, policy_maker(), known)
    left = known - fold.n
    if left > _FARTHEST:
        raise ValueError(f"This decision is {left} events after the last snapshot; `driftbandit audit` recomputes it.")
    if left:
        fold.apply(event for _, event in islice(journal.events(number, cursor, left), left))
    return fold
