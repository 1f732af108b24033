"""A stream of the events of a bandit (SSE), in the order of its journal."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from itertools import islice
from typing import Any

from starlette.responses import Response, StreamingResponse

from driftbandit.agent.inputs import to_json_arm
from driftbandit.live import settings
from driftbandit.live.records import CHANGE, KINDS, SETTLED, Change
from driftbandit.service.calls import Call, Query, operation
from driftbandit.service.problems import HttpProblem
from driftbandit.service.types import encode

_LOOK = 0.2  # seconds between checks for new events
_BEAT = 15.0  # seconds after which a silent stream sends a comment
_AT_ONCE = 500
MOST = 200  # streams at a time
MOST_OF_ONE = 100  # with one key


@operation(
    "GET", "/v1/bandits/{bandit}/events", "read", None, None,
    (Query("every", float, "only a tick when something has happened, at most every so many seconds", None, 0.2, 60),),
)  # fmt: skip
async def events(call: Call) -> Response:
    """Rewards, defaults and changes as server-sent events; "settled" means that all decisions made until
    `decided` have their outcome. To continue after a break, send the id of the last event as Last-Event-ID. A new
    stream begins with the next event."""
    bandit, streams = await call.bandit(), call.service.streams
    last, every = _cursor(call.request.headers.get("last-event-id")), call.query["every"]
    if sum(streams.values()) >= MOST or streams[call.key.prefix] >= MOST_OF_ONE:
        raise HttpProblem(503, "streams", f"{MOST} streams are open, or {MOST_OF_ONE} with this key.", retry=True)
    source = _ticks(call, bandit, every) if every is not None else _events(call, bandit, last)
    return _Stream(source, streams, call.key.prefix)


class _Stream(StreamingResponse):
    """A stream that is counted until it ends."""

    def __init__(self, source: AsyncIterator[bytes], streams: Counter[str], prefix: str) -> None:
        super().__init__(_begun(source), media_type="text/event-stream",
                         headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})  # fmt: skip
        self._streams, self._prefix = streams, prefix
        streams[prefix] += 1

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams[self._prefix] -= 1


async def _begun(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield b": driftbandit\n\n"
    async for part in source:
        yield part


async def _ticks(call: Call, bandit: Any, every: float) -> AsyncIterator[bytes]:
    seen, beat = (-1, 0), time.monotonic()
    while not call.service.ending.is_set():
        now = (bandit._fold.n, call.service.metrics.decisions.get(bandit.name, 0))
        if now != seen or time.monotonic() - beat > _BEAT:
            seen, beat = now, time.monotonic()
            yield b"event: tick\ndata: " + encode({"events": now[0]}) + b"\n\n"
        await call.service.pause(every)


async def _events(call: Call, bandit: Any, last: Any) -> AsyncIterator[bytes]:
    journal, number = call.service.bandits.journal, bandit._number
    if last is None:
        last = await asyncio.to_thread(_newest, bandit)
    seen, beat, whats = -1, time.monotonic(), dict[int, str]()
    while not call.service.ending.is_set():
        if bandit._fold.n != seen:
            seen = bandit._fold.n
            while found := await asyncio.to_thread(_next, journal, number, last):
                names = settings.names_of(bandit.config)
                if any(event.kind == CHANGE for _, event in found):
                    rows = await asyncio.to_thread(call.service.charts.changes, bandit)
                    whats = {row["at"]: row["what"] for row in rows}
                yield b"".join(_message(cursor, event, names, whats) for cursor, event in found)
                last, beat = found[-1][0], time.monotonic()
        elif time.monotonic() - beat > _BEAT:
            beat = time.monotonic()
            yield b": still here\n\n"
        await call.service.pause(_LOOK)


def _next(journal: Any, number: int, last: Any) -> list[Any]:
    return list(islice(journal.events(number, last, _AT_ONCE), _AT_ONCE))


def _newest(bandit: Any) -> Any:
    """The cursor of the last event."""
    with bandit._lock:
        return bandit._replica._cursor


def _cursor(text: str | None) -> Any:
    if not text:
        return None
    parts = text.split(".")
    if len(parts) not in (1, 3) or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise ValueError(f"Last-Event-ID must be the id of an event of this stream; got {text!r:.60}.")
    return int(parts[0]) if len(parts) == 1 else tuple(map(int, parts))


def _message(cursor: Any, event: Any, names: list[Any], whats: dict[int, str]) -> bytes:
    place = ".".join(map(str, cursor)) if isinstance(cursor, tuple) else str(cursor)
    if event.kind == CHANGE:
        change = Change.read(event.body)
        what = whats.get(event.at, change.what)
        data: dict[str, Any] = {"at": event.at, "what": what, "who": change.who}
    elif event.kind == SETTLED:
        data = {"at": event.at, "decided": event.decided}
    else:
        arm = to_json_arm(names[event.slot]) if event.slot < len(names) else None
        data = {"at": event.at, "decision": event.decision, "arm": arm, "reward": event.value, "decided": event.decided}
    return f"id: {place}\nevent: {KINDS[event.kind]}\ndata: ".encode() + encode(data) + b"\n\n"
