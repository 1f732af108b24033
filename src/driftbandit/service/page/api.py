"""The page that shows the API, from the same table that answers it."""

import json
from typing import Any

from driftbandit.service.openapi import document
from driftbandit.service.operations import TABLE, Operation
from driftbandit.service.page.html import Markup, element

_START = """curl -X POST localhost:8000/v1/bandits \\
  -d '{"name": "button", "arms": ["red", "green"], "wait": "1 h", "default": 0}'
curl -X POST localhost:8000/v1/bandits/button/decisions
curl -X POST localhost:8000/v1/bandits/button/rewards -d '{"id": "ID OF THE DECISION", "reward": 1}'"""


def api_page() -> list[Any]:
    """Every operation with its messages."""
    schemas = json.loads(document())["components"]["schemas"]
    return [
        element("h1", None, "API"),
        element(
            "p",
            None,
            "Everything the service answers. The same for programs: ",
            element("a", {"href": "/openapi.json"}, "/openapi.json"),
            ".",
        ),
        element("pre", {"class": "scroll"}, _START),
        [_operation(operation, schemas) for operation in TABLE],
    ]


def _operation(operation: Operation, schemas: dict[str, Any]) -> Markup:
    needs = "open to all" if operation.scope is None else f"scope {operation.scope}"
    return element(
        "details",
        {"class": "operation"},
        element(
            "summary",
            None,
            element("code", {"class": operation.method.lower()}, operation.method),
            " ",
            element("code", None, operation.path),
            " ",
            element("span", {"class": "note"}, needs),
        ),
        element("p", None, operation.summary),
        element(
            "ul",
            None,
            [element("li", None, element("code", None, query.name), f" {query.text}") for query in operation.query],
        )
        if operation.query
        else None,
        [_type("Send", operation.body, schemas), _type("Answer", operation.answer, schemas)],
    )


def _type(title: str, kind: Any, schemas: dict[str, Any]) -> Any:
    if kind is None:
        return None
    schema = schemas[kind.__name__]
    required = schema.get("required", [])
    rows = [
        element(
            "tr",
            None,
            element("td", None, element("code", None, name)),
            element("td", None, _words(field)),
            element("td", None, "" if title == "Answer" else "required" if name in required else "optional"),
        )
        for name, field in schema.get("properties", {}).items()
    ]
    return [
        element("h3", None, title),
        element("div", {"class": "scroll"}, element("table", {"class": "fields"}, element("tbody", None, rows))),
    ]


def _words(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_words(part) for part in field["anyOf"]))
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    kind = str(field.get("type", "anything"))
    if kind == "array":
        kind = (
            f"list of {_words(field['items'])}" if isinstance(field.get("items"), dict) and field["items"] else "list"
        )
    return f"{kind} ({field['description']})" if "description" in field else kind
