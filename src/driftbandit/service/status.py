"""The service itself: alive, ready, the description of this API, and metrics for Prometheus.

Counters are those of this process: several workers are scraped as several targets."""

import asyncio
import shutil
from collections import Counter as Counts
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.responses import Response

from driftbandit.bandit import settings
from driftbandit.bandit.beliefs import arm_beliefs, read_bandit
from driftbandit.bandit.inputs import to_json_arm
from driftbandit.bandit.opening import is_url
from driftbandit.errors import DamagedJournal
from driftbandit.service.calls import Call, document, operation
from driftbandit.service.problems import HttpProblem, log

_MOST = 50  # bandits that have series: the busiest, so that a scrape stays small
_MOST_ARMS = 100
_ALIVE = Response("alive\n", media_type="text/plain")
_GAUGES = {
    "lag_seconds": "how far this process is behind the journal now",
    "events": "events folded",
    "arm_share": "share of an arm in the last 1,000 decisions",
    "arm_probability": "probability that an arm is chosen now",
    "arm_weight": "effective number of observations of an arm",
    "arm_mean": "believed mean reward of an arm",
}


@operation("GET", "/livez", None, None)
async def livez(call: Call) -> Response:
    """The process answers."""
    return _ALIVE


@operation("GET", "/readyz", None, None)
async def readyz(call: Call) -> Response:
    """The store can be written, every open bandit can read its journal, and events of other processes arrive in
    time."""
    service = call.service
    try:
        await service.check()
        stopped = {name: bandit.stopped for name, bandit in service.bandits.held.items() if bandit.stopped}
        if stopped:
            raise DamagedJournal("; ".join(f"bandit {name}: {why}" for name, why in stopped.items()))
    except DamagedJournal as error:
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


@operation("GET", "/openapi.json", None, None)
async def openapi(call: Call) -> Response:
    """This API, described for programs."""
    return Response(document(), media_type="application/json")


@operation("GET", "/metrics", "read", None)
async def metrics(call: Call) -> Response:
    """Metrics for Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(call.service, call.key))
    text = await asyncio.to_thread(generate_latest, registry)
    return Response(text, headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"})


class _Collector:
    """The metrics that one key may read."""

    def __init__(self, service: Any, key: Any) -> None:
        self._service, self._key = service, key

    def describe(self) -> list[Metric]:
        """Nothing in advance: registering must not collect."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        service, metrics, may = self._service, self._service.metrics, self._key.may
        yield from metrics.collect()
        counts = {name: count for name, count in metrics.decisions.copy().items() if may("read", name)}
        received = {place: count for place, count in metrics.rewards.copy().items() if may("read", place[0])}
        calls = Counts(counts)
        for (name, _), count in received.items():
            calls[name] += count
        top = sorted(name for name, _ in calls.most_common(_MOST))
        text = f"decisions by this process, of its {_MOST} busiest bandits"
        decisions = CounterMetricFamily("driftbandit_decisions", text, labels=["bandit"])
        for name in top:
            decisions.add_metric([name], counts.get(name, 0))
        text = "rewards received by this process, by verdict"
        rewards = CounterMetricFamily("driftbandit_rewards", text, labels=["bandit", "verdict"])
        for (name, verdict), count in sorted(received.items()):
            if name in top:
                rewards.add_metric([name, verdict], count)
        yield from (decisions, rewards)
        waiting, commits = service.bandits.queue()
        single: list[tuple[Any, str, str, float]] = [
            (CounterMetricFamily, "all_decisions", "decisions of all bandits in this process", sum(counts.values())),
            (CounterMetricFamily, "all_rewards", "rewards of all bandits in this process", sum(received.values())),
            (CounterMetricFamily, "commits", "commits of this process", commits),
            (GaugeMetricFamily, "process_lag_seconds", "the longest lag of a bandit in this process",
             service.bandits.lag),
            (GaugeMetricFamily, "open_bandits", "bandits that this process has in memory", len(service.bandits.held)),
            (GaugeMetricFamily, "queue_length", "calls that wait for the store", waiting),
            (GaugeMetricFamily, "requests_in_flight", "requests being answered", service.inside),
        ]  # fmt: skip
        if not is_url(service.bandits.target):
            free = shutil.disk_usage(Path(service.bandits.target).resolve().parent).free
            single.append((GaugeMetricFamily, "disk_free_bytes", "space left where the SQLite journal is", free))
        yield from (family(f"driftbandit_{name}", text, value) for family, name, text, value in single)
        yield from self._collect_bandits()

    def _collect_bandits(self) -> Iterator[Metric]:
        gauges = {
            name: GaugeMetricFamily(
                f"driftbandit_{name}", text, labels=["bandit", "arm"] if name.startswith("arm_") else ["bandit"]
            )
            for name, text in _GAUGES.items()
        }
        held, decisions = self._service.bandits.held, self._service.metrics.decisions
        readable = sorted((name for name in held if self._key.may("read", name)), key=lambda name: -decisions[name])
        for name in sorted(readable[:_MOST]):
            bandit = held[name]
            gauges["lag_seconds"].add_metric([name], bandit.lag)
            gauges["events"].add_metric([name], bandit.events)
            if bandit.stored.candidates or len(bandit.stored.arms) > _MOST_ARMS:
                continue
            try:
                found = self._read_arms(bandit)
            except Exception as error:  # the others are still shown
                log.warning("metrics of bandit %s: %s", name, error)
                continue
            for arm, values in found.items():
                for gauge, value in zip(("share", "probability", "weight", "mean"), values, strict=True):
                    if value is not None:
                        gauges[f"arm_{gauge}"].add_metric([name, str(to_json_arm(arm))], value)
        yield from gauges.values()

    def _read_arms(self, bandit: Any) -> dict[Any, tuple[float | None, ...]]:
        """Share, probability, weight and mean of each arm."""
        policy, state, config = read_bandit(bandit)
        belief, names = arm_beliefs(policy, state, config), settings.names_of(config)
        recent = [outcome.decision.arm for outcome in self._service.charts.recent(bandit)]
        probabilities = bandit.probabilities(draws=200)
        return {
            names[slot]: (
                recent.count(names[slot]) / len(recent) if recent else None,
                probabilities.get(names[slot], 0.0),
                belief.weight[slot],
                belief.mean[slot],
            )
            for slot in config.active
        }
