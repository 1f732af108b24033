"""What every page has around it."""

import hashlib
from functools import cache
from importlib import resources
from typing import Any

from starlette.responses import Response

from driftbandit.service.page.html import Markup, element, joined

KINDS = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}


@cache
def static(name: str) -> bytes:
    """A file of ours."""
    return (resources.files("driftbandit.service") / "static" / name).read_bytes()


@cache
def address(name: str) -> str:
    """Where a file is, with a mark of its contents: a browser may keep it for ever, and gets a new one when it
    changes."""
    return f"/static/{name}?v={hashlib.sha256(static(name)).hexdigest()[:12]}"


def page(
    title: str, *children: Any, scripts: tuple[str, ...] = (), signed_in: bool = False, status: int = 200
) -> Response:
    """A whole page."""
    head = element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("title", None, title),
        element("link", {"rel": "icon", "type": "image/svg+xml", "href": address("icon.svg")}),
        element("link", {"rel": "stylesheet", "href": address("uPlot.min.css")}) if scripts else None,
        element("link", {"rel": "stylesheet", "href": address("page.css")}),
        [element("script", {"src": address(name), "defer": True}) for name in scripts],
    )
    bar = element(
        "header",
        None,
        element("a", {"class": "skip", "href": "#main"}, "Skip to content"),
        element("a", {"class": "home", "href": "/"}, "driftbandit"),
        element(
            "nav",
            {"aria-label": "pages"},
            element("a", {"href": "/"}, "Bandits"),
            element("a", {"href": "/api"}, "API"),
            element(
                "form",
                {"method": "post", "action": "/logout", "class": "inline"},
                element("button", {"type": "submit", "class": "plain"}, "Sign out"),
            )
            if signed_in
            else None,
        ),
    )
    body = element("body", None, bar, element("main", {"id": "main", "tabindex": "-1"}, *children))
    text = joined([Markup("<!doctype html>"), element("html", {"lang": "en"}, head, body)])
    return Response(text, status, {"Cache-Control": "no-store"}, "text/html")


def percent(value: float | None) -> str:
    """A share as people write it."""
    return "–" if value is None else f"{100 * value:.0f} %" if value >= 0.1 or value == 0 else f"{100 * value:.1f} %"
