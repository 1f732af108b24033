"""The ASGI application: the table of operations, the page, and the headers every answer carries."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from driftbandit.service import handlers, problems
from driftbandit.service.call import endpoint
from driftbandit.service.operations import TABLE
from driftbandit.service.page import routes as page_routes
from driftbandit.service.problems import HttpProblem
from driftbandit.service.service import Service

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

assert handlers  # imported to fill the table


def build(service: Service, start: Callable[[Service], Awaitable[Any]] | None = None) -> Any:
    """The application of a service; `start` runs beside it, as the demonstration's traffic does."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        beside = await start(service) if start is not None else None
        try:
            yield
        finally:
            service.ending.set()
            if beside is not None:
                beside.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await beside
            await service.close()

    by_path: dict[str, list[Any]] = {}
    for operation in TABLE:
        by_path.setdefault(operation.path, []).append(operation)
    routes = [
        Route(path, _by_method({o.method: endpoint(o, service) for o in found}), methods=[o.method for o in found])
        for path, found in by_path.items()
    ]
    routes.sort(key=lambda route: not route.path.endswith(("/decisions", "/rewards")))  # the busy ones first
    app = Starlette(
        routes=[*routes, *page_routes.routes(service)],
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
    """Every answer says what a browser may do with it: nothing from elsewhere, no inline script, no frame."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_RAW]
            await send(message)

        if _two_lengths(scope["headers"]):
            response = problems.answer(_AMBIGUOUS)
            response.headers["Connection"] = "close"  # what follows on this connection may be the smuggled one
            await response(scope, receive, sending)
        else:
            await app(scope, receive, sending)

    return wrapped


_AMBIGUOUS = HttpProblem(400, "ambiguous", "A request says how long its body is in one way: Content-Length or chunks.")


def _two_lengths(headers: Any) -> bool:
    """A body with two lengths may be one request for a proxy and two for us; the second would be smuggled past it."""
    names = [name for name, _ in headers if name in _LENGTHS]
    return len(names) > 1


_LENGTHS = (b"content-length", b"transfer-encoding")


async def _missing(request: Request, error: Exception) -> Response:
    return problems.answer(HttpProblem(404, "unknown", f"There is nothing at {request.url.path[:100]!r}; see /api."))


async def _method(request: Request, error: Exception) -> Response:
    response = problems.answer(HttpProblem(405, "method", f"{request.method} does nothing here; see /api."))
    response.headers["Allow"] = ", ".join((getattr(error, "headers", None) or {}).get("Allow", "GET").split(", "))
    return response


async def _fault(request: Request, error: Exception) -> Response:
    return problems.answer(error)
