"""The bandit itself: `decide`, `reward` and everything else that `driftbandit.Bandit` has."""

import json
import math
import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from driftbandit.agent import Probabilities
from driftbandit.agent.inputs import arm_names, as_float, from_json_arm, to_json_arm
from driftbandit.client.sending import Forbidden, Sender, address, error_for
from driftbandit.half_life import duration, moment, spelt
from driftbandit.live.clock import system_time
from driftbandit.live.errors import Unknown
from driftbandit.live.ids import checked_id, checked_name, made_ids
from driftbandit.live.records import Decision
from driftbandit.live.reports import History, Outcome
from driftbandit.live.settings import checked_policy
from driftbandit.live.uplift import Uplift
from driftbandit.policies.drift_belief import Expected, Explanation
from driftbandit.text.parse import parse_snapshot

_TIMES = ("half_life", "wait")
_STATUS = {"conflict": 409, "unknown": 404, "store": 503}


class Bandit:
    """A bandit in a service. Threads may share it; `adecide` and `areward` are for asyncio."""

    def __init__(self, sender: Sender, name: str, who: str = "") -> None:
        self.name, self.who = name, who
        self._sender = sender

    @classmethod
    def open(
        cls,
        target: str,
        name: str,
        policy: Any = None,
        arms: int | Iterable[Hashable] | None = None,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        patience: float = 20.0,
        who: str = "",
        **options: Any,
    ) -> "Bandit":
        """The bandit of this name in the service at `target`, made if there is none and arms are given; it plays
        DriftTS unless a policy is named. One that exists is used as it is, and `change` changes it. A key with the
        scopes decide and reward is enough for `decide` and `reward`; the other methods need read or admin."""
        if not isinstance(target, str) or not target.startswith(("http://", "https://")):
            raise ValueError(f"A service is an address such as http://127.0.0.1:8000; got {target!r:.60}.")
        sender = Sender(target, key or os.environ.get("DRIFTBANDIT_KEY"), timeout, patience)
        bandit = cls(sender, checked_name(name), who)
        try:
            sender.send("GET", address(name))
        except Forbidden as error:
            if error.status != 403:
                raise
            return bandit  # the key may allow decisions and rewards and not reading: then those are what it is for
        except Unknown:
            if arms is None:
                raise
            given = {word: value for word, value in options.items() if value is not None}
            body = {"name": name, "arms": [to_json_arm(arm) for arm in arm_names(arms)], **_options(given)}
            if policy is not None:
                body["policy"] = policy if isinstance(policy, str) else repr(checked_policy(policy))
            sender.send("POST", "/v1/bandits", body)
        return bandit

    # ---- deciding ----------------------------------------------------------------------------------------------------

    def decide(
        self, id: str | None = None, *, available: Iterable[Hashable] | None = None, probability: bool = False
    ) -> Decision:
        """The arm to play now, in the service's journal before it is returned. The id is made here if none is given, so
        a retry after a lost connection is the same decision."""
        return _decision(self._sender.send("POST", *self._ask(id, available, probability)))

    async def adecide(
        self, id: str | None = None, *, available: Iterable[Hashable] | None = None, probability: bool = False
    ) -> Decision:
        """`decide` for asyncio."""
        return _decision(await self._sender.asend("POST", *self._ask(id, available, probability)))

    def decide_many(
        self, what: int | Iterable[str], *, available: Iterable[Hashable] | None = None, probability: bool = False
    ) -> list[Decision]:
        """Up to 1,000 decisions in one commit: this many, or one for each of these ids."""
        found = self._sender.send("POST", *self._ask_many(what, available, probability))
        return [_decision(one) for one in found["decisions"]]

    async def adecide_many(
        self, what: int | Iterable[str], *, available: Iterable[Hashable] | None = None, probability: bool = False
    ) -> list[Decision]:
        """`decide_many` for asyncio."""
        found = await self._sender.asend("POST", *self._ask_many(what, available, probability))
        return [_decision(one) for one in found["decisions"]]

    def _ask(self, id: str | None, available: Any, probability: bool) -> tuple[str, Any]:
        body = {"id": made_ids(1)[0] if id is None else checked_id(id), "probability": probability}
        return address(self.name, "decisions"), body | _available(available)

    def _ask_many(self, what: Any, available: Any, probability: bool) -> tuple[str, Any]:
        number = isinstance(what, int) and not isinstance(what, bool)
        if number and not 1 <= what <= 1000:
            raise ValueError(f"One call makes 1 to 1000 decisions; got {what}.")
        ids = made_ids(what) if number else [checked_id(id) for id in what]
        return address(self.name, "decisions", "batch"), {"ids": ids, "probability": probability} | _available(
            available
        )

    # ---- rewards -----------------------------------------------------------------------------------------------------

    def reward(self, id: str, value: float) -> str:
        """Report the outcome of a decision: "learnt", "waiting", "again" or "late"."""
        body = {"id": checked_id(id), "reward": _finite(value)}
        return str(self._sender.send("POST", address(self.name, "rewards"), body)["verdict"])

    async def areward(self, id: str, value: float) -> str:
        """`reward` for asyncio."""
        body = {"id": checked_id(id), "reward": _finite(value)}
        return str((await self._sender.asend("POST", address(self.name, "rewards"), body))["verdict"])

    def reward_many(self, pairs: Iterable[tuple[str, float]] | Mapping[str, float]) -> list[str | Exception]:
        """Up to 1,000 rewards in one commit: for each its verdict, or the error it met, which does not affect the
        others."""
        body, out = _pairs(pairs)
        path = address(self.name, "rewards", "batch")
        return _placed(out, self._sender.send("POST", path, body)["verdicts"] if body["rewards"] else [])

    async def areward_many(self, pairs: Iterable[tuple[str, float]] | Mapping[str, float]) -> list[str | Exception]:
        """`reward_many` for asyncio."""
        body, out = _pairs(pairs)
        path = address(self.name, "rewards", "batch")
        return _placed(out, (await self._sender.asend("POST", path, body))["verdicts"] if body["rewards"] else [])

    # ---- changing ----------------------------------------------------------------------------------------------------

    def add_arm(self, arm: Hashable, *, who: str = "") -> None:
        """One more arm, about which nothing is known."""
        self._arm("arms", arm, who)

    def retire_arm(self, arm: Hashable, *, who: str = "") -> None:
        """Never choose this arm again."""
        self._arm("arms/retire", arm, who)

    def fix(self, arm: Hashable, *, who: str = "") -> None:
        """Play this arm from now on, until `release`."""
        self._arm("fix", arm, who)

    def release(self, *, who: str = "") -> None:
        """End `fix`."""
        self._sender.send("POST", address(self.name, "release"), {"who": who or self.who})

    def change(self, *, from_now: bool = False, who: str = "", **options: Any) -> None:
        """Change policy, half_life, floor, holdback, baseline, learn_holdback, wait, default or learn."""
        body = {**_options(options), "from_now": from_now, "who": who or self.who}
        self._sender.send("PATCH", address(self.name), body)

    def _arm(self, path: str, arm: Hashable, who: str) -> None:
        self._sender.send("POST", f"{address(self.name)}/{path}", {"arm": to_json_arm(arm), "who": who or self.who})

    # ---- looking -----------------------------------------------------------------------------------------------------

    @property
    def config(self) -> dict[str, Any]:
        """Everything that was chosen about this bandit."""
        return dict(self._sender.send("GET", address(self.name)))

    @property
    def arms(self) -> list[Hashable]:
        """The arms that can be chosen, in the order they were added."""
        return [from_json_arm(arm) for arm in self.config["arms"]]

    @property
    def policy(self) -> Any:
        """The policy that decides now, if it is one of the library's."""
        return parse_snapshot(self.config["policy"])

    def refresh(self) -> None:
        """Does nothing: the service folds new events by itself."""

    def probabilities(self, *, available: Iterable[Hashable] | None = None, draws: int = 2000) -> Probabilities:
        """Each arm's chance of being chosen now, all rules included; `error` says how exact it is."""
        among = None if available is None else json.dumps(_available(available)["available"])
        found = self._sender.send("GET", address(self.name, "arms", available=among, draws=draws))
        wanted = None if available is None else set(available)
        arms = [(from_json_arm(row["arm"]), row) for row in found["arms"] if not row["retired"]]
        out = Probabilities({arm: row["probability"] for arm, row in arms if wanted is None or arm in wanted})
        out.error = found["error"]
        return out

    def explain(self) -> Explanation:
        """What the policy believes about the world and every arm, printable, if it can say so; `DriftTS` can."""
        found = self._sender.send("GET", address(self.name, "explanation"))
        arms = {from_json_arm(row["arm"]): Expected(row["mean"], row["sd"]) for row in found.pop("arms")}
        del found["text"]
        return Explanation(**found, arms=arms)

    def outcome(self, id: str) -> Outcome:
        """A decision's record."""
        return _outcome(self._sender.send("GET", address(self.name, "decisions", checked_id(id))))

    def recent(self, limit: int = 20) -> list[Outcome]:
        """The last decisions, newest first, with their outcomes."""
        path = address(self.name, "decisions", limit=min(max(1, int(limit)), 1000))
        return [_outcome(one) for one in self._sender.send("GET", path)["decisions"]]

    def history(self, since: Any = None, until: Any = None, points: int = 200) -> History:
        """Decisions, outcomes and rewards over time, counted by the store. Times are datetimes, or how long ago:
        "7 days", a timedelta or seconds."""
        now = system_time()
        begin, end = (
            None if value is None else moment(value, now, name) for name, value in (("since", since), ("until", until))
        )
        found = self._sender.send("GET", address(self.name, "history", since=begin, until=end, points=points))
        return History(**{**found, "arms": [from_json_arm(arm) for arm in found["arms"]]})

    def uplift(self, since: Any = None, confidence: float = 0.95) -> Uplift:
        """What the policy gains over the baseline, with an interval."""
        now = system_time()
        spelled = None if since is None else spelt(max(1, now - moment(since, now, "since")))
        found = self._sender.send("GET", address(self.name, "uplift", since=spelled, confidence=confidence))
        values: dict[str, Any] = {name: math.nan if found[name] is None else found[name] for name in Uplift._fields}
        return Uplift(**values)

    def changes(self) -> list[dict[str, Any]]:
        """Every change of configuration: when, what, who."""
        return list(self._sender.send("GET", address(self.name, "changes"))["changes"])

    def health(self) -> dict[str, Any]:
        """Counts and lags."""
        return dict(self._sender.send("GET", address(self.name, "health")))

    def close(self) -> None:
        """Close the connections; the bandit lives on in its service."""
        self._sender.close()

    async def aclose(self) -> None:
        """`close` for asyncio."""
        await self._sender.aclose()

    def __enter__(self) -> "Bandit":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Bandit({self.name!r} at {self._sender._options['base_url']})"


def _available(available: Any) -> dict[str, Any]:
    if available is None:
        return {}
    if isinstance(available, str | bytes) or not isinstance(available, Iterable):
        raise ValueError(f"available is a list of arms; got {available!r:.60}.")
    return {"available": [to_json_arm(arm) for arm in available]}


def _options(options: dict[str, Any]) -> dict[str, Any]:
    out = dict(options)
    for word in _TIMES:
        if out.get(word) is not None:
            out[word] = spelt(duration(out[word], word))
    if "policy" in out and not isinstance(out["policy"], str):
        out["policy"] = repr(checked_policy(out["policy"]))
    for word in ("baseline", "add_arm", "retire_arm"):
        if out.get(word) is not None:
            out[word] = to_json_arm(out[word])
    return out


def _decision(found: dict[str, Any]) -> Decision:
    return Decision(**{**found, "arm": from_json_arm(found["arm"])})


def _outcome(found: dict[str, Any]) -> Outcome:
    return Outcome(
        _decision(found["decision"]), found["outcome"], found["reward"], found["late"], found["came"], found["waiting"]
    )


def _finite(value: Any) -> float:
    number = as_float(value)
    if not math.isfinite(number):
        raise ValueError(f"A reward is a finite number; got {number}. Nothing was sent.")
    return number


def _pairs(pairs: Any) -> tuple[dict[str, Any], list[Any]]:
    """What can be sent, and for every pair an error or None."""
    good, out = [], list[Any]()
    for id, value in pairs.items() if isinstance(pairs, Mapping) else pairs:
        try:
            good.append({"id": checked_id(id), "reward": _finite(value)})
            out.append(None)
        except ValueError as error:
            out.append(error)
    if len(out) > 1000:
        raise ValueError(f"At most 1000 rewards go into one call; got {len(out)}.")
    return {"rewards": good}, out


def _placed(out: list[Any], verdicts: list[dict[str, Any]]) -> list[str | Exception]:
    left = iter(verdicts)
    return [error if error is not None else _verdict(next(left)) for error in out]


def _verdict(found: dict[str, Any]) -> str | Exception:
    if found.get("error") is None:
        return str(found["verdict"])
    return error_for(_STATUS.get(found.get("kind", ""), 422), found["error"])
