"""Bandits that decide for real: a journal of decisions and their outcomes, and a state that is a fold over it.

`Bandit` is the door; `journal` says what a store must do, `sqlite` and `postgres` do it; `fold` is the state; `audit`
recomputes and proves every decision; `export` writes the log that `driftbandit.logs` reads."""

from driftbandit.live.bandit import Bandit
from driftbandit.live.errors import Conflict, Damaged, Locked, StoreError, Unknown
from driftbandit.live.records import Decision
from driftbandit.live.uplift import Uplift
from driftbandit.live.writer import Busy

__all__ = ["Bandit", "Busy", "Conflict", "Damaged", "Decision", "Locked", "StoreError", "Unknown", "Uplift"]
