"""How the service itself is: alive, ready, its numbers, and the description of this API."""

from starlette.responses import Response

from driftbandit.live.errors import Damaged
from driftbandit.service.call import Call
from driftbandit.service.operations import operation, text
from driftbandit.service.problems import HttpProblem, log


@operation("GET", "/livez", None, None)
async def livez(call: Call) -> Response:
    """The process answers."""
    return text("alive\n")


@operation("GET", "/readyz", None, None)
async def readyz(call: Call) -> Response:
    """The store can be written, and what other processes write arrives here in time."""
    service = call.service
    try:
        await service.writable()
    except Damaged as error:
        log.error("not ready: %s", error)  # anyone may ask, so the answer names no path
        raise HttpProblem(503, "damaged", "The journal is damaged; the log says where.") from None
    except (OSError, TimeoutError) as error:
        log.warning("not ready: %s", error or "the store does not answer")
        raise HttpProblem(503, "store", "The store cannot be written; the log says why.") from None
    lag = service.bandits.lag
    if lag > service.max_lag:
        raise HttpProblem(
            503, "lag", f"This process is {lag:.1f} s behind the journal; the limit is {service.max_lag:g} s."
        )
    return text("ready\n")


@operation("GET", "/metrics", "read", None)
async def metrics(call: Call) -> Response:
    """Numbers for Prometheus."""
    return text(await call.service.metrics.text(call.service, call.key), "text/plain; version=0.0.4; charset=utf-8")


@operation("GET", "/openapi.json", None, None)
async def openapi(call: Call) -> Response:
    """This API, described for programs."""
    from driftbandit.service.openapi import document

    return Response(document(), media_type="application/json")
