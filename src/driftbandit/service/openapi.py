"""/openapi.json, made from the table of operations and the types that check the messages."""

import json
from functools import cache
from importlib import metadata
from typing import Any

import msgspec

from driftbandit.service.calls import TABLE, Operation
from driftbandit.service.types import Error, Id, Name

_REF = "#/components/schemas/{name}"
_ERRORS = {
    "400": "the request is not valid HTTP", "401": "no key, or an unknown one",
    "403": "the key does not allow it, or a page of another site sent it",
    "404": "there is no such bandit or decision",
    "409": "the same id was used for something else; nothing was changed",
    "410": "the bandit was archived and decides no more",
    "413": "the body is too long", "421": "the bandit was moved to another database; `error` has its address",
    "422": "the message is wrong; `error` explains how",
    "429": "too many requests with this key",
    "503": "the service or its store is busy or unavailable; send it again with the same id",
}  # fmt: skip
_IN_PATH = {"bandit": Name, "id": Id, "template": Name}


@cache
def document() -> bytes:
    """The whole description."""
    types = [Error, *(o.body for o in TABLE if o.body), *(o.answer for o in TABLE if o.answer)]
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in TABLE:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation)
    return json.dumps({
        "openapi": "3.1.0",
        "info": {"title": "driftbandit", "version": metadata.version("driftbandit"), "license": {"name": "MIT"},
                 "description": "Bandits for rewards that change over time: decisions and their outcomes."},
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {"schemas": components,
                       "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }).encode()  # fmt: skip


def _describe(operation: Operation) -> dict[str, Any]:
    out: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {str(operation.status): _answer(operation)},
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": msgspec.json.schema(_IN_PATH[name])}
            for name in operation.parameters
        ] + query_parameters(operation),
    }  # fmt: skip
    if operation.name in ("create", "put"):
        out["responses"]["200"] = {**_answer(operation), "description": "it already exists with these settings"}
    if operation.scope is None:
        out["security"] = []
    else:
        out["description"] = f"Needs a key with the scope {operation.scope!r}."
    if operation.body is not None:
        out["requestBody"] = {"required": True, "content": _json_of(operation.body)}
    for status, text in _ERRORS.items():
        out["responses"][status] = {"description": text, "content": _json_of(Error)}
    return out


def _json_of(kind: Any) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(name=kind.__name__)}}}


def _answer(operation: Operation) -> dict[str, Any]:
    if operation.answer is not None:
        return {"description": "done", "content": _json_of(operation.answer)}
    kind = {"events": "text/event-stream", "openapi": "application/json"}.get(operation.name, "text/plain")
    return {"description": "done", "content": {kind: {"schema": {}}}}


def query_parameters(operation: Operation) -> list[dict[str, Any]]:
    """The parameters of the query string; the page of the API shows them too."""
    if operation.query is None:
        return []
    (_,), found = msgspec.json.schema_components([operation.query])
    out = []
    for name, field in found[operation.query.__name__]["properties"].items():
        schema = {**field, **field.get("anyOf", [{}])[0]}  # one that may be left out is of its type or null
        text = schema.pop("description")
        schema.pop("anyOf", None)
        if schema["default"] is None:
            del schema["default"]
        out.append({"name": name, "in": "query", "required": False, "description": text, "schema": schema})
    return out
