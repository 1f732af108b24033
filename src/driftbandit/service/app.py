"""The ASGI application of one service: operations, pages, and the headers that every answer carries."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import lru_cache
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from driftbandit.service import deciding, looking, managing, pages, problems, status  # noqa: F401 (most fill TABLE)
from driftbandit.service.auth import Access, Keys
from driftbandit.service.background import Compiler, Pruner
from driftbandit.service.bandits import WatchedBandits
from driftbandit.service.calls import TABLE, Metrics, endpoint
from driftbandit.service.charts import Charts
from driftbandit.service.connection import format_headers, send_at_once
from driftbandit.service.problems import HttpProblem, log_event

_CHECK = 1.5  # seconds for the store to answer whether it is ready
_AGAIN = 1.0  # seconds for which that answer is given again
_HEADERS = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # not "no-referrer": with it browsers send our own forms with "Origin: null"
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}
_PLAIN = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
]
_PLAIN_TEXT = format_headers(_PLAIN)


class Service:
    """What the handlers use: bandits, keys, metrics and charts, started and closed together."""

    def __init__(self, bandits: WatchedBandits, keys: Keys | None = None, truth: Any = None, most: int = 512,
                 max_lag: float = 5.0, exports: str | None = None) -> None:  # fmt: skip
        self.bandits, self.read_only, self.max_lag = bandits, bandits.read_only, max_lag
        self.access = Access(keys, b"" if keys is None else bandits.secret(), self.read_only)
        self.metrics = Metrics()
        self.most, self.inside = most, 0  # requests being answered at once, and now
        self.charts = Charts(bandits, truth)
        self.pruner = Pruner(bandits, exports)
        self.compiler = Compiler(bandits, self.metrics.decisions)
        self._checked: tuple[float, asyncio.Task[None]] | None = None

    def enter(self) -> None:
        """Count one more request that is being answered, or refuse it: in a longer queue every answer is late.
        uvicorn's own limit counts idle connections too, so it protects the number of open files and is far higher."""
        if self.inside >= self.most:
            text = f"{self.most} requests are being answered; try again in a moment."
            raise HttpProblem(503, "busy", text, retry=True)
        self.inside += 1

    async def check(self) -> None:
        """Raise if the store cannot be written. The check writes, and needs no key, so all requests within one second
        get the same answer."""
        if self._checked is None or time.monotonic() - self._checked[0] > _AGAIN:
            self._checked = time.monotonic(), asyncio.create_task(self.bandits.check(_CHECK))
        await asyncio.shield(self._checked[1])

    async def close(self) -> None:
        """Write everything that was requested, then close."""
        for part in (self.compiler, self.charts, self.pruner, self.bandits):
            await asyncio.to_thread(part.close)


def build(
    service: Service, start: Callable[[Service], Awaitable[Any]] | None = None, proxies: str = "127.0.0.1"
) -> Any:
    """The application of a service; `start` makes a task that runs with it, such as the demonstration's traffic. Pages
    take the scheme from the headers of `proxies`; operations do not depend on it."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.charts.start()
        service.pruner.start()
        service.compiler.start()
        traffic = await start(service) if start is not None else None
        try:
            yield
        finally:
            if traffic is not None:
                traffic.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await traffic
            await service.close()
            log_event(logging.INFO, "stop", pid=os.getpid())  # uvicorn then ends by the signal it got

    operations = {(o.method, *o.path.split("/")): endpoint(o, service) for o in TABLE}
    routes = [Route("/".join(path), answer, methods=[method]) for (method, *path), answer in operations.items()]
    app = Starlette(
        routes=[*routes, *pages.routes(service)],
        lifespan=lifespan,
        exception_handlers={404: _answer_missing, 405: _answer_method, Exception: _answer_fault},
    )
    app.router.redirect_slashes = False  # such a redirect names the host that the request named
    behind_proxies: Any = ProxyHeadersMiddleware(app, proxies)  # type: ignore[arg-type]
    return _dispatch(behind_proxies, operations)


def _dispatch(app: Any, operations: dict[tuple[str, ...], Any]) -> Any:
    """Answer operations directly, and everything else by Starlette, whose layers take time. Add the headers that
    restrict what a browser does with an answer: no foreign content, inline script or frame. What operations answer is
    JSON or plain text, which a browser neither runs nor shows within another page."""
    page_headers = list(_HEADERS.items())

    @lru_cache(maxsize=256)  # of up to 64 kB each
    def find(method: str, path: str) -> tuple[Any, dict[str, str]]:
        """The operation at a path, and what its name has in the path."""
        parts, given = [method, *path.split("/")], {}
        if len(parts) > 4 and parts[2:4] == ["v1", "bandits"]:
            given["bandit"], parts[4] = parts[4], "{bandit}"
            if len(parts) > 6 and parts[5] == "decisions" and parts[6] != "batch":
                given["id"], parts[6] = parts[6], "{id}"
        return (None if "" in given.values() else operations.get(tuple(parts))), given

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        answer, scope["path_params"] = find(scope["method"], scope["path"])
        if answer is not None:
            found = await answer(Request(scope, receive))
            if not send_at_once(send, found.status_code, found.raw_headers, _PLAIN_TEXT, found.body):
                start = {"type": "http.response.start", "status": found.status_code}
                await send({**start, "headers": found.raw_headers + _PLAIN})
                await send({"type": "http.response.body", "body": found.body})
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *page_headers]
            await send(message)

        await app(scope, receive, sending)

    return wrapped


async def _answer_missing(request: Request, error: Exception) -> Response:
    return problems.answer(HttpProblem(404, "unknown", f"There is nothing at {request.url.path[:100]!r}; see /api."))


async def _answer_method(request: Request, error: Exception) -> Response:
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    response = problems.answer(HttpProblem(405, "method", f"{request.method} is not allowed here; see /api."))
    response.headers["Allow"] = ", ".join(sorted({method for route in routes for method in route.methods}))
    return response


async def _answer_fault(request: Request, error: Exception) -> Response:
    return problems.answer(error)
