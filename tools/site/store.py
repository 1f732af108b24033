"""Played behaviour, kept in a file of plain arrays: a new page needs no new play."""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from driftbandit.lab.files import replace_file
from tools.site.behaviour import Behaviour, Seen


def save(mine: Behaviour, path: Path) -> None:
    """Write it."""
    arrays = {
        f"{place}.{name}": value for place, seen in enumerate(mine.seen) for name, value in seen._asdict().items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as draft, draft.open("wb") as file:
        np.savez_compressed(file, environments=len(mine.seen), delays=mine.delays, late=mine.late, **arrays)


def load(path: Path) -> Behaviour | None:
    """Read it; None if there is no such file, or not a whole one."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            seen = []
            for place in range(int(kept["environments"])):
                fields = {name: kept[f"{place}.{name}"] for name in Seen._fields}
                seen.append(Seen(**{**fields, "policy": str(fields["policy"])}))
            return Behaviour(tuple(seen), tuple(int(rounds) for rounds in kept["delays"]), kept["late"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
