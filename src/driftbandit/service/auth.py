"""Access: keys and their scopes, sessions of the page, and requests forged by other sites.

A key is 256 random bits after a prefix of eight characters that identifies it. The file of keys holds that prefix and
the SHA-256 of the key, so reading the file reveals no key. It is read again when it changes. A name has at most two
live keys, so that every program can be given the new one before the old one is revoked."""

import hashlib
import hmac
import ipaddress
import json
import os
import secrets
import time
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from driftbandit.bandit.export import sync_folder
from driftbandit.service.problems import HttpProblem

SCOPES = ("decide", "reward", "read", "admin")
COOKIE = "driftbandit"
SESSION = 12 * 3600  # seconds
_MOST = 2  # live keys of one name


class StoredKey(NamedTuple):
    """A key as the file has it."""

    name: str
    prefix: str
    hash: str
    scopes: list[str]
    bandits: list[str]  # names; "button:*" stands for all that begin with "button:", and "*" for all
    created: float
    expires: float | None = None
    rate: float | None = None  # requests per second; None for no limit

    def may(self, scope: str, bandit: str | None) -> bool:
        """Whether this key allows something."""
        if scope not in self.scopes:
            return False
        return bandit is None or "*" in self.bandits or any(_matches(one, bandit) for one in self.bandits)

    def live(self, now: float) -> bool:
        return self.expires is None or now < self.expires


EVERYTHING = StoredKey("local", "", "", list(SCOPES), ["*"], 0.0)


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
            keys = [StoredKey(**row) for row in json.loads(self.path.read_text("utf-8"))["keys"]]
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
        sync_folder(self.path.parent)  # so that a revoked key stays revoked after a power loss

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
        now, keys = time.time(), self.all()
        if sum(key.name == name and key.live(now) for key in keys) >= _MOST:
            raise ValueError(f"{name!r:.60} has {_MOST} live keys already; revoke one before adding another.")
        prefix = secrets.token_hex(4)
        whole = f"drb_{prefix}_{secrets.token_urlsafe(32)}"
        expires = None if days is None else now + 86400.0 * days
        self._write([*keys, StoredKey(name, prefix, _hash(whole), scopes, bandits or ["*"], now, expires, rate)])
        return whole

    def revoke(self, prefix: str) -> StoredKey:
        keys = self.all()
        gone = self._keys.get(prefix)
        if gone is None:
            raise ValueError(f"There is no key {prefix!r:.60}; there are: {', '.join(self._keys) or 'none'}.")
        self._write([key for key in keys if key.prefix != prefix])
        return gone

    def check(self, whole: str) -> StoredKey | None:
        """The stored key, if this one is valid and has not expired. The comparison takes constant time."""
        parts = whole.split("_", 2)
        found = self.find(parts[1]) if len(parts) == 3 else None
        right = hmac.compare_digest(_hash(whole), found.hash if found else "0" * 64)
        return found if right else None

    def find(self, prefix: str) -> StoredKey | None:
        """The key with this prefix, if it exists and has not expired."""
        self._read()
        found = self._keys.get(prefix)
        return found if found and found.live(time.time()) else None


def _matches(pattern: str, bandit: str) -> bool:
    """Whether this is the bandit, or the beginning of its name and "*"."""
    return bandit == pattern or (pattern.endswith("*") and bandit.startswith(pattern[:-1]))


def _hash(whole: str) -> str:
    return hashlib.sha256(whole.encode()).hexdigest()


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=64)
def _names_this_machine(host: str) -> bool:
    """Whether a Host header names this machine as `is_local` does, with or without a port."""
    return is_local(urlsplit(f"//{host}").hostname or "")


def _followed_a_link(request: Request) -> bool:
    """Whether a person followed a link from another site to one of our pages, which changes nothing."""
    mode = request.headers.get("sec-fetch-mode"), request.headers.get("sec-fetch-dest")
    return mode == ("navigate", "document") and request.method == "GET" and not request.url.path.startswith("/v1/")


class Access:
    """Who may do what in one service."""

    def __init__(self, keys: Keys | None, secret: bytes, read_only: bool = False) -> None:
        self.keys, self.read_only = keys, read_only
        self._secret = secret
        self._buckets: dict[str, tuple[float, float]] = {}  # by key: requests left, and when that was counted

    def identify(self, request: Request) -> StoredKey | None:
        """The key of a request, or None. Without keys every program on this machine may do everything."""
        headers = self.check_origin(request)
        if self.keys is None:
            return EVERYTHING
        header = headers.get(b"authorization", b"").decode("latin-1")
        if header:
            scheme, _, whole = header.partition(" ")
            return self.keys.check(whole.strip()) if scheme.lower() == "bearer" else None
        return self._read_session(request.cookies.get(COOKIE, ""))

    def allow(self, request: Request, scope: str, bandit: str | None) -> StoredKey:
        """The key of a request, if it allows this; else the problem."""
        key = self.identify(request)
        if key is None:
            raise HttpProblem(401, "key", "This needs a key: send it as 'Authorization: Bearer drb_...'.")
        if self.read_only and scope != "read":
            raise HttpProblem(
                403, "scope", "This page watches a journal that another program writes; it changes nothing."
            )
        self.check_scope(key, scope, bandit)
        self.spend(key)
        return key

    def check_scope(self, key: StoredKey, scope: str, bandit: str | None) -> None:
        if not key.may(scope, bandit):
            where = f" for bandit {bandit}" if bandit and scope in key.scopes else ""
            raise HttpProblem(403, "scope", f"This key does not allow {scope!r}{where}.")

    def check_origin(self, request: Request) -> dict[bytes, bytes]:
        """Refuse requests that a page of another site made a browser send; browsers mark them. Without keys the host
        must be this machine's name too, or a foreign name that resolves to it would count as the same site. Returns the
        headers, of each name the first."""
        headers: dict[bytes, bytes] = dict(request.scope["headers"][::-1])
        host = headers.get(b"host", b"").decode("latin-1")
        if self.keys is None and not _names_this_machine(host):
            raise HttpProblem(
                403, "origin", "Without keys the service answers to localhost only; see `driftbandit keys`."
            )
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        foreign = site is not None and site not in (b"same-origin", b"none") and not _followed_a_link(request)
        if foreign or (origin is not None and urlsplit(origin.decode("latin-1")).netloc != host):
            raise HttpProblem(403, "origin", "A page of another site may not use this service.")
        return headers

    def spend(self, key: StoredKey) -> None:
        """Refuse requests above the rate of a key (a token bucket that holds the tokens of one second)."""
        if key.rate is None:
            return
        now, most = time.monotonic(), max(1.0, key.rate)
        left, at = self._buckets.get(key.prefix, (most, now))
        left = min(most, left + (now - at) * key.rate)
        self._buckets[key.prefix] = left - 1.0 if left >= 1.0 else left, now
        if left < 1.0:
            raise HttpProblem(
                429, "rate", f"This key allows {key.rate:g} requests per second; wait a moment.", retry=True
            )

    # ---- sessions of the page ----------------------------------------------------------------------------------------

    def make_session(self, whole: str) -> str | None:
        """The cookie for a valid key: the prefix of the key, an end and a signature, but not the key itself."""
        key = self.keys.check(whole) if self.keys is not None else None
        if key is None:
            return None
        until = str(int(time.time()) + SESSION)
        return f"{key.prefix}.{until}.{self._sign(key, until)}"

    def _read_session(self, cookie: str) -> StoredKey | None:
        parts = cookie.split(".")
        if len(parts) != 3 or self.keys is None:
            return None
        prefix, until, signature = parts
        key = self.keys.find(prefix)
        if key is None or not hmac.compare_digest(signature.encode(), self._sign(key, until).encode()):
            return None
        return key if until.isdigit() and int(until) > time.time() else None

    def _sign(self, key: StoredKey, until: str) -> str:
        """The signature. It needs the journal's secret and the key's hash, so that neither a copy of the journal nor
        the file of keys is enough to make one."""
        return hmac.new(self._secret + key.hash.encode(), f"{key.prefix}.{until}".encode(), hashlib.sha256).hexdigest()
