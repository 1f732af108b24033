"""How regret grows: with the horizon, the number of phases, the difficulty 1/gap and the number of arms.

The theorems give orders, such as sqrt(T B_T) / gap^2, that hide all constants. An exponent can be measured: regret
against one quantity, all others fixed, is a line on doubly logarithmic paper. Every policy is tuned anew at every point
by its own theory's formula, as the orders assume. Two cautions: the interval covers the luck of the runs and not a line
that bends, so the exponent of the last three points stands beside it; and an order is an upper bound in the limit, so a
smaller exponent is not a contradiction, and a larger one says that the limit is far.

Points at which a policy costs more than half of what uniform play costs are shown and not fitted: little was learned
there, and regret is then nearly the gap times the horizon whatever the policy does."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments import AbruptGap
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.paper.theory.peers import table1
from driftbandit.lab.plots.chart import save_chart
from driftbandit.lab.plots.style import looks, narrow
from driftbandit.lab.stats.intervals import t_interval
from driftbandit.lab.support.progress import Progress
from driftbandit.lab.support.tables import save_rows
from driftbandit.policies.beta_ts import SlidingTS
from driftbandit.policies.cusum_ucb import CusumUCB
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.ucb import DiscountedUCB

RESAMPLES = 2000
SATURATED = 0.5  # share of uniform play's regret from which a point is not fitted
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

    name: str  # what is varied, as the axis says it
    field: str  # its name in AbruptGap
    values: tuple[float, ...]
    base: AbruptGap

    def world(self, value: float) -> AbruptGap:
        """The world at one value."""
        kept = self.base._asdict()
        return AbruptGap(**{**kept, self.field: type(kept[self.field])(value)})

    def x(self) -> np.ndarray:
        """Where the values stand on the axis: the gap as its inverse, since small gaps are the hard ones."""
        values = np.array(self.values, float)
        return 1.0 / values if self.field == "gap" else values

    @property
    def guide(self) -> float:
        """The slope of DS-TS's order; 1 for arms, over which the bound is a sum."""
        slope = order_slope("ds-ts", self)
        return 1.0 if slope is None else slope


class MeasuredSweep(NamedTuple):
    """Final regret of one policy over one sweep, a row per value and a column per run."""

    policy: str
    sweep: Sweep
    regret: np.ndarray
    seconds: float

    def fitted(self) -> np.ndarray:
        """Which points are fitted: those that cost less than half of uniform play."""
        worlds = [self.sweep.world(value) for value in self.sweep.values]
        uniform = np.array([w.horizon * w.gap * (1.0 - 1.0 / w.n_arms) for w in worlds])
        return np.asarray(self.regret.mean(axis=1) < SATURATED * uniform)


class PowerLaw(NamedTuple):
    """The exponent of a measured line beside the theorem's; NaN with fewer than three points to fit."""

    policy: str
    sweep: str
    points: int  # how many points were fitted
    exponent: float
    low: float
    high: float
    last: float  # exponent of the last three of them: what the line bends to
    order: float | None  # slope of Table 1's order over the same values; None where it does not contain the quantity

    @property
    def verdict(self) -> str:
        """How the measured exponent lies to the order's."""
        if self.points < 3:
            return "saturated"
        if self.order is None:
            return "not in the order"
        if self.low > self.order:
            return "steeper in this range"
        return "as the order" if self.high >= self.order else "flatter"


def sweeps(scale: float = 1.0) -> list[Sweep]:
    """The four sweeps; `scale` shrinks all horizons, for a quick look."""

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


class Growth(NamedTuple):
    """Every sweep as it was played, and the power law fitted to each."""

    measured: tuple[MeasuredSweep, ...]
    fits: tuple[PowerLaw, ...]


def growth(
    runs: int = 40,
    seed: int = 0,
    scale: float = 1.0,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = True,
) -> Growth:
    """How regret grows with the horizon, the phases, the gap and the arms, compared with each policy's order.

    `scale` multiplies all horizons."""
    if not 0.0 < scale <= 100.0:
        raise ValueError(f"scale needs a number in (0, 100]; got {scale:g}.")
    measured = measure(sweeps(scale), runs=runs, seed=seed, workers=workers, progress=progress)
    return Growth(tuple(measured), tuple(fit(line) for line in measured))


def measure(
    chosen: Sequence[Sweep],
    policies: Mapping[str, Maker] = POLICIES,
    runs: int = 40,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = False,
) -> list[MeasuredSweep]:
    """Play every policy, tuned by its theory, at every value of every sweep."""
    out = []
    total = sum(len(sweep.values) for sweep in chosen) * len(policies)
    with Progress(total, progress, label="growth") as bar:
        for sweep in chosen:
            for name, make in policies.items():
                rows, started = [], time.perf_counter()
                for value in sweep.values:
                    rows.append(_final(make, sweep.world(value), runs, seed, workers))
                    bar.add(1)
                out.append(MeasuredSweep(name, sweep, np.array(rows), time.perf_counter() - started))
    return out


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


def fit(measured: MeasuredSweep, seed: int = 0) -> PowerLaw:
    """The exponent with a bootstrap interval: runs are drawn again with replacement, the same ones at every value.

    A run keeps its luck along a sweep, so drawing points apart would make the interval too wide or too narrow."""
    kept = measured.fitted()
    order = order_slope(measured.policy, measured.sweep)
    if kept.sum() < 3:
        return PowerLaw(
            measured.policy, measured.sweep.name, int(kept.sum()), math.nan, math.nan, math.nan, math.nan, order
        )
    x, regret = measured.sweep.x()[kept], np.maximum(measured.regret[kept], 1e-12)
    w = weights(x)
    runs = regret.shape[1]
    picks = np.random.default_rng(seed).integers(0, runs, (RESAMPLES, runs))
    low, high = np.quantile(w @ np.log(regret[:, picks].mean(axis=2)), [0.025, 0.975])
    line = np.log(regret.mean(axis=1))
    last = float(weights(x[-3:]) @ line[-3:])
    return PowerLaw(
        measured.policy, measured.sweep.name, len(x), float(w @ line), float(low), float(high), last,
        order_slope(measured.policy, measured.sweep, kept),
    )  # fmt: skip


def order_slope(policy: str, sweep: Sweep, kept: np.ndarray | None = None) -> float | None:
    """The slope of Table 1's order over the values of a sweep. Logarithms are left out, as there.

    CUSUM's order is a sum, so its slope depends on where you look."""
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


def table(fits: Sequence[PowerLaw]) -> tuple[list[str], list[list[str]]]:
    """Head and rows as text."""
    head = ["regret against", "policy", "points", "exponent", "95 % interval", "last three", "order", "verdict"]
    rows = [
        [
            f.sweep, f.policy, str(f.points), *(
                ("-", "-", "-") if f.points < 3 else
                (f"{f.exponent:.2f}", f"{f.low:.2f} to {f.high:.2f}", f"{f.last:.2f}")
            ),
            "-" if f.order is None else f"{f.order:.2f}", f.verdict,
        ]
        for f in fits
    ]  # fmt: skip
    return head, rows


def save(measured: Sequence[MeasuredSweep], fits: Sequence[PowerLaw], folder: str | Path) -> list[Path]:
    """Write growth.svg, .png, .md (exponents) and .csv (every mean with its interval) into a folder."""
    folder = Path(folder)
    points = []
    for line in measured:
        low, high = t_interval(line.regret.T)
        for place, value in enumerate(line.sweep.values):
            numbers = (line.regret[place].mean(), low[place], high[place])
            points.append([line.sweep.name, line.policy, f"{value:g}", *(f"{number:.6g}" for number in numbers)])
    head = ["regret against", "policy", "value", "regret", "low", "high"]
    return [
        save_chart(lambda figure: draw(figure, measured, fits), folder / "growth.svg", (11.0, 6.4)),
        save_chart(lambda figure: draw(figure, measured, fits), folder / "growth.png", (11.0, 6.4)),
        save_rows(*table(fits), folder / "growth.md"),
        save_rows(head, points, folder / "growth.csv"),
    ]


def draw(figure: Any, measured: Sequence[Any], fits: Sequence[Any]) -> None:
    """A panel per sweep on doubly logarithmic axes, each policy with its exponent in the legend."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    names = list(dict.fromkeys(line.sweep.name for line in measured))
    policies = list(dict.fromkeys(line.policy for line in measured))
    styles = dict(zip(policies, looks(policies), strict=True))
    columns = 1 if narrow(figure) else (len(names) + 1) // 2
    panels = figure.subplots(-(-len(names) // columns), columns, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        lines = [line for line in measured if line.sweep.name == name]
        for line in lines:
            exponent = next(f.exponent for f in fits if (f.policy, f.sweep) == (line.policy, name))
            low, high = t_interval(line.regret.T)
            mean = line.regret.mean(axis=1)
            style = styles[line.policy]
            axes.errorbar(
                line.sweep.x(), mean, [mean - low, high - mean], **style, markerfacecolor="white", markersize=5,
                label=f"{line.policy}: {'saturated' if math.isnan(exponent) else f'{exponent:.2f}'}",
            )  # fmt: skip
        _guide(axes, lines)
        axes.set(xscale="log", yscale="log", xlabel=name, ylabel="final regret")
        axes.tick_params(axis="x", labelsize=8)
        axes.set_xticks(lines[0].sweep.x())
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, place=0: f"{value:.2g}" if value < 1000 else f"{value / 1000:g}k")
        )
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place=0: f"{value:g}"))
        axes.legend(
            title="policy: exponent",
            loc="upper left" if narrow(figure) else "center left",
            bbox_to_anchor=(0.0, -0.2) if narrow(figure) else (1.0, 0.5),
            ncols=2 if narrow(figure) else 1,
            fontsize=8,
            title_fontsize=8,
            handlelength=3.6,
        )
    for axes in panels[len(names) :]:
        axes.set_visible(False)


def _guide(axes: Any, lines: Sequence[Any]) -> None:
    """A thin grey line with the slope of DS-TS's order (1 for arms: the sum over arms), below the curves."""
    sweep = lines[0].sweep
    slope = sweep.guide
    x = sweep.x()
    start = 0.8 * min(float(line.regret[0].mean()) for line in lines)
    axes.plot(x, start * (x / x[0]) ** slope, color="#888888", linewidth=0.9, linestyle="-", label=f"slope {slope:g}")
