"""What a running service does beside answering requests.

Charts are sampled, old records are dropped, and the policies of busy bandits become machine code. Compiling takes up to
minutes and would slow every answer, so another process does it, with what the processor has left over, and keeps the
code on disk. This process only loads it, and the choices stay the same, bit for bit."""

import importlib.util
import logging
import os
import subprocess
import sys
import threading
from collections import Counter
from typing import Any

from driftbandit.bandit.asks import PURGE
from driftbandit.bandit.fold import make_player
from driftbandit.bandit.records import as_datetime
from driftbandit.bandit.retention import to_prune
from driftbandit.errors import DamagedJournal, Moved, NotFound, StoreError
from driftbandit.player import JOINT
from driftbandit.service.problems import log, log_event
from driftbandit.spec.parse import parse_snapshot


class Worker:
    """A thread that does something again and again."""

    pause = 1.0  # seconds before each time

    def __init__(self, bandits: Any) -> None:
        self._bandits = bandits
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"driftbandit-{type(self).__name__}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, after what is being done now."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self.pause):
            self._work()

    def _work(self) -> None:
        raise NotImplementedError


# ---- machine code ----------------------------------------------------------------------------------------------------

_BUSY = 200  # decisions in this process, of all bandits with the same policy, after which it is compiled


class Compiler(Worker):
    """Lets busy bandits play machine code."""

    pause = 2.0

    def __init__(self, bandits: Any, decisions: Any) -> None:
        super().__init__(bandits)
        self._decisions = decisions  # counts by bandit
        self._done: dict[Any, bool] = {}  # by what the code depends on: whether it could be compiled
        self._child: Any = None

    def start(self) -> None:
        """Begin, where this process decides and Numba is installed."""
        if not self._bandits.read_only and importlib.util.find_spec("numba") is not None:
            super().start()

    def close(self) -> None:
        """End; a process that compiles ends as well."""
        super().close()
        if self._child is not None and self._child.poll() is None:
            self._child.terminate()

    def _work(self) -> None:
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
        code = "import sys; from driftbandit.service.background import fill_cache; fill_cache(*sys.argv[1:])"
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


# ---- retention -------------------------------------------------------------------------------------------------------


class Pruner(Worker):
    """Drops rows older than a bandit's `retention`, and deletes bandits that were archived a day ago."""

    pause = 60.0  # before the first round

    def __init__(self, bandits: Any, exports: str | None = None) -> None:
        super().__init__(bandits)
        self._exports = exports

    def start(self) -> None:
        """Begin, where this process writes."""
        if not self._bandits.read_only:
            super().start()

    def _work(self) -> None:
        self.pause = 3600.0
        try:
            for name in self._bandits.journal.notes(PURGE):  # what another process did not finish
                self._bandits.purge(name)
            names = to_prune(self._bandits.journal)
        except (StoreError, DamagedJournal) as error:
            log.warning("pruning: %s", error)
            return
        for name in names:
            if self._stop.is_set():
                return
            self.visit(name)

    def visit(self, name: str) -> None:
        """Drop the old rows of one bandit, and log it."""
        try:
            with self._bandits.borrow(name) as bandit:
                done = bandit.prune(self._exports)
        except Moved:
            self._bandits.forget(name)
        except (StoreError, DamagedJournal, NotFound) as error:
            log.error("pruning %s: %s", name, error)
        except Exception:
            log.exception("pruning %s", name)
        else:
            if done.deleted:
                self._bandits.forget(name)
            if done.decisions or done.events:
                begin = None if done.until is None else f"{as_datetime(done.until):%Y-%m-%d}"
                counts = {"decisions": done.decisions, "events": done.events, "files": len(done.files)}
                what = "deleted" if done.deleted else "dropped"
                log_event(logging.INFO, what, bandit=name, **counts, begin=begin)
