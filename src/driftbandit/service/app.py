"""The ASGI application of one service: operations, pages, and the headers that every answer carries."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from driftbandit.service import handlers, pages, problems
from driftbandit.service.auth import Access
from driftbandit.service.bandits import WatchedBandits
from driftbandit.service.calls import TABLE, endpoint
from driftbandit.service.charts.jobs import Jobs
from driftbandit.service.charts.series import Charts
from driftbandit.service.keys import Keys
from driftbandit.service.metrics import Metrics
from driftbandit.service.problems import HttpProblem

_CHECK = 1.5  # seconds for the store to answer whether it is ready
_AGAIN = 1.0  # seconds for which that answer is given again
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # not "no-referrer": with it browsers send our own forms with "Origin: null"
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_RAW = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_LENGTHS = (b"content-length", b"transfer-encoding")

assert handlers  # imported to fill the table


class Admission:
    """Counts the requests being answered and refuses more than the limit: in a longer queue every answer is late."""

    def __init__(self, most: int) -> None:
        self.most, self.inside = most, 0

    def __enter__(self) -> None:
        if self.inside >= self.most:
            raise HttpProblem(
                503, "busy", f"{self.most} requests are being answered; try again in a moment.", retry=True
            )
        self.inside += 1

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self.inside -= 1


class Service:
    """What the handlers use: bandits, keys, metrics and charts, started and closed together."""

    def __init__(self, bandits: WatchedBandits, keys: Keys | None = None, truth: Any = None, most: int = 512,
                 max_lag: float = 5.0) -> None:  # fmt: skip
        self.bandits = bandits
        self.read_only = bandits.read_only
        self.access = Access(keys, b"" if keys is None else bandits.secret(), self.read_only)
        self.metrics = Metrics()
        self.admission = Admission(most)
        self.charts = Charts(bandits, truth)
        self.jobs = Jobs(bandits.target)
        self.max_lag = max_lag
        self.streams: Counter[str] = Counter()  # open ones, by key
        self.ending = asyncio.Event()
        self._checked: tuple[float, asyncio.Task[None]] | None = None

    async def start(self) -> None:
        """Begin to record. Bandits are opened when they are first used."""
        self.charts.recorder.start()

    async def check(self) -> None:
        """Raise if the store cannot be written. The check writes, and needs no key, so all requests within one second
        get the same answer."""
        if self._checked is None or time.monotonic() - self._checked[0] > _AGAIN:
            self._checked = time.monotonic(), asyncio.create_task(self.bandits.check(_CHECK))
        await asyncio.shield(self._checked[1])

    async def pause(self, seconds: float) -> None:
        """Wait, at most until the service ends."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ending.wait()

    async def close(self) -> None:
        """Write everything that was requested, then close."""
        self.ending.set()
        await asyncio.to_thread(self.charts.close)
        await asyncio.to_thread(self.jobs.close)
        await asyncio.to_thread(self.bandits.close)


def build(service: Service, start: Callable[[Service], Awaitable[Any]] | None = None) -> Any:
    """The application of a service; `start` makes a task that runs with it, such as the demonstration's traffic."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        traffic = await start(service) if start is not None else None
        try:
            yield
        finally:
            service.ending.set()
            if traffic is not None:
                traffic.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await traffic
            await service.close()

    by_path: dict[str, dict[str, Any]] = {}
    for operation in TABLE:
        by_path.setdefault(operation.path, {})[operation.method] = endpoint(operation, service)
    routes = [Route(path, _by_method(found), methods=list(found)) for path, found in by_path.items()]
    routes.sort(key=lambda route: not route.path.endswith(("/decisions", "/rewards")))  # the busy ones first
    app = Starlette(
        routes=[*routes, *pages.routes(service)],
        lifespan=lifespan,
        exception_handlers={404: _missing, 405: _method, Exception: _fault},
    )
    app.router.redirect_slashes = False  # such a redirect names the host that the request named
    app.state.service = service
    return _with_headers(app)


def _by_method(endpoints: dict[str, Any]) -> Any:
    if len(endpoints) == 1:
        return next(iter(endpoints.values()))

    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method](request)  # type: ignore[no-any-return]

    return answer


def _with_headers(app: Any) -> Any:
    """Add the headers that restrict what a browser does with an answer: no foreign content, inline script or frame."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_RAW]
            await send(message)

        # A body with two lengths may be one request for a proxy and two for us; the second would bypass the proxy.
        if sum(name in _LENGTHS for name, _ in scope["headers"]) > 1:
            response = problems.answer(
                HttpProblem(400, "ambiguous", "Give the length of a body once, as Content-Length or by chunks.")
            )
            response.headers["Connection"] = "close"  # what follows on this connection may be the second request
            await response(scope, receive, sending)
        else:
            await app(scope, receive, sending)

    return wrapped


async def _missing(request: Request, error: Exception) -> Response:
    return problems.answer(HttpProblem(404, "unknown", f"There is nothing at {request.url.path[:100]!r}; see /api."))


async def _method(request: Request, error: Exception) -> Response:
    response = problems.answer(HttpProblem(405, "method", f"{request.method} is not allowed here; see /api."))
    response.headers["Allow"] = ", ".join((getattr(error, "headers", None) or {}).get("Allow", "GET").split(", "))
    return response


async def _fault(request: Request, error: Exception) -> Response:
    return problems.answer(error)
