"""Who asks, and whether they may: keys, sessions of the page, and requests that a foreign page made a browser send."""

import hashlib
import hmac
import ipaddress
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request

from driftbandit.service.keys import SCOPES, Keys, StoredKey
from driftbandit.service.problems import HttpProblem

COOKIE = "driftbandit"
SESSION = 12 * 3600  # seconds
EVERYTHING = StoredKey("local", "", "", list(SCOPES), ["*"], 0.0)


def is_local(host: str) -> bool:
    """Whether an address belongs to this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _followed_a_link(request: Request) -> bool:
    """Whether somebody comes here from a link elsewhere: to a page, which does nothing by being looked at."""
    said = request.headers.get("sec-fetch-mode"), request.headers.get("sec-fetch-dest")
    return said == ("navigate", "document") and request.method == "GET" and not request.url.path.startswith("/v1/")


class _Bucket(NamedTuple):
    left: float
    at: float


class Access:
    """The keys of a service and what follows from them."""

    def __init__(self, keys: Keys | None, secret: bytes, read_only: bool = False) -> None:
        self.keys, self.read_only = keys, read_only
        self._secret = secret
        self._buckets: dict[str, _Bucket] = {}

    def who(self, request: Request) -> StoredKey | None:
        """The key behind a request, or None. Without keys everybody on this machine may do everything."""
        self.check_origin(request)
        if self.keys is None:
            return EVERYTHING
        header = request.headers.get("authorization", "")
        if header:
            scheme, _, whole = header.partition(" ")
            return self.keys.check(whole.strip()) if scheme.lower() == "bearer" else None
        return self._session(request.cookies.get(COOKIE, ""))

    def allow(self, request: Request, scope: str, bandit: str | None) -> StoredKey:
        """The key behind a request, if it may do this."""
        key = self.who(request)
        if key is None:
            raise HttpProblem(401, "key", "This needs a key: send it as 'Authorization: Bearer drb_...'.")
        if self.read_only and scope != "read":
            raise HttpProblem(
                403, "scope", "This page watches a journal that another program writes; it changes nothing."
            )
        if not key.may(scope, bandit):
            where = f" for bandit {bandit}" if bandit and scope in key.scopes else ""
            raise HttpProblem(403, "scope", f"This key does not allow {scope!r}{where}.")
        self.spend(key)
        return key

    def check_origin(self, request: Request) -> None:
        """A page of another site may make a browser send requests here: browsers say so, and we refuse. Without keys
        the name must be this machine's too, or a foreign name that points here would count as the same site."""
        host = request.headers.get("host", "")
        if self.keys is None and not is_local(urlsplit(f"//{host}").hostname or ""):
            raise HttpProblem(
                403, "origin", "Without keys the service answers to localhost only; see `driftbandit keys`."
            )
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site")
        foreign = site is not None and site not in ("same-origin", "none") and not _followed_a_link(request)
        if foreign or (origin is not None and urlsplit(origin).netloc != host):
            raise HttpProblem(403, "origin", "A page of another site may not use this service.")

    def spend(self, key: StoredKey) -> None:
        """Refuse a key that asks more often than it may: a bucket of one second's requests, filled steadily."""
        if key.rate is None:
            return
        now = time.monotonic()
        most = max(1.0, key.rate)
        left, at = self._buckets.get(key.prefix, _Bucket(most, now))
        left = min(most, left + (now - at) * key.rate)
        self._buckets[key.prefix] = _Bucket(left - 1.0 if left >= 1.0 else left, now)
        if left < 1.0:
            raise HttpProblem(
                429, "rate", f"This key may ask {key.rate:g} times per second; wait a moment.", retry=True
            )

    # ---- sessions of the page ----------------------------------------------------------------------------------------

    def session(self, whole: str) -> str | None:
        """What a cookie holds for whoever knows this key: not the key, but our word that they knew it."""
        key = self.keys.check(whole) if self.keys is not None else None
        if key is None:
            return None
        until = str(int(time.time()) + SESSION)
        return f"{key.prefix}.{until}.{self._seal(key, until)}"

    def _session(self, cookie: str) -> StoredKey | None:
        parts = cookie.split(".")
        if len(parts) != 3 or self.keys is None:
            return None
        prefix, until, seal = parts
        key = self.keys.by_prefix(prefix)
        if key is None or not hmac.compare_digest(seal.encode(), self._seal(key, until).encode()):
            return None
        return key if until.isdigit() and int(until) > time.time() else None

    def _seal(self, key: StoredKey, until: str) -> str:
        """Made with the journal's secret and with the key's hash: neither a copy of the journal nor the file of keys is
        enough to make one."""
        return hmac.new(self._secret + key.hash.encode(), f"{key.prefix}.{until}".encode(), hashlib.sha256).hexdigest()
