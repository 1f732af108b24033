"""`driftbandit list`: what there is."""

import argparse
import inspect
import textwrap
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table, terminal_width
from driftbandit.commands._shared import add_example, completes, shortened
from driftbandit.parameters import parameters
from driftbandit.text import parse

_EXAMPLES = """\
  driftbandit list                 policies and environments
  driftbandit list policies        how each policy forgets, what it must know, what a round costs
  driftbandit list ds-ts           one of them in full: parameters and named constructors
"""

_FACTS = {
    "family": "family",
    "forgets": "how it forgets",
    "knows": "what it must know",
    "cost": "cost per round",
    "reference": "reference",
}


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "list", "show the policies and environments there are", _EXAMPLES)
    asked = parser.add_argument(
        "what",
        nargs="?",
        default="all",
        metavar="WHAT",
        help="policies, environments, items (of the paper), or the name of one policy or environment",
    )
    completes(asked, "policies")
    parser.add_argument("--long", action="store_true", help="everything about each policy, on lines as long as needed")
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Print the tables asked for, or one class in full."""
    tables: dict[str, Any] = {"policies": _policies, "environments": _environments, "items": _items}
    if args.long:
        tables["policies"] = _policies_in_full
    if args.json:
        print_json(_as_json(args.what, list(tables)))
    elif args.what in tables:
        tables[args.what]()
    elif args.what == "all":
        _policies_in_full() if args.long else _policies()
        print()
        _environments()
    else:
        _one(args.what, list(tables))


def _policies() -> None:
    """One line per policy, within the terminal or 80 letters: its names and how it forgets, in brief."""
    room = max(80, terminal_width() or 0)
    listed = [(_names(cls), str(getattr(cls, "forgets", ""))) for cls in parse.policies().values()]
    left = room - 2 - max(len(names) for names, _ in listed)
    rows = [[names, _brief(forgets, left)] for names, forgets in listed]
    print_table(["policy", "how it forgets"], rows, "policies (--long says more; `list NAME` says all about one)")


def _brief(text: str, room: int) -> str:
    """The first clause of a sentence, cut at a word if it is still too long."""
    first = text.split(";")[0]
    return first if len(first) <= room else textwrap.shorten(first, room, placeholder=" ...")


def _policies_in_full() -> None:
    rows = []
    for name, cls in parse.policies().items():
        rows.append([_names(cls), name, *(str(getattr(cls, fact, "")) for fact in _FACTS)])
    print_table(["policy", "class", *_FACTS.values()], rows, "policies")


def _names(cls: type) -> str:
    return " ".join([_short(cls), *getattr(cls, "aliases", ())])


def _environments() -> None:
    rows = [[name, _short(cls), _call(cls), _first_line(cls)] for name, cls in parse.environments().items()]
    print_table(["environment", "short", "written in full", "what it is"], rows, "environments")
    rows = [[name, _call(cls), _first_line(cls)] for name, cls in parse.laws().items()]
    print()
    print_table(["reward law", "written in full", "what it is"], rows, "reward laws (law=... of an environment)")


def _items() -> None:
    rows = [[item["id"], item["title"], item["shows"]] for item in _items_as_json()]
    print_table(["item", "title", "what it shows"], rows, "items of the paper, for `driftbandit reproduce`")


def _items_as_json() -> list[dict[str, str]]:
    from driftbandit.paper import items

    return [{"id": item.id, "title": item.title, "shows": item.shows} for item in items().values()]


def _found(name: str, kinds: list[str]) -> type:
    """The class of this name."""
    try:
        found = parse.find(name)
    except parse.SpecError:
        shorts = [_short(cls) for cls in [*parse.policies().values(), *parse.environments().values()]]
        known = [*kinds, *shorts, *parse.policies(), *parse.environments(), *parse.laws()]
        raise ValueError(
            f"There is nothing named {shortened(name)!r}{parse.nearest(name, known) or '.'} "
            "`driftbandit list` shows all."
        ) from None
    cls: type = found[0] if isinstance(found, tuple) else found
    return cls


def _one(name: str, kinds: list[str]) -> None:
    """One class: what it says of itself, its parameters with their domains, its named constructors."""
    cls = _found(name, kinds)
    print(f"{_call(cls)}\n\n{inspect.getdoc(cls)}\n")
    rows = _parameters(cls)
    if rows:
        print_table(["parameter", "type", "domain", "default"], rows)
    makers = _makers(cls)
    if makers:
        print()
        print_table(["named constructor", "what it computes"], makers)


def _parameters(cls: type) -> list[list[str]]:
    defaults = getattr(cls, "_field_defaults", {})
    return [
        [
            p.name,
            getattr(p.kind, "__name__", "any"),
            p.domain.text if p.domain else "",
            repr(defaults[p.name]) if p.name in defaults else "needed",
        ]
        for p in parameters(cls)
    ]


def _makers(cls: type) -> list[list[str]]:
    return [
        [f"{_short(cls)}.{verb}{_arguments(cls, verb)}", _first_line(getattr(cls, verb))]
        for verb in parse.constructors(cls)
    ]


def _as_json(what: str, kinds: list[str]) -> Any:
    """The same as data: a list for each kind, or one class."""
    listed = {
        "policies": parse.policies,
        "environments": parse.environments,
        "laws": parse.laws,
    }
    if what in ("all", *kinds):
        if what == "items":
            return {"items": _items_as_json()}
        wanted = [*listed] if what == "all" else [what]
        wanted += ["laws"] if what == "environments" else []
        return {name: [_described(cls) for cls in listed[name]().values()] for name in wanted}
    return _described(_found(what, kinds))


def _described(cls: type) -> dict[str, Any]:
    keys = ("parameter", "type", "domain", "default")
    return {
        "name": cls.__name__,
        "short": _short(cls),
        "aliases": list(getattr(cls, "aliases", ())),
        **{fact: getattr(cls, fact) for fact in _FACTS if hasattr(cls, fact)},
        "text": _call(cls),
        "about": _first_line(cls),
        "parameters": [dict(zip(keys, row, strict=True)) for row in _parameters(cls)],
        "constructors": [dict(zip(("text", "about"), row, strict=True)) for row in _makers(cls)],
    }


def _short(cls: type) -> str:
    return str(getattr(cls, "short", cls.__name__))


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


def _call(cls: type) -> str:
    """A class written out with its defaults; what has none is shown as dots."""
    defaults = getattr(cls, "_field_defaults", {})
    written = [f"{p.name}={defaults[p.name]!r}" if p.name in defaults else f"{p.name}=..." for p in parameters(cls)]
    return f"{cls.__name__}({', '.join(written)})"


def _arguments(cls: type, verb: str) -> str:
    names = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in inspect.signature(getattr(cls, verb)).parameters.values()
    ]
    return f"({', '.join(names)})"
