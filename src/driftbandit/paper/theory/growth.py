"""How regret grows with the horizon, the number of phases, the difficulty 1/gap and the number of arms.

Regret against one quantity, with all others fixed, is a line on doubly logarithmic axes. Its slope is an exponent
that can be compared with the orders of Table 1. Every policy is tuned at every point by its theory's formula. The
interval covers the randomness of the runs and not a line that bends, so the last three points have their own exponent.

Points at which a policy has more than half of uniform play's regret are not fitted: little was learned there, and
regret is nearly the gap times the horizon whatever the policy does."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments import AbruptGap
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.progress import Progress
from driftbandit.lab.summaries import Contents, Report, ShownTable
from driftbandit.paper.theory.theorem import table1
from driftbandit.policies.beta_ts import SlidingTS
from driftbandit.policies.detecting_ucb import CusumUCB
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.ucb import DiscountedUCB

RESAMPLES = 2000
SATURATED = 0.5  # share of uniform play's regret from which a point is not fitted
Maker = Callable[[int, int, int], Any]  # (horizon, phases, n_arms) -> policy

# With the paper's tau_max = 1/5, an arm `gap` below the best is tried at the fixed rate P(Z > 5 gap) until the memory
# holds 25 tries of it. Up to there regret is linear in T; with tau_max = 1 it is not.
POLICIES: Mapping[str, Maker] = {
    "ds-ts": DiscountedTS.tuned,
    "ds-ts, tau_max 1": lambda horizon, phases, n_arms: DiscountedTS.tuned(horizon, phases, n_arms, tau_max=1.0),
    "sw-ts": SlidingTS.tuned,
    "d-ucb": DiscountedUCB.tuned,
    "cusum-ucb": CusumUCB.tuned,
}


class Sweep(NamedTuple):
    """One quantity varied, the others fixed."""

    name: str
    field: str  # its name in AbruptGap
    values: tuple[float, ...]
    base: AbruptGap = AbruptGap(n_arms=3, horizon=200_000, phases=4, gap=0.4)

    def environment(self, value: float) -> AbruptGap:
        """The environment at one value."""
        kept = self.base._asdict()
        return AbruptGap(**{**kept, self.field: type(kept[self.field])(value)})

    def x(self) -> np.ndarray:
        """The values on the axis; the gap as its inverse, since small gaps are hard."""
        values = np.array(self.values, float)
        return 1.0 / values if self.field == "gap" else values


SWEEPS = (
    Sweep("horizon T", "horizon", tuple(8_000 * 2**k for k in range(8))),
    Sweep("phases B_T", "phases", (2, 4, 8, 16, 32, 64)),
    Sweep("1 / gap", "gap", (0.5, 0.42, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1)),
    Sweep("arms K", "n_arms", (2, 4, 8, 16, 32)),
)


class PowerLaw(NamedTuple):
    """A measured exponent and that of Table 1; NaN with fewer than three points to fit."""

    policy: str
    sweep: str
    points: int  # how many points were fitted
    exponent: float
    low: float
    high: float
    last: float  # exponent of the last three of them
    order: float | None  # slope of Table 1's order over the same values; None where it does not contain the quantity

    @property
    def verdict(self) -> str:
        """The measured exponent compared with the order's."""
        if self.points < 3:
            return "saturated"
        if self.order is None:
            return "not in the order"
        if self.low > self.order:
            return "steeper in this range"
        return "as the order" if self.high >= self.order else "flatter"


@dataclass(frozen=True, repr=False)
class Growth(Report):
    """The exponents of every policy in every sweep."""

    runs: int
    seed: int
    fits: list[PowerLaw]

    def _contents(self) -> Contents:
        """One table."""
        rows = []
        for fit in self.fits:
            shown = [f"{fit.exponent:.2f}", f"{fit.low:.2f} to {fit.high:.2f}", f"{fit.last:.2f}"]
            order = "-" if fit.order is None else f"{fit.order:.2f}"
            fitted = shown if fit.points > 2 else ["-", "-", "-"]
            rows.append([fit.sweep, fit.policy, str(fit.points), *fitted, order, fit.verdict])
        head = ["regret against", "policy", "points", "exponent", "95% interval", "last three", "order", "verdict"]
        title = "AbruptGap, one quantity varied at a time"
        return [ShownTable(f"{title}; {self.runs} runs per point, seed {self.seed}; tuned by theory", head, rows)]


def growth(
    runs: int = 40,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = True,
    sweeps: Sequence[Sweep] = SWEEPS,
    policies: Mapping[str, Maker] = POLICIES,
) -> Growth:
    """Simulate every policy, tuned by its theory, at every value of every sweep, and fit the exponents."""
    found = []
    with Progress(sum(len(sweep.values) for sweep in sweeps) * len(policies), progress, label="growth") as bar:
        for sweep in sweeps:
            for name, make in policies.items():
                rows = []
                for value in sweep.values:
                    environment = sweep.environment(value)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # a gamma kept at the edge of the theory's domain
                        policy = make(environment.horizon, environment.phases, environment.n_arms)
                    played = simulate(policy, environment, runs, seed, checkpoints=1, workers=workers)
                    rows.append(played.regret[:, -1])
                    bar.add(1)
                found.append(fit(name, sweep, np.array(rows)))
    return Growth(runs, seed, found)


def slope_weights(x: np.ndarray) -> np.ndarray:
    """w with slope = w @ y: least squares of y against ln x is linear in y.

    >>> round(float(slope_weights(np.array([1.0, 10.0, 100.0])) @ np.log([2.0, 20.0, 200.0])), 9)
    1.0
    """
    centred = np.log(x) - np.log(x).mean()
    return np.asarray(centred / (centred @ centred))


def fit(policy: str, sweep: Sweep, regret: np.ndarray, seed: int = 0) -> PowerLaw:
    """The exponent of regret (a row per value, a column per run) with a bootstrap interval. Runs are drawn with
    replacement, the same ones at every value, because a run keeps its random numbers along a sweep."""
    environments = [sweep.environment(value) for value in sweep.values]
    uniform = np.array([e.horizon * e.gap * (1.0 - 1.0 / e.n_arms) for e in environments])
    kept = regret.mean(axis=1) < SATURATED * uniform
    if kept.sum() < 3:
        return PowerLaw(policy, sweep.name, int(kept.sum()), math.nan, math.nan, math.nan, math.nan, None)
    x, regret = sweep.x()[kept], np.maximum(regret[kept], 1e-12)
    w, runs = slope_weights(x), regret.shape[1]
    picks = np.random.default_rng(seed).integers(0, runs, (RESAMPLES, runs))
    low, high = np.quantile(w @ np.log(regret[:, picks].mean(axis=2)), [0.025, 0.975])
    line = np.log(regret.mean(axis=1))
    ends = float(w @ line), float(low), float(high), float(slope_weights(x[-3:]) @ line[-3:])
    return PowerLaw(policy, sweep.name, len(x), *ends, order_slope(policy, sweep, kept))


def order_slope(policy: str, sweep: Sweep, kept: np.ndarray) -> float | None:
    """The slope of Table 1's order over the values kept of a sweep. CUSUM's order is a sum, so its slope depends on
    the range."""
    if sweep.field == "n_arms":
        return None
    environments = [sweep.environment(value) for value in np.array(sweep.values)[kept]]
    sizes = [table1(e.horizon, e.phases, e.gap)[policy.split(",")[0]] for e in environments]
    return float(slope_weights(sweep.x()[kept]) @ np.log(sizes))
