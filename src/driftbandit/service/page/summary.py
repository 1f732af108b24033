"""One line about a bandit: who leads, how busy it is, whether rewards come, what needs attention."""

import time
from typing import Any, NamedTuple

from driftbandit.half_life import SECOND
from driftbandit.live.records import LATE, REWARD
from driftbandit.live.reporting import warnings
from driftbandit.service.charts.cells import HOUR, MINUTE

_MANY_LATE = 0.05  # share of rewards that come after `wait` from which on it is said
_JOINED_AFTER = 5 * SECOND  # a reward needs a moment: younger decisions say nothing about those that never get one


class BanditSummary(NamedTuple):
    """What stands in the line."""

    name: str
    policy: str
    leader: Any
    share: float | None
    per_minute: float
    joined: float | None  # share of recent decisions that have a reward
    spark: list[list[float]]  # shares of each arm over the last hour, or less if it is younger
    attention: list[str]


def summary(service: Any, bandit: Any) -> BanditSummary:
    """The line, a moment old at most."""
    return service.charts._once(("summary", bandit.name), lambda: _summary(service, bandit), 2.0)  # type: ignore[no-any-return]


def _summary(service: Any, bandit: Any) -> BanditSummary:
    charts = service.charts
    now, config = bandit._replica.now(), bandit.config
    track = charts.recorder.track(bandit)
    first = track.first if track.first is not None else now
    begin = max(now - HOUR, min(first, now - MINUTE))
    history = charts.counts(bandit, track, begin, now + 1, 40)
    names = history.arms
    last = now - max(5 * MINUTE, 2 * history.width)
    lately = [row for start, row in zip(history.starts, history.decisions, strict=True) if start >= last] or [
        [0] * len(names)
    ]
    counts = [sum(column) for column in zip(*lately, strict=True)]
    total = sum(counts)
    leader = max(range(len(names)), key=lambda slot: counts[slot]) if total else None
    covered = min(len(lately) * history.width, max(MINUTE, now - first))
    recent = charts.recent(bandit)
    old = [s for s in recent if s.row.at < min(now - _JOINED_AFTER, bandit._old_enough())]
    joined = sum(1 for s in old if s.kind == 1 or s.late is not None) / len(old) if old else None
    spark = []
    for row in history.decisions:
        whole = sum(row)
        spark.append([value / whole for value in row] if whole else [])
    return BanditSummary(
        bandit.name,
        config.policy,
        None if leader is None else names[leader],
        counts[leader] / total if leader is not None else None,
        total / (covered / MINUTE),
        joined,
        spark,
        _attention(service, bandit, recent, now, names),
    )


def _attention(service: Any, bandit: Any, recent: list[Any], now: int, names: list[Any]) -> list[str]:
    config, out = bandit.config, []
    if config.fixed is not None:
        out.append(f"fixed to {names[config.fixed]}")
    came = [s.came for s in recent if s.kind == 1 and s.came is not None]
    busy = recent and recent[0].row.at > now - HOUR
    if busy and recent[-1].row.at < now - HOUR and (not came or max(came) < now - HOUR):
        out.append("no reward for an hour")
    played = {s.row.slot for s in recent}
    starved = [str(names[slot]) for slot in config.active if slot not in played]
    if len(recent) >= 500 and starved and config.fixed is None:
        out.append(f"not played in the last {len(recent)} decisions: {', '.join(starved[:3])}")
    if bandit._replica._stuck:
        out.append("its journal cannot be folded any further, so it decides no more")
    lag = bandit._replica.lag
    if lag > service.max_lag:
        out.append(f"{lag:.1f} s behind the journal")
    if bandit._fold.clipped:
        out.append(f"{bandit._fold.clipped} rewards outside the range were clipped")
    if bandit._replica.clock.set_back:
        out.append("the clock was set back; `driftbandit live clock` lets time go on")
    counts = service.charts._once(("counts", bandit.name), lambda: service.bandits.journal.counts(bandit._number), 30.0)
    late, rewards = counts.get(str(LATE), 0), counts.get(str(REWARD), 0)
    if late > _MANY_LATE * (late + rewards):
        out.append(f"{late} of {late + rewards} rewards came after wait and were not learned")
    return out + warnings(config, bandit._fold.reported, counts["decisions"])


def ago(microseconds: int) -> str:
    """A time as people say it."""
    seconds = max(0.0, time.time() - microseconds / 1e6)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
