"""One request, checked: who asks, for which bandit, with which message; and the answer as bytes."""

import json
import math
import time
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from driftbandit.agent.inputs import from_json_arm
from driftbandit.live.ids import checked_name
from driftbandit.service import problems
from driftbandit.service.access import EVERYTHING
from driftbandit.service.keys import StoredKey
from driftbandit.service.operations import Operation, Query
from driftbandit.service.problems import HttpProblem
from driftbandit.service.types import LONGEST_ARM, encode

_JSON = "application/json"


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
        """Who stands in the journal beside a change: what they say, behind the name of their key."""
        said = getattr(self.body, "who", "")
        return f"{self.key.name}: {said}"[:200] if said else self.key.name


async def read_body(request: Request, limit: int) -> bytes:
    """The body, if it is not too long: a longer one is refused before it is read to its end."""
    if int(request.headers.get("content-length") or 0) > limit:
        raise HttpProblem(413, "large", f"A body here has at most {limit} bytes.")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise HttpProblem(413, "large", f"A body here has at most {limit} bytes.")
        parts.append(part)
    return b"".join(parts)


def _once_each(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"The body has the field {twice!r:.60} twice; give each field once.")


_named = json.JSONDecoder(object_pairs_hook=_once_each).decode


def check_names(text: bytes) -> None:
    """Refuse valid JSON that names a field twice: programs differ in which of the two counts."""
    _named(text.decode())


def read_query(wanted: tuple[Query, ...], given: Any) -> dict[str, Any]:
    """The parameters behind the question mark, each of its kind and within its bounds."""
    known = [query.name for query in wanted]
    wrong = [name for name in given if name not in known]
    if wrong:
        raise ValueError(f"There is no parameter {wrong[0]!r:.60} here; there are: {', '.join(known) or 'none'}.")
    twice = [name for name in known if len(given.getlist(name)) > 1]
    if twice:
        raise ValueError(f"The parameter {twice[0]!r} is given twice; give it once.")
    return {query.name: _parameter(query, given.get(query.name)) for query in wanted}


def _parameter(query: Query, text: str | None) -> Any:
    if text is None:
        return query.default
    if query.kind is str:
        if len(text) > query.longest or "\0" in text:
            raise ValueError(f"{query.name} is a text of at most {query.longest} letters.")
        return text
    try:
        number = query.kind(text)
        if not math.isfinite(number) or not text.isascii() or "_" in text:
            raise ValueError
    except (ValueError, OverflowError):
        what = "a whole number" if query.kind is int else "a number"
        raise ValueError(f"{query.name} is {what}; got {text!r:.60}.") from None
    if (query.least is not None and number < query.least) or (query.most is not None and number > query.most):
        raise ValueError(f"{query.name} lies between {query.least:g} and {query.most:g}; got {text!r:.60}.")
    return number


def endpoint(operation: Operation, service: Any) -> Any:
    """The operation as Starlette calls it."""
    decode = msgspec.json.Decoder(operation.body).decode if operation.body is not None else None
    scope, handler, limit, status = operation.scope, operation.handler, operation.limit, operation.status
    metrics, per_bandit = service.metrics, "bandit" in operation.parameters

    async def answer(request: Request) -> Response:
        began = time.perf_counter()
        code = 500
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
                    check_names(text)
                out = await handler(Call(request, service, key, body, query))
            response = out if isinstance(out, Response) else Response(encode(out), status, media_type=_JSON)
        except Exception as error:
            response = problems.answer(error)
        code = response.status_code
        metrics.observe(operation.name, code, time.perf_counter() - began)
        return response

    return answer


def arm_in(arm: Any) -> Any:
    """An arm as a message names it."""
    if isinstance(arm, dict):
        if set(arm) != {"tuple"} or not 1 <= len(arm["tuple"]) <= 20:
            raise ValueError('An arm is a text, a number, or {"tuple": [...]} with 1 to 20 of them.')
        for part in arm["tuple"]:
            _check_label(part)
        return from_json_arm(arm)
    _check_label(arm)
    return arm


def _check_label(arm: Any) -> None:
    if isinstance(arm, str) and not (len(arm) <= LONGEST_ARM and arm.isprintable()):
        raise ValueError(f"An arm's name has at most {LONGEST_ARM} letters, all printable; got {arm!r:.60}.")


def arms_in(arms: list[Any] | None) -> list[Any] | None:
    """Arms as a message names them."""
    return None if arms is None else [arm_in(arm) for arm in arms]
