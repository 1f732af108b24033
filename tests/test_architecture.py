"""Layers of the package and the imports they allow (docs/explanation/architecture.md)."""

import ast
from pathlib import Path

import pytest

import driftbandit

SOURCE = Path(driftbandit.__file__).parent

# From the ground up. A room may use those above it in this list, never those below; within a line they are on a level
# and do not know each other.
FLOORS = (
    ("checks", "primitives", "protocols", "state"),
    ("parameters",),
    ("validity", "rewards"),
    ("draws", "forgetting", "beliefs"),
    ("policies", "environments"),
    ("text",),
    ("half_life",),
    ("player",),
    ("lab.support",),
    ("lab.engine",),
    ("agent",),
    ("lab.stats", "live"),
    ("client",),
    ("lab.jobs", "lab.plots"),
    ("logs",),
    ("lab.experiments",),
    ("lab",),
    ("field",),
    ("paper",),
    ("service",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


FILES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def room_of(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "lab" else parts[0]


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "driftbandit":
            package = (node.module or "").removeprefix("driftbandit").removeprefix(".")
            for alias in node.names:
                whole = f"{package}.{alias.name}".lstrip(".")
                yield node.lineno, whole if whole in FILES else package
        elif isinstance(node, ast.Import):
            yield from (
                (node.lineno, alias.name.removeprefix("driftbandit").removeprefix("."))
                for alias in node.names
                if alias.name.split(".")[0] == "driftbandit"
            )


def test_every_file_stands_in_a_room():
    assert {room_of(name) for name in FILES if name} <= set(LEVEL)


@pytest.mark.parametrize("name", [name for name in FILES if name])
def test_imports_go_one_way(name):
    here = LEVEL[room_of(name)]
    for line, other in imports(FILES[name]):
        if other == "" or room_of(other) == room_of(name):  # the package itself (its version), or the same room
            continue
        assert LEVEL[room_of(other)] < here, f"{name}, line {line}: {room_of(name)} may not know {room_of(other)}"


def test_within_a_room_nothing_goes_round_in_a_circle():
    """Files on top of each other, also where an import is inside a function or for type checkers alone."""
    graph = {name: {other for _, other in imports(path) if other in FILES and other} for name, path in FILES.items()}
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, f"a circle: {' -> '.join((*way[way.index(name) :], name))}"
        if name not in done:
            for other in graph[name]:
                visit(other, (*way, name))
            done.add(name)

    for name in graph:
        if name:
            visit(name, ())


def test_no_two_public_classes_share_a_name() -> None:
    """`Bandit` is one on purpose: a program moves from a file to a service by changing one import."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.relative_to(SOURCE).as_posix())
    assert {name: where for name, where in found.items() if len(where) > 1 and name != "Bandit"} == {}
