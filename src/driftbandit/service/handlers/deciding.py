"""Decisions and rewards."""

from typing import Any

from driftbandit.agent.inputs import to_json_arm
from driftbandit.service.calls import Call, operation, read_arms
from driftbandit.service.problems import kind_of, sentence
from driftbandit.service.types import Ask, AskMany, Made, MadeMany, Reward, Rewards, RewardVerdict, Verdicts

_BATCH = 262_144  # bytes: 1,000 rewards with ids of 128 characters


def made(decision: Any) -> Made:
    """A decision as a message."""
    arm = decision.arm
    return Made(decision.id, arm if isinstance(arm, str) else to_json_arm(arm), *decision[2:])


@operation("POST", "/v1/bandits/{bandit}/decisions", "decide", Made, Ask)
async def decide(call: Call) -> Made:
    """Choose an arm. The decision is in the journal before the answer is sent; the same id again gives the same
    decision."""
    bandit, ask = await call.bandit(), call.body
    decision = await bandit.adecide(ask.id, available=read_arms(ask.available), probability=ask.probability)
    call.service.metrics.decided(bandit.name, 1)
    return made(decision)


@operation("POST", "/v1/bandits/{bandit}/decisions/batch", "decide", MadeMany, AskMany, limit=_BATCH)
async def decide_many(call: Call) -> MadeMany:
    """Up to 1,000 decisions in one commit: a number of them (count), or one for each id (ids)."""
    bandit, ask = await call.bandit(), call.body
    if (ask.count is None) == (ask.ids is None):
        raise ValueError("Give either count or ids.")
    what = ask.ids if ask.count is None else ask.count
    found = await bandit.adecide_many(what, available=read_arms(ask.available), probability=ask.probability)
    call.service.metrics.decided(bandit.name, len(found))
    return MadeMany([made(decision) for decision in found])


@operation("POST", "/v1/bandits/{bandit}/rewards", "reward", RewardVerdict, Reward)
async def reward(call: Call) -> RewardVerdict:
    """Report the outcome of a decision. Sending it twice counts once; a different reward for the same decision is a
    conflict (409)."""
    bandit, body = await call.bandit(), call.body
    verdict = await bandit.areward(body.id, body.reward)
    call.service.metrics.rewarded(bandit.name, verdict)
    return RewardVerdict(body.id, verdict)


@operation("POST", "/v1/bandits/{bandit}/rewards/batch", "reward", Verdicts, Rewards, limit=_BATCH)
async def reward_many(call: Call) -> Verdicts:
    """Up to 1,000 rewards in one commit, each with its verdict: a wrong one does not affect the others."""
    bandit, pairs = await call.bandit(), call.body.rewards
    answers = await bandit.areward_many([(pair.id, pair.reward) for pair in pairs])
    verdicts = []
    for pair, answer in zip(pairs, answers, strict=True):
        if isinstance(answer, Exception):
            verdicts.append(RewardVerdict(pair.id, error=sentence(answer), kind=kind_of(answer)[1]))
            call.service.metrics.rewarded(bandit.name, "refused")
        else:
            verdicts.append(RewardVerdict(pair.id, answer))
            call.service.metrics.rewarded(bandit.name, answer)
    return Verdicts(verdicts)
