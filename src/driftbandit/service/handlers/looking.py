"""What a bandit can tell: arms, records, history, uplift, changes, health."""

import asyncio
from typing import Any

import msgspec

from driftbandit.agent.inputs import to_json_arm
from driftbandit.live import settings
from driftbandit.service.call import Call, arms_in
from driftbandit.service.charts.beliefs import believed
from driftbandit.service.handlers.deciding import made
from driftbandit.service.operations import Query, operation
from driftbandit.service.types import (
    ArmInfo,
    Arms,
    ArmsInfo,
    ChangeInfo,
    ChangesInfo,
    HealthInfo,
    HistoryInfo,
    Record,
    Records,
    UpliftInfo,
)

SINCE = Query("since", int, "microseconds since 1970; the first decision, if left out", None, 0, 1 << 60)
UNTIL = Query("until", int, "microseconds since 1970; now, if left out", None, 0, 1 << 60)
POINTS = Query("points", int, "stretches to count in", 200, 1, 2000)


def checked_span(since: int | None, until: int | None) -> None:
    """Refuse a time that ends before it begins."""
    if since is not None and until is not None and since >= until:
        raise ValueError(f"since lies before until; got {since} and {until}.")


@operation(
    "GET", "/v1/bandits/{bandit}/arms", "read", ArmsInfo, None,
    (Query("available", str, 'only these can be chosen: a list as JSON, ["red", "green"]', longest=4_000),
     Query("draws", int, "on which chances rest that cannot be computed", 2000, 1, 10_000)),
)  # fmt: skip
async def arms(call: Call) -> ArmsInfo:
    """Each arm now: its chance of being chosen, all rules included, and what the policy believes about it."""
    text = call.query["available"]
    available = None if text is None else arms_in(msgspec.json.decode(text, type=Arms))
    return await asyncio.to_thread(_arms, await call.bandit(), available, call.query["draws"])


def _arms(bandit: Any, available: list[Any] | None, draws: int) -> ArmsInfo:
    chances = bandit.probabilities(available=available, draws=draws)
    config = bandit.config
    belief = believed(bandit.policy, bandit.state, config)
    retired, names = set(config.retired), settings.names_of(config)
    last = {name: slot for slot, name in enumerate(names)}  # an arm that was retired and added again is listed once
    out = [
        ArmInfo(to_json_arm(name), slot in retired, 0.0 if slot in retired else chances.get(name, 0.0),
                belief.mean[slot], belief.spread[slot], belief.weight[slot])
        for slot, name in enumerate(names) if slot == last[name]
    ]  # fmt: skip
    return ArmsInfo(out, chances.error)


@operation(
    "GET", "/v1/bandits/{bandit}/decisions", "read", Records, None,
    (Query("limit", int, "how many", 20, 1, 1000),),
)  # fmt: skip
async def decisions(call: Call) -> Records:
    """The last decisions, newest first, with their outcomes."""
    found = await asyncio.to_thread((await call.bandit()).recent, call.query["limit"])
    return Records([_record(outcome) for outcome in found])


@operation("GET", "/v1/bandits/{bandit}/decisions/{id}", "read", Record)
async def decision(call: Call) -> Record:
    """A decision's record."""
    return _record(await asyncio.to_thread((await call.bandit()).outcome, call.path("id")))


def _record(outcome: Any) -> Record:
    return Record(made(outcome.decision), outcome.kind, outcome.reward, outcome.late, outcome.came, outcome.waiting)


@operation("GET", "/v1/bandits/{bandit}/history", "read", HistoryInfo, None, (SINCE, UNTIL, POINTS))
async def history(call: Call) -> HistoryInfo:
    """Decisions, outcomes and rewards over time and arms, counted by the store."""
    checked_span(call.query["since"], call.query["until"])
    found = await asyncio.to_thread((await call.bandit())._history, **call.query)
    return HistoryInfo(found.starts, found.width, [to_json_arm(arm) for arm in found.arms], *found[3:])


@operation(
    "GET", "/v1/bandits/{bandit}/uplift", "read", UpliftInfo, None,
    (Query("since", str, 'decisions of the last "7 days" only'),
     Query("confidence", float, "of the interval", 0.95, 0.5, 0.9999)),
)  # fmt: skip
async def uplift(call: Call) -> UpliftInfo:
    """What the policy gains over the baseline, with an interval."""
    found = await asyncio.to_thread(call.service.charts.uplift, await call.bandit(), **call.query)
    values: dict[str, Any] = {name: None if x != x else x for name, x in found._asdict().items()}  # NaN is not itself
    return UpliftInfo(**values, text=str(found))


@operation("GET", "/v1/bandits/{bandit}/changes", "read", ChangesInfo)
async def changes(call: Call) -> ChangesInfo:
    """Every change of configuration: when, what, who."""
    found = await asyncio.to_thread(call.service.charts.changes, await call.bandit())
    return ChangesInfo([ChangeInfo(row["at"], row["what"], row["who"]) for row in found])


@operation("GET", "/v1/bandits/{bandit}/health", "read", HealthInfo)
async def health(call: Call) -> HealthInfo:
    """Counts and lags."""
    found = await asyncio.to_thread((await call.bandit()).health)
    return HealthInfo(*(found.get(name) for name in HealthInfo.__struct_fields__))
