"""A bandit in a service: what `AnyBandit` has, over HTTP."""

import math
import os
from collections.abc import Hashable, Iterable
from datetime import timedelta
from typing import Any, Unpack

from driftbandit.bandit import inputs, sending
from driftbandit.bandit.effects import ContextExplanation, Effects
from driftbandit.bandit.inputs import Config, OpenOptions, StoreOptions
from driftbandit.bandit.interface import AnyBandit, Arms, Candidates, Context, History, Outcome, Pairs
from driftbandit.bandit.opening import is_service
from driftbandit.bandit.records import Decision, as_datetime, check_id, check_name, make_ids, system_time
from driftbandit.bandit.reporting import Uplift
from driftbandit.bandit.sending import Sender
from driftbandit.errors import AccessDenied, NotFound
from driftbandit.player import Probabilities
from driftbandit.policies.drift.belief import Expected, Explanation
from driftbandit.spec.half_life import duration, format_duration, moment
from driftbandit.spec.parse import parse_snapshot


class RemoteBandit(AnyBandit):
    """A bandit in a service, as `Bandit.open("https://...")` returns it: `AnyBandit` documents its methods. Threads may
    share it; `adecide` and `areward` are for asyncio. It needs `pip install '.[client]'`."""

    def __init__(self, sender: Sender, name: str, who: str = "") -> None:
        self.name, self.who = name, who
        self._sender = sender

    @classmethod
    def open(
        cls, target: str, name: str, policy: Any = None, arms: int | Iterable[Hashable] | None = None, *,
        config: Config | None = None, store: StoreOptions | None = None, seed: int | None = None, who: str = "",
        **options: Unpack[OpenOptions],
    ) -> "RemoteBandit":  # fmt: skip
        """The bandit of this name in the service at `target`, made if it does not exist and arms are given; it plays
        DriftAuto unless a policy is named. One that exists is used as it is, and `change` changes it. A key with the
        scopes decide and reward is enough for `decide` and `reward`; the other methods need read or admin. The key is
        given by `key` or by the environment variable DRIFTBANDIT_KEY."""
        if not is_service(target):
            raise ValueError(f"A service is an address such as http://127.0.0.1:8000; got {target!r:.60}.")
        how, rest = inputs.split_options(store, options, service=True)
        policy, arms, given = inputs.join_options(config, policy, arms, rest)
        key = how.get("key") or os.environ.get("DRIFTBANDIT_KEY")
        sender = Sender(target, key, how.get("timeout") or 10.0, how.get("patience") or 20.0)
        bandit = cls(sender, check_name(name), who)
        try:
            sender.send("GET", sending.address(name))
        except AccessDenied as error:
            if error.status != 403:
                raise
            return bandit  # the key may allow decisions and rewards without reading
        except NotFound:
            if arms is None and not given.get("candidates"):
                made_like = sender.send("GET", "/v1/templates")["templates"]
                if any(name.startswith(template["name"]) for template in made_like):
                    return bandit  # the first decision makes it
                raise
            known = sending.write_options({**given, "policy": policy, "seed": seed})
            body = {word: value for word, value in known.items() if value is not None}
            body |= {"name": name}
            if arms is not None:
                body["arms"] = inputs.checked_arms(arms)
            sender.send("PUT", sending.address(name), body)
        return bandit

    # ---- deciding: the ids are made here, so a retry after a lost connection is the same decision --------------------

    def _decide(self, ids: list[str | None], *how: Any) -> list[Decision]:
        found = self._sender.send("POST", *self._request(ids, *how))
        return [sending.read_decision(one) for one in found.get("decisions", [found])]

    async def _adecide(self, ids: list[str | None], *how: Any) -> list[Decision]:
        found = await self._sender.asend("POST", *self._request(ids, *how))
        return [sending.read_decision(one) for one in found.get("decisions", [found])]

    def _request(
        self, ids: list[str | None], context: Any, candidates: Any, available: Any, probability: bool
    ) -> tuple[str, Any]:
        named = make_ids(len(ids)) if ids[0] is None else [check_id(id) for id in ids]
        body = (
            {"probability": probability}
            | sending.write_context(context, candidates)
            | sending.write_available(available)
        )
        each = isinstance(context, list | tuple) or isinstance(candidates, list | tuple)
        if len(named) == 1 and not each:
            return sending.address(self.name, "decisions"), {"id": named[0]} | body
        return sending.address(self.name, "decisions", "batch"), {"ids": named} | body

    # ---- rewards -----------------------------------------------------------------------------------------------------

    def reward(self, id: str | Decision, value: float, *, add: bool = False, part: str | None = None) -> str:
        body = self._write_reward(id, value, add, part)
        return str(self._sender.send("POST", sending.address(self.name, "rewards"), body)["verdict"])

    async def areward(self, id: str | Decision, value: float, *, add: bool = False, part: str | None = None) -> str:
        body = self._write_reward(id, value, add, part)
        return str((await self._sender.asend("POST", sending.address(self.name, "rewards"), body))["verdict"])

    def _write_reward(self, *given: Any) -> dict[str, Any]:
        message = sending.write_rewards([self._check_pair(*given)])
        return {**message.pop("rewards")[0], **message}

    def _check_reward(self, reward: Any, part: str | None = None) -> float:
        value = inputs.as_float(reward)
        if not math.isfinite(value):
            raise ValueError(f"A reward is a finite number; got {value}. Nothing was sent.")
        return value

    def _reward(self, pairs: Pairs) -> list[Any]:
        path = sending.address(self.name, "rewards", "batch")
        return sending.read_verdicts(self._sender.send("POST", path, sending.write_rewards(pairs)))

    async def _areward(self, pairs: Pairs) -> list[Any]:
        path = sending.address(self.name, "rewards", "batch")
        return sending.read_verdicts(await self._sender.asend("POST", path, sending.write_rewards(pairs)))

    # ---- changing ----------------------------------------------------------------------------------------------------

    def _change(self, *parts: str, who: str = "", method: str = "POST", **body: Any) -> Any:
        return self._sender.send(method, sending.address(self.name, *parts), {"who": who or self.who, **body})

    def settle(self) -> int:
        return int(self._change("settle")["defaults"])

    def add_arm(
        self, arm: Hashable, *, like: Hashable = None, mean: float | None = None, worth: float | None = None,
        who: str = "",
    ) -> None:  # fmt: skip
        past: dict[str, Any] = {
            "like": None if like is None else inputs.to_json_arm(like),
            "mean": mean,
            "worth": worth,
        }
        past = {name: value for name, value in past.items() if value is not None}
        self._change("arms", who=who, arm=inputs.to_json_arm(arm), **past)

    def retire_arm(self, arm: Hashable, *, who: str = "") -> None:
        self._change("arms", "retire", who=who, arm=inputs.to_json_arm(arm))

    def fix(self, arm: Hashable, *, who: str = "") -> None:
        self._change("fix", who=who, arm=inputs.to_json_arm(arm))

    def release(self, *, who: str = "") -> bool:
        fixed = self.config.fixed is not None
        self._change("release", who=who)
        return fixed

    def erase(self, id: str | Decision, *, who: str = "") -> bool:
        return bool(self._change("decisions", check_id(id), who=who, method="DELETE")["erased"])

    def archive(self, *, who: str = "") -> None:
        self._change(who=who, method="DELETE")

    def unarchive(self, *, who: str = "") -> None:
        self._change("unarchive", who=who)

    def change(self, *, from_now: bool = False, who: str = "", **options: Any) -> None:
        inputs.check_names(options, ("policy", "add_arm", "retire_arm"), inputs.FIXED_OPTIONS)
        self._change(who=who, method="PATCH", from_now=from_now, **sending.write_options(options))

    def resume_clock(self, *, who: str = "") -> timedelta:
        return timedelta(seconds=self._change("clock", who=who)["ahead_seconds"])

    # ---- reports -----------------------------------------------------------------------------------------------------

    def _get(self, *parts: str, **query: Any) -> Any:
        return self._sender.send("GET", sending.address(self.name, *parts, **query))

    @property
    def config(self) -> Config:
        found = self._get()
        values = {name: found[name] for name in Config._fields}
        for name in inputs.TIMES:
            if values[name] is not None:
                values[name] = timedelta(microseconds=duration(values[name], name))
        values |= {name: inputs.from_json_arm(values[name]) for name in ("baseline", "fixed")}
        arms, retired = ([inputs.from_json_arm(arm) for arm in found[name]] for name in ("arms", "retired"))
        values |= {"arms": None if found["candidates"] else arms, "retired": tuple(retired)}
        ends, policy = found["reward_range"], parse_snapshot(found["policy"])
        return Config(**{**values, "policy": policy, "reward_range": ends and tuple(ends)})

    @property
    def arms(self) -> list[Hashable]:
        return list(self.config.arms or [])

    @property
    def policy(self) -> Any:
        return self.config.policy

    def refresh(self) -> None:
        """Does nothing: the service reads new events continuously."""

    def greedy(self, context: Context = None, *, candidates: Candidates = None, available: Arms = None) -> Hashable:
        body = sending.write_context(context, candidates) | sending.write_available(available)
        return inputs.from_json_arm(self._sender.send("POST", sending.address(self.name, "greedy"), body)["arm"])

    def probabilities(
        self, context: Context = None, *, candidates: Candidates = None, available: Arms = None, draws: int = 2000
    ) -> Probabilities:
        limited = sending.write_available(available)
        arms, error, _ = self._what_if({"draws": draws} | sending.write_context(context, candidates) | limited)
        wanted = [inputs.from_json_arm(arm) for arm in limited["available"]] if limited else list(arms)
        out = Probabilities({arm: row["probability"] for arm, row in arms.items() if arm in wanted})
        out.error = error
        return out

    def expected(self, context: Context = None, *, candidates: Candidates = None) -> dict[Hashable, Expected]:
        arms, _, believes = self._what_if({"draws": 1} | sending.write_context(context, candidates))
        if not believes:
            raise ValueError("The policy of this bandit has no expected rewards; DriftAuto and DriftLinTS have.")
        return {arm: sending.read_expected(row["mean"], row["spread"]) for arm, row in arms.items()}

    def _what_if(self, body: dict[str, Any]) -> tuple[dict[Hashable, Any], float, bool]:
        found = self._sender.send("POST", sending.address(self.name, "what-if"), body)
        return {inputs.from_json_arm(row["arm"]): row for row in found["arms"]}, found["error"], found["believes"]

    def explain(self) -> Any:
        found = self._get("explanation")
        arms, among_changes = (
            {inputs.from_json_arm(row["arm"]): sending.read_expected(row["mean"], row["sd"]) for row in found.pop(name)}
            for name in ("arms", "environment_arms")
        )
        del found["text"]
        features = found.pop("features")
        environment = None if found["learned"] is None else Explanation(**found, arms=among_changes)
        return environment if features is None else ContextExplanation(environment, arms, features)

    def effects(self) -> Effects:
        return sending.read_effects(self._get("effects"))

    def outcome(self, id: str | Decision) -> Outcome:
        return sending.read_outcome(self._get("decisions", check_id(id)))

    def recent(self, limit: int = 20) -> list[Outcome]:
        found = self._get("decisions", limit=inputs.check_whole(limit, "limit", 1, 1000))
        return [sending.read_outcome(one) for one in found["decisions"]]

    def history(self, since: Any = None, until: Any = None, points: int = 200) -> History:
        now = system_time()
        begin = None if since is None else moment(since, now, "since")
        end = None if until is None else moment(until, now, "until")
        found = self._get("history", since=begin, until=end, points=points)
        starts, width = [as_datetime(at) for at in found["starts"]], timedelta(microseconds=found["width"])
        arms = [inputs.from_json_arm(arm) for arm in found["arms"]]
        return History(**{**found, "starts": starts, "width": width, "arms": arms})

    def uplift(self, since: Any = None, confidence: float = 0.95) -> Uplift:
        now = system_time()
        spelled = None if since is None else format_duration(max(1, now - moment(since, now, "since")))
        found = self._get("uplift", since=spelled, confidence=confidence)
        values: dict[str, Any] = {name: math.nan if found[name] is None else found[name] for name in Uplift._fields}
        return Uplift(**values)

    def changes(self) -> list[dict[str, Any]]:
        found = self._get("changes")["changes"]
        return [{**row, "at": as_datetime(row["at"])} for row in found]

    def health(self) -> dict[str, Any]:
        found = dict(self._get("health"))
        for name in ("lag", "clock_set_back", "clock_ahead"):
            seconds = found.pop(f"{name}_seconds")
            found[name] = None if seconds is None else timedelta(seconds=seconds)
        return found

    def close(self) -> None:
        self._sender.close()

    async def aclose(self) -> None:
        """`close` for asyncio."""
        await self._sender.aclose()

    def __repr__(self) -> str:
        return f"RemoteBandit({self.name!r} at {self._sender._options['base_url']})"
