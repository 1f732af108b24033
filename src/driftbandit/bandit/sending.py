"""Messages to a service and its answers. A request is repeated after a lost connection or a busy service, always with
the same id, so nothing is done twice."""

import asyncio
import math
import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from driftbandit.bandit.effects import BelievedGain, BestArms, Effects, FeatureEffect
from driftbandit.bandit.features import as_mapping, plain_value
from driftbandit.bandit.inputs import TIMES, checked_labels, from_json_arm, to_json_arm
from driftbandit.bandit.interface import Outcome, Pairs
from driftbandit.bandit.records import Decision, as_datetime
from driftbandit.bandit.settings import checked_policy
from driftbandit.errors import AccessDenied, Archived, Moved, NotFound, RecordConflict, StoreError
from driftbandit.policies.drift.belief import Expected
from driftbandit.spec.half_life import duration, format_duration

_AGAIN = (429, 502, 503, 504)
_ERRORS: dict[int, Any] = {404: NotFound, 409: RecordConflict, 410: Archived, 421: Moved}
_STATUS = {"conflict": 409, "unknown": 404, "store": 503}  # of one reward of many


class Sender:
    """One service, one key, connections that are kept."""

    def __init__(self, url: str, key: str | None, timeout: float, patience: float) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._options: dict[str, Any] = {"base_url": url.rstrip("/"), "headers": headers, "timeout": timeout}
        self.patience = patience
        self._sync: httpx.Client | None = None
        self._async: httpx.AsyncClient | None = None
        self._loop: Any = None

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The answer, or the error that the library would have raised."""
        if self._sync is None:
            self._sync = httpx.Client(**self._options)
        waits = _Waits(self.patience)
        while True:
            try:
                found: Any = self._sync.request(method, path, json=body)
            except httpx.TransportError as error:
                found = error
            if (pause := waits.after(found)) is None:
                return read_answer(found)
            time.sleep(pause)

    async def asend(self, method: str, path: str, body: Any = None) -> Any:
        """`send` for asyncio."""
        loop = asyncio.get_running_loop()
        if self._async is None or self._loop is not loop:  # a client belongs to the loop it was first used in
            self._async, self._loop = httpx.AsyncClient(**self._options), loop
        waits = _Waits(self.patience)
        while True:
            try:
                found: Any = await self._async.request(method, path, json=body)
            except httpx.TransportError as error:
                found = error
            if (pause := waits.after(found)) is None:
                return read_answer(found)
            await asyncio.sleep(pause)

    def close(self) -> None:
        """Close the connections."""
        if self._sync is not None:
            self._sync.close()
            self._sync = None

    async def aclose(self) -> None:
        """`close` for asyncio."""
        self.close()
        if self._async is not None:
            await self._async.aclose()
            self._async = None


class _Waits:
    """How long to wait before the next attempt: as the service requests, or twice as long as before; never in step with
    other clients."""

    def __init__(self, patience: float) -> None:
        self._until, self._patience, self._pause = time.monotonic() + patience, patience, 0.05

    def after(self, found: httpx.Response | Exception) -> float | None:
        """Seconds to wait after an error or a response; None for a response that is an answer."""
        asked = 0.0
        if isinstance(found, httpx.Response):
            if found.status_code not in _AGAIN:
                return None
            text = found.headers.get("retry-after", "")
            asked = min(float(text), 5.0) if text.isdigit() else 0.0
        pause = max(asked, self._pause) * random.uniform(0.75, 1.25)
        self._pause = min(1.0, 2.0 * self._pause)
        if time.monotonic() + pause > self._until:
            why = _sentence(found) if isinstance(found, httpx.Response) else f"{type(found).__name__}: {found}"
            raise StoreError(
                f"The service did not answer within {self._patience:g} s ({why[:200]}); whether it was done is "
                "not known: send it again with the same id."
            )
        return pause


def bandit_names(
    url: str, key: str | None, search: str, labels: Mapping[str, str] | None, archived: bool
) -> Iterator[str]:
    """The bandits of a service, as `Bandit.names` returns them."""
    wanted = {"search": search, "label": [f"{name}:{value}" for name, value in checked_labels(labels or {}).items()]}
    with closing(Sender(url, key or os.environ.get("DRIFTBANDIT_KEY"), 10.0, 20.0)) as sender:
        after = ""
        while after is not None:
            query = urlencode(wanted | {"archived": str(archived).lower(), "after": after}, doseq=True)
            page = sender.send("GET", f"/v1/bandits?{query}")
            yield from page["bandits"]
            after = page["next"]


def address(name: str, *parts: str, **query: Any) -> str:
    """The path of a bandit or of something of it."""
    path = "/v1/bandits/" + "/".join(quote(part, safe="") for part in (name, *parts))
    given = {word: value for word, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


# ---- messages --------------------------------------------------------------------------------------------------------


def write_context(context: Any, candidates: Any = None) -> dict[str, Any]:
    """A context, or candidates, of one decision or of each, as a message has them."""
    if context is not None and candidates is not None:
        raise ValueError("Give a context or candidates, not both.")
    if context is None and candidates is None:
        return {}
    given, write = (context, _to_plain) if candidates is None else (candidates, _each_plain)
    name = "context" if candidates is None else "candidates"
    return {name: [write(one) for one in given] if isinstance(given, list | tuple) else write(given)}


def _each_plain(candidates: Any) -> dict[str, Any]:
    if not isinstance(candidates, Mapping):
        raise ValueError(f"candidates maps names to features; got {candidates!r:.60}.")
    return {name: _to_plain({} if values is None else values) for name, values in candidates.items()}


def _to_plain(context: Any) -> dict[str, Any]:
    values = {name: plain_value(value) for name, value in as_mapping(context).items()}
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | None):
            raise ValueError(f"A context maps names of features to texts, numbers and flags; got {name!r:.60}.")
    return values


def write_available(available: Any) -> dict[str, Any]:
    """Available arms as a message has them."""
    if available is None:
        return {}
    if isinstance(available, str | bytes) or not isinstance(available, Iterable):
        raise ValueError(f"available is a list of arms; got {available!r:.60}.")
    return {"available": [to_json_arm(arm) for arm in available]}


def write_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a bandit as a message has them."""
    out = dict(options)
    for word in TIMES:
        if out.get(word) is not None:
            out[word] = format_duration(duration(out[word], word))
    if not isinstance(out.get("policy"), str | None):
        out["policy"] = repr(checked_policy(out["policy"]))
    for word in ("baseline", "add_arm", "retire_arm"):
        if out.get(word) is not None:
            out[word] = to_json_arm(out[word])
    return out


def write_rewards(pairs: Pairs) -> dict[str, Any]:
    """Rewards, or parts of rewards, as a message has them."""
    parts = any(part is not None for *_, part in pairs)
    names = ("id", "reward", "part") if parts else ("id", "reward")
    return {"rewards": [dict(zip(names, pair, strict=False)) for pair in pairs]} | ({"add": True} if parts else {})


# ---- answers ---------------------------------------------------------------------------------------------------------


def read_answer(response: httpx.Response) -> Any:
    """The answer of the service, or the error it stands for."""
    if response.is_success:
        return response.json()
    raise error_for(response.status_code, _sentence(response))


def error_for(status: int, text: str) -> Exception:
    """The library's own error."""
    if status in (401, 403):
        return AccessDenied(text, status)
    error: Exception = _ERRORS.get(status, ValueError if status < 500 else StoreError)(text)
    return error


def _sentence(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"


def read_decision(found: dict[str, Any]) -> Decision:
    """A decision of an answer."""
    arm = from_json_arm(found["arm"])
    return Decision(found["id"], arm, found["at"], found["known"], found["how"], found.get("probability"))


def read_outcome(found: dict[str, Any]) -> Outcome:
    """A decision of an answer with its outcome."""
    came = None if found["came"] is None else as_datetime(found["came"])
    rest = {name: found[name] for name in ("reward", "late", "waiting", "context", "added")}
    return Outcome(read_decision(found["decision"]), found["outcome"], came=came, **rest)


def read_expected(mean: float | None, sd: float | None) -> Expected:
    """An expected reward of an answer; JSON has no NaN and no infinity."""
    return Expected(math.nan if mean is None else mean, math.inf if sd is None else sd)


def read_effects(found: dict[str, Any]) -> Effects:
    """The effects of features of an answer."""
    gain, best = found["gain"], found["best"]
    if gain is not None:
        gain = BelievedGain(**{**gain, "arm": from_json_arm(gain["arm"])})
    features = [FeatureEffect(**one) for one in found["features"]]
    return Effects([from_json_arm(arm) for arm in found["arms"]], features, best and BestArms(**best), gain)


def read_verdicts(found: dict[str, Any]) -> list[str | Exception]:
    """The verdicts on rewards, or the errors they met."""
    return [
        error_for(_STATUS.get(one.get("kind", ""), 422), one["error"]) if one.get("error") else str(one["verdict"])
        for one in found["verdicts"]
    ]
