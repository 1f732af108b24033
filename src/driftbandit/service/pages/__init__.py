"""The pages of a service, rendered from templates that escape every text; scripts fill in the data."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from driftbandit.bandit.beliefs import can_explain
from driftbandit.bandit.features import Features
from driftbandit.bandit.inputs import split_labels
from driftbandit.bandit.records import as_microseconds
from driftbandit.errors import DamagedJournal, Moved, NotFound
from driftbandit.service import problems
from driftbandit.service.auth import COOKIE, SESSION
from driftbandit.service.calls import TABLE, document, query_parameters, read_body
from driftbandit.service.charts import HOUR, MINUTE
from driftbandit.service.problems import HttpProblem, log
from driftbandit.spec.half_life import SECOND, format_duration

_SHOWN = 50  # bandits in one table
_SCRIPTS = ("uPlot.iife.min.js", "charts.js", "admin.js", "context.js", "bandit.js")
_FILES = ("page.css", "icon.svg", "uPlot.min.css", "overview.js", *_SCRIPTS)
_KINDS = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}

_MANY_LATE = 0.05  # share of rewards that come after `wait` above which it needs attention
_JOINED_AFTER = 5 * SECOND  # younger decisions are not counted: their reward may be on its way
_WIDE, _HIGH = 160, 32  # of the small drawing


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

    async def overview(request: Request, key: Any) -> Response:
        asked = {name: request.query_params.get(name, "")[:128] for name in ("q", "after", "archived")}
        rows, following = await asyncio.to_thread(_rows, service, key, *asked.values())
        values: dict[str, Any] = {"rows": rows, "following": following, "wanted": asked["q"]}
        values |= {"archived": asked["archived"], "address": request.base_url}
        if request.query_params.get("part"):
            return _page("bandits.html", **values)
        return _page(
            "overview.html", "Bandits", read_only=service.read_only, scripts=("overview.js",), signed_in=signed_in,
            **values,
        )  # fmt: skip

    async def bandit(request: Request, key: Any) -> Response:
        name = request.path_params["bandit"]
        service.access.check_scope(key, "read", name)
        found = await service.bandits.find(name)
        admin, greedy = (key.may(scope, name) and not service.read_only for scope in ("admin", "decide"))
        values = await asyncio.to_thread(_bandit_values, service, found)
        return _page(
            "bandit.html", f"{name} · driftbandit", name=name, admin=admin, greedy=greedy, scripts=_SCRIPTS,
            signed_in=signed_in, **values,
        )  # fmt: skip

    async def api(request: Request, key: Any) -> Response:
        schemas = json.loads(document())["components"]["schemas"]
        queries = {operation.name: query_parameters(operation) for operation in TABLE}
        return _page(
            "api.html", "API · driftbandit", operations=TABLE, schemas=schemas, queries=queries, signed_in=signed_in,
            address=request.base_url,
        )  # fmt: skip

    async def login(request: Request) -> Response:
        service.access.identify(request)  # refuses a form sent by another site
        fields = parse_qs((await read_body(request, 4096)).decode("latin-1"))
        session = service.access.make_session(fields.get("key", [""])[0].strip())
        if session is None:
            return _login_page(request, "This is not one of our keys, or it has expired.")
        to = fields.get("to", ["/"])[0]
        response = RedirectResponse(to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/", 303)
        response.set_cookie(
            COOKIE, session, SESSION, path="/", secure=request.url.scheme == "https", httponly=True, samesite="strict"
        )
        return response

    async def logout(request: Request) -> Response:
        service.access.check_origin(request)
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE, path="/")
        return response

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _FILES:
            raise HttpProblem(404, "unknown", "There is no such file.")
        headers = {"content-type": _KINDS[name.rsplit(".", 1)[-1]]}
        return Response(_static(name), headers={**headers, "Cache-Control": "public, max-age=31536000, immutable"})

    def route(path: str, handler: Callable[..., Awaitable[Response]], method: str = "GET", open: bool = False) -> Route:
        """A page; unless it is `open`, it needs a key."""

        async def answer(request: Request) -> Response:
            try:
                if open:
                    return await handler(request)
                key = service.access.identify(request)
                if key is None:
                    return _login_page(request)
                service.access.spend(key)
                return await handler(request, key)
            except Exception as error:
                return _error_page(error)

        return Route(path, answer, methods=[method])

    return [
        route("/", overview),
        route("/bandits/{bandit}", bandit),
        route("/api", api),
        route("/login", login, "POST", open=True),
        route("/logout", logout, "POST", open=True),
        route("/static/{name}", file, open=True),
    ]


def _error_page(error: Exception) -> Response:
    """What the API would answer, as a page."""
    found = problems.answer(error)
    heading = "Not found" if found.status_code == 404 else "This cannot be shown"
    page = _page(
        "message.html", heading, found.status_code, heading=heading, key_wanted=False, text=problems.describe(error)
    )
    page.headers.update({name: found.headers[name] for name in ("retry-after",) if name in found.headers})
    return page


def _login_page(request: Request, wrong: str = "") -> Response:
    back_to = request.url.path if request.method == "GET" else "/"
    return _page(
        "message.html", "driftbandit", 401, heading="This service needs a key", key_wanted=True, text=wrong,
        back_to=back_to,
    )  # fmt: skip


def _rows(service: Any, key: Any, wanted: str, after: str, archived: str) -> tuple[list[Any], str | None]:
    words = wanted.split()
    labels = split_labels([word for word in words if "=" in word.strip("=")], "=")
    search = " ".join(word for word in words if "=" not in word.strip("="))
    which = search, after, _SHOWN, labels, archived == "true"
    names, following = service.bandits.names(key, *which) if key.may("read", None) else ([], None)
    rows = [_row_of(service, name) for name in names]
    return [row for row in rows if row is not None], following


def _row_of(service: Any, name: str) -> "OverviewRow | None":
    """The row of a bandit, of which one that is damaged hides no other; None if it has just been deleted or moved."""
    try:
        return overview_row(service, service.bandits.get(name))
    except (NotFound, Moved):
        return None
    except DamagedJournal as error:
        log.error("the row of %s: %s", name, error)
        return OverviewRow(name, "", None, None, 0.0, None, [], ["damaged: its journal cannot be read; see the log"])


def _bandit_values(service: Any, bandit: Any) -> dict[str, Any]:
    """What the page of a bandit shows before its script has run."""
    config = bandit.stored
    half_life = None if config.half_life is None else format_duration(config.half_life)
    chosen = [
        config.policy,
        half_life and f"half-life {half_life}",
        f"floor {config.floor:g}",
        config.holdback and f"holdback {config.holdback:g}",
        None if config.wait is None else f"wait {format_duration(config.wait)}, then {config.default:g}",
        config.candidates and "candidates with each request",
        config.features and f"features {', '.join(name for name, _ in config.features)}",
        config.labels and ", ".join("=".join(label) for label in config.labels.items()),
    ]
    return {
        "settings": [text for text in chosen if text],
        "half_life": half_life,
        "arms": bandit.arms,
        "fades": hasattr(bandit.policy, "fade"),
        "explains": can_explain(bandit.policy),
        "features": Features.stored(config.features),
        "candidates": config.candidates,
        "archived": config.archived is not None,
        "goal": config.goal,
        # Without a holdback the script does not load the uplift, which reads the whole journal.
        "held_back": bool(config.holdback) or any("holdback" in row["what"] for row in service.charts.changes(bandit)),
        "attention": overview_row(service, bandit).attention,
    }


# ---- the overview ----------------------------------------------------------------------------------------------------


class OverviewRow(NamedTuple):
    """A bandit in the overview: the leading arm, traffic, whether rewards arrive, and what needs attention."""

    name: str
    policy: str
    leader: Any
    share: float | None
    per_minute: float
    joined: float | None  # share of recent decisions that have a reward
    spark: list[str]  # shares over the last hour, stacked: the points of a polygon for each arm
    attention: list[str]


def overview_row(service: Any, bandit: Any) -> OverviewRow:
    """The row, at most two seconds old."""
    return service.charts.cached("row", bandit, lambda: _make_row(service, bandit), seconds=2.0)  # type: ignore[no-any-return]


def _make_row(service: Any, bandit: Any) -> OverviewRow:
    now, config, charts = bandit.now(), bandit.stored, service.charts
    journal = service.bandits.journal
    first = journal.first_at(journal.number(bandit.name)) or now
    history = charts.counts(bandit, max(now - HOUR, min(first, now - MINUTE)), now + 1, 40)
    last = now - max(5 * MINUTE, 2 * history.width)
    lately = [row for start, row in zip(history.starts, history.decisions, strict=True) if start >= last]
    counts = [sum(column) for column in zip(*lately, strict=True)] or [0]
    total, most = sum(counts), max(counts)
    covered = min(len(lately) * history.width, max(MINUTE, now - first))
    recent = charts.recent(bandit)
    old = [o for o in recent if o.decision.microseconds < now - max(_JOINED_AFTER, config.wait or 0)]
    return OverviewRow(
        bandit.name,
        config.policy,
        history.arms[counts.index(most)] if total else None,
        most / total if total else None,
        total / (covered / MINUTE) if total else 0.0,
        sum(o.kind == "reward" or o.late is not None for o in old) / len(old) if old else None,
        draw_shares(history.decisions),
        _attention(service, bandit, recent, now, history.arms),
    )


def draw_shares(decisions: list[list[int]]) -> list[str]:
    """Shares over time, stacked: the points of a polygon for each arm; nothing where fewer than two times have any."""
    known = [(place, row, sum(row)) for place, row in enumerate(decisions) if sum(row)]
    if len(known) < 2:
        return []
    last = len(decisions) - 1
    x = [f"{_WIDE * place / last:.1f}" for place, _, _ in known]
    tops, out = [0.0] * len(known), []
    for arm in range(len(known[-1][1])):
        lower = [f"{a},{_HIGH * (1 - top):.1f}" for a, top in zip(x, tops, strict=True)]
        tops = [top + row[arm] / whole for top, (_, row, whole) in zip(tops, known, strict=True)]
        upper = [f"{a},{_HIGH * (1 - top):.1f}" for a, top in zip(x, tops, strict=True)]
        out.append(" ".join([*upper, *reversed(lower)]))
    return out


def _attention(service: Any, bandit: Any, recent: list[Any], now: int, names: list[Any]) -> list[str]:
    config, out = bandit.stored, []
    health = service.charts.cached("health", bandit, bandit.health, seconds=30.0)  # which counts rows
    if config.fixed is not None:
        out.append(f"fixed to {names[config.fixed]}")
    came = max((as_microseconds(o.came) for o in recent if o.kind == "reward"), default=0)
    hour_ago = now - HOUR
    if recent and recent[-1].decision.microseconds < hour_ago < recent[0].decision.microseconds and came < hour_ago:
        out.append("no reward for an hour")
    played = {o.decision.arm for o in recent}
    starved = [str(arm) for arm in bandit.arms if arm not in played]
    if len(recent) >= 500 and starved and config.fixed is None:
        out.append(f"not played in the last {len(recent)} decisions: {', '.join(starved[:3])}")
    if bandit.stopped:
        out.append("damaged: its journal cannot be folded any further, so it makes no decisions")
    if bandit.lag > service.max_lag:
        out.append(f"{bandit.lag:.1f} s behind the journal")
    if health.get("clock_set_back"):
        out.append("the clock was set back; see `driftbandit live clock`")
    late, rewards = health["late"], health["rewards"]
    if late > _MANY_LATE * (late + rewards):
        out.append(f"{late} of {late + rewards} rewards came after wait and were not learned")
    return [*out, *health["warnings"]]
