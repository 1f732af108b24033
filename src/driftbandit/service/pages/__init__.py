"""The pages of a service, rendered from templates that escape every text; scripts fill in the data."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from driftbandit.agent.explaining import can_explain
from driftbandit.half_life import spelt
from driftbandit.live import settings
from driftbandit.live.errors import Unknown
from driftbandit.service import problems
from driftbandit.service.auth import COOKIE, SESSION
from driftbandit.service.calls import TABLE, read_body
from driftbandit.service.openapi import document
from driftbandit.service.pages.summary import summary

_SHOWN = 100  # bandits in one table
_SCRIPTS = ("uPlot.iife.min.js", "charts.js", "admin.js", "bandit.js")
_FILES = ("page.css", "icon.svg", "uPlot.min.css", "overview.js", *_SCRIPTS)
_KINDS = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}

Handler = Callable[[Request], Awaitable[Response]]


# ---- templates -------------------------------------------------------------------------------------------------------


@cache
def _static(name: str) -> bytes:
    return (resources.files("driftbandit.service") / "static" / name).read_bytes()


@cache
def _static_address(name: str) -> str:
    """The address of a file with a digest of its contents: browsers keep it forever and fetch a changed one."""
    return f"/static/{name}?v={hashlib.sha256(_static(name)).hexdigest()[:12]}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}%" if value >= 0.1 or value == 0 else f"{100 * value:.1f}%"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _type_name(field: dict[str, Any]) -> str:
    """The type of a message's field, in words."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type_name(part) for part in field["anyOf"]))
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    kind, items = str(field.get("type", "anything")), field.get("items")
    if kind == "array":
        kind = f"list of {_type_name(items)}" if isinstance(items, dict) and items else "list"
    return f"{kind} ({field['description']})" if "description" in field else kind


_templates = Environment(
    loader=PackageLoader("driftbandit.service.pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
_templates.globals["static"] = _static_address
_templates.filters |= {"percent": _percent, "rate": _rate, "type_name": _type_name}


def _page(template: str, title: str = "", status: int = 200, **values: Any) -> Response:
    values = {"title": title, "scripts": (), "signed_in": False, **values}
    text = _templates.get_template(template).render(values)
    return Response(text, status, {"Cache-Control": "no-store"}, "text/html")


# ---- pages -----------------------------------------------------------------------------------------------------------


def routes(service: Any) -> list[Route]:
    """All pages of a service."""
    signed_in = service.access.keys is not None

    def guarded(handler: Callable[[Request, Any], Awaitable[Response]]) -> Handler:
        async def answer(request: Request) -> Response:
            try:
                key = service.access.who(request)
                if key is None:
                    return _login(request)
                service.access.spend(key)
                return await handler(request, key)
            except Unknown as error:
                return _page("message.html", "Not found", 404, heading="Not found", key_wanted=False, text=str(error))
            except Exception as error:
                return problems.answer(error)

        return answer

    async def overview(request: Request, key: Any) -> Response:
        wanted = request.query_params.get("q", "")[:128]
        rows, total = await asyncio.to_thread(_rows, service, key, wanted)
        values: dict[str, Any] = {"rows": rows, "total": total, "wanted": wanted}
        if request.query_params.get("part"):
            return _page("bandits.html", **values)
        return _page(
            "overview.html", "Bandits", read_only=service.read_only, scripts=("overview.js",), signed_in=signed_in,
            **values,
        )  # fmt: skip

    async def bandit(request: Request, key: Any) -> Response:
        name = request.path_params["bandit"]
        if not key.may("read", name):
            raise problems.HttpProblem(403, "scope", f"This key does not allow 'read' for bandit {name}.")
        found = await service.bandits.find(name)
        admin = key.may("admin", name) and not service.read_only
        values = await asyncio.to_thread(_bandit_values, service, found)
        return _page(
            "bandit.html", f"{name} · driftbandit", name=name, admin=admin, scripts=_SCRIPTS, signed_in=signed_in,
            **values,
        )  # fmt: skip

    async def api(request: Request, key: Any) -> Response:
        schemas = json.loads(document())["components"]["schemas"]
        return _page("api.html", "API · driftbandit", operations=TABLE, schemas=schemas, signed_in=signed_in)

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
        headers = {"content-type": _KINDS[name.rsplit(".", 1)[-1]]}
        return Response(_static(name), headers={**headers, "Cache-Control": "public, max-age=31536000, immutable"})

    return [
        Route("/", guarded(overview)),
        Route("/bandits/{bandit}", guarded(bandit)),
        Route("/api", guarded(api)),
        Route("/login", login, methods=["POST"]),
        Route("/logout", logout, methods=["POST"]),
        Route("/static/{name}", file),
    ]


def _login(request: Request, wrong: str = "") -> Response:
    back_to = request.url.path if request.method == "GET" else "/"
    return _page(
        "message.html", "driftbandit", 401, heading="This service needs a key", key_wanted=True, text=wrong,
        back_to=back_to,
    )  # fmt: skip


def _rows(service: Any, key: Any, wanted: str) -> tuple[list[Any], int]:
    names = [name for name in service.bandits.names() if key.may("read", name) and wanted.casefold() in name.casefold()]
    return [summary(service, service.bandits.get(name)) for name in names[:_SHOWN]], len(names)


def _bandit_values(service: Any, bandit: Any) -> dict[str, Any]:
    """What the page of a bandit shows before its script has run."""
    config = bandit.config
    half_life = None if config.half_life is None else spelt(config.half_life)
    chosen = [
        config.policy,
        half_life and f"half-life {half_life}",
        f"floor {config.floor:g}",
        config.holdback and f"holdback {config.holdback:g}",
        None if config.wait is None else f"wait {spelt(config.wait)}, then {config.default:g}",
    ]
    names = settings.names_of(config)
    return {
        "settings": [text for text in chosen if text],
        "half_life": half_life,
        "other_half_life": "none" if half_life is None else spelt(max(1_000_000, config.half_life // 4)),
        "policy": config.policy,
        "arms": [names[slot] for slot in config.active],
        "fades": hasattr(bandit.policy, "fade"),
        "explains": can_explain(bandit.policy),
        # Without a holdback the script does not load the uplift, which reads the whole journal.
        "held_back": any(row["config"]["holdback"] for row in service.charts.changes(bandit)),
        "attention": summary(service, bandit).attention,
    }
