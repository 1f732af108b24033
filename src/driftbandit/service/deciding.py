"""Decisions and rewards."""

import logging
from typing import Any

from driftbandit.bandit.inputs import to_json_arm
from driftbandit.errors import Moved
from driftbandit.service.calls import Call, operation, read_arms
from driftbandit.service.problems import classify, describe, log_event
from driftbandit.service.types import Ask, AskMany, Made, MadeMany, Reward, Rewards, RewardVerdict, Verdicts

_BATCH = 262_144  # bytes: 1,000 rewards with ids of 128 characters
_CONTEXTS = 4 * _BATCH  # 1,000 decisions with contexts of about 900 bytes
CANDIDATES = 131_072  # 64 kB of candidates, with room for spaces


def to_message(decision: Any) -> Made:
    """A decision as a message."""
    arm = decision.arm
    return Made(decision.id, arm if isinstance(arm, str) else to_json_arm(arm), *decision[2:])


def _among(ask: Any) -> dict[str, Any]:
    return {
        "context": ask.context, "candidates": ask.candidates, "available": read_arms(ask.available),
        "probability": ask.probability,
    }  # fmt: skip


@operation("POST", "/v1/bandits/{bandit}/decisions", "decide", Made, Ask, limit=CANDIDATES)
async def decide(call: Call) -> Made:
    """Choose an arm. The decision is in the journal before the answer is sent; the same id again gives the same
    decision."""
    bandit, ask = await call.bandit_or_new(), call.body
    decision = await bandit.adecide(ask.id, **_among(ask))
    call.service.metrics.decisions[bandit.name] += 1
    return to_message(decision)


@operation("POST", "/v1/bandits/{bandit}/decisions/batch", "decide", MadeMany, AskMany, limit=_CONTEXTS)
async def decide_many(call: Call) -> MadeMany:
    """Up to 1,000 decisions in one commit: a number of them (count), or one for each id (ids)."""
    bandit, ask = await call.bandit_or_new(), call.body
    if (ask.count is None) == (ask.ids is None):
        raise ValueError("Give either count or ids.")
    what = ask.ids if ask.count is None else ask.count
    found = await bandit.adecide_many(what, **_among(ask))
    call.service.metrics.decisions[bandit.name] += len(found)
    return MadeMany([to_message(decision) for decision in found])


@operation("POST", "/v1/bandits/{bandit}/rewards", "reward", RewardVerdict, Reward)
async def reward(call: Call) -> RewardVerdict:
    """Report the outcome of a decision. Sending it twice counts once; a different reward for the same decision is a
    conflict (409)."""
    bandit, body = await call.bandit(), call.body
    _check_parts(body.add, [body])
    verdict = await bandit.areward(body.id, body.reward, add=body.add, part=body.part)
    call.service.metrics.rewards[bandit.name, verdict] += 1
    return RewardVerdict(body.id, verdict)


def _check_parts(add: bool, rewards: Any) -> None:
    """A part without an id would count twice where its request is sent again."""
    if add and any(one.part is None for one in rewards):
        raise ValueError("add needs a part: an id, such as the number of an order, so that a retry counts once.")


@operation("POST", "/v1/bandits/{bandit}/rewards/batch", "reward", Verdicts, Rewards, limit=_BATCH)
async def reward_many(call: Call) -> Verdicts:
    """Up to 1,000 rewards in one commit, each with its verdict: a wrong one does not affect the others."""
    bandit, pairs, add = await call.bandit(), call.body.rewards, call.body.add
    _check_parts(add, pairs)
    if not add and any(pair.part is not None for pair in pairs):
        raise ValueError("part is the id of one part of a reward; give add=true with it.")
    given = [(pair.id, pair.reward, pair.part)[: 3 if add else 2] for pair in pairs]
    answers = await bandit.areward_many(given, add=add)
    verdicts = []
    if moved := next((answer for answer in answers if isinstance(answer, Moved)), None):
        raise moved
    for pair, answer in zip(pairs, answers, strict=True):
        refused = isinstance(answer, Exception)
        found = {"error": describe(answer), "kind": classify(answer)[1]} if refused else {"verdict": answer}
        verdicts.append(RewardVerdict(pair.id, **found))
        if refused:
            fields = {"bandit": bandit.name, "key": call.key.name, "error": describe(answer)}
            log_event(logging.WARNING, "refused write", operation="reward_many", **fields)
        call.service.metrics.rewards[bandit.name, "refused" if refused else answer] += 1
    return Verdicts(verdicts)
