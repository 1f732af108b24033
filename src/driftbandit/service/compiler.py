"""Machine code for busy bandits, where Numba is installed: their policies decide and learn in microseconds.

Compiling takes up to minutes and would slow every answer, so another process does it, with what the processor has left
over, and keeps the code on disk. This process only loads it, and the choices stay the same, bit for bit."""

import importlib.util
import logging
import os
import subprocess
import sys
import threading
from collections import Counter
from typing import Any

from driftbandit.bandit.fold import make_player
from driftbandit.errors import StoreError
from driftbandit.player import JOINT
from driftbandit.service.problems import log, log_event
from driftbandit.spec.parse import parse_snapshot

_BUSY = 200  # decisions in this process, of all bandits with the same policy, after which it is compiled
_PAUSE = 2.0  # seconds between two looks


class Compiler:
    """A thread that lets busy bandits play machine code."""

    def __init__(self, bandits: Any, decisions: Any) -> None:
        self._bandits, self._decisions = bandits, decisions  # counts by bandit
        self._done: dict[Any, bool] = {}  # by what the code depends on: whether it could be compiled
        self._stop = threading.Event()
        self._child: Any = None
        self._thread = threading.Thread(target=self._run, name="driftbandit-compiler", daemon=True)

    def start(self) -> None:
        """Begin, where this process decides and Numba is installed."""
        if not self._bandits.read_only and importlib.util.find_spec("numba") is not None:
            self._thread.start()

    def close(self) -> None:
        """End; a process that compiles ends as well."""
        self._stop.set()
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()

    def _run(self) -> None:
        while not self._stop.wait(_PAUSE):
            held, decisions = list(self._bandits.held.items()), Counter[Any]()
            for name, bandit in held:
                decisions[_code_of(bandit.player)] += self._decisions[name]
            for name, bandit in held:
                busy = self._decisions[name] and decisions[_code_of(bandit.player)] >= _BUSY
                if busy and not self._stop.is_set():
                    self.visit(bandit)

    def visit(self, bandit: Any) -> None:
        """Compile the policy of a bandit and use it, unless that was tried in vain."""
        player = bandit.player
        key = _code_of(player)
        try:
            if key not in self._done:
                self._done[key] = self._compile(player)
            if self._done[key] and not hasattr(player, "prepare") and bandit.compile():
                log_event(logging.INFO, "compiled", bandit=bandit.name)
        except StoreError as error:
            log.warning("compiling %s: %s", bandit.name, error)
        except Exception:
            self._done[key] = False
            log.exception("compiling %s", bandit.name)

    def _compile(self, player: Any) -> bool:
        arms, columns = player.n_arms, player.n_features
        words = [repr(player.policy), str(arms), str(player.half_life or 0), str(columns), str(int(player.joint))]
        code = "import sys; from driftbandit.service.compiler import fill_cache; fill_cache(*sys.argv[1:])"
        self._child = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL)
        return bool(self._child.wait() == 0)


def _code_of(player: Any) -> tuple[Any, ...]:
    """What the machine code of a player depends on."""
    return type(player.policy), player.policy, player.half_life is None, player.n_features > 0, player.joint


def fill_cache(policy: str, arms: str, half_life: str, columns: str, joint: str) -> None:
    """Compile a policy in a process of low priority."""
    if hasattr(os, "nice"):
        os.nice(19)
    wide, n_arms = joint == "1", int(arms)
    made: Any = make_player(
        parse_snapshot(policy), max(JOINT, n_arms) if wide else n_arms, 0, int(half_life) or None, 0, True, None,
        int(columns), wide,
    )  # fmt: skip
    made.prepare()
