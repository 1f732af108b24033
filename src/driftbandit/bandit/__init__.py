"""Bandits that decide for real: a journal of decisions and their outcomes, and a state that is a fold over it.

Programs use `Bandit`. `AnyBandit` documents its methods in memory, with a journal and behind a service.
`journal` describes a store, and `sqlite`, `postgres` and `memory` are three. `fold` is
the state; `audit` recomputes and proves every decision; `export` writes the log that `driftbandit.logs` reads."""

from driftbandit.bandit.bandit import Bandit
from driftbandit.bandit.inputs import Config, StoreOptions
from driftbandit.bandit.interface import AnyBandit
from driftbandit.bandit.records import Decision
from driftbandit.bandit.reporting import Uplift
from driftbandit.errors import DamagedJournal, JournalLocked, NotFound, RecordConflict, StoreBusy, StoreError

__all__ = [
    "AnyBandit",
    "Bandit",
    "Config",
    "DamagedJournal",
    "Decision",
    "JournalLocked",
    "NotFound",
    "RecordConflict",
    "StoreBusy",
    "StoreError",
    "StoreOptions",
    "Uplift",
]
