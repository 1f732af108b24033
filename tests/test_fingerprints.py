"""An edit changes the digests of the numbers it can change, and no others: tried on every file of the package."""

import ast
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from driftbandit.environments import Abrupt, Smooth
from driftbandit.lab.engine import compiled_player, loop
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.jobs.store import fingerprint
from driftbandit.lab.jobs.work import Chunk
from driftbandit.lab.support import fingerprints
from driftbandit.policies.beta_ts import BetaTS
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.exp3 import EXP3S
from driftbandit.policies.glr_klucb import GLRKLUCB
from driftbandit.policies.restart import PeriodicRestart
from driftbandit.text import load
from driftbandit.text.registry import policies

FILES = sorted(path.relative_to(fingerprints.ROOT).as_posix() for path in fingerprints.ROOT.rglob("*.py"))
WORLDS = [Abrupt(n_arms=3, horizon=100, phases=2), Smooth(n_arms=3, horizon=100)]
POLICIES = [
    DiscountedTS(gamma=0.9),
    BetaTS(),
    EXP3S(),
    GLRKLUCB(horizon=100),
    PeriodicRestart(BetaTS(binarize=True), period=40),
]
PAIRS = [(policy, WORLDS[n % 2]) for n, policy in enumerate(POLICIES)]
RUNNING = {f"lab/engine/{name}.py" for name in ("simulate", "simulation", "runs", "arguments")}
ENGINE = {
    "draws.py",
    "primitives.py",
    "state.py",
    *(
        RUNNING := {
            "lab/engine/simulate.py",
            "lab/engine/simulation.py",
            "lab/engine/runs.py",
            "lab/engine/arguments.py",
        }
    ),
    "lab/engine/loop.py",
    "lab/engine/numba_methods.py",
    "lab/engine/simd.py",
    "lab/engine/lane_arrays.py",
    "lab/engine/simd_choice.py",
    "lab/engine/columns.py",
    "lab/engine/compiled_draws.py",
}
SHARED = {"parameters.py"}
PARTS = {  # what each class adds, by hand
    "DiscountedTS": {"policies/discounted_ts.py", "forgetting.py"},
    "BetaTS": {"policies/beta_ts.py", "policies/window.py", "forgetting.py"},
    "EXP3S": {"policies/exp3.py"},
    "GLRKLUCB": {"policies/glr_klucb.py", "policies/hull.py", "policies/kl.py"},
    "PeriodicRestart": {"policies/restart.py", "policies/beta_ts.py", "policies/window.py", "forgetting.py"},
    "Abrupt": {"environments/abrupt.py", "environments/phased.py", "environments/rewards.py"},
    "Smooth": {"environments/smooth.py", "environments/rewards.py"},
}


def forget() -> None:
    for function in (fingerprints._digest, fingerprints._path, fingerprints._origin, fingerprints.package_digest):
        function.cache_clear()


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A copy of the package's sources to edit."""
    root = tmp_path / "driftbandit"
    shutil.copytree(fingerprints.ROOT, root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprints, "ROOT", root)
    monkeypatch.setattr(fingerprints, "_BEGAN", math.inf)  # as if a new process looked at each edit
    forget()
    yield root
    monkeypatch.undo()
    forget()


def digests() -> dict[Any, str]:
    """Every kind of digest, of several policies and worlds."""
    out: dict[Any, str] = {"package": fingerprints.package_digest()}
    for policy, world in PAIRS:
        name = type(policy).__name__, type(world).__name__
        classes = fingerprints.classes_in((policy, world))
        out["number", *name] = fingerprints.number_digest(policy, world)
        out["loop", *name] = fingerprints.kernel_digest(loop.advance, classes)
        if policy is POLICIES[0]:
            out["drift", *name] = fingerprints.number_digest(policy, world, drift=True)
            out["live", *name] = fingerprints.kernel_digest(compiled_player.choose_once, classes)
    return out


def expected(file: str) -> set[Any]:
    """The digests that an edit to this file must change, by hand."""
    out: set[Any] = {"package"}
    for policy, world in PAIRS:
        name = type(policy).__name__, type(world).__name__
        whole = ENGINE | SHARED | PARTS[name[0]] | PARTS[name[1]]
        compiled = whole - RUNNING - {"state.py"}
        kinds = {
            "number": whole | {"lab/jobs/plain.py"},
            "drift": whole | {"lab/jobs/phases.py"},
            "loop": compiled,
            "live": compiled | {"lab/engine/compiled_player.py"},
        }
        few = kinds if policy is POLICIES[0] else ("number", "loop")
        out |= {(kind, *name) for kind in few if file in kinds[kind]}
    return out


def test_an_edit_to_any_file_changes_exactly_the_digests_it_should(copy: Path) -> None:
    before = digests()
    # Those that should change no number are edited all at once; if one of them does, we look which.
    around = [file for file in FILES if expected(file) == {"package"}]
    assert len(around) > 200
    if edited(copy, around, before) != {"package"}:
        assert [file for file in around if edited(copy, [file], before) != {"package"}] == []
    for file in set(FILES) - set(around):
        assert edited(copy, [file], before) == expected(file), file
    forget()
    assert digests() == before


def edited(copy: Path, files: list[str], before: dict[Any, str]) -> set[Any]:
    """The digests that change when these files do; afterwards the files are as they were."""
    texts = {copy / file: (copy / file).read_bytes() for file in files}
    for path, text in texts.items():
        path.write_bytes(text + b"\n# edited\n")
    forget()
    after = digests()
    for path, text in texts.items():
        path.write_bytes(text)
    return {name for name in before if before[name] != after[name]}


def test_the_compiled_argmax_counts_and_the_live_agent_does_not() -> None:
    counted = fingerprints.sources([f"driftbandit.{fingerprints.REGRET}"])
    assert "driftbandit.lab.engine.simd_choice" in counted
    assert not [name for name in counted if name.startswith(("driftbandit.agent", "driftbandit.lab.engine.compiled_p"))]


def test_every_exception_is_a_room_that_a_simulation_passes_through() -> None:
    """A name on the list of exceptions that nothing leads to is a mistake, or will hide one."""
    roots = [f"driftbandit.{root}" for root in (fingerprints.REGRET, fingerprints.DRIFT, fingerprints.COMPILER)]
    todo, passed = [*roots, *(cls.__module__ for cls in policies().values())], set()
    while todo:
        module = todo.pop()
        path = fingerprints._path(module)
        if module not in passed and path is not None:
            passed.add(module)
            todo += parsed(path.read_text(), module)
    inside = {module.removeprefix("driftbandit.") for module in passed}
    assert [room for room in fingerprints.AROUND if not any(module.startswith(room) for module in inside)] == []


@pytest.mark.parametrize("compiled", [False, True])
def test_whatever_runs_in_a_simulation_counts_or_is_a_named_exception(compiled: bool) -> None:
    """The files in which a function was entered while a simulation ran, seen by the interpreter's own eyes."""
    for policy in POLICIES:
        for world in WORLDS:
            entered: set[str] = set()

            def look(frame: Any, event: str, value: Any, entered: set[str] = entered) -> None:
                entered.add(frame.f_code.co_filename)

            sys.setprofile(look)
            try:
                simulate(policy, world, runs=2, compiled=compiled, progress=False)
            finally:
                sys.setprofile(None)
            roots = [f"driftbandit.{fingerprints.REGRET}", type(policy).__module__, type(world).__module__]
            roots += [cls.__module__ for cls in fingerprints.classes_in((policy, world))]
            counted = {str(fingerprints._path(name)) for name in fingerprints.sources(roots)}
            for file in sorted(entered):
                if file.startswith(str(fingerprints.ROOT)):
                    inside = Path(file).relative_to(fingerprints.ROOT).as_posix().replace("/", ".")
                    assert file in counted or inside.startswith(fingerprints.AROUND), file


def parsed(text: str, module: str) -> set[str]:
    """The slow twin of `imported`: a parser's view of the same text."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            place = fingerprints._absolute("." * node.level + (node.module or ""), module)
            found |= {fingerprints._origin(place, alias.name) for alias in node.names}
    return found


def test_the_scan_for_imports_sees_what_a_parser_sees() -> None:
    for file in FILES:
        text = (fingerprints.ROOT / file).read_text()
        module = "driftbandit." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert fingerprints.imported(text, module) >= parsed(text, module), file
    odd = "import os, re as r  # both\nfrom a.b import (\n    c,  # one\n    d as e,\n)\nfrom x import y, \\\n    z\n"
    odd += "def f():\n    import late.one\n    from .near import thing\n"
    assert fingerprints.imported(odd, "pack.mod") == {"os", "re", "a.b", "x", "late.one", "pack.near"}
    assert fingerprints.imported(odd, "pack.mod") == parsed(odd, "pack.mod")


@pytest.mark.parametrize("name", sorted(policies()))
def test_whatever_a_policy_imports_from_the_package_counts_with_it(name: str) -> None:
    """A constant taken from another module is compiled into the loop just as a function is."""
    known = fingerprints.sources([policies()[name].__module__])
    assert policies()[name].__module__ in known
    for module, text in known.items():
        for other in parsed(text.decode(), module):
            if other.startswith("driftbandit."):
                around = other.removeprefix("driftbandit.").startswith(fingerprints.AROUND)
                assert (other in known) != around, (module, other)


def test_a_file_edited_while_a_process_runs_gives_it_names_of_its_own(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was imported is the old text, what is read is the new one: neither's results may be found or left here."""
    policy, world = PAIRS[0]
    old = fingerprints.number_digest(policy, world)
    path = copy / "draws.py"
    path.write_text(path.read_text() + "# edited\n")
    forget()
    new = fingerprints.number_digest(policy, world)
    monkeypatch.setattr(fingerprints, "_BEGAN", path.stat().st_mtime - 1.0)
    forget()
    assert len({old, new, fingerprints.number_digest(policy, world)}) == 3


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


def test_a_number_that_a_users_file_takes_from_its_neighbour_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`from rates import RATE` leaves no trace of `rates` in the module: only its text tells."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fingerprints, "_BEGAN", math.inf)
    (tmp_path / "rates_next_door.py").write_text("RATE = 0.5\n")
    (tmp_path / "mine.py").write_text(OWN.format(helper="rates_next_door"))
    policy = load.load_policy("mine.py:Mine")
    names, kernels = [], []
    for text in ("RATE = 0.5\n", "RATE = 0.7\n", "RATE = 0.5\n"):
        (tmp_path / "rates_next_door.py").write_text(text)
        forget()
        names.append(fingerprint(Chunk(policy, WORLDS[0], 4)))
        kernels.append(fingerprints.kernel_digest(loop.advance, {type(policy)}))
    assert names[0] == names[2] != names[1]
    assert kernels[0] == kernels[2] != kernels[1]


def test_a_users_file_may_lie_anywhere_and_builds_on_what_it_imports(tmp_path: Path, copy: Path) -> None:
    text = OWN.replace("from {helper} import RATE", "from driftbandit.policies import EXP3S\n\nRATE = EXP3S().explore")
    found = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(text)
        found.append(fingerprint(Chunk(load.load_policy(f"{tmp_path / folder / 'mine.py'}:Mine"), WORLDS[0], 4)))
    assert found[0] == found[1]
    (copy / "policies" / "exp3.py").write_bytes(b"# edited\n" + (copy / "policies" / "exp3.py").read_bytes())
    forget()
    assert fingerprint(Chunk(load.load_policy(f"{tmp_path / 'one' / 'mine.py'}:Mine"), WORLDS[0], 4)) != found[0]
