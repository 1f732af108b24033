"""The service uses public names only: of the bandit, and of everything else."""

import ast
from pathlib import Path

import driftbandit

SERVICE = Path(driftbandit.__file__).parent / "service"
OF_NAMED_TUPLES = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}


def private_uses(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own and node.attr not in OF_NAMED_TUPLES:
                yield f"line {node.lineno}: {ast.unparse(node)}"


def test_no_private_name_of_another_object_is_used():
    found = {
        path.relative_to(SERVICE).as_posix(): list(private_uses(ast.parse(path.read_text("utf-8"))))
        for path in SERVICE.rglob("*.py")
    }
    assert len(found) > 10
    assert {path: uses for path, uses in found.items() if uses} == {}


def test_a_private_use_is_found():
    tree = ast.parse("self._own\ncls._made\nrow._asdict()\nbandit._fold.n\nself.bandit._lock\n")
    assert sorted(private_uses(tree)) == ["line 4: bandit._fold", "line 5: self.bandit._lock"]
