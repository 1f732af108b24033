"""Metrics for Prometheus: requests and their durations, decisions, rewards, and the state of the bandits.

Counters are those of this process: several workers are scraped as several targets."""

import asyncio
from collections import Counter as Counts
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from driftbandit.agent.inputs import to_json_arm
from driftbandit.live import settings
from driftbandit.service.charts.beliefs import believed

_EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_MOST = 200  # bandits whose arms are shown, so that a scrape stays small
_MOST_ARMS = 100
_BANDIT_GAUGES = {
    "lag_seconds": "how far this process is behind the journal now",
    "events": "events folded",
}
_ARM_GAUGES = {
    "arm_share": "share of an arm in the decisions of the last minutes",
    "arm_probability": "probability that an arm is chosen now",
    "arm_weight": "effective number of observations of an arm",
    "arm_mean": "believed mean reward of an arm",
}


class Metrics:
    """Counts since the start of this process."""

    def __init__(self) -> None:
        self.decisions: Counts[str] = Counts()
        self.rewards: Counts[tuple[str, str]] = Counts()
        self._requests = Counter("driftbandit_requests", "requests answered", ["operation", "status"], registry=None)
        self._seconds = Histogram(
            "driftbandit_request_seconds", "time from the request to its answer", ["operation"], buckets=_EDGES,
            registry=None,
        )  # fmt: skip

    def decided(self, bandit: str, count: int) -> None:
        """Count decisions."""
        self.decisions[bandit] += count

    def rewarded(self, bandit: str, verdict: str) -> None:
        """Count a reward with this verdict."""
        self.rewards[bandit, verdict] += 1

    def observe(self, operation: str, status: int, seconds: float) -> None:
        """Count an answered request and its duration."""
        self._requests.labels(operation, status).inc()
        self._seconds.labels(operation).observe(seconds)

    async def text(self, service: Any, key: Any) -> bytes:
        """Everything as Prometheus reads it, of the bandits that the key may read."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(self, service, key))
        return await asyncio.to_thread(generate_latest, registry)


class _Collector:
    """The metrics that one key may read."""

    def __init__(self, metrics: Metrics, service: Any, key: Any) -> None:
        self._metrics, self._service, self._key = metrics, service, key

    def describe(self) -> list[Metric]:
        """Nothing in advance: registering must not collect."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        metrics, service, may = self._metrics, self._service, self._key.may
        for own in (metrics._requests, metrics._seconds):
            for family in own.collect():
                family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
                yield family
        decisions = CounterMetricFamily("driftbandit_decisions", "decisions made by this process", labels=["bandit"])
        for name, count in sorted(metrics.decisions.items()):
            if may("read", name):
                decisions.add_metric([name], count)
        rewards = CounterMetricFamily(
            "driftbandit_rewards", "rewards received by this process, by verdict", labels=["bandit", "verdict"]
        )
        for (name, verdict), count in sorted(metrics.rewards.items()):
            if may("read", name):
                rewards.add_metric([name, verdict], count)
        yield from (decisions, rewards)
        yield GaugeMetricFamily("driftbandit_queue_length", "calls that wait for the store", service.bandits.waiting)
        inside = service.admission.inside
        yield GaugeMetricFamily("driftbandit_requests_in_flight", "requests being answered", inside)
        yield CounterMetricFamily("driftbandit_commits", "commits of this process", service.bandits.commits)
        yield from self._bandits(sorted((n, b) for n, b in service.bandits.held.items() if may("read", n))[:_MOST])

    def _bandits(self, held: list[tuple[str, Any]]) -> Iterator[Metric]:
        gauges = {
            name: GaugeMetricFamily(
                f"driftbandit_{name}", text, labels=["bandit", "arm"] if name in _ARM_GAUGES else ["bandit"]
            )
            for name, text in {**_BANDIT_GAUGES, **_ARM_GAUGES}.items()
        }
        for name, bandit in held:
            gauges["lag_seconds"].add_metric([name], bandit._replica.lag)
            gauges["events"].add_metric([name], bandit._fold.n)
            config = bandit.config
            if len(config.arms) > _MOST_ARMS:
                continue
            belief = believed(bandit.policy, bandit.state, config)
            shares = self._service.charts.shares(bandit)
            probabilities = bandit.probabilities(draws=200)
            for slot, arm in enumerate(settings.names_of(config)):
                if slot in config.retired:
                    continue
                for gauge, value in (
                    ("arm_share", None if shares is None else shares[slot]),
                    ("arm_probability", probabilities.get(arm, 0.0)),
                    ("arm_weight", belief.weight[slot]),
                    ("arm_mean", belief.mean[slot]),
                ):
                    if value is not None:
                        gauges[gauge].add_metric([name, str(to_json_arm(arm))], value)
        yield from gauges.values()
