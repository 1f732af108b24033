"""Making and changing bandits. The journal records every change, with its time and author."""

import asyncio
from typing import Any

from starlette.responses import Response

from driftbandit.bandit import settings
from driftbandit.bandit.candidates import check_has_arms
from driftbandit.bandit.features import Features
from driftbandit.bandit.inputs import TIMES, check_state, split_labels, to_json_arm
from driftbandit.service.bandits import library_policy, read_new, read_options
from driftbandit.service.calls import Call, operation, parameter, read_arm
from driftbandit.service.types import (
    MOST_ARMS,
    BanditInfo,
    Changes,
    ClockInfo,
    Erased,
    Names,
    NewArm,
    NewBandit,
    Nothing,
    OneArm,
    SettledInfo,
    Templates,
    encode,
)
from driftbandit.spec.half_life import duration, format_duration


def describe_bandit(bandit: Any) -> BanditInfo:
    """A bandit's configuration as a message."""
    config = settings.public_config(bandit.stored, bandit.stored.policy)._asdict()
    for name in TIMES:
        config[name] = None if config[name] is None else format_duration(duration(config[name], name))
    for name in ("arms", "retired"):
        config[name] = [to_json_arm(arm) for arm in config[name] or ()]
    for name in ("baseline", "fixed"):
        config[name] = to_json_arm(config[name])
    return BanditInfo(name=bandit.name, archived=bandit.stored.archived, **config)


@operation(
    "GET", "/v1/bandits", "read", Names,
    query={
        "search": parameter(str, "only names that contain this text", "", max_length=128),
        "label": parameter(list[str], "only those with this label, country:de; also several times", max_length=16),
        "archived": parameter(bool, "those that are archived, not those that decide", False),
        "after": parameter(str, "only names after this one", "", max_length=128),
        "limit": parameter(int, "how many", 1000, ge=1, le=10_000),
    },
)  # fmt: skip
async def bandits(call: Call) -> Names:
    """The names of the bandits that your key may read, in pages."""
    query, labels = call.query, split_labels(call.query.label or (), ":")
    which = query.search, query.after, query.limit, labels, query.archived
    return Names(*await asyncio.to_thread(call.service.bandits.names, call.key, *which))


@operation("POST", "/v1/bandits", "admin", BanditInfo, NewBandit, status=201)
async def create(call: Call) -> Response:
    """Make a bandit. If it already exists as described, the answer is 200; if it differs, 409."""
    return await _create(call)


async def _create(call: Call) -> Response:
    body = call.body
    call.service.access.check_scope(call.key, "admin", body.name)
    policy, arms, options = read_new(body)
    bandit, fresh = await asyncio.to_thread(call.service.bandits.create, body.name, policy, arms, call.who, **options)
    return Response(encode(describe_bandit(bandit)), 201 if fresh else 200, media_type="application/json")


@operation("PUT", "/v1/bandits/{bandit}", "admin", BanditInfo, NewBandit, status=201)
async def put(call: Call) -> Response:
    """The same with the name in the path as well, by which a balancer can find the bandit's deployment."""
    if call.body.name != call.path("bandit"):
        raise ValueError(f"The name in the path and the one in the body differ: {call.path('bandit')!r:.140}.")
    return await _create(call)


@operation("GET", "/v1/templates", "read", Templates)
async def templates(call: Call) -> Templates:
    """The templates whose bandits your key may read."""
    return await asyncio.to_thread(_templates, call)


def _templates(call: Call) -> Templates:
    found = call.service.bandits.templates()
    return Templates([one for one in found if call.key.may("read", one.name)])


@operation("POST", "/v1/templates", "admin", Templates, NewBandit)
async def set_template(call: Call) -> Templates:
    """Add or replace a template: a decision of a bandit that does not exist makes it, if its name begins with the name
    of a template. The longest such name counts. Bandits that exist do not change."""
    call.service.access.check_scope(call.key, "admin", call.body.name)
    await asyncio.to_thread(call.service.bandits.set_template, call.body)
    return await asyncio.to_thread(_templates, call)


@operation("DELETE", "/v1/templates/{template}", "admin", Templates)
async def remove_template(call: Call) -> Templates:
    """Make no further bandits from a template; those that it made stay."""
    call.service.access.check_scope(call.key, "admin", call.path("template"))
    await asyncio.to_thread(call.service.bandits.remove_template, call.path("template"))
    return await asyncio.to_thread(_templates, call)


@operation("GET", "/v1/bandits/{bandit}", "read", BanditInfo)
async def bandit(call: Call) -> BanditInfo:
    """All settings of a bandit."""
    return describe_bandit(await call.bandit())


@operation("PATCH", "/v1/bandits/{bandit}", "admin", BanditInfo, Changes)
async def change(call: Call) -> BanditInfo:
    """Change policy, half_life, floor, holdback, baseline, learn_holdback, wait, default, learn, features, retention
    or labels of a running bandit; with add_arm and retire_arm, all of it is one change."""
    bandit, body, options = await call.bandit(), call.body, read_options(call.body)
    if "policy" in options:
        options["policy"] = library_policy(options["policy"], len(bandit.stored.arms))
    if "add_arm" in options:
        _check_limits(bandit)
    return await _change(call, "change", from_now=body.from_now, **options)


async def _change(call: Call, method: str, *args: Any, **options: Any) -> BanditInfo:
    """Call a method that changes the bandit; the answer has its settings afterwards."""
    await call.ask(method, *args, who=call.who, **options)
    return describe_bandit(await call.bandit())


def _check_limits(bandit: Any) -> None:
    """Refuse one more arm above the limits."""
    count = len(bandit.stored.arms)
    check_has_arms(bandit.stored)
    if count >= MOST_ARMS:
        raise ValueError(f"A bandit has at most {MOST_ARMS} arms, retired ones included.")
    check_state(bandit.policy, count + 1, len(Features.stored(bandit.stored.features).columns))


@operation("POST", "/v1/bandits/{bandit}/arms", "admin", BanditInfo, NewArm)
async def add_arm(call: Call) -> BanditInfo:
    """Add an arm, of which nothing is known, or with a past."""
    _check_limits(await call.bandit())
    body = call.body
    like = None if body.like is None else read_arm(body.like)
    return await _change(call, "add_arm", read_arm(body.arm), like=like, mean=body.mean, worth=body.worth)


@operation("POST", "/v1/bandits/{bandit}/arms/retire", "admin", BanditInfo, OneArm)
async def retire_arm(call: Call) -> BanditInfo:
    """Never choose this arm again. Rewards of its earlier decisions are still learned."""
    return await _change(call, "retire_arm", read_arm(call.body.arm))


@operation("POST", "/v1/bandits/{bandit}/fix", "admin", BanditInfo, OneArm)
async def fix(call: Call) -> BanditInfo:
    """Choose only this arm until release is called."""
    return await _change(call, "fix", read_arm(call.body.arm))


@operation("POST", "/v1/bandits/{bandit}/release", "admin", BanditInfo, Nothing)
async def release(call: Call) -> BanditInfo:
    """Let the policy choose again after fix."""
    return await _change(call, "release")


@operation("POST", "/v1/bandits/{bandit}/settle", "admin", SettledInfo, Nothing)
async def settle(call: Call) -> SettledInfo:
    """Settle every decision that is `wait` old, which also happens automatically."""
    return SettledInfo(await call.ask("settle"))


@operation("POST", "/v1/bandits/{bandit}/clock", "admin", ClockInfo, Nothing)
async def resume_clock(call: Call) -> ClockInfo:
    """Let time advance again after a clock that was far ahead for a moment."""
    return ClockInfo((await call.ask("resume_clock", who=call.who)).total_seconds())


@operation("DELETE", "/v1/bandits/{bandit}", "admin", BanditInfo, Nothing)
async def archive(call: Call) -> BanditInfo:
    """Archive a bandit: it decides no more (410) and leaves all lists. It is exported and deleted after a day, if the
    service has a folder for exports; unarchive undoes it until then."""
    return await _change(call, "archive")


@operation("POST", "/v1/bandits/{bandit}/unarchive", "admin", BanditInfo, Nothing)
async def unarchive(call: Call) -> BanditInfo:
    """Let a bandit decide again that was archived less than a day ago."""
    return await _change(call, "unarchive")


@operation("DELETE", "/v1/bandits/{bandit}/decisions/{id}", "admin", Erased, Nothing)
async def erase(call: Call) -> Erased:
    """Erase a decision's id: a keyed hash takes its place, and its context is removed. The decision, its outcome and
    learned rewards stay, and the same id sent again is still the same decision."""
    return Erased(await call.ask("erase", call.path("id"), who=call.who))
