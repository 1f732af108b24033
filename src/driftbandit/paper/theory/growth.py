"""How regret grows: with the horizon, the number of phases, the difficulty 1/gap and the number of arms.

The theorems give orders, such as sqrt(T B_T) / gap^2, that hide all constants. An exponent can be measured: regret
against one quantity, all others fixed, is a line on doubly logarithmic axes. Every policy is tuned anew at every point
by its own theory's formula, as the orders assume. The interval covers the randomness of the runs and not a line that
bends, so the table also has the exponent of the last three points. An order is an upper bound in the limit, so a
smaller exponent is not a contradiction, and a larger one says that the limit is far.

Points at which a policy costs more than half of what uniform play costs are not fitted: little was learned there, and
regret is then nearly the gap times the horizon whatever the policy does."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments import AbruptGap
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.support.progress import Progress
from driftbandit.paper.theory.peers import table1
from driftbandit.policies.beta_ts import SlidingTS
from driftbandit.policies.cusum_ucb import CusumUCB
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.ucb import DiscountedUCB

RESAMPLES = 2000
SATURATED = 0.5  # share of uniform play's regret from which a point is not fitted
HEAD = ["regret against", "policy", "points", "exponent", "95% interval", "last three", "order", "verdict"]
Maker = Callable[[int, int, int], Any]  # (horizon, phases, n_arms) -> policy


def uncapped(horizon: int, phases: int, n_arms: int) -> DiscountedTS:
    """DS-TS with tau_max = 1, so that its spread is N**(-1/2) nearly always.

    With the paper's 1/5 an idle arm's spread stops growing at 1/5, so a wrong arm `gap` below the best is tried at the
    fixed rate P(Z > 5 gap) until the memory is long enough to hold 25 tries of it. Up to there regret is linear in T,
    however gamma is tuned."""
    return DiscountedTS.tuned(horizon, phases, n_arms, tau_max=1.0)


POLICIES: Mapping[str, Maker] = {
    "ds-ts": DiscountedTS.tuned,
    "ds-ts, tau_max 1": uncapped,
    "sw-ts": SlidingTS.tuned,
    "d-ucb": DiscountedUCB.tuned,
    "cusum-ucb": CusumUCB.tuned,
}


class Sweep(NamedTuple):
    """One quantity varied, the others fixed."""

    name: str
    field: str  # its name in AbruptGap
    values: tuple[float, ...]
    base: AbruptGap

    def world(self, value: float) -> AbruptGap:
        """The environment at one value."""
        kept = self.base._asdict()
        return AbruptGap(**{**kept, self.field: type(kept[self.field])(value)})

    def x(self) -> np.ndarray:
        """The values on the axis: the gap as its inverse, since small gaps are the hard ones."""
        values = np.array(self.values, float)
        return 1.0 / values if self.field == "gap" else values


class PowerLaw(NamedTuple):
    """The exponent of a measured line and the theorem's; NaN with fewer than three points to fit."""

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

    def row(self) -> list[str]:
        """A line of the table under `HEAD`."""
        fitted = (f"{self.exponent:.2f}", f"{self.low:.2f} to {self.high:.2f}", f"{self.last:.2f}")
        shown = ("-", "-", "-") if self.points < 3 else fitted
        order = "-" if self.order is None else f"{self.order:.2f}"
        return [self.sweep, self.policy, str(self.points), *shown, order, self.verdict]


def sweeps(scale: float = 1.0) -> list[Sweep]:
    """The four sweeps; `scale` multiplies all horizons."""

    def rounds(horizon: int) -> int:
        return max(400, int(horizon * scale))

    base = AbruptGap(n_arms=3, horizon=rounds(200_000), phases=4, gap=0.4)
    horizons = tuple(float(rounds(8_000 * 2**k)) for k in range(8))
    return [
        Sweep("horizon T", "horizon", tuple(dict.fromkeys(horizons)), base),
        Sweep("phases B_T", "phases", (2, 4, 8, 16, 32, 64), base),
        Sweep("1 / gap", "gap", (0.5, 0.42, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1), base),
        Sweep("arms K", "n_arms", (2, 4, 8, 16, 32), base),
    ]


def growth(
    runs: int = 40,
    seed: int = 0,
    scale: float = 1.0,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = True,
    *,
    chosen: Sequence[Sweep] | None = None,
    policies: Mapping[str, Maker] = POLICIES,
) -> list[PowerLaw]:
    """Play every policy, tuned by its theory, at every value of every sweep, and fit the exponents."""
    if not 0.0 < scale <= 100.0:
        raise ValueError(f"scale needs a number in (0, 100]; got {scale:g}.")
    wanted = sweeps(scale) if chosen is None else chosen
    found = []
    with Progress(sum(len(sweep.values) for sweep in wanted) * len(policies), progress, label="growth") as bar:
        for sweep in wanted:
            for name, make in policies.items():
                rows = []
                for value in sweep.values:
                    rows.append(_final(make, sweep.world(value), runs, seed, workers))
                    bar.add(1)
                found.append(fit(name, sweep, np.array(rows)))
    return found


def _final(make: Maker, world: AbruptGap, runs: int, seed: int, workers: int | None) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a gamma kept at the edge of the theory's domain; the widest sweeps touch it
        policy = make(world.horizon, world.phases, world.n_arms)
    return simulate(policy, world, runs, seed, checkpoints=1, workers=workers).regret[:, -1]


def weights(x: np.ndarray) -> np.ndarray:
    """w with slope = w @ y: least squares of y against ln x is linear in y.

    >>> round(float(weights(np.array([1.0, 10.0, 100.0])) @ np.log([2.0, 20.0, 200.0])), 9)
    1.0
    """
    centred = np.log(x) - np.log(x).mean()
    return np.asarray(centred / (centred @ centred))


def fit(policy: str, sweep: Sweep, regret: np.ndarray, seed: int = 0) -> PowerLaw:
    """The exponent of regret (a row per value, a column per run) with a bootstrap interval. Runs are drawn again with
    replacement, the same ones at every value, because a run keeps its random numbers along a sweep."""
    worlds = [sweep.world(value) for value in sweep.values]
    uniform = np.array([w.horizon * w.gap * (1.0 - 1.0 / w.n_arms) for w in worlds])
    kept = regret.mean(axis=1) < SATURATED * uniform
    if kept.sum() < 3:
        none = math.nan
        return PowerLaw(policy, sweep.name, int(kept.sum()), none, none, none, none, order_slope(policy, sweep))
    x, regret = sweep.x()[kept], np.maximum(regret[kept], 1e-12)
    w, runs = weights(x), regret.shape[1]
    picks = np.random.default_rng(seed).integers(0, runs, (RESAMPLES, runs))
    low, high = np.quantile(w @ np.log(regret[:, picks].mean(axis=2)), [0.025, 0.975])
    line = np.log(regret.mean(axis=1))
    ends = float(w @ line), float(low), float(high), float(weights(x[-3:]) @ line[-3:])
    return PowerLaw(policy, sweep.name, len(x), *ends, order_slope(policy, sweep, kept))


def order_slope(policy: str, sweep: Sweep, kept: np.ndarray | None = None) -> float | None:
    """The slope of Table 1's order over the values of a sweep. Logarithms are left out, as there.

    CUSUM's order is a sum, so its slope depends on the range."""
    if sweep.field == "n_arms":
        return None
    kept = np.ones(len(sweep.values), bool) if kept is None else kept
    sizes = []
    for value in np.array(sweep.values)[kept]:
        world = sweep.world(value)
        order = table1(world.horizon, world.phases, world.gap).get(policy.split(",")[0])
        if order is None or order.log10 is None:
            return None
        sizes.append(order.log10 * math.log(10.0))
    return float(weights(sweep.x()[kept]) @ np.array(sizes))
