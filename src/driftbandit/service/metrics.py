"""Numbers for Prometheus, in its text form: what came in, how long it took, and how the bandits are.

Counters are this process's own: several workers are scraped as several targets, or through one port each in turn."""

import asyncio
import bisect
from collections import Counter
from typing import Any

from driftbandit.agent.inputs import to_json_arm
from driftbandit.live import settings
from driftbandit.service.charts.beliefs import believed

_EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_MOST = 200  # bandits whose arms are shown: a scrape must stay small


class Metrics:
    """Counts since the start of this process."""

    def __init__(self) -> None:
        self.decisions: Counter[str] = Counter()
        self.rewards: Counter[tuple[str, str]] = Counter()
        self.requests: Counter[tuple[str, int]] = Counter()
        self._latency: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def decided(self, bandit: str, count: int) -> None:
        """Decisions were made."""
        self.decisions[bandit] += count

    def rewarded(self, bandit: str, verdict: str) -> None:
        """A reward got this verdict."""
        self.rewards[bandit, verdict] += 1

    def observe(self, operation: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests[operation, status] += 1
        counts = self._latency.setdefault(operation, [0] * (len(_EDGES) + 1))
        counts[bisect.bisect_left(_EDGES, seconds)] += 1
        self._seconds[operation] += seconds  # type: ignore[assignment]

    async def text(self, service: Any, key: Any) -> str:
        """Everything, as Prometheus reads it: of bandits only those that the key may read."""
        lines = _Lines()
        lines.family("driftbandit_requests_total", "counter", "requests answered")
        for (name, status), count in sorted(self.requests.items()):
            lines.add("driftbandit_requests_total", count, operation=name, status=status)
        self._histogram(lines)
        lines.family("driftbandit_decisions_total", "counter", "decisions made by this process")
        for name, count in sorted(self.decisions.items()):
            if key.may("read", name):
                lines.add("driftbandit_decisions_total", count, bandit=name)
        lines.family("driftbandit_rewards_total", "counter", "rewards taken by this process, by verdict")
        for (name, verdict), count in sorted(self.rewards.items()):
            if key.may("read", name):
                lines.add("driftbandit_rewards_total", count, bandit=name, verdict=verdict)
        lines.family("driftbandit_queue_length", "gauge", "calls that wait for the store")
        lines.add("driftbandit_queue_length", service.bandits.waiting)
        lines.family("driftbandit_requests_in_flight", "gauge", "requests being answered")
        lines.add("driftbandit_requests_in_flight", service.admission.inside)
        lines.family("driftbandit_commits_total", "counter", "commits of this process")
        lines.add("driftbandit_commits_total", service.bandits.commits)
        held = sorted((name, bandit) for name, bandit in service.bandits.held.items() if key.may("read", name))
        await asyncio.to_thread(_bandits, lines, held[:_MOST], service)
        return lines.text()

    def _histogram(self, lines: "_Lines") -> None:
        name = "driftbandit_request_seconds"
        lines.family(name, "histogram", "time from the request to its answer")
        for operation, counts in sorted(self._latency.items()):
            total = 0
            for edge, count in zip([*_EDGES, "+Inf"], counts, strict=True):
                total += count
                lines.add(f"{name}_bucket", total, operation=operation, le=edge)
            lines.add(f"{name}_sum", self._seconds[operation], operation=operation)
            lines.add(f"{name}_count", total, operation=operation)


def _bandits(lines: "_Lines", held: list[tuple[str, Any]], service: Any) -> None:
    families = {
        "driftbandit_lag_seconds": "how far this process is behind the journal now",
        "driftbandit_events": "events folded",
        "driftbandit_arm_share": "share of an arm in the decisions of the last minutes",
        "driftbandit_arm_probability": "chance of an arm being chosen now",
        "driftbandit_arm_weight": "effective number of observations of an arm",
        "driftbandit_arm_mean": "believed mean reward of an arm",
    }
    rows: dict[str, list[tuple[float, dict[str, Any]]]] = {name: [] for name in families}
    for name, bandit in held:
        rows["driftbandit_lag_seconds"].append((bandit._replica.lag, {"bandit": name}))
        rows["driftbandit_events"].append((bandit._fold.n, {"bandit": name}))
        config = bandit.config
        if len(config.arms) > 100:
            continue
        belief = believed(bandit.policy, bandit.state, config)
        shares = service.charts.shares(bandit)
        chances = bandit.probabilities(draws=200)
        for slot, arm in enumerate(settings.names_of(config)):
            if slot in config.retired:
                continue
            labels = {"bandit": name, "arm": to_json_arm(arm)}
            rows["driftbandit_arm_probability"].append((chances.get(arm, 0.0), labels))
            if shares is not None:
                rows["driftbandit_arm_share"].append((shares[slot], labels))
            for family, value in (("weight", belief.weight[slot]), ("mean", belief.mean[slot])):
                if value is not None:
                    rows[f"driftbandit_arm_{family}"].append((value, labels))
    for name, text in families.items():
        lines.family(name, "gauge", text)
        for value, labels in rows[name]:
            lines.add(name, value, **labels)


class _Lines:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def family(self, name: str, kind: str, text: str) -> None:
        self._lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]

    def add(self, name: str, value: float, **labels: Any) -> None:
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        self._lines.append(f"{name}{'{' + inside + '}' if inside else ''} {value!r}")

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def _escaped(value: Any) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
