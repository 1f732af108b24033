"""The service itself: alive, ready, metrics, and the description of this API."""

from starlette.responses import Response

from driftbandit.live.errors import Damaged
from driftbandit.service.calls import Call, operation
from driftbandit.service.problems import HttpProblem, log


@operation("GET", "/livez", None, None)
async def livez(call: Call) -> Response:
    """The process answers."""
    return Response("alive\n", media_type="text/plain")


@operation("GET", "/readyz", None, None)
async def readyz(call: Call) -> Response:
    """The store can be written, every open bandit can read its journal, and events of other processes arrive in
    time."""
    service = call.service
    try:
        await service.check()
        if stuck := service.bandits.stuck():
            raise Damaged("; ".join(f"bandit {name}: {why}" for name, why in stuck.items()))
    except Damaged as error:
        log.error("not ready: %s", error)  # no key is needed, so the answer contains no path and no name
        raise HttpProblem(503, "damaged", "The journal is damaged; see the log.") from None
    except (OSError, TimeoutError) as error:
        log.warning("not ready: %s", error or "the store does not answer")
        raise HttpProblem(503, "store", "The store cannot be written; see the log.") from None
    lag = service.bandits.lag
    if lag > service.max_lag:
        raise HttpProblem(
            503, "lag", f"This process is {lag:.1f} s behind the journal; the limit is {service.max_lag:g} s."
        )
    return Response("ready\n", media_type="text/plain")


@operation("GET", "/metrics", "read", None)
async def metrics(call: Call) -> Response:
    """Metrics for Prometheus."""
    text = await call.service.metrics.text(call.service, call.key)
    return Response(text, headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"})


@operation("GET", "/openapi.json", None, None)
async def openapi(call: Call) -> Response:
    """This API, described for programs."""
    from driftbandit.service.openapi import document

    return Response(document(), media_type="application/json")
