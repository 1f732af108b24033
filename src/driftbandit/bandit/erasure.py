"""Erasing a decision's id on request, as when a person asks to be forgotten.

The row keeps its place, arm, time and checksum. Its id becomes a hash with the bandit's key, and its context is
removed; of candidates the names stay. The first 16 digits of the hash are the id's round, from which the decision's
random numbers come, so that it can still be proved. An id that is sent again is hashed and found. What was learned from
a context stays in the record of the outcome, since every later state depends on it.

A row that was erased has its new checksum in front of the text that it keeps: `records.intact`."""

import hashlib
from collections.abc import Iterable
from typing import Any

from driftbandit.bandit.asks import EraseId
from driftbandit.bandit.candidates import forget_features
from driftbandit.bandit.ids import hash_round
from driftbandit.bandit.journal import Journal
from driftbandit.bandit.records import DecisionRow, StoredConfig, make_erased_text


def hide_id(config: StoredConfig, id: str) -> str:
    """What stands in the place of an id that was erased. No decision can be given such an id."""
    key = int(config.key).to_bytes(8, "little")
    return f"={hash_round(id):016x}{hashlib.blake2b(id.encode(), key=key, digest_size=16).hexdigest()}"


def recognise(journal: Journal, number: int, config: StoredConfig, ids: Iterable[str | None]) -> dict[str, str]:
    """Those of these ids that were erased, with what stands for them; None is an id to be made."""
    hidden = {id: hide_id(config, id) for id in ids if id is not None}
    found = journal.standing(number, list(hidden.values())) if hidden else {}
    return {id: other for id, other in hidden.items() if other in found}


def erase_rows(rows: Any, run: Any, ask: EraseId, event_fields: str) -> bool:
    """Within a transaction: replace the id in the decision and in its outcomes. Checksums stay as they are."""
    names = ", ".join(DecisionRow._fields)
    found = rows(f"SELECT {names} FROM @decision WHERE bandit = ? AND id = ?", ask.bandit, ask.id)
    for row in found:
        made = DecisionRow(*row)
        available, context = forget_features(made.available, made.context)
        text = make_erased_text(made._replace(id=ask.hidden, available=available, context=context))
        sql = "UPDATE @decision SET id = ?, available = ?, context = ? WHERE bandit = ? AND id = ?"
        run(sql, ask.hidden, available, text, ask.bandit, ask.id)
    parts = "SELECT decision FROM @event WHERE bandit = ? AND decided = ? AND kind IN (3, 6)"
    every = [event[0] for row in found for event in rows(parts, ask.bandit, DecisionRow(*row).at)]
    sql = f"SELECT {event_fields} FROM @event WHERE bandit = ? AND decision = ? AND (kind = 3) = ?"
    for id in {ask.id, *(one for one in every if one.startswith(f"{ask.id}+"))}:
        for late in (False, True):
            for fields in rows(sql, ask.bandit, id, late):
                hidden = ask.hidden + id[len(ask.id) :]
                text = make_erased_text((*fields[:-7], hidden, *fields[-6:]))
                change = "UPDATE @event SET decision = ?, body = ? WHERE bandit = ? AND decision = ? AND (kind = 3) = ?"
                run(change, hidden, text, ask.bandit, id, late)
    return bool(found)
