"""`driftbandit list`: the policies, environments, reward laws and items of the paper."""

import argparse
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from driftbandit.cli._shared import add_example, add_option, print_json, print_table, terminal_width
from driftbandit.core.parameters import parameters
from driftbandit.spec import parse

_EXAMPLES = """\
  driftbandit list                 policies and environments
  driftbandit list policies        how each policy forgets
  driftbandit list ds-ts           one policy or environment in full: parameters and named constructors
"""
_SHOWN = {"all": ("policies", "environments", "laws"), "policies": ("policies",),
          "environments": ("environments", "names", "laws"), "items": ("items",)}  # fmt: skip
_FACTS = ("family", "forgets", "knows", "cost", "reference")


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "list", "list the policies and environments", _EXAMPLES)
    text = "policies, environments, items (of the paper), or the name of one policy or environment"
    parser.add_argument("what", nargs="?", default="all", metavar="WHAT", help=text)
    add_option(parser, "json")


def run(args: argparse.Namespace) -> None:
    """Print the requested tables, or one class in full."""
    if args.what not in _SHOWN:
        found = parse.find(args.what, _SHOWN)  # their names are suggested too
        described = _describe(cls := found[0] if isinstance(found, tuple) else found)
        print_json(described) if args.json else _print_class(cls, described)
        return
    shown = {kind: _KINDS[kind]() for kind in _SHOWN[args.what]}
    if args.json:
        print_json(shown)
        return
    for number, (kind, rows) in enumerate(shown.items()):
        print("\n" if number else "", end="")
        _print_all(kind, rows)


def _print_all(kind: str, rows: list[Any]) -> None:
    if kind == "policies":  # one line each, within the terminal or 80 characters
        names = [" ".join([row["short"], *row["aliases"]]) for row in rows]
        width = max(80, terminal_width() or 0) - 2 - max(map(len, names))
        forgets = [textwrap.shorten(row["forgets"].split(";")[0], width, placeholder=" ...") for row in rows]
        title = "policies (`driftbandit list NAME` describes one in full)"
        print_table(["policy", "how it forgets"], list(zip(names, forgets, strict=True)), title)
    elif kind == "items":
        shown = [list(row.values()) for row in rows]
        print_table(["item", "title", "content"], shown, "items of the paper, for `driftbandit reproduce`")
    elif kind == "names":
        named = ", ".join(row["name"] for row in rows)
        print("environments by name (`driftbandit list NAME` describes one in full)")
        print(textwrap.fill(named, 100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    else:
        title = "reward laws (law=... of an environment)" if kind == "laws" else "environments"
        names = ["name", "text", "about"] if kind == "laws" else ["name", "short", "text", "about"]
        rows = [[row[name] for name in names] for row in rows]
        print_table([*names[:-2], "written in full", "description"], rows, title)


def _items() -> list[dict[str, str]]:
    from driftbandit.paper.items import items

    return [{"id": item.id, "title": item.title, "shows": item.shows} for item in items().values()]


def _print_class(cls: type, described: dict[str, Any]) -> None:
    """Docstring, parameters with their domains, and named constructors."""
    print(f"{described['text']}\n\n{inspect.getdoc(cls)}")
    named = [[name, _differences(cls, values)] for name, values in getattr(cls, "aliases", {}).items()]
    for name, made in parse.named_environments().items() if hasattr(cls, "realise") else ():
        if isinstance(made, cls):
            named.append([name, _differences(cls, made._asdict())])  # type: ignore[attr-defined]
    for head, rows in (
        (["fact", "value"], [[fact, str(described[fact])] for fact in _FACTS if fact in described]),
        (["parameter", "type", "domain", "default"], [[*row.values()] for row in described["parameters"]]),
        (["name", "stands for"], named),
        (["named constructor", "description"], [[*row.values()] for row in described["constructors"]]),
    ):
        if rows:
            print()
            print_table(head, rows)


def _differences(cls: Any, values: dict[str, Any]) -> str:
    """The parameters that differ from the defaults."""
    defaults = cls._field_defaults
    return ", ".join(f"{key}={value!r}" for key, value in values.items() if value != defaults.get(key))


def _describe(cls: type) -> dict[str, Any]:
    defaults = {name: repr(value) for name, value in getattr(cls, "_field_defaults", {}).items()}
    about = parameters(cls)
    written = [f"{p.name}={defaults.get(p.name, '...')}" for p in about]
    makers = {verb: getattr(cls, verb) for verb in parse.constructors(cls)}
    return {
        "name": cls.__name__,
        "short": _short(cls),
        "aliases": list(getattr(cls, "aliases", ())),
        **{fact: getattr(cls, fact) for fact in _FACTS if hasattr(cls, fact)},
        "text": f"{cls.__name__}({', '.join(written)})",
        "about": _first_line(cls),
        "parameters": [
            {"parameter": p.name, "type": getattr(p.kind, "__name__", "any"),
             "domain": p.domain.text if p.domain else "", "default": defaults.get(p.name, "needed")}
            for p in about
        ],
        "constructors": [
            {"text": f"{_short(cls)}.{verb}{inspect.signature(maker)}", "about": _first_line(maker)}
            for verb, maker in makers.items()
        ],
    }  # fmt: skip


def _short(cls: type) -> str:
    return str(getattr(cls, "short", cls.__name__))


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


_KINDS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "policies": lambda: [_describe(cls) for cls in parse.policies().values()],
    "environments": lambda: [_describe(cls) for cls in parse.environments().values()],
    "names": lambda: [{"name": name, "text": repr(made)} for name, made in parse.named_environments().items()],
    "laws": lambda: [_describe(cls) for cls in parse.laws().values()],
    "items": _items,
}
