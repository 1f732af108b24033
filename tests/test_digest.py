"""The digest of the code: any edit to the package or to a user's own files changes it, and nothing else does."""

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from driftbandit.environments import Abrupt
from driftbandit.lab import files as digest
from driftbandit.lab.work import Cell, fingerprint
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.spec import user_code

ENVIRONMENT = Abrupt(n_arms=3, horizon=100, phases=2)
OWN = """from typing import Any, NamedTuple

import numpy as np

from {helper} import RATE


class MineState(NamedTuple):
    sums: Any


class Mine(NamedTuple):
    gamma: float = 0.9

    def init(self, n_arms):
        return MineState(np.zeros(n_arms))

    def choose(self, state, t, rng):
        return int(rng.uniform(0) * len(state.sums))

    def learn(self, state, t, arm, reward):
        state.sums[arm] += RATE * reward
"""


def forget() -> None:
    digest._digest.cache_clear()
    digest.package_digest.cache_clear()


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A copy of the package's sources to edit."""
    root = tmp_path / "driftbandit"
    shutil.copytree(digest.ROOT, root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(digest, "ROOT", root)
    monkeypatch.setattr(digest, "_STARTED", math.inf)  # as if a new process looked at each edit
    forget()
    yield root
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize("file", ["core/draws.py", "policies/exp3.py", "lab/engine/loop.py"])
def test_an_edit_to_the_package_changes_the_name_of_every_result(copy: Path, file: str) -> None:
    old = fingerprint(Cell(DiscountedTS(), ENVIRONMENT, 4))
    (copy / file).write_bytes(b"# edited\n" + (copy / file).read_bytes())
    forget()
    assert fingerprint(Cell(DiscountedTS(), ENVIRONMENT, 4)) != old


def test_a_file_edited_while_a_process_runs_gives_it_a_digest_of_its_own(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old text was imported and the new one is read: results of neither may be found or left here."""
    old = digest.code_digest()
    path = copy / "core/draws.py"
    path.write_text(path.read_text() + "# edited\n")
    forget()
    new = digest.code_digest()
    monkeypatch.setattr(digest, "_STARTED", path.stat().st_mtime - 1.0)
    forget()
    assert len({old, new, digest.code_digest()}) == 3


@pytest.mark.parametrize("place", ["top", "method"])
def test_a_number_that_a_users_file_takes_from_its_neighbour_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(digest, "_STARTED", math.inf)
    helper = f"rates_next_door_{place}"
    text = OWN.format(helper=helper)
    if place == "method":
        line = f"from {helper} import RATE\n"
        text = text.replace(line, "").replace("        state.sums", f"        {line}        state.sums")
    (tmp_path / f"{helper}.py").write_text("RATE = 0.5\n")
    (tmp_path / "mine.py").write_text(text)
    policy = user_code.load_policy("mine.py:Mine")
    names = []
    for rate in (0.5, 0.7, 0.5):
        (tmp_path / f"{helper}.py").write_text(f"RATE = {rate}\n")
        forget()
        names.append(fingerprint(Cell(policy, ENVIRONMENT, 4)))
    assert names[0] == names[2] != names[1]


def test_a_file_of_a_users_package_counts_wherever_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(digest, "_STARTED", math.inf)
    for name, text in (
        ("rates/here.py", "RATE = 0.5"),
        ("policies/mine.py", OWN.format(helper="own_package.rates.here")),
    ):
        path = tmp_path / "own_package" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    policy = user_code.load_policy("own_package.policies.mine:Mine")
    old = fingerprint(Cell(policy, ENVIRONMENT, 4))
    (tmp_path / "own_package/rates/here.py").write_text("RATE = 0.7")
    forget()
    assert fingerprint(Cell(policy, ENVIRONMENT, 4)) != old


def test_a_users_file_may_lie_in_any_folder(tmp_path: Path) -> None:
    found = set()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(OWN.replace("from {helper} import RATE", "RATE = 0.5"))
        found.add(fingerprint(Cell(user_code.load_policy(f"{tmp_path / folder / 'mine.py'}:Mine"), ENVIRONMENT, 4)))
    assert len(found) == 1
