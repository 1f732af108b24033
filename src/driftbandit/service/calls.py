"""The table of operations, from which come the routes, the checks and /openapi.json; and one request, checked and
counted."""

import asyncio
import json
import logging
import math
import re
import time
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from importlib import metadata
from itertools import accumulate
from typing import Annotated, Any, NamedTuple

import msgspec
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from driftbandit.bandit.inputs import from_json_arm
from driftbandit.errors import Moved
from driftbandit.service import problems
from driftbandit.service.auth import EVERYTHING, StoredKey
from driftbandit.service.connection import read_at_once
from driftbandit.service.problems import HttpProblem, log_event
from driftbandit.service.types import LONGEST_ARM, Error, Id, Name, encode

Handler = Callable[..., Awaitable[Any]]
_JSON = b"content-type", b"application/json"
_EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


class Operation(NamedTuple):
    """One operation of the API."""

    method: str
    path: str
    scope: str | None  # what a key must allow; None where no key is needed
    summary: str
    body: Any  # the type of the message, or None
    answer: Any  # the type of the answer; None for text
    query: Any  # the type of the query string, or None
    handler: Handler
    status: int = 200
    limit: int = 65_536  # bytes of the body

    @property
    def name(self) -> str:
        """The name that generated clients use."""
        return self.handler.__name__

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"\{(\w+)\}", self.path)


TABLE: list[Operation] = []


def operation(
    method: str, path: str, scope: str | None, answer: Any, body: Any = None, query: Any = None, **more: Any
) -> Callable[[Handler], Handler]:
    """Put a handler into the table. Its docstring is the summary that the page of the API shows; `query` has the
    parameters of the query string by name."""

    def add(handler: Handler) -> Handler:
        summary = " ".join((handler.__doc__ or "").split())
        fields = [(name, *found) for name, found in (query or {}).items()]
        kind = msgspec.defstruct("Query", fields, kw_only=True, forbid_unknown_fields=True) if query else None
        TABLE.append(Operation(method, path, scope, summary, body, answer, kind, handler, **more))
        return handler

    return add


def parameter(kind: Any, text: str, default: Any = None, **limits: Any) -> tuple[Any, Any]:
    """A parameter of the query string: its type, and its default. `limits` are those of msgspec.Meta."""
    found: Any = Annotated[kind, msgspec.Meta(description=text, **limits)]
    return found | None if default is None else found, default


class Metrics:
    """Counts since the start of this process."""

    def __init__(self) -> None:
        self.decisions: Counts[str] = Counts()  # by bandit
        self.rewards: Counts[tuple[str, str]] = Counts()  # by bandit and verdict
        self.requests: Counts[tuple[str, int]] = Counts()  # by operation and status
        self._seconds: dict[str, list[float]] = {}  # by operation: requests per bucket, and the sum of their times

    def observe(self, operation: str, status: int, seconds: float) -> None:
        """Count an answered request and its duration. One thread counts, so no lock is needed."""
        self.requests[operation, status] += 1
        found = self._seconds.get(operation)
        if found is None:
            found = self._seconds[operation] = [0] * (len(_EDGES) + 2)
        found[bisect_left(_EDGES, seconds)] += 1
        found[-1] += seconds

    def collect(self) -> Iterator[Metric]:
        """Requests and their durations, as Prometheus reads them."""
        labels = ["operation", "status"]
        requests = CounterMetricFamily("driftbandit_requests", "requests answered", labels=labels)
        for (operation, status), count in self.requests.copy().items():
            requests.add_metric([operation, str(status)], count)
        text = "time from the request to its answer"
        seconds = HistogramMetricFamily("driftbandit_request_seconds", text, labels=labels[:1])
        for operation, (*counts, total) in self._seconds.copy().items():
            edges = zip(map(floatToGoString, (*_EDGES, math.inf)), accumulate(counts), strict=True)
            seconds.add_metric([operation], list(edges), total)
        yield from (requests, seconds)


class JsonResponse(Response):
    """An answer whose head is made at once."""

    def __init__(self, body: bytes, status: int) -> None:
        self.status_code, self.body, self.background = status, body, None
        self.raw_headers = [_JSON, (b"content-length", b"%d" % len(body))]


class Call:
    """What a handler is given."""

    __slots__ = ("body", "key", "query", "request", "service")

    def __init__(self, request: Request, service: Any, key: StoredKey, body: Any, query: Any) -> None:
        self.request, self.service, self.key, self.body, self.query = request, service, key, body, query

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    async def bandit(self) -> Any:
        return await self.service.bandits.find(self.request.path_params["bandit"])

    async def bandit_or_new(self) -> Any:
        """The bandit, which is made if a template allows it."""
        return await self.service.bandits.find_or_make(self.request.path_params["bandit"], self.who)

    async def ask(self, method: str, *args: Any, **options: Any) -> Any:
        """What a method of the bandit returns; it runs in another thread, since it may read the journal."""
        return await asyncio.to_thread(getattr(await self.bandit(), method), *args, **options)

    async def chart(self, method: str, *args: Any) -> Any:
        """What a method of the charts returns for the bandit."""
        return await asyncio.to_thread(getattr(self.service.charts, method), await self.bandit(), *args)

    @property
    def who(self) -> str:
        """The author of a change, as the journal records it: the name of the key, then what the message gives."""
        given = getattr(self.body, "who", "")
        return f"{self.key.name}: {given}"[:200] if given else self.key.name


def endpoint(operation: Operation, service: Any) -> Any:
    """The operation as Starlette calls it."""
    decode = msgspec.json.Decoder(operation.body).decode if operation.body is not None else None
    fields = msgspec.structs.fields(operation.body) if decode is not None else ()
    needed = max(1, sum(field.required for field in fields))
    scope, handler, limit, status = operation.scope, operation.handler, operation.limit, operation.status
    kind, observe, per_bandit = operation.query, service.metrics.observe, "bandit" in operation.parameters
    contextual = "context" in getattr(operation.body, "__struct_fields__", ())
    writes, changes = operation.method != "GET", operation.scope == "admin" and operation.method != "GET"

    async def answer(request: Request) -> Response:
        began = time.perf_counter()
        key: StoredKey | None = None
        name = request.path_params["bandit"] if per_bandit else None
        try:
            service.enter()
            try:
                key = EVERYTHING if scope is None else service.access.allow(request, scope, name)
                query = read_query(kind, request) if kind or request.scope["query_string"] else None
                body = None
                if decode is not None:
                    text = await read_body(request, limit) or b"{}"
                    body = decode(text)
                    if text.count(b":") > needed:  # else no name can be there twice
                        _decode_strictly(text.decode())
                out = await handler(Call(request, service, key, body, query))
            finally:
                service.inside -= 1
            response = out if isinstance(out, Response) else JsonResponse(encode(out), status)
            if changes:
                _log("change", logging.INFO, operation, response, name or getattr(body, "name", None), key)
        except Exception as error:
            response = problems.answer(error)
            if isinstance(error, Moved) and name is not None:  # it may be moved back, and is another one then
                await asyncio.to_thread(service.bandits.forget, name)
            if writes:
                why = (problems.describe_publicly if contextual else problems.describe)(error)[:500]
                _log("refused write", logging.WARNING, operation, response, name, key, error=why)
        observe(operation.name, response.status_code, time.perf_counter() - began)
        return response

    return answer


def _log(what: str, level: int, operation: Operation, response: Response, bandit: str | None, key: StoredKey | None,
         error: str | None = None) -> None:  # fmt: skip
    """A line of the log about an operation. A name that no bandit can have is shortened."""
    shown, who = None if bandit is None else bandit[:128], None if key is None else key.name
    fields = {"operation": operation.name, "bandit": shown, "key": who, "status": response.status_code, "error": error}
    log_event(level, what, **fields)


async def read_body(request: Request, limit: int) -> bytes:
    """The body. One that is too long is refused before it is read to its end."""
    whole = read_at_once(request.receive)
    if whole is not None and len(whole) <= limit:
        return whole
    length = next((value for name, value in request.scope["headers"] if name == b"content-length"), b"0")
    parts, size, too_long = [], 0, int(length) > limit
    while not too_long:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        too_long = size > limit
        if not too_long and not message.get("more_body"):
            return b"".join(parts)
    raise HttpProblem(413, "large", f"A body here has at most {limit} bytes.")


def _refuse_twice(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a name that occurs twice: programs differ in which of the two counts."""
    if len(dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"{twice!r:.60} is given twice; give it once.")


_decode_strictly = json.JSONDecoder(object_pairs_hook=_refuse_twice).decode


def read_query(kind: Any, request: Request) -> Any:
    """The parameters of the query string, each of its type and within its bounds."""
    pairs = request.query_params.multi_items()
    labels = [value for name, value in pairs if name == "label"]  # the parameter that can be given several times
    _refuse_twice([pair for pair in pairs if pair[0] != "label"])
    if kind is None:
        raise ValueError(f"Unknown parameter {pairs[0][0] if pairs else '?'!r:.60}; this operation has none.")
    return msgspec.convert(dict(pairs) | ({"label": labels} if labels else {}), kind, strict=False)


def read_arm(arm: Any) -> Any:
    """An arm of a message, as Python has it."""
    parts = [arm]
    if isinstance(arm, dict):
        if set(arm) != {"tuple"} or not 1 <= len(arm["tuple"]) <= 20:
            raise ValueError('An arm is a text, a number, or {"tuple": [...]} with 1 to 20 of them.')
        parts = arm["tuple"]
    for part in parts:
        if isinstance(part, str) and not (len(part) <= LONGEST_ARM and part.isprintable()):
            raise ValueError(f"An arm's name has at most {LONGEST_ARM} characters, all printable; got {part!r:.60}.")
    return from_json_arm(arm) if isinstance(arm, dict) else arm


def read_arms(arms: list[Any] | None) -> list[Any] | None:
    """Arms of a message, as Python has them."""
    return None if arms is None else [read_arm(arm) for arm in arms]


# ---- /openapi.json --------------------------------------------------------------------------------------------------

_REF = "#/components/schemas/{name}"
_ERRORS = {
    "400": "the request is not valid HTTP", "401": "no key, or an unknown one",
    "403": "the key does not allow it, or a page of another site sent it",
    "404": "there is no such bandit or decision",
    "409": "the same id was used for something else; nothing was changed",
    "410": "the bandit was archived and decides no more",
    "413": "the body is too long", "421": "the bandit was moved to another database; `error` has its address",
    "422": "the message is wrong; `error` explains how",
    "429": "too many requests with this key",
    "503": "the service or its store is busy or unavailable; send it again with the same id",
}  # fmt: skip
_IN_PATH = {"bandit": Name, "id": Id, "template": Name}


@cache
def document() -> bytes:
    """The whole description."""
    types = [Error, *(o.body for o in TABLE if o.body), *(o.answer for o in TABLE if o.answer)]
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in TABLE:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation)
    return json.dumps({
        "openapi": "3.1.0",
        "info": {"title": "driftbandit", "version": metadata.version("driftbandit"), "license": {"name": "MIT"},
                 "description": "Bandits for rewards that change over time: decisions and their outcomes."},
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {"schemas": components,
                       "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }).encode()  # fmt: skip


def _describe(operation: Operation) -> dict[str, Any]:
    out: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {str(operation.status): _answer(operation)},
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": msgspec.json.schema(_IN_PATH[name])}
            for name in operation.parameters
        ] + query_parameters(operation),
    }  # fmt: skip
    if operation.name in ("create", "put"):
        out["responses"]["200"] = {**_answer(operation), "description": "it already exists with these settings"}
    if operation.scope is None:
        out["security"] = []
    else:
        out["description"] = f"Needs a key with the scope {operation.scope!r}."
    if operation.body is not None:
        out["requestBody"] = {"required": True, "content": _json_of(operation.body)}
    for status, text in _ERRORS.items():
        out["responses"][status] = {"description": text, "content": _json_of(Error)}
    return out


def _json_of(kind: Any) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(name=kind.__name__)}}}


def _answer(operation: Operation) -> dict[str, Any]:
    if operation.answer is not None:
        return {"description": "done", "content": _json_of(operation.answer)}
    kind = {"events": "text/event-stream", "openapi": "application/json"}.get(operation.name, "text/plain")
    return {"description": "done", "content": {kind: {"schema": {}}}}


def query_parameters(operation: Operation) -> list[dict[str, Any]]:
    """The parameters of the query string; the page of the API shows them too."""
    if operation.query is None:
        return []
    (_,), found = msgspec.json.schema_components([operation.query])
    out = []
    for name, field in found[operation.query.__name__]["properties"].items():
        schema = {**field, **field.get("anyOf", [{}])[0]}  # one that may be left out is of its type or null
        text = schema.pop("description")
        schema.pop("anyOf", None)
        if schema["default"] is None:
            del schema["default"]
        out.append({"name": name, "in": "query", "required": False, "description": text, "schema": schema})
    return out
