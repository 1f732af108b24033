"""A lock on a file beside the journal: the operating system frees it when its holder dies, however it dies."""

import contextlib
import os

from driftbandit.live.errors import Locked, StoreError


class FileLock:
    """Held by one process at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: int | None = None

    def take(self, what: str) -> None:
        """Take it, or say who has it."""
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise StoreError(f"{what} cannot be written here: {error.strerror}.") from None
        try:
            _lock(self._file)
        except OSError:
            holder = os.read(self._file, 20).decode("ascii", "replace").strip()
            os.close(self._file)
            self._file = None
            raise Locked(
                f"{what} is open for writing in another process{f' ({holder})' if holder else ''}, and a SQLite "
                "journal has one writing process; for several, use a PostgreSQL journal, postgresql://..., or "
                "`driftbandit serve`, which writes the file for all of them."
            ) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"process {os.getpid()}\n".encode())

    def give(self) -> None:
        """Let it go."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def forget(self) -> None:
        """In a forked child: close the file, and leave the lock with the parent."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


try:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # Windows
    import msvcrt

    def _lock(file: int) -> None:
        # A byte far behind the text, since a locked one cannot be read by others.
        os.lseek(file, 1 << 30, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        os.lseek(file, 0, os.SEEK_SET)
