"""Layers of the package and the imports they allow (docs/contributing/architecture.md)."""

import ast
from pathlib import Path

import pytest

import driftbandit

SOURCE = Path(driftbandit.__file__).parent

# From the bottom up. A package may import those above it in this list, never those below.
# Packages within a line are one layer and do not import each other.
LAYERS = (
    ("core", "errors"),
    ("policies", "environments"),
    ("spec",),
    ("player",),
    ("lab.files", "lab.progress"),
    ("lab.engine",),
    ("lab", "bandit"),
    ("logs",),
    ("field",),
    ("paper",),
    ("service", "adapters"),
    ("cli",),
    ("__main__",),
)
LEVEL = {part: level for level, packages in enumerate(LAYERS) for part in packages}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


FILES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def layer_of(module: str) -> str:
    parts = module.split(".")
    return whole if (whole := ".".join(parts[:2])) in LEVEL else parts[0]


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


def string_imports(path: Path):
    """Modules of the package that are imported by their names: lines, and names as far as they are written there."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            texts = (
                [part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)] if node.args else []
            )
            yield from ((node.lineno, text) for text in map(str, texts) if text.split(".")[0] == "driftbandit")


@pytest.mark.parametrize("name", [name for name in FILES if name])
def test_imports_by_name_stay_in_their_package_or_go_down(name):
    for line, text in string_imports(FILES[name]):
        other = layer_of(text.removeprefix("driftbandit").strip("."))
        fine = other == layer_of(name) or LEVEL.get(other, 99) < LEVEL[layer_of(name)]
        assert fine, f"{name}, line {line}: {text} is imported by its name, around the layers"


def test_an_import_by_name_is_found(tmp_path):
    (tmp_path / "a.py").write_text('importlib.import_module("driftbandit.lab")\n__import__(f"driftbandit.{name}")\n')
    assert [line for line, _ in string_imports(tmp_path / "a.py")] == [1, 2]


def test_every_file_stands_in_a_room():
    assert {layer_of(name) for name in FILES if name} <= set(LEVEL)


@pytest.mark.parametrize("name", [name for name in FILES if name])
def test_imports_go_one_way(name):
    here = LEVEL[layer_of(name)]
    for line, other in imports(FILES[name]):
        if other == "" or layer_of(other) == layer_of(name):  # the package itself (its version), or the same layer
            continue
        assert LEVEL[layer_of(other)] < here, f"{name}, line {line}: {layer_of(name)} may not know {layer_of(other)}"


def test_within_a_room_nothing_goes_round_in_a_circle():
    """Files on top of each other, also where an import is inside a function or for type checkers only."""
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
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.relative_to(SOURCE).as_posix())
    assert {name: where for name, where in found.items() if len(where) > 1} == {}
