"""Sending a request until it is answered: it is repeated after a lost connection or a busy service, always with the
same id, so nothing is done twice."""

import asyncio
import os
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from driftbandit.bandit.inputs import checked_labels
from driftbandit.errors import AccessDenied, Archived, Moved, NotFound, RecordConflict, StoreError

_AGAIN = (429, 502, 503, 504)


class Sender:
    """One service, one key, connections that are kept."""

    def __init__(self, url: str, key: str | None, timeout: float, patience: float) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._options: dict[str, Any] = {"base_url": url.rstrip("/"), "headers": headers, "timeout": timeout}
        self.patience = patience
        self._sync: httpx.Client | None = None
        self._async: httpx.AsyncClient | None = None
        self._loop: Any = None

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The answer, or the error that the library would have raised."""
        if self._sync is None:
            self._sync = httpx.Client(**self._options)
        waits = _Waits(self.patience)
        while True:
            try:
                response = self._sync.request(method, path, json=body)
            except httpx.TransportError as error:
                time.sleep(waits.after(error, None))
                continue
            if response.status_code not in _AGAIN:
                return read_answer(response)
            time.sleep(waits.after(None, response))

    async def asend(self, method: str, path: str, body: Any = None) -> Any:
        """`send` for asyncio."""
        loop = asyncio.get_running_loop()
        if self._async is None or self._loop is not loop:  # a client belongs to the loop it was first used in
            self._async, self._loop = httpx.AsyncClient(**self._options), loop
        waits = _Waits(self.patience)
        while True:
            try:
                response = await self._async.request(method, path, json=body)
            except httpx.TransportError as error:
                await asyncio.sleep(waits.after(error, None))
                continue
            if response.status_code not in _AGAIN:
                return read_answer(response)
            await asyncio.sleep(waits.after(None, response))

    def close(self) -> None:
        """Close the connections."""
        if self._sync is not None:
            self._sync.close()
            self._sync = None

    async def aclose(self) -> None:
        """`close` for asyncio."""
        self.close()
        if self._async is not None:
            await self._async.aclose()
            self._async = None


class _Waits:
    """How long to wait before the next attempt: as the service requests, or twice as long as before; never in step with
    other clients."""

    def __init__(self, patience: float) -> None:
        self._until, self._patience, self._pause = time.monotonic() + patience, patience, 0.05

    def after(self, error: Exception | None, response: httpx.Response | None) -> float:
        said = 0.0
        if response is not None:
            text = response.headers.get("retry-after", "")
            said = min(float(text), 5.0) if text.isdigit() else 0.0
        pause = max(said, self._pause) * random.uniform(0.75, 1.25)
        self._pause = min(1.0, 2.0 * self._pause)
        if time.monotonic() + pause > self._until:
            why = _sentence(response) if response is not None else f"{type(error).__name__}: {error}"
            raise StoreError(
                f"The service did not answer within {self._patience:g} s ({why[:200]}); whether it was done is "
                "not known: send it again with the same id."
            )
        return pause


def bandit_names(
    url: str, key: str | None, search: str, labels: Mapping[str, str] | None, archived: bool
) -> Iterator[str]:
    """The bandits of a service, as `Bandit.names` returns them."""
    wanted = {"search": search, "label": [f"{name}:{value}" for name, value in checked_labels(labels or {}).items()]}
    with closing(Sender(url, key or os.environ.get("DRIFTBANDIT_KEY"), 10.0, 20.0)) as sender:
        after = ""
        while after is not None:
            query = urlencode(wanted | {"archived": str(archived).lower(), "after": after}, doseq=True)
            page = sender.send("GET", f"/v1/bandits?{query}")
            yield from page["bandits"]
            after = page["next"]


def read_answer(response: httpx.Response) -> Any:
    """The answer of the service, or the error it stands for."""
    if response.is_success:
        return response.json()
    raise error_for(response.status_code, _sentence(response))


def error_for(status: int, text: str) -> Exception:
    """The library's own error."""
    if status == 409:
        return RecordConflict(text)
    if status == 410:
        return Archived(text)
    if status == 421:
        return Moved(text)
    if status == 404:
        return NotFound(text)
    if status in (401, 403):
        return AccessDenied(text, status)
    if status < 500:
        return ValueError(text)
    return StoreError(text)


def _sentence(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"status {response.status_code}"


def address(name: str, *parts: str, **query: Any) -> str:
    """The path of a bandit or of something of it."""
    path = "/v1/bandits/" + "/".join(quote(part, safe="") for part in (name, *parts))
    given = {word: value for word, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
