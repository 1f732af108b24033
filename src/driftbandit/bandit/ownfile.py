"""A SQLite journal as the file of one process: locked for all others, and checked for what other programs did to it."""

import contextlib
import os

from driftbandit.errors import JournalLocked, StoreError


class OwnFile:
    """A journal that only this process may write. It holds a lock on a file next to the journal, which the operating
    system frees when its holder dies, however it dies; and it knows how its last transaction left the journal and its
    WAL."""

    def __init__(self, journal: str) -> None:
        self.refusal = ""  # why nothing is written any more
        self._journal = os.path.abspath(journal)
        self._left: list[tuple[int, ...] | None] = []
        try:
            file = os.open(journal + ".lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise StoreError(f"{journal} cannot be written here: {error.strerror}.") from None
        try:
            _lock(file)
        except OSError:
            holder = os.read(file, 20).decode("ascii", "replace").strip()
            os.close(file)
            raise JournalLocked(
                f"{journal} is open for writing in another process{f' ({holder})' if holder else ''}, and a SQLite "
                "journal has one writing process; for several, use a PostgreSQL journal, postgresql://..., or "
                "`driftbandit serve`, which writes the file for all of them."
            ) from None
        os.ftruncate(file, 0)
        os.write(file, f"process {os.getpid()}\n".encode())
        self._lock: int | None = file

    def note(self) -> None:
        """The journal and its WAL are now as a transaction of ours has left them."""
        self._left = self._look()

    def check(self) -> None:
        """Refuse to write unless both are as our last transaction left them."""
        if self.refusal:
            raise StoreError(self.refusal)
        name = os.path.basename(self._journal)
        for was, now in zip(self._left, self._look(), strict=True):
            if was is None or was == now:
                continue
            if now is None or was[:2] != now[:2]:
                raise StoreError(
                    f"{name} or the -wal next to it was moved, replaced or deleted while it was open; nothing of this "
                    "call was written. Close this bandit, put the file back, and open it again."
                )
            self.refuse(
                f"{name} or the -wal next to it was overwritten or cut by another program while it was open; nothing "
                "of this call was written. Close this bandit; if the file was restored from a backup, delete "
                f"{name}-wal and -shm, which belong to the former file; then open it again."
            )

    def refuse(self, why: str) -> None:
        """Write nothing from now on."""
        self.refusal = why
        raise StoreError(why) from None

    def _look(self) -> list[tuple[int, ...] | None]:
        """Which files the names of the journal and of its WAL refer to, their sizes, and when they were written to.
        (Windows updates the last two only when a file is closed.)"""
        found: list[tuple[int, ...] | None] = []
        for name in (self._journal, self._journal + "-wal"):
            try:
                seen = os.stat(name)
            except OSError:
                found.append(None)
            else:
                written = () if os.name == "nt" else (seen.st_size, seen.st_mtime_ns)
                found.append((seen.st_dev, seen.st_ino, *written))
        return found

    def release(self) -> None:
        """Free the lock."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._lock, 0)
        self.close()

    def close(self) -> None:
        """Close the file; a forked child leaves the lock with its parent this way."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


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
