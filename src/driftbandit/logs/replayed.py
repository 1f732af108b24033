"""What other policies would have earned on a log, with intervals that say how sure that is.

Two questions, two values. The *follower* learns from every event of the log, as it would beside the logger; the *own
history* learns only from events it would have brought about itself, and answers what the policy earns alone at a share
c of the traffic. Both are doubly robust and use only what was known before each event.

Every interval is a studentised bootstrap over blocks of time. "In this log" covers what the policy would have earned in
just these weeks: the noise of who was shown what, from short blocks (days of a week, say). "In blocks like these" also
holds the luck of which weeks they were, from the long ones."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs import report
from driftbandit.logs.bootstrap import Estimate, block_mean
from driftbandit.logs.candidates import Candidate, candidates
from driftbandit.logs.faults import refuse
from driftbandit.logs.follow import Followed, follow
from driftbandit.logs.log import Log
from driftbandit.logs.periods import FEWEST_BLOCKS
from driftbandit.logs.refusals import FEWEST_EFFECTIVE, refuse_what_cannot_tell, warnings_about
from driftbandit.logs.report import About

OWN_COPIES = 2  # own histories depend on luck: the average of two


class Gain(NamedTuple):
    """How much more a policy earns than something else, per event."""

    here: Estimate  # in this log
    like: Estimate  # in periods like these


class ReplayLine(NamedTuple):
    """One policy."""

    label: str
    policy: str
    half_life: float | None
    value: Estimate  # follower, in this log
    snips: float  # the same by self-normalised weights alone
    effective: float  # how many events' worth of evidence
    own: Estimate | None  # value on its own history
    accepted: int  # events of its own history
    replayed: float  # their average reward: rejection replay, for comparison
    over_ts: Gain
    over_best: Gain  # over the best fixed arm
    over_logger: Gain
    refused: str = ""


class Replay(NamedTuple):
    """The table."""

    lines: list[ReplayLine]
    logger: float
    best_arm: str
    best_value: Estimate  # of the best fixed arm, chosen for each half of the rows on the other
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
        """What a notebook shows."""
        from driftbandit.logs import notebook

        return notebook.replay_html(self)


def replay(
    log: Log,
    policies: Any = ("ts",),
    *,
    block: Any = None,
    own: bool = True,
    seed: int = 0,
    compiled: bool = True,
    progress: bool | Callable[[float], None] = False,
) -> Replay:
    """Estimate what each policy would have earned. Texts such as "ds-ts @ 6 h" forget by the clock."""
    refuse_what_cannot_tell(log)
    tried = candidates(policies, log.summary.said_in)
    plain = next((c for c in tried if c.label == "ts"), None)
    if plain is None:
        plain = candidates("ts", True)[0]
        tried = [plain, *tried]
    followed = follow(log, tried, block=block, seed=seed, compiled=compiled, progress=progress)
    blocks = int((followed.events > 0).sum())
    refuse_few_blocks(blocks)
    alone = None
    if own:
        copies = [candidate for candidate in tried for _ in range(OWN_COPIES)]
        alone = follow(log, copies, block=block, own=True, seed=seed + 1, compiled=compiled, progress=progress)
    base = [c.label for c in tried].index(plain.label)
    lines = [_line(log, followed, alone, at, base) for at in range(len(tried))]
    if all(line.refused for line in lines):
        raise refuse(lines[0].refused.rstrip("."), "Log with more evenly drawn arms, or for longer.")
    best = best_arm(followed)
    arm_value, arm_noise = fixed_arm(followed)
    value = float(arm_value.sum() / followed.events.sum())
    half_lives = [c.half_life for c in tried if c.half_life is not None]
    return Replay(
        lines,
        float(log.value(followed.reward.sum() / log.n)),
        log.arms[best],
        _in_unit(log, block_mean(arm_noise, followed.pieces).moved(value)),
        followed.share,
        log.n,
        followed.length,
        blocks,
        warnings_about(log, half_lives),
        log.about,
    )


def refuse_few_blocks(blocks: int) -> None:
    """An interval from fewer than eight blocks would be a guess."""
    if blocks < FEWEST_BLOCKS:
        raise refuse(
            f"the log has events in only {blocks} blocks of time",
            f"An interval needs at least {FEWEST_BLOCKS}: take shorter blocks (--block) or a longer log.",
        )


def best_arm(followed: Followed) -> int:
    """The arm with the largest estimated value when played always."""
    return int(followed.arm_value.sum(axis=(0, 1)).argmax())


def fixed_arm(followed: Followed) -> tuple[np.ndarray, np.ndarray]:
    """Sums of value by blocks and of noise by pieces for the best fixed arm, chosen for each half of the rows on the
    other half: chosen on the same rows it would be flattered by noise. (Chosen for each block on all other blocks it
    would look too bad: of arms that move but are equal on the whole, the best elsewhere is the worst here.)"""
    first, second = followed.arm_value.sum(axis=1).argmax(axis=1)
    value, noise = followed.arm_value, followed.arm_noise
    return value[0, :, second] + value[1, :, first], noise[0, :, second] + noise[1, :, first]


def effective_size(followed: Followed, at: int) -> float:
    """(sum of weights)^2 / sum of squares."""
    squares = followed.weight2[:, at].sum()
    return float(followed.weight[:, at].sum() ** 2 / squares) if squares > 0 else 0.0


def gain(log: Log, followed: Followed, value: Any, noise: Any, other_value: Any, other_noise: Any) -> Gain:
    """A paired difference, from both sides' sums of value by blocks and of noise by pieces."""
    width = log.reward_range[1] - log.reward_range[0]
    like = block_mean(value - other_value, followed.events)
    here = block_mean(noise - other_noise, followed.pieces).moved(like.mean)
    return Gain(here.scaled(width), like.scaled(width))


def _line(log: Log, followed: Followed, alone: Followed | None, at: int, base: int) -> ReplayLine:
    candidate: Candidate = followed.candidates[at]
    value, noise = followed.value[:, at], followed.noise[:, at]
    mean = float(value.sum() / followed.events.sum())
    effective = effective_size(followed, at)
    weight = followed.weight[:, at].sum()
    fixed_value, fixed_noise = fixed_arm(followed)
    own, accepted, replayed = None, 0, float("nan")
    if alone is not None:
        columns = slice(at * OWN_COPIES, (at + 1) * OWN_COPIES)
        own_value, own_noise = alone.value[:, columns].mean(axis=1), alone.noise[:, columns].mean(axis=1)
        own_mean = float(own_value.sum() / alone.events.sum())
        own = _in_unit(log, block_mean(own_noise, alone.pieces).moved(own_mean))
        taken = float(alone.accepted[:, columns].sum())
        accepted = round(taken / OWN_COPIES)
        replayed = float(log.value(alone.earned[:, columns].sum() / taken)) if taken else replayed
    refused = ""
    if effective < FEWEST_EFFECTIVE:
        refused = (
            f"{candidate.label}: this log holds only {effective:.0f} events' worth of evidence about it (effective "
            f"sample size); {FEWEST_EFFECTIVE} are needed."
        )
    return ReplayLine(
        candidate.label,
        repr(candidate.policy),
        candidate.half_life,
        _in_unit(log, block_mean(noise, followed.pieces).moved(mean)),
        float(log.value(followed.weighted[:, at].sum() / weight)) if weight > 0 else float("nan"),
        effective,
        own,
        accepted,
        replayed,
        gain(log, followed, value, noise, followed.value[:, base], followed.noise[:, base]),
        gain(log, followed, value, noise, fixed_value, fixed_noise),
        gain(log, followed, value, noise, followed.reward, followed.surprise),
        refused,
    )


def _in_unit(log: Log, estimate: Estimate) -> Estimate:
    low, high = log.reward_range
    return estimate.scaled(high - low, low)


def plain(value: Any) -> Any:
    """A result as JSON can hold it: dicts, lists, numbers; None for what is infinite or unknown."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(getattr(value, name)) for name in value._fields}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value
