"""Questions about contexts and features: the probable choice, the best arm, and the features that matter."""

import asyncio
import contextlib
from typing import Any

import msgspec
from msgspec import Struct

from driftbandit.bandit.inputs import to_json_arm
from driftbandit.service import types as t
from driftbandit.service.calls import Call, operation, read_arms
from driftbandit.service.handlers.deciding import CANDIDATES


class FeatureEffectInfo(Struct):
    """What a feature does: expected rewards and their standard deviations, of some cases (rows) and all arms (columns);
    of candidates, differences from the average one."""

    feature: str
    matters: bool
    cases: list[str]
    mean: list[list[float]]
    sd: list[list[float]]


class BestArmsInfo(Struct):
    """The best arm by level (rows) and hour (columns), as its place, and its lead in standard deviations."""

    rows: list[str]
    columns: list[str]
    best: list[list[int]]
    lead: list[list[float]]


class BelievedGainInfo(Struct):
    """How much more the best arm of each recent context earns than the best single arm, with a 95% interval. It is
    null where the arms differ by so much that the single arm is hardly played elsewhere."""

    gain: float
    low: float | None
    high: float | None
    contexts: int
    arm: Any


class EffectsInfo(Struct):
    """What the features do; `best` and `gain` are null while nothing is known, and for candidates."""

    arms: list[Any]
    features: list[FeatureEffectInfo]
    best: BestArmsInfo | None
    gain: BelievedGainInfo | None


@operation("POST", "/v1/bandits/{bandit}/greedy", "decide", t.GreedyInfo, t.Greedy, limit=CANDIDATES)
async def greedy_in(call: Call) -> t.GreedyInfo:
    """The arm with the best believed mean reward in a context, or the best candidate. Nothing is recorded or
    learned."""
    bandit, ask = await call.bandit(), call.body
    among = {"candidates": ask.candidates, "available": read_arms(ask.available)}
    return t.GreedyInfo(to_json_arm(await asyncio.to_thread(bandit.greedy, ask.context, **among)))


@operation("POST", "/v1/bandits/{bandit}/what-if", "read", t.ArmsInfo, t.WhatIf, limit=CANDIDATES)
async def what_if(call: Call) -> t.ArmsInfo:
    """Each arm in a context, or each candidate: the probability that it would be chosen now, and the reward that the
    policy expects of it. Nothing is decided or written."""
    bandit, ask = await call.bandit(), call.body
    return await asyncio.to_thread(_arms_in, bandit, ask)


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


@operation("GET", "/v1/bandits/{bandit}/effects", "read", EffectsInfo)
async def effects(call: Call) -> EffectsInfo:
    """What each feature does for every arm, the best arm by level and by hour, and how much context gains."""
    bandit = await call.bandit()
    found = await asyncio.to_thread(call.service.charts.cached, "effects", bandit, bandit.effects)
    gain = None if found.gain is None else found.gain._replace(arm=to_json_arm(found.gain.arm))
    parts = {
        "arms": [to_json_arm(arm) for arm in found.arms], "features": [one._asdict() for one in found.features],
        "best": None if found.best is None else found.best._asdict(), "gain": None if gain is None else gain._asdict(),
    }  # fmt: skip
    return msgspec.convert(parts, EffectsInfo)
