"""What a page shows beyond counts: charts, why an arm was chosen, the audit, and what another policy would believe."""

import asyncio

from driftbandit.agent.inputs import to_json_arm
from driftbandit.live.ids import checked_id
from driftbandit.service.call import Call
from driftbandit.service.charts.why import why as explained
from driftbandit.service.handlers.looking import SINCE, UNTIL, checked_span
from driftbandit.service.operations import Query, operation
from driftbandit.service.types import AuditInfo, ChartsInfo, ExpectedInfo, Explained, Nothing, WhatIf, WhyInfo


@operation(
    "GET", "/v1/bandits/{bandit}/charts", "read", ChartsInfo, None,
    (SINCE, UNTIL, Query("points", int, "stretches of time", 240, 10, 1000)),
)  # fmt: skip
async def charts(call: Call) -> ChartsInfo:
    """Everything the page of a bandit draws: counts and beliefs over time, marks, delays, densities."""
    checked_span(call.query["since"], call.query["until"])
    return await asyncio.to_thread(call.service.charts.draw, await call.bandit(), **call.query)


@operation("GET", "/v1/bandits/{bandit}/decisions/{id}/why", "read", WhyInfo)
async def why(call: Call) -> WhyInfo:
    """Why this arm: the decision recomputed from what its decider knew, with the numbers it compared."""
    bandit, id = await call.bandit(), checked_id(call.path("id"))
    return await asyncio.to_thread(explained, call.service.bandits.journal, bandit._number, id)


@operation("GET", "/v1/bandits/{bandit}/explanation", "read", Explained)
async def explanation(call: Call) -> Explained:
    """What the policy believes about the world and every arm, if it can say so; DriftTS can."""
    bandit = await call.bandit()
    told = await asyncio.to_thread(bandit.explain)
    arms = [ExpectedInfo(to_json_arm(arm), mean, sd) for arm, (mean, sd) in told.arms.items()]
    return Explained(
        told.still, told.jumps, told.drifts, told.tides, told.last_change, told.memory, told.learnt, arms, str(told)
    )


@operation("GET", "/v1/bandits/{bandit}/audit", "read", AuditInfo)
async def audit_report(call: Call) -> AuditInfo:
    """The verdict of the last audit."""
    return call.service.jobs.audit(await call.bandit(), begin=False)  # type: ignore[no-any-return]


@operation("POST", "/v1/bandits/{bandit}/audit", "read", AuditInfo, Nothing)
async def audit(call: Call) -> AuditInfo:
    """Begin an audit: every decision and the state are recomputed from the journal. GET returns the verdict."""
    return call.service.jobs.audit(await call.bandit(), begin=True)  # type: ignore[no-any-return]


@operation(
    "GET", "/v1/bandits/{bandit}/whatif", "read", WhatIf, None,
    (Query("policy", str, "a policy of the library; the bandit's own, if left out"),
     Query("half_life", str, '"3 h", or "none"; the bandit\'s own, if both are left out')),
)  # fmt: skip
async def what_if(call: Call) -> WhatIf:
    """What if I forgot faster: the same journal folded with another policy or half-life, in the background. Ask again
    until `state` is "done"."""
    return await asyncio.to_thread(call.service.jobs.what_if, await call.bandit(), **call.query)
