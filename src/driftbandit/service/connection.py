"""Connections: uvicorn's, with requests that have one meaning, and answers that leave in one piece."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

_MOST_HEAD = 65_536  # bytes of a request's first line and headers
_FRAMING = {b"host": "host", b"content-length": "length", b"transfer-encoding": "length"}  # one header of each kind


class Connection(HttpToolsProtocol):
    """An HTTP/1.1 connection: uvicorn's, on the parser in C, with heads that are bounded and have one meaning.

    The parser accepts heads of any length, two hosts, trailers, and transfer codings that this service does not decode.
    Proxies read such requests in different ways, which lets one request hide inside another. An exception raised in a
    callback of the parser is answered with 400, and closes the connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head_size = 0  # bytes that arrived of a head that is not complete
        self._head_complete = False
        self._head_count = 0  # headers before the body

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head_complete:
            return
        self._head_size += len(data)
        if self._head_size > _MOST_HEAD:
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_size, self._head_complete = 0, False

    def on_headers_complete(self) -> None:
        seen = set()
        for name, value in self.headers:
            if name in _FRAMING:
                if _FRAMING[name] in seen or (name == b"transfer-encoding" and value.lower() != b"chunked"):
                    raise ValueError("the host or the length of the body is ambiguous")
                seen.add(_FRAMING[name])
        self._head_complete, self._head_count = True, len(self.headers)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if len(self.headers) > self._head_count:
            raise ValueError("trailers are not supported")
        super().on_message_complete()


def format_headers(headers: list[tuple[bytes, bytes]]) -> bytes:
    """Headers as they are sent."""
    return b"".join(b"%s: %s\r\n" % header for header in headers)


def read_at_once(receive: Any) -> bytes | None:
    """The whole body of a request that has arrived already; None if it has not, or if that cannot be decided."""
    cycle = getattr(receive, "__self__", None)
    if type(cycle) is not RequestResponseCycle or cycle.more_body or cycle.disconnected or cycle.response_started:
        return None
    return bytes(cycle.body)


def send_at_once(send: Any, status: int, headers: list[tuple[bytes, bytes]], more: bytes, body: bytes) -> bool:
    """Send an answer, whose headers are the service's own, by one write, where that can be done; else do nothing.

    uvicorn's `send` is called twice and checks each header with two regular expressions, which takes as long as
    deciding. The rest is as there: what a connection does before and after an answer is its own."""
    cycle = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle or not cycle.keep_alive or cycle.response_started or cycle.disconnected:
        return False
    if cycle.flow.write_paused or cycle.access_log or cycle.scope["method"] == "HEAD":
        return False
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    head = format_headers(cycle.default_headers + headers)
    cycle.transport.write(b"%s%s%s\r\n%s" % (STATUS_LINE[status], head, more, body))
    cycle.message_event.set()
    cycle.on_response()
    return True
