"""Errors as answers: the library's message, and a status."""

import logging

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from driftbandit.live.errors import Conflict, Damaged, StoreError, Unknown
from driftbandit.service.types import Error, encode

log = logging.getLogger("driftbandit.service")
RETRY = "1"  # seconds


class HttpProblem(Exception):
    """An error of the service itself: no key, too large, too many requests."""

    def __init__(self, status: int, kind: str, text: str, retry: bool = False) -> None:
        super().__init__(text)
        self.status, self.kind, self.retry = status, kind, retry


def kind_of(error: BaseException) -> tuple[int, str]:
    """The status and the word for an error."""
    if isinstance(error, HttpProblem):
        return error.status, error.kind
    if isinstance(error, Conflict):
        return 409, "conflict"
    if isinstance(error, Unknown):
        return 404, "unknown"
    if isinstance(error, Damaged):
        return 500, "damaged"
    if isinstance(error, ClientDisconnect):
        return 400, "gone"  # the client has disconnected
    if isinstance(error, StoreError | TimeoutError):
        return 503, "store"
    if isinstance(error, ValueError | TypeError | msgspec.ValidationError | RecursionError | MemoryError):
        return 422, "invalid"
    return 500, "fault"


def sentence(error: BaseException) -> str:
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
    if kind_of(error)[0] == 500:
        return "Internal error, or the journal is damaged; see the log of the service."
    return str(error)


def answer(error: BaseException) -> Response:
    """The response to an error."""
    status, kind = kind_of(error)
    if status == 500:
        log.error("a request failed", exc_info=error)
    headers = {"Retry-After": RETRY} if status in (429, 503) or getattr(error, "retry", False) else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(encode(Error(sentence(error), kind)), status, headers, "application/json")
