"""What `tune` tries: a grid of half-lives up to infinity for dTS and DS-TS, DS-TS with other spreads, and policies that
have no half-life to choose."""

import math
from typing import Any

import numpy as np

from driftbandit.logs.candidates import Candidate, candidates
from driftbandit.logs.convert import UNITS
from driftbandit.logs.log import Log
from driftbandit.logs.periods import DAY, HOUR, MINUTE, WEEK, said
from driftbandit.policies.beta_ts import DiscountedBetaTS
from driftbandit.policies.discounted_ts import DiscountedTS

SPREADS = ((0.05, 1.0), (0.1, 1.0), (0.1, 4.0), (0.2, 4.0))  # tau_max, weight
_MOST = 14  # half-lives of a grid
NO_TUNING = ("kl-ucb", "drift-ts")
_NICE = (
    [MINUTE * m for m in (1, 2, 4, 8, 15, 30)] + [HOUR * h for h in (1, 2, 4, 8, 16)]
    + [DAY * d for d in (1, 2, 4)] + [WEEK * w for w in (1, 2, 4, 8, 16, 32, 64, 128)]
)  # fmt: skip


def half_life_grid(log: Log, by_clock: bool) -> list[float]:
    """From four events per arm to half the log, about doubling: lengths of time that people use, or numbers of
    rewards."""
    summary, k = log.summary, log.n_arms
    gap = summary.span / summary.n if by_clock else 1.0
    low, high = 4.0 * k * gap, 0.5 * gap * summary.n
    if by_clock and summary.dates:
        nice = [value for value in _NICE if low <= value <= high]
        if len(nice) >= 3:
            return [nice[round(at)] for at in np.linspace(0, len(nice) - 1, min(len(nice), _MOST))]
    steps = max(2, min(_MOST, int(math.log2(max(high / low, 4.0))) + 1))
    size = UNITS[summary.unit] if by_clock and summary.unit else 1.0
    return sorted(size * float(f"{value / size:.2g}") for value in np.geomspace(low, high, steps))


def checked_grid(half_lives: Any) -> list[float]:
    """A grid given by the user: lengths above 0, at least one of them finite; infinity is always tried."""
    grid = sorted({float(h) for h in half_lives})
    finite = [h for h in grid if math.isfinite(h)]
    if not finite or not grid[0] > 0.0:
        raise ValueError(f"Half-lives are lengths above 0, at least one of them finite; got {list(half_lives)!r:.80}.")
    return finite


def _made(kind: str, half_life: float, by_clock: bool, unit: bool | str, **given: float) -> Candidate:
    """A candidate of a family with this half-life."""
    extra = ", ".join(f"{name}={value:g}" for name, value in given.items())
    if by_clock:
        policy = DiscountedTS(**given) if kind == "ds-ts" else DiscountedBetaTS()
        label = f"{kind}({extra})" if extra else kind
        return Candidate(f"{label} @ {said(half_life, unit)}", policy, half_life)
    gamma = 2.0 ** (-1.0 / half_life)
    policy = DiscountedTS(gamma=gamma, **given) if kind == "ds-ts" else DiscountedBetaTS(gamma=gamma)
    label = f"{kind}({extra + ', ' if extra else ''}half_life={half_life:g} rewards)"
    return Candidate(label, policy, None, half_life)


def grid_candidates(log: Log, grid: list[float], by_clock: bool) -> list[Candidate]:
    """TS, and dTS and DS-TS with every half-life."""
    unit = log.summary.said_in
    out = candidates("ts", unit)
    for kind in ("dts", "ds-ts"):
        out += [_made(kind, h, by_clock, unit) for h in grid]
    return [*out, _made("ds-ts", math.inf, by_clock, unit)]


def untuned_candidates(log: Log, names: Any) -> list[Candidate]:
    """Policies that have no half-life to choose."""
    from driftbandit.text.registry import policies

    there = {getattr(cls, "short", "") for cls in policies().values()}
    return candidates([name for name in names if name in there], log.summary.said_in)


def spread_candidates(grid: list[float], best: float, by_clock: bool, unit: bool | str) -> list[Candidate]:
    """DS-TS with other spreads, around its best half-life: its spread matters as much as its memory."""
    at = grid.index(best)
    near = [*grid[max(at - 1, 0) : at + 2], math.inf]
    return [_made("ds-ts", h, by_clock, unit, tau_max=tau, weight=weight) for h in near for tau, weight in SPREADS]


def family(candidate: Candidate) -> str:
    """What a figure draws as one line."""
    policy = candidate.policy
    if isinstance(policy, DiscountedTS) and (policy.tau_max, policy.weight) in SPREADS:
        return "ds-ts, other spreads"
    return candidate.label.split("(")[0].split("@")[0].strip()
