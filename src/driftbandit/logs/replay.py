"""What other policies would have earned on a log, side by side, with intervals and paired differences.

Two questions, two values. The *follower* learns from every event of the log, as it would next to the logger. The *own
history* learns only from events it would have brought about itself: what the policy earns at a share c of the traffic.
Every interval is a bootstrap over blocks of time and is about new data from the same process."""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit.half_life import checked_half_life
from driftbandit.logs import report
from driftbandit.logs.blocks import FEWEST_BLOCKS, Estimate, block_mean, duration, said
from driftbandit.logs.checks import refuse_one_sided, warnings_about
from driftbandit.logs.follow import Candidate, Followed, follow
from driftbandit.logs.log import Log
from driftbandit.logs.read import refuse
from driftbandit.logs.report import About
from driftbandit.protocols import Policy

FEWEST_EFFECTIVE = 30  # events' worth of evidence, without which a policy has no value
OWN_COPIES = 2  # own histories depend on their draws: the average of two
_MOST_POLICIES = 1000
_GRID = re.compile(r"=\s*\[([^\[\]]*)\]")


class ReplayLine(NamedTuple):
    """One policy; values and gains are per event, in the unit of the rewards."""

    label: str
    policy: str
    half_life: float | None
    value: Estimate  # of the follower
    effective: float  # how many events' worth of evidence
    own: Estimate | None  # value on its own history
    over_ts: Estimate | None  # paired difference; None for ts itself
    over_best: Estimate  # over the best arm in hindsight
    over_logger: Estimate
    refused: str = ""


class Replay(NamedTuple):
    """The table."""

    lines: list[ReplayLine]
    logger: Estimate  # what the logger earned
    best_arm: str  # in hindsight: the arm of largest estimated value
    best_value: Estimate  # its interval holds for all arms at once
    share: float  # c: own histories are at this share of the traffic
    events: int
    block: float
    blocks: int
    warnings: list[str]
    about: About = About()

    def __str__(self) -> str:
        return report.text(report.replay_parts(self))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        return report.html(report.replay_parts(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists and numbers, None for what is infinite or unknown."""
        return dict(report.plain(self))


def replay(
    log: Log,
    policies: Any = ("drift-ts",),
    *,
    block: Any = None,
    own: bool = True,
    seed: int = 0,
    compiled: bool = True,
    executor: Any = None,
    progress: bool | Callable[[float], None] = False,
) -> Replay:
    """Estimate what each policy would have earned; ts is always one of them. Lists of values make a grid, as in
    "ds-ts(gamma=[0.9, 0.99])"; "ds-ts @ 6 h" forgets by the clock. `executor` says where to compute: "processes:4",
    "dask:ADDRESS", "ray"."""
    refuse_one_sided(log)
    tried = candidates(policies, log.summary.said_in)
    if all(candidate.label != "ts" for candidate in tried):
        tried = [*candidates("ts"), *tried]
    base = [candidate.label for candidate in tried].index("ts")
    given = {"block": block, "compiled": compiled, "executor": executor, "progress": progress}
    followed = follow(log, tried, seed=seed, **given)
    blocks = int((followed.events > 0).sum())
    if blocks < FEWEST_BLOCKS:
        raise refuse(
            f"the log has events in only {blocks} blocks of time",
            f"An interval needs at least {FEWEST_BLOCKS}: take shorter blocks (--block) or a longer log.",
        )
    alone = None
    if own:
        copies = [follow(log, tried, own=True, seed=seed + 1 + at, **given) for at in range(OWN_COPIES)]
        mean = {
            name: np.mean([getattr(copy, name) for copy in copies], axis=0) for name in ("value", "weight", "weight2")
        }
        alone = copies[0]._replace(**mean)
    best = int(followed.arm_value.sum(axis=0).argmax())
    lines = [_line(log, followed, alone, at, base, best) for at in range(len(tried))]
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
        warnings_about(log, [c.half_life for c in tried if c.half_life is not None]),
        log.about,
    )


def _all_arms(log: Log) -> float:
    """The level at which intervals hold for all arms at once: the best of them was chosen on the same rows."""
    return 1.0 - 0.05 / log.n_arms


def effective_size(followed: Followed, at: int) -> float:
    """(sum of weights)^2 / sum of squares."""
    squares = followed.weight2[:, at].sum()
    return float(followed.weight[:, at].sum() ** 2 / squares) if squares > 0 else 0.0


def _arm_size(log: Log, arm: int) -> float:
    """The same for the policy that always plays this arm."""
    events = log.whole()
    inverse = 1.0 / events.propensity[events.arm == arm]
    return float(inverse.sum() ** 2 / (inverse**2).sum())


def _value(log: Log, followed: Followed, sums: Any, size: float, level: float = 0.95) -> Estimate:
    """A value from its sums by blocks, kept to the range of rewards."""
    low, high = log.reward_range
    return block_mean(sums, followed.events, level, size).clipped(0.0, 1.0).scaled(high - low, low)


def _gain(log: Log, followed: Followed, sums: Any, size: float, level: float = 0.95) -> Estimate:
    """A paired difference from its sums by blocks."""
    width = log.reward_range[1] - log.reward_range[0]
    return block_mean(sums, followed.events, level, size).clipped(-1.0, 1.0).scaled(width)


def _line(log: Log, followed: Followed, alone: Followed | None, at: int, base: int, best: int) -> ReplayLine:
    candidate, value, size = followed.candidates[at], followed.value[:, at], effective_size(followed, at)
    refused = ""
    if size < FEWEST_EFFECTIVE:
        refused = (
            f"{candidate.label}: this log holds only {size:.0f} events' worth of evidence about it (effective sample "
            f"size); {FEWEST_EFFECTIVE} are needed."
        )
    size = max(size, 1.0)
    return ReplayLine(
        candidate.label,
        repr(candidate.policy),
        candidate.half_life,
        _value(log, followed, value, size),
        size,
        None if alone is None else _value(log, alone, alone.value[:, at], max(effective_size(alone, at), 1.0)),
        None
        if at == base
        else _gain(log, followed, value - followed.value[:, base], min(size, effective_size(followed, base))),
        _gain(log, followed, value - followed.arm_value[:, best], min(size, _arm_size(log, best)), _all_arms(log)),
        _gain(log, followed, value - followed.reward, size),
        refused,
    )


def expand_grid(text: str) -> list[str]:
    """One text for each combination of the values in brackets.

    >>> expand_grid("ds-ts(gamma=[0.9, 0.99], tau_max=0.2)")
    ['ds-ts(gamma=0.9, tau_max=0.2)', 'ds-ts(gamma=0.99, tau_max=0.2)']
    """
    lists = [[value.strip() for value in match[1].split(",") if value.strip()] for match in _GRID.finditer(text)]
    if any(not values for values in lists):
        raise ValueError(f"{text!r:.80} has an empty list of values; write it as in gamma=[0.9, 0.99].")
    if np.prod([float(len(values)) for values in lists]) > _MOST_POLICIES:
        raise ValueError(f"{text!r:.80} stands for more than {_MOST_POLICIES} policies.")
    fixed = _GRID.split(text)[::2]
    return [
        "".join(part + (f"={value}" if value else "") for part, value in zip(fixed, [*chosen, ""], strict=True))
        for chosen in itertools.product(*lists)
    ]


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
        from driftbandit.text.load import load_policy

        text, _, half_life = (part.strip() for part in item.partition("@"))
        policy = load_policy(text)
    elif isinstance(item, type) or not isinstance(item, Policy):
        raise TypeError(f"Expected a policy such as DiscountedTS(gamma=0.99); got {item!r:.60}.")
    else:
        text, policy = repr(item), item
    if hasattr(policy, "with_world"):
        raise ValueError(f"{text} needs the true means, which a log does not contain; remove it.")
    if not half_life:
        return Candidate(label or " ".join(text.split()), policy)
    seconds = duration(half_life)
    checked_half_life(seconds, policy)
    return Candidate(label or f"{text} @ {said(seconds, unit)}", policy, seconds)
