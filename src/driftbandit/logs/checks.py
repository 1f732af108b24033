"""What only the whole log can show: propensities that do not fit the counts, copies, an order of ties that gives the
reward away; and the summary.

The thresholds of 4.4 standard deviations are exceeded by chance in one log of 100,000."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs.blocks import said
from driftbandit.logs.read import Fault, Faults, LogError
from driftbandit.logs.rows import Events, Rows

CERTAIN = 1.0 - 1e-9
_INCREDIBLE = 1e-6  # the smallest propensity times the number of events
_FAR, _STRANGE = 6.0, 4.4  # standard deviations: refused, and warned of
_STRETCHES = 128
_NEARLY_ALWAYS = 0.98
FEWEST_ODD = 100


class LogSummary(NamedTuple):
    """A log in a few numbers."""

    n: int
    arms: list[str]
    pulls: np.ndarray
    start: float  # seconds; since 1970 if `dates`
    end: float
    dates: bool
    mean: float  # of the rewards, mapped to [0, 1]
    odd: int  # rewards that differ from the most common one
    highest: int  # rewards equal to the highest possible one
    least: float  # the smallest propensity
    delay: float  # median time until a reward was known, seconds
    never: int  # rewards that never became known
    heard: int  # rewards that became known before the log ended
    adaptive: bool  # did the logger's probabilities for the same arm vary?
    left_out: int  # rows without a reward
    offered: np.ndarray  # share of the events at which each arm was available
    forced: int  # events at which one arm had probability 1 though others were available
    warnings: list[str]
    unit: str = ""  # of times that are numbers, if one was named

    @property
    def said_in(self) -> bool | str:
        """How `blocks.said` prints lengths of time: in natural units, in the log's unit, or as bare numbers."""
        return self.dates or self.unit or False

    @property
    def span(self) -> float:
        """From the first event to the last, in seconds."""
        return self.end - self.start

    @property
    def one_sided(self) -> bool:
        """Do the rewards look as if only successes were reported?"""
        return self.left_out >= self.n // 2 and self.left_out > 0 and self.highest >= _NEARLY_ALWAYS * self.n


def summarise(log: Any, rows: Rows, in_file: Events, faults: Faults) -> LogSummary:
    """The numbers, after the last checks; `in_file` has the rows in the order of the file."""
    events, k = log.whole(), log.n_arms
    arm, mu = events.arm, events.propensity
    least = int(mu.argmin())
    several = log.menus.sum(axis=1)[events.menu] > 1
    forced = int(((mu > CERTAIN) & several).sum())
    offered = np.bincount(events.menu, minlength=len(log.menus)) @ log.menus
    if k < 2:
        faults.add(f"there is only one arm, {log.arms[0]!r:.60}", "A choice needs two arms.")
    elif not events.time[-1] > events.time[0]:
        faults.add("all times are the same", "Name the column that says when each decision was made.")
    elif mu[least] * events.n < _INCREDIBLE:
        faults.add(
            f"propensity {mu[least]:.2g} is too small to be true",
            "An arm with that probability is played once in a million logs like this; write the one it really had.",
            int(events.row[least]),
        )
    elif forced > 0.5 * events.n:
        faults.add(
            f"propensity is 1 in {forced:,} of {events.n:,} events",
            "A logger without a choice says nothing about other arms: write the probability the arm had at that "
            "moment, or in `available` that no other arm could be chosen.",
        )
    ordered = in_file.take(np.argsort(in_file.time, kind="stable"))
    found = [order_of_ties(ordered), copies(ordered), rounding(mu)]
    warnings = [text for text in found if text]
    if not faults:
        fit_counts(log, rows.uniform, faults, warnings)
    values, counts = np.unique(events.reward, return_counts=True)
    return LogSummary(
        n=events.n,
        arms=log.arms,
        pulls=np.bincount(arm, minlength=k),
        start=float(events.time[0]),
        end=float(events.time[-1]),
        dates=bool(rows.clock.dates),
        mean=float(events.reward.mean()),
        odd=int(events.n - counts.max()),
        highest=int(counts[-1]) if values[-1] == 1.0 else 0,
        least=float(mu[least]),
        delay=float(np.median(events.known - events.time)),
        never=int(np.isinf(events.known).sum()),
        heard=int((events.known <= events.time[-1]).sum()),
        adaptive=not rows.uniform and len(log.menus) == 1 and _adaptive(arm, mu, k),
        left_out=rows.left_out,
        offered=offered / events.n,
        forced=forced,
        warnings=warnings,
        unit="" if rows.clock.dates else rows.clock.given or "",
    )


def _adaptive(arm: np.ndarray, mu: np.ndarray, k: int) -> bool:
    pulls = np.maximum(np.bincount(arm, minlength=k), 1)
    mean = np.bincount(arm, mu, minlength=k) / pulls
    spread = np.sqrt(np.maximum(np.bincount(arm, mu * mu, minlength=k) / pulls - mean * mean, 0.0))
    return bool(((pulls > 50) & (spread > 0.1 * mean)).any())


def warnings_about(log: Any, half_lives: list[float] | None = None) -> list[str]:
    """What a reader should know before believing a number."""
    summary, out = log.summary, []
    shorter = [length for length in half_lives or [] if length < summary.delay]
    if shorter:  # the first thing to know: late rewards reverse the order of half-lives
        out.append(
            f"Half of the rewards come {said(summary.delay, summary.said_in)} late or later, longer than a half-life "
            f"of {said(min(shorter), summary.said_in)}: evidence is mostly forgotten when it arrives."
        )
    out += summary.warnings
    if summary.one_sided:
        out.append(one_sided_sentence(log))
    if summary.odd < FEWEST_ODD:
        out.append(
            (f"Only {summary.odd} rewards differ from the rest" if summary.odd else "All rewards are the same")
            + ": intervals are wide, and policies that learn have little to learn from."
        )
    if summary.heard < FEWEST_ODD:
        out.append(
            f"Only {summary.heard} rewards became known before the log ended: policies that learn have little to learn "
            "from. Log for longer, or check the column reward_time."
        )
    rare = int(np.argmin(summary.offered))
    if summary.offered[rare] < _NEARLY_ALWAYS:
        out.append(
            f"Arm {log.arms[rare]:.40} was available at {100.0 * summary.offered[rare]:.0f}% of the events only: gains "
            "over the best arm assume that an arm earns as usual where it was not available."
        )
    if summary.adaptive:
        out.append(
            "The logger's probabilities changed over time (an adaptive logger): estimates are several times less "
            "certain than on a log of uniformly drawn arms."
        )
    if summary.forced:
        out.append(
            f"In {summary.forced:,} of {summary.n:,} events the logger had no choice (propensity 1 though other arms "
            "were available): what those would have earned there is not known, and no interval covers it."
        )
    if summary.least < 0.01:
        out.append(f"Some propensities are as small as {summary.least:.2g}: a few rows carry much of the weight.")
    if summary.never:
        out.append(f"{summary.never:,} rewards never became known: policies do not learn from them, values count them.")
    if summary.left_out:
        out.append(f"{summary.left_out:,} decisions without a reward were left out.")
    return out


def one_sided_sentence(log: Any) -> str:
    """What a log looks like in which failures are not reported."""
    summary = log.summary
    share = "All" if summary.highest == summary.n else f"{summary.highest:,} of"
    return (
        f"{share} {summary.n:,} rewards are {log.reward_range[1]:g} and {summary.left_out:,} decisions have no reward: "
        "only successes seem to be reported, so every arm looks perfect and arms cannot be compared. Report failures "
        "too, or open the bandit with wait and default, so that a decision without a reward counts as a failure."
    )


def refuse_one_sided(log: Any) -> None:
    """Refuse a log in which all rewards are successes and the rest is missing: it says nothing about any policy."""
    if log.summary.one_sided and not log.summary.odd:
        raise LogError([Fault(one_sided_sentence(log).rstrip("."), "", 0)], log.name)


# ---- rows of equal time ----------------------------------------------------------------------------------------------


def _groups(time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where groups of equal times begin, and their sizes."""
    starts = np.flatnonzero(np.append(True, np.diff(time) != 0))
    return starts, np.diff(np.append(starts, len(time)))


def copies(events: Events) -> str:
    """Are rows written twice? Two to four rows of equal time that agree in everything are copies, unless rows of
    different times agree as often."""
    starts, sizes = _groups(events.time)
    some = (sizes > 1) & (sizes <= 4)
    columns = [events.arm, events.reward, events.propensity, events.known]
    first = np.repeat(starts, sizes)
    same = np.logical_and.reduce([column == column[first] for column in columns])
    alike = np.logical_and.reduceat(same, starts) & some
    count, groups, pairs = int((sizes[alike] - 1).sum()), int(some.sum()), len(starts) - 1
    if not groups or count < 0.01 * events.n:
        return ""
    heads = [column[starts] for column in columns[:3]]
    agree = int(np.logical_and.reduce([column[1:] == column[:-1] for column in heads]).sum())
    usual, share = (agree + 1.0) / (pairs + 2.0), alike.sum() / groups
    error = math.sqrt(usual * (1.0 - usual) * (1.0 / groups + 1.0 / (pairs + 2.0)))
    if share < 0.5 * (1.0 + usual) or share - usual < _STRANGE * error:
        return ""
    return (
        f"{count:,} of {events.n:,} rows are copies of another row (same time, arm and reward): was the log written "
        "twice? Remove them: they count as evidence that does not exist."
    )


def order_statistic(time: np.ndarray, reward: np.ndarray) -> float:
    """How many standard deviations the rewards of rows of equal time rise with their place in the file. A permutation
    test: under no order, each group's sum of place times reward has a known mean and variance, and the groups add
    up."""
    starts, sizes = _groups(time)
    many = sizes > 1
    group = np.repeat(np.arange(len(starts)), sizes)
    centred = np.arange(len(time)) - starts[group] - (sizes[group] - 1) / 2.0
    deviation = reward - (np.bincount(group, reward) / sizes)[group]
    spread, noise = np.bincount(group, centred**2), np.bincount(group, deviation**2)
    variance = float((spread[many] * noise[many] / (sizes[many] - 1)).sum())
    return float((centred * deviation).sum()) / math.sqrt(variance) if variance > 0.0 else 0.0


def order_of_ties(events: Events) -> str:
    """Does the order of rows of equal time give their rewards away?"""
    if abs(order_statistic(events.time, events.reward)) < _STRANGE:
        return ""
    starts, sizes = _groups(events.time)
    many, reward = sizes > 1, events.reward
    first, last = reward[starts[many]].mean(), reward[(starts + sizes - 1)[many]].mean()
    return (
        f"{int(sizes[many].sum())} rows share their time with others, and their order predicts their reward: the first "
        f"earns {first:.2f}, the last {last:.2f}. They were shuffled; is the file sorted by something known only "
        "afterwards?"
    )


# ---- propensities ----------------------------------------------------------------------------------------------------


def rounding(mu: np.ndarray) -> str:
    """Are the propensities rounded so coarsely that the smallest, which weigh most, are far off? Fewer than eight
    different values may be exact."""
    values = np.unique(mu)
    decimals = next((d for d in range(1, 5) if np.allclose(values, np.round(values, d), rtol=0.0, atol=1e-9)), 5)
    off = 0.5 * 0.1**decimals / float(values[0])
    if decimals > 4 or len(values) < 8 or off < 0.02:
        return ""
    return (
        f"The propensities are rounded to {decimals} decimal{'s' if decimals > 1 else ''}: the smallest, "
        f"{values[0]:g}, may be off by {100.0 * off:.0f}%, and so may the weight of its rows. Write more decimals."
    )


def fit_counts(log: Any, uniform: bool, faults: Faults, warnings: list[str]) -> None:
    """Do the propensities fit what was played? Over the events at which an arm was offered, 1[played] / propensity
    sums to their number up to chance: arm by arm over the whole log, and from stretch to stretch. With true
    propensities the misses of successive stretches are uncorrelated whatever the logger did. Events at which one arm
    had probability 1 always fit."""
    events = log.whole()
    events = events.take(~(events.propensity > CERTAIN))
    if not events.n:
        return
    arm, mu, k = events.arm, events.propensity, log.n_arms
    offered = (np.bincount(events.menu, minlength=len(log.menus)) @ log.menus).astype(float)
    total = np.bincount(arm, 1.0 / mu, minlength=k)
    variance = np.bincount(arm, (1.0 - mu) / (mu * mu), minlength=k)
    lowest, highest = np.ones(k), np.zeros(k)
    np.minimum.at(lowest, arm, mu)
    np.maximum.at(highest, arm, mu)
    # A sum falls short where an arm had a small propensity and was not played; no row then says how small it was. It
    # may have been as small as the smallest of the log, and as far below the arm's smallest as that is below its
    # largest.
    varied = np.where(highest > 0.0, lowest**2 / np.maximum(highest, 1e-300), 1.0)
    variance += np.maximum(offered - total, 0.0) * (1.0 / np.minimum(lowest.min(), varied) - 1.0)
    z = (total - offered) / np.sqrt(np.maximum(variance, 1.0))
    for at, name in enumerate(log.arms):
        if abs(z[at]) > _FAR and abs(total[at] / max(offered[at], 1.0) - 1.0) > 0.1:
            faults.add(
                f"the propensities {'declared uniform' if uniform else 'given'} do not fit the counts: 1/propensity "
                f"over the plays of {name!r:.40} sums to {total[at]:.0f} where {offered[at]:.0f} events are expected",
                "Write the probability the arm really had at that moment, of all that was offered; where it could not "
                "be chosen, say so in `available`.",
                kind=f"fit {at}",
            )
        elif abs(z[at]) > _STRANGE:
            warnings.append(
                f"1/propensity over the plays of {name!r:.40} sums to {total[at]:.0f}, expected about "
                f"{offered[at]:.0f} ({z[at]:+.1f} standard deviations)."
            )
    together = misses_together(events, log.menus)
    if together > _STRANGE:
        warnings.append(
            f"The propensities fit the counts on the whole but not over time ({together:.1f} standard deviations): for "
            "long stretches arms were played more, or less, than their propensity says. Averages in place of the "
            "probability at that moment make the values below wrong."
        )


def misses_together(events: Events, menus: np.ndarray) -> float:
    """How many standard deviations the misses of successive stretches go together: each product is a martingale
    difference, whose squares give the scale of their sum."""
    size = max(256, -(-events.n // _STRETCHES))
    count = events.n // size
    if count < 24:
        return 0.0
    misses = np.zeros((count, menus.shape[1]))
    stretch = np.arange(count * size) // size
    part = events.take(slice(0, count * size))
    np.add.at(misses, (stretch, part.arm), 1.0 / part.propensity)
    offers = np.zeros((count, len(menus)))
    np.add.at(offers, (stretch, part.menu), 1.0)
    misses -= offers @ menus
    products = (misses[:-1] * misses[1:]).sum(axis=1)
    scale = math.sqrt(float((products * products).sum()))
    return float(products.sum()) / scale if scale > 0.0 else 0.0
