"""How fast to forget: a half-life chosen on the first part of a log and judged on the last, or a plain "cannot tell".

The follower of every candidate runs over the whole log. The first part of the blocks chooses: the best on average sets
the mark, and the longest half-life within one standard error of it is taken, so that forgetting must earn its place.
The last part judges: the choice is recommended only if its gain over the best policy that never forgets is above 0
there, by an interval over blocks. In a world that stands still that happens in fewer than one log of forty."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.logs.bootstrap import Estimate, block_mean, needed
from driftbandit.logs.candidates import Candidate, candidates
from driftbandit.logs.drift_check import Drift, drift
from driftbandit.logs.faults import refuse
from driftbandit.logs.follow import Followed, follow
from driftbandit.logs.log import Log
from driftbandit.logs.periods import DAY, HOUR, MINUTE, WEEK, said
from driftbandit.logs.refusals import FEWEST_EFFECTIVE, refuse_what_cannot_tell, warnings_about
from driftbandit.logs.replayed import effective_size, refuse_few_blocks
from driftbandit.policies.beta_ts import DiscountedBetaTS
from driftbandit.policies.discounted_ts import DiscountedTS

FIRST = 0.6  # of the blocks choose
SPREADS = ((0.05, 1.0), (0.1, 1.0), (0.1, 4.0), (0.2, 4.0))  # tau_max, weight
NO_TUNING = ("kl-ucb", "drift-ts")
_NICE = (
    [MINUTE * m for m in (1, 2, 4, 8, 15, 30)] + [HOUR * h for h in (1, 2, 4, 8, 16)]
    + [DAY * d for d in (1, 2, 4)] + [WEEK * w for w in (1, 2, 4, 8, 16, 32, 64, 128)]
)  # fmt: skip


class Trial(NamedTuple):
    """One candidate: its value in the part that chooses and in the part that judges."""

    label: str
    family: str
    half_life: float
    first: float
    behind: Estimate  # how far behind the best of the first part
    last: float
    over_never: Estimate  # gain over the best that never forgets, last part


class Tuned(NamedTuple):
    """The advice and what it rests on."""

    drift: Drift
    trials: list[Trial]
    chosen: str
    never: str  # the best candidate that does not forget
    recommended: bool  # is the chosen finite half-life recommended?
    gain: Estimate  # of the best forgetter over it, in the part that judges
    needed: float  # events it would take to tell
    sentence: str
    paste: str
    warnings: list[str]
    block: float
    blocks: int
    events: int
    by_clock: bool


def tune(
    log: Log,
    *,
    block: Any = None,
    half_lives: Any = None,
    by_clock: bool = True,
    others: Any = (),
    untuned: Any = NO_TUNING,
    seed: int = 0,
    compiled: bool = True,
) -> Tuned:
    """Choose how fast to forget. `half_lives` replaces the grid; with by_clock=False they count rewards; `others` adds
    policies of your own; `untuned` are those without a half-life that may win instead."""
    refuse_what_cannot_tell(log)
    found = drift(log, block=block, seed=seed)
    grid = half_life_grid(log, by_clock) if half_lives is None else sorted(float(h) for h in half_lives)
    grid = [h for h in grid if math.isfinite(h)]
    tried = [*_grid_candidates(log, grid, by_clock), *_untuned(log, untuned), *candidates(others, log.summary.dates)]
    followed = follow(log, tried, block=block, seed=seed, compiled=compiled)
    refuse_few_blocks(int((followed.events > 0).sum()))
    spread = _spread_candidates(log, followed, grid, by_clock)
    more = follow(log, spread, block=block, seed=seed, compiled=compiled)
    followed = _joined(followed, more)
    return _chosen(log, followed, found, grid, by_clock)


def half_life_grid(log: Log, by_clock: bool) -> list[float]:
    """From about one event an arm to half the log, doubling: lengths of time people say, or numbers of rewards."""
    summary, k = log.summary, log.n_arms
    gap = summary.span / summary.n if by_clock else 1.0
    low, high = 4.0 * k * gap, 0.5 * gap * summary.n
    if by_clock and summary.dates:
        nice = [value for value in _NICE if low <= value <= high]
        if len(nice) >= 3:
            return nice[-12:]
    steps = max(2, min(12, int(math.log2(max(high / low, 4.0))) + 1))
    return [float(f"{value:.2g}") for value in np.geomspace(low, high, steps)]


def _made(kind: str, half_life: float, by_clock: bool, dates: bool, **given: float) -> Candidate:
    """A candidate of a family with this half-life."""
    extra = ", ".join(f"{name}={value:g}" for name, value in given.items())
    if by_clock:
        policy = DiscountedTS(**given) if kind == "ds-ts" else DiscountedBetaTS()
        label = f"{kind}({extra})" if extra else kind
        return Candidate(f"{label} @ {said(half_life, dates)}", policy, half_life)
    gamma = 2.0 ** (-1.0 / half_life)
    policy = DiscountedTS(gamma=gamma, **given) if kind == "ds-ts" else DiscountedBetaTS(gamma=gamma)
    label = f"{kind}({extra + ', ' if extra else ''}half_life={half_life:g} rewards)"
    return Candidate(label, policy, None, half_life)


def _grid_candidates(log: Log, grid: list[float], by_clock: bool) -> list[Candidate]:
    dates = log.summary.dates
    out = candidates("ts", dates)
    for kind in ("dts", "ds-ts"):
        out += [_made(kind, h, by_clock, dates) for h in grid]
    return [*out, _made("ds-ts", math.inf, by_clock, dates)]


def _untuned(log: Log, names: Any) -> list[Candidate]:
    from driftbandit.text.registry import policies

    there = {getattr(cls, "short", "") for cls in policies().values()}
    return candidates([name for name in names if name in there], log.summary.dates)


def _spread_candidates(log: Log, followed: Followed, grid: list[float], by_clock: bool) -> list[Candidate]:
    """DS-TS with other spreads, around its best half-life of the first part: its spread matters as much as its
    memory."""
    first, _ = parts(followed)
    values = followed.value[first].sum(axis=0)
    mine = [at for at, c in enumerate(followed.candidates) if _family(c) == "ds-ts" and math.isfinite(c.forgets)]
    best = grid.index(followed.candidates[max(mine, key=lambda at: values[at])].forgets)
    near = [*grid[max(best - 1, 0) : best + 2], math.inf]
    return [
        _made("ds-ts", h, by_clock, log.summary.dates, tau_max=tau, weight=weight)
        for h in near
        for tau, weight in SPREADS
    ]


def _joined(one: Followed, two: Followed) -> Followed:
    columns = ("value", "noise", "weight", "weight2", "weighted", "accepted", "earned")
    both: dict[str, Any] = {name: np.concatenate([getattr(one, name), getattr(two, name)], axis=1) for name in columns}
    return one._replace(candidates=[*one.candidates, *two.candidates], **both)


def parts(followed: Followed) -> tuple[np.ndarray, np.ndarray]:
    """The blocks that choose and the blocks that judge: the first 60 % of those with events, and the rest."""
    there = np.flatnonzero(followed.events > 0)
    cut = max(2, round(FIRST * len(there)))
    return there[:cut], there[cut:]


def _family(candidate: Candidate) -> str:
    policy = candidate.policy
    if isinstance(policy, DiscountedTS) and (policy.tau_max, policy.weight) in SPREADS:
        return "ds-ts, other spreads"
    return candidate.label.split("(")[0].split("@")[0].strip()


def _chosen(log: Log, followed: Followed, found: Drift, grid: list[float], by_clock: bool) -> Tuned:
    first, last = parts(followed)
    tried = followed.candidates
    enough = [at for at in range(len(tried)) if effective_size(followed, at) >= FEWEST_EFFECTIVE]
    if not enough:
        raise refuse(
            f"the log holds fewer than {FEWEST_EFFECTIVE} events' worth of evidence about every candidate",
            "Log with more evenly drawn arms, or for longer.",
        )
    width = log.reward_range[1] - log.reward_range[0]
    sums = width * followed.value
    events = followed.events

    def mean(at: int, part: np.ndarray) -> float:
        return float(sums[part, at].sum() / events[part].sum())

    def over(at: int, other: int, part: np.ndarray) -> Estimate:
        return block_mean(sums[part, at] - sums[part, other], events[part])

    best = max(enough, key=lambda at: mean(at, first))
    behind = {at: over(best, at, first) for at in enough}
    close = [at for at in enough if behind[at].mean <= behind[at].error]
    chosen = max(close, key=lambda at: (tried[at].forgets, mean(at, first)))
    still = [at for at in enough if math.isinf(tried[at].forgets)]
    never = max(still or [best], key=lambda at: mean(at, first))
    moving = [at for at in enough if math.isfinite(tried[at].forgets)]
    rival = chosen if math.isfinite(tried[chosen].forgets) else max(moving, key=lambda at: mean(at, first))
    gain = over(rival, never, last)
    recommended = math.isfinite(tried[chosen].forgets) and gain.low > 0.0
    wanted = needed(log.n, gain.error, gain.mean) if gain.mean > 0.0 else math.inf
    pick = rival if recommended else never
    low = log.reward_range[0]
    trials = [
        Trial(
            tried[at].label, _family(tried[at]), tried[at].forgets, low + mean(at, first), behind[at],
            low + mean(at, last), over(at, never, last),
        )
        for at in enough
    ]  # fmt: skip
    warnings = warnings_about(log, [tried[rival].forgets] if by_clock else ())
    if tried[rival].forgets in (grid[0], grid[-1]) and (recommended or gain.mean > 0.0):
        end = "shortest" if tried[rival].forgets == grid[0] else "longest"
        warnings.append(
            f"The best half-life is the {end} one tried: the truth may lie beyond; give half_lives= yourself."
        )
    if recommended and isinstance(tried[rival].policy, DiscountedTS) and tried[rival].policy.tau_max == SPREADS[0][0]:
        warnings.append(
            "The narrowest spread tried is best for a follower, which hears of all arms whatever it chooses; alone it "
            "might explore too little. Compare own histories: driftbandit replay."
        )
    return Tuned(
        found,
        trials,
        tried[pick].label,
        tried[never].label,
        recommended,
        gain,
        wanted,
        _sentence(log, tried[rival].label, tried[never].label, recommended, gain, wanted),
        _paste(log, tried[pick], by_clock),
        warnings,
        followed.length,
        int((events > 0).sum()),
        log.n,
        by_clock,
    )


def _sentence(log: Log, rival: str, never: str, recommended: bool, gain: Estimate, wanted: float) -> str:
    unit = 100.0 if log.reward_range == (0.0, 1.0) else 1.0
    word = " points" if unit == 100.0 else ""
    much = f"{unit * gain.mean:+.2f}{word} [{unit * gain.low:+.2f}, {unit * gain.high:+.2f}]"
    if recommended:
        return f"Forgetting pays: {rival} earns {much} over {never} in the part of the log that did not choose it."
    if gain.high < 0.0:
        return f"Forgetting does not pay: the best forgetter, {rival}, earns {much} over {never}."
    if gain.mean <= 0.0 or not math.isfinite(wanted):
        return f"Forgetting does not seem to pay: the best forgetter, {rival}, earns {much} over {never}."
    more = f"about {float(f'{wanted:.2g}'):,.0f} events would be needed, and there are {log.n:,}"
    if wanted <= log.n:
        more = f"the choosing part was not sure of it; about twice the {log.n:,} events would settle it"
    return f"Not distinguishable: {rival} earns {much} over {never}; {more}."


def _paste(log: Log, candidate: Candidate, by_clock: bool) -> str:
    """The line to paste: an agent with what was found."""
    policy = candidate.policy
    defaults = type(policy)._field_defaults
    given = {name: value for name, value in policy._asdict().items() if value != defaults.get(name)}
    rounds = candidate.rounds is not None and math.isfinite(candidate.rounds)
    text = ", ".join(f"{name}={value!r}" for name, value in given.items())
    clock = ""
    if candidate.half_life is not None and math.isfinite(candidate.half_life):
        exact = said(candidate.half_life, True) if log.summary.dates else candidate.half_life
        clock = f", half_life={exact!r}"
    elif candidate.half_life is not None:  # an infinite half-life by the clock is a discount of 1
        text = ", ".join(["gamma=1.0", *([text] if text else [])])
    arms: list[Any] = list(log.arms)
    note = f"  # half-life {candidate.rounds:g} rewards" if rounds else ""
    return f"Agent({type(policy).__name__}({text}), arms={arms!r}{clock}){note}"
