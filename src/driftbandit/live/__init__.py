"""Bandits that decide for real: a journal of what was decided and what came of it, and a state that is a fold over it.

`Bandit` is the door; `journal` says what a store must do, `sqlite` and `postgres` do it; `fold` is the state; `audit`
proves every decision again; `export` writes the log that `driftbandit.logs` reads."""

from driftbandit.live.bandit import Bandit
from driftbandit.live.errors import Conflict, Damaged, Locked, StoreError, Unknown
from driftbandit.live.records import Decision
from driftbandit.live.uplift import Uplift
from driftbandit.live.writer import Busy

__all__ = ["Bandit", "Busy", "Conflict", "Damaged", "Decision", "Locked", "StoreError", "Unknown", "Uplift"]
