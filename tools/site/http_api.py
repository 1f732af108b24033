"""The page of the HTTP API, from the description the service gives of itself at /openapi.json."""

import json
from pathlib import Path
from typing import Any

from driftbandit.service import app, calls

assert app  # imported to fill the table of operations

_HEAD = """# The HTTP API

What a running service says of itself at `/openapi.json` (for programs) and `/api` (for people). Messages are JSON. A
wrong message is answered with 422 and one sentence in `error`; the answers that every operation may give stand at the
end. A separate page explains [how to run a service](../how-to/service.md).

"""


def write(path: Path) -> None:
    """Operations first, then the messages they take and give."""
    document = json.loads(calls.document())
    parts = [_HEAD, "| operation | what it does |\n|---|---|\n"]
    listed = [(route, method, what) for route, methods in document["paths"].items() for method, what in methods.items()]
    for route, method, what in listed:
        parts.append(f"| [`{method.upper()} {route}`](#op-{what['operationId']}) | {what['summary']} |\n")
    parts += [_operation(*one) for one in listed]
    parts.append("\n## Messages\n")
    parts += [_message(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    parts.append("\n## Answers that any operation may give\n\n| status | meaning |\n|---|---|\n")
    refused = {s: a["description"] for *_, what in listed for s, a in what["responses"].items() if s >= "400"}
    parts += [f"| {status} | {text} |\n" for status, text in sorted(refused.items())]
    path.write_text("".join(parts), encoding="utf-8")


def _operation(route: str, method: str, what: dict[str, Any]) -> str:
    out = [f"\n(op-{what['operationId']})=\n\n## `{method.upper()} {route}`\n\n{_sentence(what['summary'])}"]
    out.append(f" {what['description']}" if "description" in what else "")
    out.append("\n")
    asked = [parameter for parameter in what["parameters"] if parameter["in"] == "query"]
    if asked:
        out.append("\n| in the query | type | |\n|---|---|---|\n")
        out += [f"| `{p['name']}` | {_type(p['schema'])} | {p.get('description', '')} |\n" for p in asked]
    out.append("\n")
    if "requestBody" in what:
        out.append(f"Takes {_type(what['requestBody']['content']['application/json']['schema'])}.")
    for status, answer in sorted(what["responses"].items()):
        if status < "400":
            kind, content = next(iter(answer["content"].items()))
            given = _type(content["schema"]) if content.get("schema") and kind == "application/json" else f"`{kind}`"
            out.append(f" Answers {status}: {given}.")
    return "".join(out) + "\n"


def _message(name: str, schema: dict[str, Any]) -> str:
    out = [f"\n(message-{name.lower()})=\n\n### {name}\n\n{schema.get('description', '')}\n"]
    if schema.get("properties"):
        needed = schema.get("required", [])
        out.append("\n| field | type | |\n|---|---|---|\n")
        for field, kind in schema["properties"].items():
            default = f"default `{json.dumps(kind['default'])}`" if "default" in kind else "may be left out"
            words = "; ".join(filter(None, ["required" if field in needed else default, kind.get("description", "")]))
            out.append(f"| `{field}` | {_type(kind)} | {words} |\n")
    elif "enum" in schema:
        out.append(f"\nOne of {', '.join(f'`{value}`' for value in schema['enum'])}.\n")
    return "".join(out)


def _type(schema: dict[str, Any]) -> str:
    """A type in words, with a link where it is a message."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#message-{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "anything")
    if kind == "array":
        several = schema.get("prefixItems")  # a tuple, one type per place
        return f"[{', '.join(map(_type, several))}]" if several else f"list of {_type(schema.get('items', {}))}"
    limits = [f"{word} {schema[key]}" for key, word in _LIMITS.items() if key in schema]
    return kind + (f" ({', '.join(limits)})" if limits else "")


_LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
    "minLength": "length at least",
    "maxLength": "length at most",
}


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
