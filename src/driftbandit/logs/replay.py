"""Estimates what other policies would have earned on a log, with intervals and paired differences.

There are two values. The *follower* learns from every event of the log. The *own history* learns only from events that
the policy would have caused itself: its value at a share c of the traffic. Every interval is a bootstrap over blocks of
time and is about new data from the same process.

The values are doubly robust. In a log with features, contextual policies follow with the logged contexts, and the
values by inverse propensities only (IPS) and normalised by their sum (SNIPS) are printed too."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.protocols import Policy
from driftbandit.logs import log_report
from driftbandit.logs.follow import Candidate, Followed, follow
from driftbandit.logs.log import Log, refuse_one_sided, warnings_about
from driftbandit.logs.log_report import About
from driftbandit.logs.periods import FEWEST_BLOCKS, Estimate, block_mean, format_duration, parse_duration
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
class Replay(log_report.Report):
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

    def parts(self) -> log_report.Parts:
        return log_report.replay_parts(self)


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
    own_followed = None
    if own:
        copies = [follow(log, tried, own=True, seed=seed + 1 + at, **given) for at in range(OWN_COPIES)]
        mean = {
            name: np.mean([getattr(copy, name) for copy in copies], axis=0) for name in ("value", "weight", "weight2")
        }
        own_followed = copies[0]._replace(**mean)
    best = int(followed.arm_value.sum(axis=0).argmax())
    lines = [_line(log, followed, own_followed, at, base, best) for at in range(len(tried))]
    if all(line.refused for line in lines):
        raise refuse(lines[0].refused.rstrip("."), "Log with arms drawn more uniformly, or for longer.")
    return Replay(
        lines,
        _value(log, followed, followed.reward, log.n),
        log.arms[best],
        _value(log, followed, followed.arm_value[:, best], _arm_size(log, best), _all_arms(log)),
        log.summary.least,
        log.n,
        followed.length,
        blocks,
        [feature.name for feature in log.features],
        warnings_about(log, [c.half_life for c in tried if c.half_life is not None]),
        log.about,
    )


def _all_arms(log: Log) -> float:
    """The level at which intervals hold for all arms at once; the best arm was chosen on the same rows."""
    return 1.0 - 0.05 / log.n_arms


def effective_size(followed: Followed, at: int) -> float:
    """The effective number of events: (sum of weights)^2 / sum of squares."""
    squares = followed.weight2[:, at].sum()
    return float(followed.weight[:, at].sum() ** 2 / squares) if squares > 0 else 0.0


def _arm_size(log: Log, arm: int) -> float:
    """The effective number of events of the policy that always plays this arm."""
    events = log.whole()
    inverse = 1.0 / events.propensity[events.arm == arm]
    return float(inverse.sum() ** 2 / (inverse**2).sum())


def _value(log: Log, followed: Followed, sums: Any, size: float, level: float = 0.95) -> Estimate:
    """A value from its sums by blocks, limited to the range of rewards."""
    low, high = log.reward_range
    return block_mean(sums, followed.events, level, size).clipped(0.0, 1.0).scaled(high - low, low)


def _weigh(log: Log, followed: Followed, at: int, total: Any, size: float) -> Estimate:
    """The weighted rewards in their own unit, per event (IPS) or per unit of weight (SNIPS)."""
    low, high = log.reward_range
    sums = low * followed.weight[:, at] + (high - low) * followed.paid[:, at]
    return block_mean(sums, total, size=size / (high - low)).clipped(low, high)


def _gain(log: Log, followed: Followed, sums: Any, size: float, level: float = 0.95) -> Estimate:
    """A paired difference from its sums by blocks."""
    width = log.reward_range[1] - log.reward_range[0]
    return block_mean(sums, followed.events, level, size).clipped(-1.0, 1.0).scaled(width)


def _line(log: Log, followed: Followed, own_followed: Followed | None, at: int, base: int, best: int) -> ReplayLine:
    candidate, value, size = followed.candidates[at], followed.value[:, at], effective_size(followed, at)
    refused = ""
    if size < FEWEST_EFFECTIVE:
        refused = f"{candidate.label}: the effective sample size is only {size:.0f}; it needs {FEWEST_EFFECTIVE}."
    size = max(size, 1.0)
    return ReplayLine(
        candidate.label,
        repr(candidate.policy),
        candidate.half_life,
        _value(log, followed, value, size),
        size,
        None
        if own_followed is None
        else _value(log, own_followed, own_followed.value[:, at], max(effective_size(own_followed, at), 1.0)),
        None
        if at == base
        else _gain(log, followed, value - followed.value[:, base], min(size, effective_size(followed, base))),
        _gain(log, followed, value - followed.arm_value[:, best], min(size, _arm_size(log, best)), _all_arms(log)),
        _gain(log, followed, value - followed.reward, size),
        _weigh(log, followed, at, followed.events, size),
        _weigh(log, followed, at, followed.weight[:, at], size),
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
