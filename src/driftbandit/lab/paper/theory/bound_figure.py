"""The theorem's bound against measured regret, from short horizons to those at which the bound is below T."""

import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.paper.theory.diagnosis import diagnose
from driftbandit.lab.paper.theory.peers import lower_bound
from driftbandit.lab.paper.theory.promise import Promise, bounds_for
from driftbandit.lab.paper.theory.theorem import first_useful_horizon, theorem1
from driftbandit.lab.plots.chart import save_chart
from driftbandit.lab.plots.style import look_of, narrow
from driftbandit.lab.stats.intervals import Interval, interval
from driftbandit.lab.support.tables import save_rows

FACTORS = (0.01, 10**-1.5, 0.1, 10**-0.5, 1.0, 10**0.5, 10.0)  # horizons measured, as multiples of the one given
# What is not a policy has colours that no policy drawn beside it has.
_PROVED, _PRINTED, _FLOOR, _TRIVIAL = "#0072b2", "#d55e00", "#009e73", "#777777"
_UNIFORM = look_of("uniform")["color"]


class HorizonPoint(NamedTuple):
    """One horizon: decimal logarithms of the bounds summed over arms, and the regret."""

    horizon: int
    proved: float | None
    printed: float | None
    floor: float | None
    uniform: float
    regret: Interval


def measure(environment: Any, policy_for: Callable[[Any], Any], runs: int, seed: int = 0) -> list[HorizonPoint]:
    """Play DS-TS in the same kind of world at several horizons; `policy_for(world)` tunes it for each."""
    points = []
    for factor in FACTORS:
        horizon = max(1, round(environment.horizon * factor))
        try:
            world = type(environment)(**{**environment._asdict(), "horizon": horizon})
        except (TypeError, ValueError):
            continue  # too short for the number of phases
        policy = policy_for(world)
        if getattr(policy, "short", "") != "ds-ts":
            raise ValueError(f"The figure shows the theorems of DS-TS; got {policy!r:.60}.")
        one = world.realise(stream_key(seed, 0, WORLD))
        found = diagnose(one)
        named = {(b.name, b.scope): b.log10 for b in bounds_for(one, 1.0 - policy.gamma, policy.tau_max, found)}
        regret = simulate(policy, world, runs, seed, checkpoints=1).regret[:, -1]
        points.append(
            HorizonPoint(
                horizon,
                named["Theorem 1 as proved", "all arms"],
                named["Theorem 1 as printed", "all arms"],
                lower_bound(horizon).log10,
                found.uniform_regret,
                interval(regret),
            )
        )
    return points


def far(phases: int, gap: float, mu_max: float, tau_max: float, arms: int, last: int = 46) -> list[tuple[int, float]]:
    """(k, log10 of Theorem 1 as proved at T = 10^k) with Corollary 1's gamma, over all arms."""
    out = []
    for power in range(2, last + 1):
        eps = math.sqrt(phases) * 10.0 ** (-power / 2)
        bound = theorem1(
            horizon=10**power, phases=phases, gap=gap, eps=eps, mu_max=mu_max, tau_max=tau_max, sum_over=arms
        )
        if bound.log10 is not None and bound.holds:
            out.append((power, bound.log10))
    return out


def save_bounds(found: Promise, policy_for: Callable[[Any], Any], path: str | Path) -> list[Path]:
    """Measure, draw the panels to `path` and to a PNG next to it, and write the numbers as CSV."""
    points = measure(found.environment, policy_for, found.runs, found.seed)
    facts, tau_max = found.found, found.policy.tau_max
    arms = facts.suboptimal_arms
    beyond = far(facts.phases, facts.gap, facts.mu_max, tau_max, arms)
    useful = first_useful_horizon(
        phases=facts.phases, gap=facts.gap, mu_max=facts.mu_max, tau_max=tau_max, sum_over=arms
    )
    title = f"DS-TS, {facts.n_arms} arms, {facts.phases} phases, smallest gap {facts.gap:.3g}, {found.runs} runs"
    shape = dict.fromkeys([Path(path), Path(path).with_suffix(".png")])
    drawn = [
        save_chart(lambda figure: draw(figure, points, beyond, useful, title), name, (11.0, 4.2)) for name in shape
    ]
    head = ["horizon", "regret", "low", "high", "uniform", "log10_proved", "log10_printed", "log10_floor"]
    rows = [
        [
            p.horizon,
            *(f"{v:.6g}" for v in p.regret),
            f"{p.uniform:.6g}",
            *("" if v is None else f"{v:.4f}" for v in (p.proved, p.printed, p.floor)),
        ]
        for p in points
    ]
    return [*drawn, save_rows(head, rows, Path(path).with_suffix(".csv"))]


def draw(figure: Any, points: Sequence[Any], beyond: list[tuple[int, float]], useful: float | None, title: str) -> None:
    """Three panels, below each other in a narrow figure: what is proved beside what happens; what happens, close
    enough to tell DS-TS from uniform play; and where the bound begins to speak."""
    proved, played, far_off = figure.subplots(3, 1) if narrow(figure) else figure.subplots(1, 3)
    _proved(proved, points)
    _played(played, points)
    _far_off(far_off, points, beyond, useful)
    lines = "\n".join(textwrap.wrap(title, 46 if narrow(figure) else 120))
    figure.suptitle(lines, x=0.01, ha="left", fontsize=10)
    handles, names = proved.get_legend_handles_labels()
    columns = 2 if narrow(figure) else len(names)
    figure.legend(handles, names, loc="outside lower left", ncols=columns, handlelength=2.6, fontsize=8.5)


def _proved(axes: Any, points: Sequence[Any]) -> None:
    horizons = [float(point.horizon) for point in points]

    def curve(values: list[float | None], label: str, **style: Any) -> None:
        known = [(h, 10.0**v) for h, v in zip(horizons, values, strict=True) if v is not None]
        if known:
            axes.plot(*zip(*known, strict=True), label=label, markerfacecolor="white", **style)

    # What is printed lies close above what is proved, uniform play close above DS-TS: broad lines under narrow ones.
    curve([p.printed for p in points], "Theorem 1, printed", color=_PRINTED, linewidth=4.5, alpha=0.5, marker="v")
    curve([p.proved for p in points], "Theorem 1, proved", color=_PROVED, linestyle="-", marker="s", markersize=4)
    axes.plot(horizons, horizons, color=_TRIVIAL, linestyle=":", label="trivial: T")
    axes.plot(horizons, [p.uniform for p in points], color=_UNIFORM, linewidth=6.0, alpha=0.6, label="uniform play")
    axes.plot(horizons, [p.regret.mean for p in points], **look_of("ds-ts"), markersize=4, label="DS-TS, measured")
    curve([p.floor for p in points], "floor for any policy", color=_FLOOR, linestyle=(0, (1, 1)), marker="^")
    axes.set(xscale="log", yscale="log", xlabel="horizon T", ylabel="regret, and what bounds it")
    axes.set_title("(a) horizons one can play", loc="left")


def _played(axes: Any, points: Sequence[Any]) -> None:
    """Regret per round on a plain axis, where uniform play is a level line."""
    horizons = np.array([float(point.horizon) for point in points])
    mean, low, high = (np.array([p.regret[part] for p in points]) / horizons for part in range(3))
    axes.plot(horizons, [p.uniform / p.horizon for p in points], color=_UNIFORM, linewidth=6.0, alpha=0.6)
    style = {**look_of("ds-ts"), "markerfacecolor": "white"}
    axes.errorbar(horizons, mean, [mean - low, high - mean], **style, capsize=2.5)
    floors = [(p.horizon, 10.0**p.floor / p.horizon) for p in points if p.floor is not None]
    if floors:
        axes.plot(*zip(*floors, strict=True), color=_FLOOR, linestyle=(0, (1, 1)), marker="^", markerfacecolor="white")
    axes.set(xscale="log", xlabel="horizon T", ylabel="regret per round, 95 % interval")
    axes.set_ylim(bottom=0.0)
    axes.set_title("(b) what is measured, closer up", loc="left")


def _far_off(axes: Any, points: Sequence[Any], beyond: list[tuple[int, float]], useful: float | None) -> None:
    powers = [power for power, _ in beyond]
    axes.plot(powers, [value for _, value in beyond], color=_PROVED, marker="s", markevery=6, markerfacecolor="white")
    axes.plot(powers, powers, color=_TRIVIAL, linestyle=":")
    played = [point for point in points if point.regret.mean > 0.0]
    own = look_of("ds-ts")["color"]
    axes.plot([math.log10(p.horizon) for p in played], [math.log10(p.regret.mean) for p in played], color=own,
              marker="o", markersize=3)  # fmt: skip
    if useful is not None:
        axes.axvline(useful, color="#999999", linewidth=0.8)
        note = f"below T from\nT = $10^{{{useful:.1f}}}$"
        axes.annotate(note, (useful, 8), ha="right", xytext=(-4, 0), textcoords="offset points")
    axes.set(xlabel="log10 of the horizon T", ylabel="log10 of regret or bound")
    axes.set_title("(c) where the bound begins to speak", loc="left")
