"""Bandits that decide for real: a journal of decisions and their outcomes, and a state that is a fold over it.

Programs use `Bandit`. To read the code, begin with `interface` (what every bandit has), then `bandit`, `reports` and
`requests`; `remote` is the same over HTTP. `inputs` and `settings` check what callers give. `fold` is the state, and
`memory`, `sqlite` and `postgres` are the three stores behind `journal`. `features`, `beliefs`, `effects` and
`probabilities` are about contexts and what a policy believes. `audit` recomputes and proves every decision; `export`
writes the log that `driftbandit.logs` reads."""

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
