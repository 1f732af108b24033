"""The page of errata names its tests by file and name; this fails when one of them is renamed or a line has none."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "errata.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="pages are in the repository, not in the source archive")


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of all functions of a file, without running it."""
    file = ROOT / path
    assert file.is_file(), f"docs/reference/errata.md names {path}, which does not exist"
    return frozenset(node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef))


def entries() -> list[str]:
    """The bullets of the page, each in one piece."""
    text = PAGE.read_text().split("\n## ", 1)[1]
    return [part.split("\n\n")[0] for part in re.split(r"^\* ", text, flags=re.MULTILINE)[1:]]


def test_every_line_of_the_errata_is_backed_by_a_test_that_exists():
    assert len(entries()) > 40
    for entry in entries():
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", entry)
        assert named, f"no test is named in: {entry:.80}"
        for path, name in named:
            assert name in names_in(path), f"{path} has no {name}, named in: {entry:.80}"


def test_every_test_about_faults_backs_a_line_of_the_errata():
    page = PAGE.read_text()
    mine = {name for name in names_in("tests/test_errata.py") if name.startswith("test_")}
    assert {name for name in mine if f"tests/test_errata.py::{name}`" not in page} == set()


def test_every_command_on_the_errata_exists():
    commands = set(re.findall(r"(?:^    |`)driftbandit (\w+)", PAGE.read_text(), flags=re.MULTILINE))
    assert commands
    assert all((ROOT / "src" / "driftbandit" / "cli" / f"{command}.py").is_file() for command in commands)
