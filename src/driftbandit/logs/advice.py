"""From the followers of all candidates to one piece of advice.

The first part of the blocks chooses: the best half-life on average, unless the best that never forgets is within one
standard error of it. The last part judges the longest half-life within one standard error of the best, so that nobody
forgets faster than they must: it is recommended if its gain over the best policy that never forgets is above 0 there,
by an interval over blocks. If it is not, the best one is judged. (Where the first part is noisy, half-lives are within
a standard error of the best that hardly forget, and gain nothing.) Two looks can err twice as often as one, in one log
of twenty at most; the table in docs/logs has the measured share.

A policy that forgets by a rule of its own has no half-life: it is compared with the recommendation, and replaces it
only if its gain over it is above 0 by the same interval, and on the whole log too."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs import report
from driftbandit.logs.bootstrap import Estimate, block_mean, needed
from driftbandit.logs.candidates import Candidate
from driftbandit.logs.drift_check import Drift
from driftbandit.logs.faults import refuse
from driftbandit.logs.follow import Followed
from driftbandit.logs.half_lives import SPREADS, family
from driftbandit.logs.imports import import_lines
from driftbandit.logs.log import Log
from driftbandit.logs.periods import said
from driftbandit.logs.refusals import FEWEST_EFFECTIVE, warnings_about
from driftbandit.logs.replayed import effective_size
from driftbandit.logs.report import About, signed
from driftbandit.policies.beta_ts import BetaTS, DiscountedBetaTS
from driftbandit.policies.discounted_ts import DiscountedTS

FIRST = 0.6  # of the blocks choose
_SURE = 1.84  # standard errors: a true difference this large is seen to be above one in four of five logs


class Trial(NamedTuple):
    """One candidate: its value in the part that chooses and in the part that judges."""

    label: str
    family: str
    kind: str  # "half-life", "never" or "itself"
    half_life: float
    first: float
    behind: Estimate  # how far behind the best of the first part
    last: float
    over_never: Estimate  # gain over the best that never forgets, last part


class Tuned(NamedTuple):
    """The advice and what it rests on."""

    drift: Drift
    trials: list[Trial]
    chosen: str  # what is pasted
    never: str  # the best candidate that does not forget
    forgetter: str  # the candidate with a finite half-life that was judged
    recommended: bool  # is its half-life recommended?
    gain: Estimate  # of it over `never`, in the part that judges
    needed: float  # events it would take to tell
    itself: str  # the best candidate that forgets by a rule of its own, if there is one
    itself_gain: Estimate | None  # of it over what is recommended otherwise
    sentence: str
    paste: str  # lines of Python
    warnings: list[str]
    block: float
    blocks: int
    events: int
    by_clock: bool
    about: About = About()

    def __str__(self) -> str:
        return report.text(report.tune_parts(self))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from driftbandit.logs import notebook

        return notebook.tuned_html(self)


def parts(followed: Followed) -> tuple[np.ndarray, np.ndarray]:
    """The blocks that choose and the blocks that judge: the first 60 % of those with events, and the rest."""
    there = np.flatnonzero(followed.events > 0)
    cut = max(2, round(FIRST * len(there)))
    return there[:cut], there[cut:]


class _Judge:
    """Values and differences of candidates in a part of the log, in the log's own unit."""

    def __init__(self, log: Log, followed: Followed) -> None:
        self.sums = (log.reward_range[1] - log.reward_range[0]) * followed.value
        self.events = followed.events
        self.first, self.last = parts(followed)

    def mean(self, at: int, part: np.ndarray) -> float:
        return float(self.sums[part, at].sum() / self.events[part].sum())

    def over(self, at: int, other: int, part: np.ndarray) -> Estimate:
        return block_mean(self.sums[part, at] - self.sums[part, other], self.events[part])

    def best(self, some: list[int]) -> int:
        return max(some, key=lambda at: self.mean(at, self.first))


def advise(log: Log, followed: Followed, found: Drift, grid: list[float], by_clock: bool) -> Tuned:
    """Choose on the first part, judge on the last, and say it."""
    tried, judge = followed.candidates, _Judge(log, followed)
    enough = [at for at in range(len(tried)) if effective_size(followed, at) >= FEWEST_EFFECTIVE]
    still, moving, itself = ([at for at in enough if tried[at].kind == k] for k in ("never", "half-life", "itself"))
    if not still or not moving:
        raise refuse(
            f"the log holds fewer than {FEWEST_EFFECTIVE} events' worth of evidence about every candidate that "
            f"{'forgets' if still else 'never forgets'}",
            "Log with more evenly drawn arms, or for longer.",
        )
    never = judge.best(still)
    best = judge.best(still + moving)
    behind = {at: judge.over(best, at, judge.first) for at in enough}
    rival = judge.best(moving)
    ahead, gain = judge.over(rival, never, judge.first), judge.over(rival, never, judge.last)
    recommended = False
    if ahead.mean > ahead.error:
        close = [at for at in moving if behind[at].mean <= behind[at].error]
        longest = max(close, key=lambda at: (tried[at].forgets, judge.mean(at, judge.first)))
        for at in (longest, rival):
            its_gain = judge.over(at, never, judge.last)
            if its_gain.low > 0.0:
                rival, gain, recommended = at, its_gain, True
                break
    wanted = _wanted(log.n, ahead, gain)
    pick = rival if recommended else never
    sentence = _sentence(log, tried[rival].label, tried[never].label, recommended, gain, wanted)
    alone = judge.best(itself) if itself else None
    alone_gain = None if alone is None else judge.over(alone, pick, judge.last)
    if alone is not None and alone_gain is not None:
        overall = judge.over(alone, pick, np.concatenate([judge.first, judge.last])).mean > 0.0
        sentence = f"{sentence} {_aside(log, tried[alone].label, tried[pick].label, alone_gain, overall)}"
        if alone_gain.low > 0.0 and overall:
            pick = alone
    low = log.reward_range[0]
    trials = [
        Trial(
            tried[at].label, family(tried[at]), tried[at].kind, tried[at].forgets, low + judge.mean(at, judge.first),
            behind[at], low + judge.mean(at, judge.last), judge.over(at, never, judge.last),
        )
        for at in enough
    ]  # fmt: skip
    warnings = warnings_about(log, [tried[rival].forgets] if by_clock else ())
    warnings += _warnings(tried[rival], grid, recommended, gain)
    if len(enough) < len(tried):
        warnings.append(
            f"{len(tried) - len(enough)} of {len(tried)} candidates were left out: the log holds fewer than "
            f"{FEWEST_EFFECTIVE} events' worth of evidence about each (effective sample size)."
        )
    return Tuned(
        found, trials, tried[pick].label, tried[never].label, tried[rival].label, recommended, gain, wanted,
        "" if alone is None else tried[alone].label, alone_gain, sentence, _paste(log, tried[pick]), warnings,
        followed.length, int((followed.events > 0).sum()), log.n, by_clock,
    )  # fmt: skip


def _wanted(n: int, first: Estimate, last: Estimate) -> float:
    """How many events it would take: for the last part, n (2.8 s.e. / difference)^2, the standard error being no
    smaller than the interval says; for the first, enough to be more than one standard error ahead."""
    if last.mean <= 0.0 or first.mean <= 0.0:
        return math.inf
    error = max(last.error, (last.mean - last.low) / 1.96)
    choosing = n * (_SURE * first.error / first.mean) ** 2 if first.mean <= first.error else 0.0
    return max(needed(n, error, last.mean), choosing)


def _warnings(rival: Candidate, grid: list[float], recommended: bool, gain: Estimate) -> list[str]:
    out = []
    if rival.forgets in (grid[0], grid[-1]) and (recommended or gain.mean > 0.0):
        end = "shortest" if rival.forgets == grid[0] else "longest"
        out.append(
            f"The best half-life is the {end} one tried: the truth may lie beyond; half_lives= (--half-lives) tries "
            "others."
        )
    if recommended and isinstance(rival.policy, DiscountedTS) and rival.policy.tau_max == SPREADS[0][0]:
        out.append(
            "The narrowest spread tried is best for a follower, which hears of all arms whatever it chooses; alone it "
            "might explore too little. Compare own histories: driftbandit replay."
        )
    return out


def _much(log: Log, gain: Estimate) -> str:
    unit, word = (100.0, " points") if log.reward_range == (0.0, 1.0) else (1.0, "")
    mean, low, high = (unit * value for value in gain[:3])
    digits = 2 if max(abs(mean), abs(low), abs(high)) >= 0.05 else 4
    return f"{signed(mean, digits)}{word} [{signed(low, digits)}, {signed(high, digits)}]"


def _sentence(log: Log, rival: str, never: str, recommended: bool, gain: Estimate, wanted: float) -> str:
    """What the last part says of the best half-life of the first, and no more than it says."""
    much = f"{_much(log, gain)} over {never}"
    if recommended:
        return f"Forgetting pays: {rival} earns {much} in the part of the log that did not choose it."
    more = ""
    if math.isfinite(wanted):
        more = f"; about {float(f'{wanted:.2g}'):,.0f} events would be needed, and there are {log.n:,}"
    if gain.low > 0.0:
        return (
            f"The parts of the log disagree: {rival}, the best half-life of the first, is not clearly ahead of {never} "
            f"there, but earns {_much(log, gain)} over it in the last{more}."
        )
    if gain.high < -log.negligible:
        return f"Forgetting by a half-life does not pay: the best forgetter, {rival}, earns {much} in the last part."
    if gain.high < 0.0:  # a half-life so long that it hardly forgets says nothing about the others
        return (
            f"No half-life is seen to pay: the best forgetter, {rival}, earns {much} in the last part, too little to "
            "tell them apart."
        )
    if more:
        return f"Not distinguishable: {rival} earns {much} in the last part{more}."
    return (
        f"No half-life is seen to pay: the best forgetter, {rival}, earns {much} in the last part, which does not "
        "exclude a gain."
    )


def _aside(log: Log, label: str, pick: str, gain: Estimate, overall: bool) -> str:
    """What is to be said of a policy that forgets by a rule of its own."""
    much = f"{label}, which has no half-life to choose, earns {_much(log, gain)} over {pick}"
    if gain.low > 0.0:
        return f"{much}: better." if overall else f"{much}: better there, but not over the whole log."
    if gain.high < 0.0:
        return f"{much}: worse." if gain.high < -log.negligible else f"{much}: about the same."
    return f"{much}: not distinguishable."


def _paste(log: Log, candidate: Candidate) -> str:
    """The lines to paste: what to import, and an agent with what was found."""
    policy = candidate.policy
    if isinstance(policy, BetaTS) and candidate.half_life is not None:  # ts with a half-life is dts
        policy = DiscountedBetaTS(**policy._asdict())
    defaults = type(policy)._field_defaults
    given = {name: value for name, value in policy._asdict().items() if value != defaults.get(name)}
    rounds = candidate.rounds is not None and math.isfinite(candidate.rounds)
    text = ", ".join(f"{name}={value!r}" for name, value in given.items())
    clock = ""
    if candidate.half_life is not None and math.isfinite(candidate.half_life):
        unit = log.summary.said_in
        exact = said(candidate.half_life, unit) if unit and unit != "ns" else candidate.half_life
        clock = f", half_life={exact!r}"
    elif candidate.half_life is not None:  # an infinite half-life by the clock is a discount of 1
        text = ", ".join(["gamma=1.0", *([text] if text else [])])
    arms: list[Any] = list(log.arms)
    note = f"  # half-life {candidate.rounds:g} rewards" if rounds else ""
    sides = ", ".join(f"{side:.0f}" if side.is_integer() else repr(side) for side in log.reward_range)
    rewards = "" if log.reward_range == (0.0, 1.0) else f", reward_range=({sides})"
    line = f"agent = Agent({type(policy).__name__}({text}), arms={arms!r}{rewards}{clock}){note}"
    return "\n".join([*import_lines(policy), line])
