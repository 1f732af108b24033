"""Estimates what other policies would have earned on a log, with intervals and paired differences.

The *follower* learns from every event of the log; the *own history* only from events that the policy would have caused
itself. Values are doubly robust; those by inverse propensities only (IPS) and normalised by their sum (SNIPS) are
printed too if the log has features. Intervals are about new data from the same process."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.protocols import Policy
from driftbandit.lab.summaries import Contents, Report, ShownTable
from driftbandit.logs.estimates import (
    FEWEST_BLOCKS,
    About,
    Estimate,
    block_mean,
    format_duration,
    parse_duration,
)
from driftbandit.logs.follow import Candidate, Followed, follow
from driftbandit.logs.log import Log, refuse_one_sided, warnings_about
from driftbandit.logs.read import refuse
from driftbandit.spec.half_life import checked_half_life
from driftbandit.spec.parse import expand_grid
from driftbandit.spec.user_code import load_policy

FEWEST_EFFECTIVE = 30  # effective events, below which a policy gets no value
OWN_COPIES = 2  # own histories depend on their draws, so two are averaged


class ReplayLine(NamedTuple):
    """One policy; values and gains are per event, in the unit of the rewards."""

    label: str
    policy: str
    half_life: float | None
    value: Estimate  # of the follower
    effective: float  # effective number of events
    own: Estimate | None  # value on its own history
    over_ts: Estimate | None  # paired difference; None for ts itself
    over_best: Estimate  # over the best arm in hindsight
    over_logger: Estimate
    ips: Estimate  # value by inverse propensities
    snips: Estimate  # the same, divided by the mean weight
    refused: str = ""


@dataclass(frozen=True, repr=False)
class Replay(Report):
    """The policies, the logger and the best arm."""

    lines: list[ReplayLine]
    logger: Estimate  # what the logger earned
    best_arm: str  # in hindsight: the arm of largest estimated value
    best_value: Estimate  # its interval holds for all arms at once
    share: float  # c: own histories are at this share of the traffic
    events: int
    block: float
    blocks: int
    features: list[str]
    warnings: list[str]
    about: About

    def _contents(self) -> Contents:
        """Values, paired differences and warnings."""
        about, good = self.about, [line for line in self.lines if not line.refused]
        head = ["policy", "follower", "effective n"]
        rows = [[line.label, str(line.value), f"{line.effective:.0f}"] for line in good]
        if any(line.own is not None for line in good):
            head.insert(2, f"own history, {self.share:.3g} times the traffic")
            for row, line in zip(rows, good, strict=True):
                row.insert(2, str(line.own))
        title = f"value per event; 95% intervals from {self.blocks} blocks of {about.duration(self.block)}"
        tables = [ShownTable(title, head, rows)]
        head = ["policy", "over ts", f"over the best arm in hindsight, {self.best_arm}", "over the logger"]
        rows = [[line.label, *map(about.gain, (line.over_ts, line.over_best, line.over_logger))] for line in good]
        title = f"gain of the follower, {'points' if about.points else 'reward'} per event:"
        tables.append(ShownTable(title, head, rows))
        if self.features:
            rows = [[line.label, *map(str, (line.value, line.ips, line.snips))] for line in good]
            head = ["policy", "doubly robust", "IPS", "SNIPS"]
            tables.append(ShownTable("value of the follower by three estimators:", head, rows))
        return [
            str(about),
            *tables,
            f"The logger earned {self.logger}. The best arm in hindsight, {self.best_arm}, would have earned "
            f"{self.best_value}; it was chosen on the same rows, which flatters it, so its intervals are those that "
            "hold for all arms at once.",
            *(f"no value: {line.refused}" for line in self.lines if line.refused),
            *(f"warning: {warning}" for warning in self.warnings),
        ]


def replay(
    log: Log,
    policies: Any = None,
    *,
    block: Any = None,
    own: bool = True,
    seed: int = 0,
    compiled: bool = True,
    progress: bool | Callable[[float], None] = False,
) -> Replay:
    """Estimate what each policy would have earned (default: the policy of a bandit for which none is named, with the
    log's features and without); ts is always one of them. Lists of values make a grid, as in
    "ds-ts(gamma=[0.9, 0.99])"; "ds-ts @ 6 h" forgets by the clock."""
    refuse_one_sided(log)
    default = [log.default_policy, *(["drift-lin-ts"] if log.features else [])]
    tried = candidates(default if policies is None else policies, log.summary.time_unit)
    if all(candidate.label != "ts" for candidate in tried):
        tried = [*candidates("ts"), *tried]
    base = [candidate.label for candidate in tried].index("ts")
    given = {"block": block, "compiled": compiled, "progress": progress}
    followed = follow(log, tried, seed=seed, **given)
    blocks = int((followed.events > 0).sum())
    if blocks < FEWEST_BLOCKS:
        raise refuse(
            f"the log has events in only {blocks} blocks of time",
            f"An interval needs at least {FEWEST_BLOCKS}: take shorter blocks (--block) or a longer log.",
        )
    estimates, own_followed = _Estimates(log, followed), None
    if own:
        copies = [follow(log, tried, own=True, seed=seed + 1 + at, **given) for at in range(OWN_COPIES)]
        mean = {
            name: np.mean([getattr(copy, name) for copy in copies], axis=0) for name in ("value", "weight", "weight2")
        }
        own_followed = copies[0]._replace(**mean)
    lines = [estimates.line(at, base, own_followed) for at in range(len(tried))]
    if all(line.refused for line in lines):
        raise refuse(lines[0].refused.rstrip("."), "Log with arms drawn more uniformly, or for longer.")
    return Replay(
        lines,
        estimates.value(followed.reward, log.n),
        log.arms[estimates.best],
        estimates.value(estimates.best_value, estimates.best_size, estimates.all_arms),
        log.summary.least,
        log.n,
        followed.length,
        blocks,
        [feature.name for feature in log.features],
        warnings_about(log, [c.half_life for c in tried if c.half_life is not None]),
        log.about,
    )


def effective_size(followed: Followed, at: int) -> float:
    """The effective number of events: (sum of weights)^2 / sum of squares."""
    squares = followed.weight2[:, at].sum()
    return float(followed.weight[:, at].sum() ** 2 / squares) if squares > 0 else 0.0


class _Estimates:
    """Estimates from sums by blocks, in the unit of the rewards; those that involve the best arm hold for all arms at
    once, because it was chosen on the same rows."""

    def __init__(self, log: Log, followed: Followed) -> None:
        self.followed, self.events = followed, followed.events
        self.low, high = log.reward_range
        self.width = high - self.low
        self.best = int(followed.arm_value.sum(axis=0).argmax())
        self.best_value = followed.arm_value[:, self.best]
        inverse = 1.0 / log.whole().propensity[log.whole().arm == self.best]
        self.best_size = float(inverse.sum() ** 2 / (inverse**2).sum())
        self.all_arms = 1.0 - 0.05 / log.n_arms

    def value(self, sums: Any, size: float, level: float = 0.95) -> Estimate:
        return block_mean(sums, self.events, level, size).clipped(0.0, 1.0).scaled(self.width, self.low)

    def gain(self, sums: Any, size: float, level: float = 0.95) -> Estimate:
        return block_mean(sums, self.events, level, size).clipped(-1.0, 1.0).scaled(self.width)

    def weighted(self, at: int, total: Any, size: float) -> Estimate:
        """The weighted rewards per event (IPS) or per unit of weight (SNIPS)."""
        sums = self.low * self.followed.weight[:, at] + self.width * self.followed.paid[:, at]
        return block_mean(sums, total, size=size / self.width).clipped(self.low, self.low + self.width)

    def line(self, at: int, base: int, own: Followed | None) -> ReplayLine:
        """Everything about one policy; `base` is the place of ts."""
        followed, candidate = self.followed, self.followed.candidates[at]
        value, size = followed.value[:, at], effective_size(followed, at)
        refused = ""
        if size < FEWEST_EFFECTIVE:
            refused = f"{candidate.label}: the effective sample size is only {size:.0f}; it needs {FEWEST_EFFECTIVE}."
        size = max(size, 1.0)
        over_ts = self.gain(value - followed.value[:, base], min(size, effective_size(followed, base)))
        return ReplayLine(
            candidate.label,
            repr(candidate.policy),
            candidate.half_life,
            self.value(value, size),
            size,
            own and self.value(own.value[:, at], max(effective_size(own, at), 1.0)),
            None if at == base else over_ts,
            self.gain(value - self.best_value, min(size, self.best_size), self.all_arms),
            self.gain(value - followed.reward, size),
            self.weighted(at, self.events, size),
            self.weighted(at, followed.weight[:, at], size),
            refused,
        )


def candidates(given: Any, unit: bool | str = True) -> list[Candidate]:
    """Candidates from texts such as "ds-ts(gamma=[0.9, 0.99])" or "ds-ts @ 6 h", from policies, or from a dict
    {label: either}; lengths of time are printed in this unit."""
    if isinstance(given, str) or hasattr(given, "choose"):
        given = [given]
    pairs: Iterable[tuple[str, Any]] = given.items() if isinstance(given, Mapping) else [("", item) for item in given]
    out = []
    for label, item in pairs:
        several = expand_grid(item) if isinstance(item, str) else [item]
        out += [_candidate(label if len(several) == 1 else "", one, unit) for one in several]
    labels = [candidate.label for candidate in out]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is given twice; remove one of them or give them different labels.")
    return out


def _candidate(label: str, item: Any, unit: bool | str) -> Candidate:
    if isinstance(item, Candidate):
        return item
    half_life = ""
    if isinstance(item, str):
        text, _, half_life = (part.strip() for part in item.partition("@"))
        policy = load_policy(text)
    elif isinstance(item, type) or not isinstance(item, Policy):
        raise TypeError(f"Expected a policy such as DiscountedTS(gamma=0.99); got {item!r:.60}.")
    else:
        text, policy = repr(item), item
    if hasattr(policy, "with_environment"):
        raise ValueError(f"{text} needs the true means, which a log does not contain; remove it.")
    if not half_life:
        return Candidate(label or " ".join(text.split()), policy)
    seconds = parse_duration(half_life)
    checked_half_life(seconds, policy)
    return Candidate(label or f"{text} @ {format_duration(seconds, unit)}", policy, seconds)
