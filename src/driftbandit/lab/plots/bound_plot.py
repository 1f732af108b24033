"""Bound against measured regret on a logarithmic axis, up to the horizon where the bound begins to speak."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.plots.chart import save_chart, save_rows
from driftbandit.lab.stats.intervals import Interval, interval
from driftbandit.lab.theory import bounds_for, diagnose, lower_bound, theorem1

FACTORS = (0.01, 10**-1.5, 0.1, 10**-0.5, 1.0, 10**0.5, 10.0)  # horizons measured, as multiples of the one given


class Point(NamedTuple):
    """One horizon: decimal logarithms of the bounds summed over arms, and the regret."""

    horizon: int
    proved: float | None
    printed: float | None
    floor: float | None
    uniform: float
    regret: Interval


def measure(environment: Any, policy_for: Callable[[Any], Any], runs: int, seed: int = 0) -> list[Point]:
    """Play DS-TS in the same kind of world at several horizons; `policy_for(world)` tunes it anew for each."""
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
            Point(
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


def save_bounds(
    points: list[Point], beyond: list[tuple[int, float]], useful: float | None, path: str | Path, title: str
) -> list[Path]:
    """Draw both panels to `path` and, beside it, to a PNG, and write the numbers as CSV.

    `useful` is log10 of the first horizon at which the bound is below T."""
    import numpy as np

    def draw(figure: Any) -> None:
        near, wide = figure.subplots(1, 2)
        horizons = np.array([point.horizon for point in points], float)

        def curve(values: list[float | None], label: str, **look: Any) -> None:
            known = [(h, 10.0**v) for h, v in zip(horizons, values, strict=True) if v is not None]
            if known:
                near.plot(*zip(*known, strict=True), label=label, markerfacecolor="white", **look)

        curve([p.printed for p in points], "Theorem 1, printed", color="#d55e00", linestyle="--", marker="v")
        curve([p.proved for p in points], "Theorem 1, proved", color="#0072b2", linestyle="-", marker="s")
        near.plot(horizons, horizons, color="#777777", linestyle=":", label="trivial: T")
        near.plot(
            horizons, [p.uniform for p in points], color="#e69f00", linestyle="-.", marker="x", label="uniform play"
        )
        spread = [[p.regret.mean - p.regret.low for p in points], [p.regret.high - p.regret.mean for p in points]]
        near.errorbar(horizons, [p.regret.mean for p in points], spread, color="#000000", marker="o", label="measured")
        curve([p.floor for p in points], "floor for any policy", color="#009e73", linestyle=(0, (1, 1)), marker="^")
        near.set(xscale="log", yscale="log", xlabel="horizon T", ylabel="regret, and what bounds it")
        near.set_title("(a) horizons one can play", loc="left")
        near.legend(loc="center left", bbox_to_anchor=(0.0, 0.52), fontsize=8)
        powers = [power for power, _ in beyond]
        wide.plot(
            powers, [value for _, value in beyond], color="#0072b2", marker="s", markevery=6, markerfacecolor="white"
        )
        wide.plot(powers, powers, color="#777777", linestyle=":")
        wide.plot(
            np.log10(horizons), [math.log10(p.regret.mean) for p in points], color="#000000", marker="o", markersize=3
        )
        if useful is not None:
            wide.axvline(useful, color="#999999", linewidth=0.8)
            note = f"below T from\nT = $10^{{{useful:.1f}}}$"
            wide.annotate(note, (useful, 8), ha="right", xytext=(-4, 0), textcoords="offset points")
        if beyond:
            place = beyond[len(beyond) // 2]
            wide.annotate("Theorem 1, proved", place, xytext=(-6, 10), textcoords="offset points", ha="right")
        wide.annotate("trivial: T", (20, 20), xytext=(8, -10), textcoords="offset points")
        wide.annotate("measured", (math.log10(horizons[-1]), 2.6), xytext=(8, -3), textcoords="offset points")
        wide.set(xlabel="log10 of the horizon T", ylabel="log10 of regret or bound")
        wide.set_title("(b) where the bound begins to speak", loc="left")
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)

    wanted = dict.fromkeys([Path(path), Path(path).with_suffix(".png")])
    drawn = [save_chart(draw, name, (8.6, 4.0)) for name in wanted]
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
