"""Keys: which key may do what with which bandit.

A key is 256 random bits after a prefix of eight characters that identifies it. The file holds that prefix and the
SHA-256 of the key, so reading the file reveals no key. It is read again when it changes. A name has at most two live
keys, so that every program can be given the new one before the old one is revoked."""

import hashlib
import hmac
import json
import os
import secrets
import time
from pathlib import Path
from typing import Any, NamedTuple

SCOPES = ("decide", "reward", "read", "admin")
_MOST = 2  # live keys of one name


class StoredKey(NamedTuple):
    """A key as the file has it."""

    name: str
    prefix: str
    hash: str
    scopes: list[str]
    bandits: list[str]  # ["*"] for all
    created: float
    expires: float | None = None
    rate: float | None = None  # requests per second; None for no limit

    def may(self, scope: str, bandit: str | None) -> bool:
        """Whether this key allows something."""
        return scope in self.scopes and (bandit is None or "*" in self.bandits or bandit in self.bandits)

    def live(self, now: float) -> bool:
        """Whether it has not expired."""
        return self.expires is None or now < self.expires


class Keys:
    """The keys in a file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._seen: tuple[int, int] | None = None
        self._keys: dict[str, StoredKey] = {}

    def all(self) -> list[StoredKey]:
        """Every key, read again if the file has changed."""
        self._read()
        return list(self._keys.values())

    def _read(self) -> None:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            self._seen, self._keys = None, {}
            return
        if self._seen == (stat.st_mtime_ns, stat.st_size):
            return
        try:
            rows = json.loads(self.path.read_text("utf-8"))["keys"]
            keys = [StoredKey(**row) for row in rows]
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{self.path} is not a file of keys; `driftbandit keys add` makes one.") from None
        self._keys = {key.prefix: key for key in keys}
        self._seen = (stat.st_mtime_ns, stat.st_size)

    def _write(self, keys: list[StoredKey]) -> None:
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({"keys": [key._asdict() for key in keys]}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.path)

    def add(self, name: str, scopes: list[str], bandits: list[str] | None = None, days: float | None = None,
            rate: float | None = None) -> str:  # fmt: skip
        """A new key. It is returned once; the file keeps a hash."""
        wrong = [scope for scope in scopes if scope not in SCOPES]
        if wrong or not scopes:
            raise ValueError(f"Scopes are {', '.join(SCOPES)}; got {', '.join(wrong) or 'none'}.")
        if not name or len(name) > 100:
            raise ValueError(f"A key's name is a text of 1 to 100 characters; got {name!r:.60}.")
        if days is not None and not days > 0:
            raise ValueError(f"A key lives for more than 0 days; got {days!r}.")
        if rate is not None and not rate > 0:
            raise ValueError(f"A key's rate is a number of requests per second above 0; got {rate!r}.")
        now = time.time()
        keys = self.all()
        if sum(key.name == name and key.live(now) for key in keys) >= _MOST:
            raise ValueError(f"{name!r:.60} has {_MOST} live keys already; revoke one before adding another.")
        prefix = secrets.token_hex(4)
        whole = f"drb_{prefix}_{secrets.token_urlsafe(32)}"
        expires = None if days is None else now + 86400.0 * days
        self._write([*keys, StoredKey(name, prefix, _hash(whole), scopes, bandits or ["*"], now, expires, rate)])
        return whole

    def revoke(self, prefix: str) -> StoredKey:
        """Delete a key."""
        keys = self.all()
        gone = [key for key in keys if key.prefix == prefix]
        if not gone:
            raise ValueError(f"There is no key {prefix!r:.60}; there are: {', '.join(self._keys) or 'none'}.")
        self._write([key for key in keys if key.prefix != prefix])
        return gone[0]

    def check(self, whole: str) -> StoredKey | None:
        """The stored key, if this one is valid and has not expired. The comparison takes constant time."""
        self._read()
        parts = whole.split("_", 2)
        found = self._keys.get(parts[1]) if len(parts) == 3 else None
        right = hmac.compare_digest(_hash(whole), found.hash if found else "0" * 64)
        return found if found and right and found.live(time.time()) else None

    def by_prefix(self, prefix: str) -> StoredKey | None:
        """The key of a session, if it still exists and has not expired."""
        self._read()
        found: Any = self._keys.get(prefix)
        return found if found and found.live(time.time()) else None


def _hash(whole: str) -> str:
    return hashlib.sha256(whole.encode()).hexdigest()
