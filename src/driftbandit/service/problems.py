"""Errors as answers, with the library's message and a status; and the log of the service, as text or JSON: a line for
every start, stop, change, refused write and fault."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from driftbandit.errors import Archived, DamagedJournal, DriftbanditError, Moved, NotFound, RecordConflict, StoreError
from driftbandit.service.types import Error, encode

log = logging.getLogger("driftbandit.service")
_KINDS: list[tuple[type[BaseException] | tuple[type[BaseException], ...], int, str]] = [
    (RecordConflict, 409, "conflict"),
    (Archived, 410, "archived"),
    (Moved, 421, "moved"),
    (NotFound, 404, "unknown"),
    (DamagedJournal, 500, "damaged"),
    (ClientDisconnect, 400, "gone"),  # the client has disconnected
    ((StoreError, TimeoutError), 503, "store"),
    ((ValueError, TypeError, msgspec.ValidationError, RecursionError, MemoryError), 422, "invalid"),
]


class HttpProblem(DriftbanditError):
    """An error of the service itself: no key, too large, too many requests."""

    def __init__(self, status: int, kind: str, text: str, retry: bool = False) -> None:
        super().__init__(text)
        self.status, self.kind, self.retry = status, kind, retry


def classify(error: BaseException) -> tuple[int, str]:
    """The status and the word for an error."""
    if isinstance(error, HttpProblem):
        return error.status, error.kind
    return next(((status, word) for kinds, status, word in _KINDS if isinstance(error, kinds)), (500, "fault"))


def describe(error: BaseException) -> str:
    """The message for the caller, without the details of an internal fault."""
    if isinstance(error, ClientDisconnect):
        return "The connection ended before the body did."
    if isinstance(error, RecursionError):
        return "The JSON is nested too deeply."
    if isinstance(error, MemoryError):
        return "This needs more memory than the service has."
    if isinstance(error, msgspec.ValidationError):
        return f"{str(error)[:1].upper()}{str(error)[1:].rstrip('.')}."
    if isinstance(error, msgspec.DecodeError):
        return f"The body is not valid JSON: {str(error)[:200]}."
    if classify(error)[0] == 500:
        return "Internal error, or the journal is damaged; see the log of the service."
    return str(error)


def describe_publicly(error: BaseException) -> str:
    """The message for the log about a request with a context: nothing of what the caller gave."""
    if classify(error)[0] in (400, 422):
        return str(getattr(error, "public", "The message was refused; the answer has the reason."))
    return describe(error)


def answer(error: BaseException) -> Response:
    """The response to an error."""
    status, kind = classify(error)
    if status == 500:
        log.error("a request failed", exc_info=error)
    headers = {"Retry-After": "1"} if status in (429, 503) or getattr(error, "retry", False) else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(encode(Error(describe(error), kind)), status, headers, "application/json")


# ---- the log ---------------------------------------------------------------------------------------------------------


class _Line(logging.Formatter):
    """A line with the time, the level, the message and the fields of the record."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level, message, fields = record.levelname.lower(), record.getMessage(), getattr(record, "fields", {})
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._as_json:
            line = {"time": time, "level": level, "logger": record.name, "message": message, **fields}
            return json.dumps({**line, "trace": trace} if trace else line)
        shown = [f"{name}={json.dumps(value)}" for name, value in fields.items()]
        return "\n".join([" ".join([time, level, message, *shown]), *([trace] if trace else [])])


def configure_logging(form: str) -> None:
    """Write the log of this process to its standard error stream, as "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Line(form == "json"))
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger("driftbandit").setLevel(logging.INFO)


def log_event(level: int, message: str, **fields: Any) -> None:
    """Log a message with fields that programs can read; those without a value are left out."""
    known = {name: value for name, value in fields.items() if value is not None}
    log.log(level, message, extra={"fields": known})
