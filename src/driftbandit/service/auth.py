"""Access: the key of a request and what it allows, sessions of the page, and requests forged by other sites."""

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
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _followed_a_link(request: Request) -> bool:
    """Whether a person followed a link from another site to one of our pages, which changes nothing."""
    mode = request.headers.get("sec-fetch-mode"), request.headers.get("sec-fetch-dest")
    return mode == ("navigate", "document") and request.method == "GET" and not request.url.path.startswith("/v1/")


class _Bucket(NamedTuple):
    left: float
    at: float


class Access:
    """Who may do what in one service."""

    def __init__(self, keys: Keys | None, secret: bytes, read_only: bool = False) -> None:
        self.keys, self.read_only = keys, read_only
        self._secret = secret
        self._buckets: dict[str, _Bucket] = {}

    def who(self, request: Request) -> StoredKey | None:
        """The key of a request, or None. Without keys every program on this machine may do everything."""
        self.check_origin(request)
        if self.keys is None:
            return EVERYTHING
        header = request.headers.get("authorization", "")
        if header:
            scheme, _, whole = header.partition(" ")
            return self.keys.check(whole.strip()) if scheme.lower() == "bearer" else None
        return self._session(request.cookies.get(COOKIE, ""))

    def allow(self, request: Request, scope: str, bandit: str | None) -> StoredKey:
        """The key of a request, if it allows this; else the problem."""
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
        """Refuse requests that a page of another site made a browser send; browsers mark them. Without keys the host
        must be this machine's name too, or a foreign name that resolves to it would count as the same site."""
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
        """Refuse requests above the rate of a key (a token bucket that holds the tokens of one second)."""
        if key.rate is None:
            return
        now = time.monotonic()
        most = max(1.0, key.rate)
        left, at = self._buckets.get(key.prefix, _Bucket(most, now))
        left = min(most, left + (now - at) * key.rate)
        self._buckets[key.prefix] = _Bucket(left - 1.0 if left >= 1.0 else left, now)
        if left < 1.0:
            raise HttpProblem(
                429, "rate", f"This key allows {key.rate:g} requests per second; wait a moment.", retry=True
            )

    # ---- sessions of the page ----------------------------------------------------------------------------------------

    def session(self, whole: str) -> str | None:
        """The cookie for a valid key: the prefix of the key, an end and a signature, but not the key itself."""
        key = self.keys.check(whole) if self.keys is not None else None
        if key is None:
            return None
        until = str(int(time.time()) + SESSION)
        return f"{key.prefix}.{until}.{self._sign(key, until)}"

    def _session(self, cookie: str) -> StoredKey | None:
        parts = cookie.split(".")
        if len(parts) != 3 or self.keys is None:
            return None
        prefix, until, signature = parts
        key = self.keys.by_prefix(prefix)
        if key is None or not hmac.compare_digest(signature.encode(), self._sign(key, until).encode()):
            return None
        return key if until.isdigit() and int(until) > time.time() else None

    def _sign(self, key: StoredKey, until: str) -> str:
        """The signature. It needs the journal's secret and the key's hash, so that neither a copy of the journal nor
        the file of keys is enough to make one."""
        return hmac.new(self._secret + key.hash.encode(), f"{key.prefix}.{until}".encode(), hashlib.sha256).hexdigest()
