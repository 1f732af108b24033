"""`driftbandit list`: what there is."""

import argparse
import inspect
from typing import Any

from driftbandit.commands._shared import add_example, print_table
from driftbandit.parameters import parameters
from driftbandit.text import parse

_EXAMPLES = """\
  driftbandit list                 policies, environments and experiments
  driftbandit list policies        how each policy forgets, what it must know, what a round costs
  driftbandit list ds-ts           one of them in full: parameters and named constructors
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "list", "show the policies, environments and experiments there are", _EXAMPLES)
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        metavar="WHAT",
        help="policies, environments, experiments, or the name of one of them",
    )


def run(args: argparse.Namespace) -> None:
    """Print the tables asked for, or one class in full."""
    tables = {"policies": _policies, "environments": _environments, "experiments": _experiments}
    if args.what in tables:
        tables[args.what]()
    elif args.what == "all":
        for number, table in enumerate(tables.values()):
            print("" if number == 0 else "\n", end="")
            table()
    else:
        _one(args.what, list(tables))


def _policies() -> None:
    rows = []
    for name, cls in parse.policies().items():
        facts = [str(getattr(cls, fact, "")) for fact in ("cost", "forgets", "knows", "reference")]
        rows.append([name, " ".join([_short(cls), *getattr(cls, "aliases", ())]), *facts])
    print_table(
        ["policy", "short", "cost a round", "how it forgets", "what it must know", "reference"], rows, "policies"
    )


def _environments() -> None:
    rows = [[name, _short(cls), _call(cls), _first_line(cls)] for name, cls in parse.environments().items()]
    print_table(["environment", "short", "written in full", "what it is"], rows, "environments")
    rows = [[name, _call(cls), _first_line(cls)] for name, cls in parse.laws().items()]
    print()
    print_table(["reward law", "written in full", "what it is"], rows, "reward laws (law=... of an environment)")


def _experiments() -> None:
    found = parse.experiments()
    if not found:
        print("experiments: none yet; put a module with EXPERIMENT = Experiment(...) into driftbandit/lab/paper")
        return
    rows = [
        [e.id, str(len(e.policies)), str(e.environment.horizon), str(e.runs), e.title, e.shows] for e in found.values()
    ]
    print_table(["experiment", "policies", "rounds", "runs", "title", "what it shows"], rows, "experiments")


def _one(name: str, kinds: list[str]) -> None:
    """One class: what it says of itself, its parameters with their domains, its named constructors."""
    if name in parse.experiments():
        experiment = parse.experiments()[name]
        print(f"{experiment.id}: {experiment.title}\n{experiment.shows}\n\nenvironment: {experiment.environment!r}")
        print_table(["label", "policy"], [[label, repr(policy)] for label, policy in experiment.policies.items()])
        return
    try:
        found = parse.find(name)
    except parse.SpecError:
        shorts = [_short(cls) for cls in [*parse.policies().values(), *parse.environments().values()]]
        known = [*kinds, *shorts, *parse.policies(), *parse.environments(), *parse.laws(), *parse.experiments()]
        raise ValueError(
            f"There is nothing named {name!r}{parse.nearest(name, known) or '.'} `driftbandit list` shows all."
        ) from None
    cls = found[0] if isinstance(found, tuple) else found
    print(f"{_call(cls)}\n\n{inspect.getdoc(cls)}\n")
    defaults = getattr(cls, "_field_defaults", {})
    rows = [
        [
            p.name,
            getattr(p.kind, "__name__", "any"),
            p.domain.text if p.domain else "",
            repr(defaults[p.name]) if p.name in defaults else "needed",
        ]
        for p in parameters(cls)
    ]
    if rows:
        print_table(["parameter", "type", "domain", "default"], rows)
    makers = [
        [f"{_short(cls)}.{verb}{_arguments(cls, verb)}", _first_line(getattr(cls, verb))]
        for verb in parse.constructors(cls)
    ]
    if makers:
        print()
        print_table(["named constructor", "what it computes"], makers)


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
