"""The table of operations, from which come the routes, the checks and /openapi.json; and one request, checked."""

import json
import math
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from driftbandit.agent.inputs import from_json_arm
from driftbandit.live.ids import checked_name
from driftbandit.service import problems
from driftbandit.service.auth import EVERYTHING
from driftbandit.service.keys import StoredKey
from driftbandit.service.problems import HttpProblem
from driftbandit.service.types import LONGEST_ARM, encode

_JSON = "application/json"

Handler = Callable[..., Awaitable[Any]]


class Query(NamedTuple):
    """A parameter of the query string."""

    name: str
    kind: type
    text: str
    default: Any = None
    least: float | None = None
    most: float | None = None
    longest: int = 500  # characters of a text


class Operation(NamedTuple):
    """One operation of the API."""

    method: str
    path: str
    scope: str | None  # what a key must allow; None where no key is needed
    summary: str
    body: Any  # the type of the message, or None
    answer: Any  # the type of the answer; None for text
    query: tuple[Query, ...]
    handler: Handler
    status: int = 200
    limit: int = 65_536  # bytes of the body

    @property
    def name(self) -> str:
        """The name that generated clients use."""
        return self.handler.__name__

    @property
    def parameters(self) -> list[str]:
        """The names in the path."""
        return re.findall(r"\{(\w+)\}", self.path)


TABLE: list[Operation] = []


def operation(
    method: str, path: str, scope: str | None, answer: Any, body: Any = None, query: tuple[Query, ...] = (), **more: Any
) -> Callable[[Handler], Handler]:
    """Put a handler into the table. Its docstring is the summary that the page of the API shows."""

    def add(handler: Handler) -> Handler:
        summary = " ".join((handler.__doc__ or "").split())
        TABLE.append(Operation(method, path, scope, summary, body, answer, query, handler, **more))
        return handler

    return add


class Call:
    """What a handler is given."""

    __slots__ = ("body", "key", "query", "request", "service")

    def __init__(self, request: Request, service: Any, key: StoredKey, body: Any, query: dict[str, Any]) -> None:
        self.request, self.service, self.key, self.body, self.query = request, service, key, body, query

    def path(self, name: str) -> str:
        """A name in the path."""
        return str(self.request.path_params[name])

    async def bandit(self) -> Any:
        """The bandit in the path."""
        name = self.request.path_params["bandit"]
        return self.service.bandits.ready(name) or await self.service.bandits.find(checked_name(name))

    @property
    def who(self) -> str:
        """The author of a change, as the journal records it: the name of the key, then what the message gives."""
        given = getattr(self.body, "who", "")
        return f"{self.key.name}: {given}"[:200] if given else self.key.name


def endpoint(operation: Operation, service: Any) -> Any:
    """The operation as Starlette calls it."""
    decode = msgspec.json.Decoder(operation.body).decode if operation.body is not None else None
    scope, handler, limit, status = operation.scope, operation.handler, operation.limit, operation.status
    observe, per_bandit = service.metrics.observe, "bandit" in operation.parameters

    async def answer(request: Request) -> Response:
        began = time.perf_counter()
        try:
            with service.admission:
                name = request.path_params["bandit"] if per_bandit else None
                key = EVERYTHING if scope is None else service.access.allow(request, scope, name)
                query = (
                    read_query(operation.query, request.query_params) if operation.query or request.url.query else {}
                )
                body = None
                if decode is not None:
                    text = await read_body(request, limit) or b"{}"
                    body = decode(text)
                    _check_names(text)
                out = await handler(Call(request, service, key, body, query))
            response = out if isinstance(out, Response) else Response(encode(out), status, media_type=_JSON)
        except Exception as error:
            response = problems.answer(error)
        observe(operation.name, response.status_code, time.perf_counter() - began)
        return response

    return answer


# ---- what a request contains -----------------------------------------------------------------------------------------


async def read_body(request: Request, limit: int) -> bytes:
    """The body. One that is too long is refused before it is read to its end."""
    if int(request.headers.get("content-length") or 0) > limit:
        raise HttpProblem(413, "large", f"A body here has at most {limit} bytes.")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise HttpProblem(413, "large", f"A body here has at most {limit} bytes.")
        parts.append(part)
    return b"".join(parts)


def _refuse_twice(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"The body has the field {twice!r:.60} twice; give each field once.")


_decode_names = json.JSONDecoder(object_pairs_hook=_refuse_twice).decode


def _check_names(text: bytes) -> None:
    """Refuse valid JSON that names a field twice: programs differ in which of the two counts."""
    _decode_names(text.decode())


def read_query(wanted: tuple[Query, ...], given: Any) -> dict[str, Any]:
    """The parameters of the query string, each of its type and within its bounds."""
    known = [query.name for query in wanted]
    wrong = [name for name in given if name not in known]
    if wrong:
        raise ValueError(f"Unknown parameter {wrong[0]!r:.60}; the parameters are: {', '.join(known) or 'none'}.")
    twice = [name for name in known if len(given.getlist(name)) > 1]
    if twice:
        raise ValueError(f"The parameter {twice[0]!r} is given twice; give it once.")
    return {query.name: _parameter(query, given.get(query.name)) for query in wanted}


def _parameter(query: Query, text: str | None) -> Any:
    if text is None:
        return query.default
    if query.kind is str:
        if len(text) > query.longest or "\0" in text:
            raise ValueError(f"{query.name} is a text of at most {query.longest} characters.")
        return text
    try:
        number = query.kind(text)
        if not math.isfinite(number) or not text.isascii() or "_" in text:
            raise ValueError
    except (ValueError, OverflowError):
        kind = "a whole number" if query.kind is int else "a number"
        raise ValueError(f"{query.name} is {kind}; got {text!r:.60}.") from None
    if (query.least is not None and number < query.least) or (query.most is not None and number > query.most):
        raise ValueError(f"{query.name} lies between {query.least:g} and {query.most:g}; got {text!r:.60}.")
    return number


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
