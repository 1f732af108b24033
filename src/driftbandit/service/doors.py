"""Connections that only take up room: no request comes, a body trickles, an answer is not read. They are closed.

The server below waits for such clients for ever, and a few thousand of them leave no room for others. A sweep every few
seconds costs the requests themselves nothing. Against many addresses at once a reverse proxy is the place to defend."""

import asyncio
import time
from typing import Any

KEPT = 75.0  # seconds for an idle connection: longer than proxies keep one, so that they never meet a closed one
BODY = 20.0  # seconds for a body to arrive, and for an answer to be read on
CROWDED = 1.0  # seconds for which an idle connection is kept when there are too many
_SWEEP = 2.0  # seconds between two sweeps


class Doors:
    """How long each connection has been in the state it is in."""

    def __init__(self, connections: set[Any], most: int, kept: float = KEPT, body: float = BODY) -> None:
        self.connections, self.most = connections, most
        self._kept, self._body = kept, body
        self._since: dict[Any, tuple[Any, str, float]] = {}

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(min(_SWEEP, self._body / 2.0))
            self.sweep()

    def sweep(self) -> int:
        """Close what has lasted too long, and say how many there were."""
        now = time.monotonic()
        seen: dict[Any, tuple[Any, str, float]] = {}
        closed = 0
        patience = {"idle": self._kept if len(self.connections) <= self.most else CROWDED, "body": self._body,
                    "unread": self._body}  # fmt: skip
        for connection in list(self.connections):
            cycle, what = connection.cycle, _state(connection)
            before = self._since.get(connection)
            same = before is not None and before[0] is cycle and before[1] == what
            since = before[2] if before is not None and same else now
            if what != "answering" and now - since > patience[what]:
                connection.transport.abort()
                closed += 1
            else:
                seen[connection] = cycle, what, since
        self._since = seen
        return closed


def _state(connection: Any) -> str:
    if connection.flow is not None and connection.flow.write_paused:
        return "unread"
    cycle = connection.cycle
    if cycle is None or cycle.response_complete:
        return "idle"
    return "body" if cycle.more_body else "answering"
