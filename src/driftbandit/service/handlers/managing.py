"""Making and changing bandits. The journal records every change, with its time and author."""

import asyncio
from typing import Any

import msgspec
from starlette.responses import Response

from driftbandit.agent.inputs import to_json_arm
from driftbandit.half_life import spelt
from driftbandit.live import settings, words
from driftbandit.service.bandits import library_policy
from driftbandit.service.calls import Call, operation, read_arm, read_arms
from driftbandit.service.problems import HttpProblem
from driftbandit.service.types import MOST_ARMS, BanditInfo, Changes, Names, NewBandit, Nothing, OneArm, encode
from driftbandit.state import started


def described(bandit: Any) -> BanditInfo:
    """A bandit's configuration as a message."""
    config = bandit.config
    names = [to_json_arm(name) for name in settings.names_of(config)]
    return BanditInfo(
        bandit.name, config.policy, [names[slot] for slot in config.active],
        [to_json_arm(name) for name in words.retired_names(config)],
        None if config.half_life is None else spelt(config.half_life), config.floor, config.holdback,
        None if config.holdback == 0.0 else "uniform" if config.baseline is None else names[config.baseline],
        config.learn_holdback, None if config.wait is None else spelt(config.wait), config.default,
        config.learn, config.reward_range, config.outside, None if config.fixed is None else names[config.fixed],
        bandit._fold.changes,
    )  # fmt: skip


@operation("GET", "/v1/bandits", "read", Names)
async def bandits(call: Call) -> Names:
    """The names of all bandits that your key may read."""
    names = await asyncio.to_thread(call.service.bandits.names)
    return Names([name for name in names if call.key.may("read", name)])


@operation("POST", "/v1/bandits", "admin", BanditInfo, NewBandit, status=201)
async def create(call: Call) -> Response:
    """Make a bandit. If it already exists as described, the answer is 200; if it differs, 409."""
    body = call.body
    if not call.key.may("admin", body.name):
        raise HttpProblem(403, "scope", f"This key does not allow 'admin' for bandit {body.name}.")
    names = (
        "half_life", "floor", "holdback", "learn_holdback", "wait", "default", "learn", "reward_range", "outside",
        "seed",
    )  # fmt: skip
    options = {name: getattr(body, name) for name in names}
    if body.baseline is not None:
        options["baseline"] = read_arm(body.baseline)
    make = call.service.bandits.create
    bandit, fresh = await asyncio.to_thread(make, body.name, body.policy, read_arms(body.arms), call.who, **options)
    return Response(encode(described(bandit)), 201 if fresh else 200, media_type="application/json")


@operation("GET", "/v1/bandits/{bandit}", "read", BanditInfo)
async def bandit(call: Call) -> BanditInfo:
    """All settings of a bandit."""
    return described(await call.bandit())


@operation("PATCH", "/v1/bandits/{bandit}", "admin", BanditInfo, Changes)
async def change(call: Call) -> BanditInfo:
    """Change policy, half_life, floor, holdback, baseline, learn_holdback, wait, default or learn of a running bandit;
    with add_arm and retire_arm, all of it is one change."""
    bandit, body = await call.bandit(), call.body
    given = {name: getattr(body, name) for name in body.__struct_fields__ if name not in ("from_now", "who")}
    options = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    if "policy" in options:
        options["policy"] = library_policy(options["policy"], len(bandit.config.arms))
    for name in ("baseline", "add_arm", "retire_arm"):
        if name in options:
            options[name] = read_arm(options[name])
    if "add_arm" in options:
        _check_limits(bandit)
    await asyncio.to_thread(bandit.change, from_now=body.from_now, who=call.who, **options)
    return described(bandit)


def _check_limits(bandit: Any) -> None:
    """Refuse one more arm above the limits."""
    count = len(bandit.config.arms)
    if count >= MOST_ARMS:
        raise ValueError(f"A bandit has at most {MOST_ARMS} arms, retired ones included.")
    started(bandit.policy, count + 1, settings.MOST_NUMBERS)


@operation("POST", "/v1/bandits/{bandit}/arms", "admin", BanditInfo, OneArm)
async def add_arm(call: Call) -> BanditInfo:
    """Add an arm."""
    bandit = await call.bandit()
    _check_limits(bandit)
    await asyncio.to_thread(bandit.add_arm, read_arm(call.body.arm), who=call.who)
    return described(bandit)


@operation("POST", "/v1/bandits/{bandit}/arms/retire", "admin", BanditInfo, OneArm)
async def retire_arm(call: Call) -> BanditInfo:
    """Never choose this arm again. Rewards of its earlier decisions are still learned."""
    bandit = await call.bandit()
    await asyncio.to_thread(bandit.retire_arm, read_arm(call.body.arm), who=call.who)
    return described(bandit)


@operation("POST", "/v1/bandits/{bandit}/fix", "admin", BanditInfo, OneArm)
async def fix(call: Call) -> BanditInfo:
    """Choose only this arm until release is called."""
    bandit = await call.bandit()
    await asyncio.to_thread(bandit.fix, read_arm(call.body.arm), who=call.who)
    return described(bandit)


@operation("POST", "/v1/bandits/{bandit}/release", "admin", BanditInfo, Nothing)
async def release(call: Call) -> BanditInfo:
    """Let the policy choose again after fix."""
    bandit = await call.bandit()
    await asyncio.to_thread(bandit.release, who=call.who)
    return described(bandit)
