"""The pages and where they are."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from driftbandit.live import settings
from driftbandit.live.errors import Unknown
from driftbandit.service import problems
from driftbandit.service.access import COOKIE, SESSION
from driftbandit.service.call import read_body
from driftbandit.service.page.api import api_page
from driftbandit.service.page.bandit import bandit_page
from driftbandit.service.page.frame import KINDS, page, static
from driftbandit.service.page.html import element
from driftbandit.service.page.overview import SHOWN, overview
from driftbandit.service.page.summary import summary

_FILES = (
    "page.css",
    "charts.js",
    "bandit.js",
    "admin.js",
    "overview.js",
    "icon.svg",
    "uPlot.iife.min.js",
    "uPlot.min.css",
)
_SCRIPTS = ("uPlot.iife.min.js", "charts.js", "admin.js", "bandit.js")

Handler = Callable[[Request], Awaitable[Response]]


def routes(service: Any) -> list[Route]:
    """All pages of a service."""

    def guarded(handler: Callable[[Request, Any], Awaitable[Response]]) -> Handler:
        async def answer(request: Request) -> Response:
            try:
                key = service.access.who(request)
                if key is None:
                    return _login(request)
                service.access.spend(key)
                return await handler(request, key)
            except Unknown as error:
                return page("Not found", element("h1", None, "Not found"), element("p", None, str(error)), status=404)
            except Exception as error:
                return problems.answer(error)

        return answer

    async def bandits(request: Request, key: Any) -> Response:
        table = await asyncio.to_thread(_overview, service, key, request.query_params.get("q", "")[:128])
        if request.query_params.get("part"):
            return Response(table, media_type="text/html", headers={"Cache-Control": "no-store"})
        search = element(
            "form",
            {"class": "search", "role": "search"},
            element(
                "input",
                {
                    "type": "search",
                    "name": "q",
                    "value": request.query_params.get("q", "")[:128],
                    "aria-label": "search bandits",
                    "placeholder": "search",
                },
            ),
        )
        note = (
            element("p", {"class": "note"}, "Watching a journal that another program writes.")
            if service.read_only
            else None
        )
        return page(
            "Bandits",
            element("h1", None, "Bandits"),
            search,
            note,
            table,
            scripts=("overview.js",),
            signed_in=_signed(service),
        )

    async def one(request: Request, key: Any) -> Response:
        name = request.path_params["bandit"]
        if not key.may("read", name):
            raise problems.HttpProblem(403, "scope", f"This key does not allow 'read' for bandit {name}.")
        bandit = await service.bandits.find(name)
        names = settings.names_of(bandit.config)
        arms = [names[slot] for slot in bandit.config.active]
        admin = key.may("admin", name) and not service.read_only
        changes = await asyncio.to_thread(service.charts.changes, bandit)
        held_back = any(row["config"]["holdback"] for row in changes)
        return page(
            f"{name} · driftbandit",
            *bandit_page(bandit, arms, admin, held_back, (await asyncio.to_thread(summary, service, bandit)).attention),
            scripts=_SCRIPTS,
            signed_in=_signed(service),
        )

    async def api(request: Request, key: Any) -> Response:
        return page("API · driftbandit", *api_page(), signed_in=_signed(service))

    async def login(request: Request) -> Response:
        try:
            service.access.who(request)  # refuses a form sent by another site
            fields = parse_qs((await read_body(request, 4096)).decode("latin-1"))
            session = service.access.session(fields.get("key", [""])[0].strip())
            if session is None:
                return _login(request, "This is not one of our keys, or it has expired.")
        except Exception as error:
            return problems.answer(error)
        to = fields.get("to", ["/"])[0]
        response = RedirectResponse(to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/", 303)
        response.set_cookie(
            COOKIE, session, SESSION, path="/", secure=request.url.scheme == "https", httponly=True, samesite="strict"
        )
        return response

    async def logout(request: Request) -> Response:
        try:
            service.access.check_origin(request)
        except Exception as error:
            return problems.answer(error)
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE, path="/")
        return response

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _FILES:
            return problems.answer(problems.HttpProblem(404, "unknown", "There is no such file."))
        kind = KINDS[name.rsplit(".", 1)[-1]]
        return Response(
            static(name), headers={"content-type": kind, "Cache-Control": "public, max-age=31536000, immutable"}
        )

    return [
        Route("/", guarded(bandits)),
        Route("/bandits/{bandit}", guarded(one)),
        Route("/api", guarded(api)),
        Route("/login", login, methods=["POST"]),
        Route("/logout", logout, methods=["POST"]),
        Route("/static/{name}", file),
    ]


def _signed(service: Any) -> bool:
    return service.access.keys is not None


def _overview(service: Any, key: Any, wanted: str) -> Any:
    names = [name for name in service.bandits.names() if key.may("read", name) and wanted.casefold() in name.casefold()]
    rows = [summary(service, service.bandits.get(name)) for name in names[:SHOWN]]
    return overview(rows, len(names), wanted)


def _login(request: Request, wrong: str = "") -> Response:
    form = element(
        "form",
        {"method": "post", "action": "/login", "class": "login"},
        element(
            "label",
            None,
            "Key ",
            element(
                "input",
                {
                    "type": "password",
                    "name": "key",
                    "autocomplete": "current-password",
                    "required": True,
                    "autofocus": True,
                },
            ),
        ),
        element(
            "input", {"type": "hidden", "name": "to", "value": request.url.path if request.method == "GET" else "/"}
        ),
        element("button", {"type": "submit"}, "Open"),
    )
    note = element("p", {"role": "alert"}, wrong) if wrong else None
    return page("driftbandit", element("h1", None, "This service needs a key"), note, form, status=401)
