"""Machine code for busy bandits: the same bits, made while decisions go on."""

import threading
import time

import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.service import background as module
from driftbandit.service.background import Compiler
from driftbandit.service.bandits import Bandits

pytest.importorskip("numba", reason="pip install '.[lab]' brings Numba")
ARMS = ["red", "green", "blue"]


def play(bandit, first, count) -> list[str]:
    arms = []
    for n in range(first, first + count):
        arms.append(bandit.decide(f"d{n}").arm)
        bandit.reward(f"d{n}", float(arms[-1] == "green" or n % 3 == 0))
    bandit.refresh()
    return arms


@pytest.mark.parametrize("options", [{}, {"half_life": "1 h"}, {"wait": "0.01 s", "default": 0.0}], ids=str)
def test_machine_code_takes_over_in_the_middle(tmp_path, options) -> None:
    path = str(tmp_path / "a.db")
    bandits = Bandits(path)
    try:
        bandit, _ = bandits.create("busy", "ds-ts", ARMS, "test", seed=1, **options)
        compiler = Compiler(bandits, {"busy": 1000})
        play(bandit, 0, 60)
        before = bandit.fingerprint()
        compiler.visit(bandit)
        assert type(bandit.player).__name__ == "CompiledPlayer"
        assert bandit.fingerprint() == before or "wait" in options  # which settles meanwhile
        player = bandit.player
        compiler.visit(bandit)  # nothing is left to be done
        assert bandit.player is player
        play(bandit, 60, 60)
        bandit.add_arm("gold")
        play(bandit, 120, 20)
    finally:
        bandits.close()
    (report,) = audit(path)  # by the interpreter
    assert (report.differences, report.decisions) == ([], 140)


@pytest.mark.long
def test_the_default_policy_is_compiled_where_no_other_was(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path / "code"))
    with Bandit.open(str(tmp_path / "a.db"), "busy", arms=ARMS, seed=1) as bandit:
        play(bandit, 0, 10)
        Compiler({}, {}).visit(bandit)
        assert type(bandit.player).__name__ == "CompiledPlayer"
        play(bandit, 10, 10)


def test_a_service_decides_while_it_compiles(tmp_path, monkeypatch) -> None:
    begun, go, whole = threading.Event(), threading.Event(), Compiler._compile

    def slowly(self, player):
        begun.set()
        return go.wait(20) and whole(self, player)

    monkeypatch.setattr(Compiler, "_compile", slowly)
    monkeypatch.setattr(module.Compiler, "pause", 0.01)
    bandits = Bandits(str(tmp_path / "a.db"))
    bandit, _ = bandits.create("busy", "ds-ts", ARMS, "test", seed=1)
    compiler = Compiler(bandits, {"busy": 1000})
    compiler.start()
    try:
        assert begun.wait(20)
        same = Bandit.open(str(tmp_path / "b.db"), "busy", "ds-ts", ARMS, seed=1)
        with same:
            assert play(bandit, 0, 50) == play(same, 0, 50)
            go.set()
            n, until = 50, time.monotonic() + 120
            while not hasattr(bandit.player, "prepare") and time.monotonic() < until:
                assert play(bandit, n, 10) == play(same, n, 10)
                n += 10
            assert hasattr(bandit.player, "prepare")
            assert play(bandit, n, 50) == play(same, n, 50)
    finally:
        compiler.close()
        compiler._thread.join(30)
        bandits.close()
