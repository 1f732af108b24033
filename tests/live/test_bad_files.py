"""Journals that were cut, altered or written over: everything that reads one either works or says one sentence."""

import random

import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.bandit.audit import audit
from driftbandit.bandit.export import export
from driftbandit.bandit.opening import is_url
from driftbandit.bandit.reports import View
from driftbandit.errors import DamagedJournal


def played(store: str) -> None:
    with Bandit.open(store, "b", DiscountedTS(), ["x", "y", "z"], half_life="1 h", snapshot_every=25) as bandit:
        for _ in range(2):
            bandit.reward_many([(decision.id, 0.5) for decision in bandit.decide_many(20)])


def used(path: str, out: str) -> list[str]:
    """What opening, auditing, exporting and viewing came to; any other error than these two goes through."""

    def opened() -> None:
        with Bandit.open(path, "b") as bandit:
            bandit.reward(bandit.decide().id, 1.0)
            bandit.recent(), bandit.history(), bandit.uplift(), bandit.health()

    found = []
    for read in (lambda: View(path, "b").close(), lambda: audit(path), lambda: export(path, out), opened):
        try:
            read()
            found.append("")
        except (ValueError, OSError) as error:
            found.append(str(error))
    assert all("\n" not in text and len(text) < 400 for text in found)
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("harm", ["cut", "flip", "page"])
def test_a_harmed_file_is_read_or_refused_in_one_sentence(harm, tmp_path) -> None:
    played(str(tmp_path / "whole.db"))
    whole = (tmp_path / "whole.db").read_bytes()
    chance, refused = random.Random(f"{harm} 1"), 0
    for n in range(25):
        data = bytearray(whole)
        if harm == "cut":
            data = data[: chance.randrange(len(data))]
        elif harm == "flip":
            for _ in range(20):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            page = 4096 * chance.randrange(len(data) // 4096)
            data[page : page + 4096] = chance.randbytes(4096)
        path = tmp_path / f"{n}.db"
        path.write_bytes(data)
        refused += any(used(str(path), str(tmp_path / "out.csv")))
    assert refused > 5


@pytest.mark.parametrize("change", ["slot = 99", "slot = -5", "how = 77", "kind = 4", "decided = -1"])
def test_an_impossible_row_is_reported_and_audit_names_it(change, store) -> None:
    played(store)
    run = _postgres if is_url(store) else _sqlite
    run(store, f"UPDATE event SET {change} WHERE decision = (SELECT max(decision) FROM event WHERE kind = 1)")
    run(store, "DELETE FROM snapshot")
    assert any(one.differences for one in audit(store))
    for compiled in (False, True):
        with pytest.raises(DamagedJournal, match="journal is damaged"):
            Bandit.open(store, "b", compiled=compiled)


def _postgres(url: str, sql: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True, options="-c search_path=driftbandit") as connection:
        connection.execute(sql)


def _sqlite(path: str, sql: str) -> None:
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()
