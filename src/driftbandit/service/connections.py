"""Close connections that only take up space: no request comes, a body arrives too slowly, an answer is not read.

uvicorn limits how long an idle connection is kept after an answer, but waits forever for the first request, for the
rest of a head or body, and for a client that does not read. A few thousand such clients would leave no space for
others. Against many addresses at once a reverse proxy is the place to defend."""

import asyncio
import time
from contextvars import ContextVar
from typing import Any

KEPT = 75  # seconds for an idle connection; proxies keep one for less, so they never send into a closed one
BODY = 20.0  # seconds for a body to arrive, and for an answer to be read further
_CROWDED = 1.0  # seconds for which an idle connection is kept when there are too many
_SWEEP = 2.0  # seconds between two sweeps
_IDLE, _BODY, _ANSWERING = range(3)
_current: ContextVar["_Connection | None"] = ContextVar("connection", default=None)


class _Connection:
    """What one connection is doing, and since when."""

    __slots__ = ("doing", "since", "transport", "unread_since")

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.unread_since: float | None = None
        self.now(_IDLE)

    def now(self, doing: int) -> None:
        self.doing, self.since = doing, time.monotonic()


class Connections:
    """The connections of one server: `protocol` is uvicorn's option `http`, `wrap` goes around the application."""

    def __init__(self, most: int, kept: float = KEPT, body: float = BODY) -> None:
        self.most, self._kept, self._body = most, kept, body
        self._open: set[_Connection] = set()

    def protocol(self) -> type[asyncio.Protocol]:
        """uvicorn's protocol; each connection is noted here, and known to the requests that come over it."""
        from uvicorn.protocols.http.auto import AutoHTTPProtocol

        opened = self._open

        class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
            def connection_made(self, transport: Any) -> None:
                self._noted = _Connection(transport)
                opened.add(self._noted)
                super().connection_made(transport)

            def connection_lost(self, exc: Exception | None) -> None:
                opened.discard(self._noted)
                super().connection_lost(exc)

            def data_received(self, data: bytes) -> None:
                _current.set(self._noted)  # the task of a request copies the context in which it is made
                super().data_received(data)

            def pause_writing(self) -> None:
                self._noted.unread_since = time.monotonic()
                super().pause_writing()

            def resume_writing(self) -> None:
                self._noted.unread_since = None
                super().resume_writing()

        return Protocol

    def wrap(self, app: Any) -> Any:
        """The application; its connections are noted as receiving a body, answering, or idle again."""

        async def wrapped(scope: Any, receive: Any, send: Any) -> None:
            connection = _current.get()
            if connection is None or scope["type"] != "http":
                await app(scope, receive, send)
                return

            async def receiving() -> Any:
                message = await receive()
                if connection.doing == _BODY and not message.get("more_body", False):
                    connection.now(_ANSWERING)
                return message

            sized = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
            connection.now(_BODY if sized else _ANSWERING)
            try:
                await app(scope, receiving if sized else receive, send)
            finally:
                connection.now(_IDLE)

        return wrapped

    async def watch(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(min(_SWEEP, self._body / 2.0))
            self.sweep()

    def sweep(self) -> int:
        """Close the connections that have taken too long; returns how many there were."""
        now = time.monotonic()
        kept = self._kept if len(self._open) <= self.most else _CROWDED
        late = [
            one
            for one in self._open
            if (one.doing == _IDLE and now - one.since > kept)
            or (one.doing == _BODY and now - one.since > self._body)
            or (one.unread_since is not None and now - one.unread_since > self._body)
        ]
        for one in late:
            self._open.discard(one)
            one.transport.abort()
        return len(late)
