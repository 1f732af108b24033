"""/openapi.json, made from the table of operations and the types that check the messages."""

import json
from functools import cache
from importlib import metadata
from typing import Any

import msgspec

from driftbandit.service.calls import TABLE, Operation, Query
from driftbandit.service.types import Error

_REF = "#/components/schemas/{name}"
_ERRORS = {
    "400": "the request is not valid HTTP", "401": "no key, or an unknown one",
    "403": "the key does not allow it, or a page of another site sent it",
    "404": "there is no such bandit or decision",
    "409": "the same id was used for something else; nothing was changed",
    "413": "the body is too long", "422": "the message is wrong; `error` says what is",
    "429": "too many requests with this key",
    "503": "the service or its store is busy or unavailable; send it again with the same id",
}  # fmt: skip
_NAMES = {
    "bandit": r"^[A-Za-z0-9_][A-Za-z0-9_.:~-]{0,127}$",
    "id": r"^[A-Za-z0-9_.:~-]{1,128}$",
}


@cache
def document() -> bytes:
    """The whole description."""
    types = [Error, *(o.body for o in TABLE if o.body), *(o.answer for o in TABLE if o.answer)]
    _, components = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in TABLE:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
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


def _described(operation: Operation) -> dict[str, Any]:
    out: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {str(operation.status): _answer(operation)},
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": _NAMES[name]}}
            for name in operation.parameters
        ] + [_parameter(query) for query in operation.query],
    }  # fmt: skip
    if operation.name == "create":
        out["responses"]["200"] = {**_answer(operation), "description": "it already exists with these settings"}
    if operation.scope is None:
        out["security"] = []
    else:
        out["description"] = f"Needs a key with the scope {operation.scope!r}."
    if operation.body is not None:
        schema = {"$ref": _REF.format(name=operation.body.__name__)}
        out["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    error = {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}}
    for status, text in _ERRORS.items():
        out["responses"][status] = {"description": text, "content": error}
    return out


def _answer(operation: Operation) -> dict[str, Any]:
    if operation.answer is None:
        kind = {"events": "text/event-stream", "openapi": "application/json"}.get(operation.name, "text/plain")
        return {"description": "done", "content": {kind: {"schema": {}}}}
    schema = {"$ref": _REF.format(name=operation.answer.__name__)}
    return {"description": "done", "content": {"application/json": {"schema": schema}}}


def _parameter(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": {int: "integer", float: "number", str: "string"}[query.kind]}
    if query.kind is str:
        schema["maxLength"] = query.longest
    for word, value in (("minimum", query.least), ("maximum", query.most), ("default", query.default)):
        if value is not None:
            schema[word] = value
    return {"name": query.name, "in": "query", "required": False, "description": query.text, "schema": schema}
