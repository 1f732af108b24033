"""One row of the overview: the leading arm, traffic, whether rewards arrive, and what needs attention."""

from typing import Any, NamedTuple

from driftbandit.half_life import SECOND
from driftbandit.live.records import LATE, REWARD
from driftbandit.live.reporting import warnings
from driftbandit.service.charts.recorder import HOUR, MINUTE

_MANY_LATE = 0.05  # share of rewards that come after `wait` above which it needs attention
_JOINED_AFTER = 5 * SECOND  # younger decisions are not counted: their reward may be on its way
_WIDE, _HIGH = 160, 32  # of the small drawing


class BanditSummary(NamedTuple):
    """The cells of the row."""

    name: str
    policy: str
    leader: Any
    share: float | None
    per_minute: float
    joined: float | None  # share of recent decisions that have a reward
    spark: list[str]  # shares over the last hour, stacked: the points of a polygon for each arm
    attention: list[str]


def summary(service: Any, bandit: Any) -> BanditSummary:
    """The row, at most two seconds old."""
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
    return BanditSummary(
        bandit.name,
        config.policy,
        None if leader is None else names[leader],
        counts[leader] / total if leader is not None else None,
        total / (covered / MINUTE),
        joined,
        draw_shares(history.decisions),
        _attention(service, bandit, recent, now, names),
    )


def draw_shares(decisions: list[list[int]]) -> list[str]:
    """Shares over time, stacked: the points of a polygon for each arm; nothing where fewer than two times have any."""
    known = [(place, row, sum(row)) for place, row in enumerate(decisions) if sum(row)]
    if len(known) < 2:
        return []
    last = len(decisions) - 1
    x = [f"{_WIDE * place / last:.1f}" for place, _, _ in known]
    tops, out = [0.0] * len(known), []
    for arm in range(len(known[-1][1])):
        lower = [f"{a},{_HIGH * (1 - top):.1f}" for a, top in zip(x, tops, strict=True)]
        tops = [top + row[arm] / whole for top, (_, row, whole) in zip(tops, known, strict=True)]
        upper = [f"{a},{_HIGH * (1 - top):.1f}" for a, top in zip(x, tops, strict=True)]
        out.append(" ".join([*upper, *reversed(lower)]))
    return out


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
        out.append("damaged: its journal cannot be folded any further, so it makes no decisions")
    lag = bandit._replica.lag
    if lag > service.max_lag:
        out.append(f"{lag:.1f} s behind the journal")
    if bandit._fold.clipped:
        out.append(f"{bandit._fold.clipped} rewards outside the range were clipped")
    if bandit._replica.clock.set_back:
        out.append("the clock was set back; see `driftbandit live clock`")
    counts = service.charts._once(("counts", bandit.name), lambda: service.bandits.journal.counts(bandit._number), 30.0)
    late, rewards = counts.get(str(LATE), 0), counts.get(str(REWARD), 0)
    if late > _MANY_LATE * (late + rewards):
        out.append(f"{late} of {late + rewards} rewards came after wait and were not learned")
    return out + warnings(config, bandit._fold.reported, counts["decisions"])
