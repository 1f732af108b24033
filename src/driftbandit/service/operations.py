"""Everything that can be asked of the service: one table, from which come the routes, the checks and /openapi.json."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from starlette.responses import Response

Handler = Callable[..., Awaitable[Any]]


class Query(NamedTuple):
    """A parameter behind the question mark."""

    name: str
    kind: type
    text: str
    default: Any = None
    least: float | None = None
    most: float | None = None
    longest: int = 500  # letters of a text


class Operation(NamedTuple):
    """One thing that can be asked."""

    method: str
    path: str
    scope: str | None  # what a key must allow; None for everybody
    summary: str
    body: Any  # the type of the message, or None
    answer: Any  # the type of the answer; None for text
    query: tuple[Query, ...]
    handler: Handler
    status: int = 200
    limit: int = 65_536  # bytes of the body

    @property
    def name(self) -> str:
        """A name for programs that are made from /openapi.json."""
        return self.handler.__name__

    @property
    def parameters(self) -> list[str]:
        """The names in the path."""
        return re.findall(r"\{(\w+)\}", self.path)


TABLE: list[Operation] = []


def operation(
    method: str, path: str, scope: str | None, answer: Any, body: Any = None, query: tuple[Query, ...] = (), **more: Any
) -> Callable[[Handler], Handler]:
    """Put a handler into the table. Its docstring is what the page of the API says."""

    def add(handler: Handler) -> Handler:
        summary = " ".join((handler.__doc__ or "").split())
        TABLE.append(Operation(method, path, scope, summary, body, answer, query, handler, **more))
        return handler

    return add


def text(body: str, kind: str = "text/plain; charset=utf-8", status: int = 200) -> Response:
    """An answer that is not JSON."""
    return Response(body, status, media_type=None, headers={"content-type": kind})
