"""Every policy on three worlds: what a practitioner wants to see before choosing one.

Each policy is tuned by its own theory (`tuned`), knowing the horizon and how often the world changes. All meet the
same worlds and the same luck. The figure shows the regret as a share of what uniform play loses, on a logarithmic
axis: 1 is "as good as guessing"."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments import Abrupt, PhaseTable, Smooth
from driftbandit.lab.jobs.batch import Batch, Cell
from driftbandit.lab.stats.intervals import t_interval
from driftbandit.lab.support.files import replacing
from driftbandit.text.registry import policies

HORIZON, PHASES, N_ARMS = 50_000, 10, 5


class World(NamedTuple):
    """One of the three worlds, and what a policy is told of it."""

    name: str
    environment: Any
    phases: int  # given to `tuned`; for drift, the number of times the best arm changes, plus one


WORLDS = (
    World("abrupt: all means change nine times", Abrupt(N_ARMS, HORIZON, PHASES), PHASES),
    World("smooth: the best arm wanders", Smooth(N_ARMS, HORIZON, sigma=2e-4), 14),
    World("stationary: nothing changes", PhaseTable(((0.35, 0.5, 0.65, 0.3, 0.6),), (0,), HORIZON), 1),
)

# Colour says how a policy deals with change; the marker says it again for readers without colour.
FAMILIES = {
    "discounts": ("#0072b2", "o"),
    "slides a window": ("#009e73", "s"),
    "detects changes or infers them": ("#d55e00", "^"),
    "hedges against an adversary": ("#cc79a7", "D"),
    "never forgets": ("#555555", "x"),
    "starts anew by the clock": ("#e69f00", "P"),
    "knows the change points": ("#000000", "*"),
}
_FAMILY = {
    "discounts": ("ds-ts", "ds-ts-many", "dts", "dots", "d-gts", "d-ucb", "d-klucb", "eps-greedy"),
    "slides a window": ("sw-ts", "sw-gts", "gamma-swgts", "sw-ucb", "sw-klucb", "sw-osub", "sw-lb-sda", "lb-sda-lm"),
    "detects changes or infers them": (
        "cusum-ucb", "pht-ucb", "m-ucb", "glr-klucb", "adswitch", "meta", "global-cts", "pa-cts",
    ),
    "hedges against an adversary": ("exp3s", "rexp3"),
    "starts anew by the clock": ("periodic-restart",),
    "knows the change points": ("oracle-restart",),
}  # fmt: skip


def family(short: str) -> str:
    """How a policy deals with change; what is not listed never forgets."""
    return next((name for name, members in _FAMILY.items() if short in members), "never forgets")


def field(world: World) -> dict[str, Any]:
    """Every policy under its short name, tuned for the world; yardsticks that play no game of their own are left
    out."""
    out: dict[str, Any] = {}
    for name, cls in policies().items():
        short = cls.short  # type: ignore[attr-defined]
        if short in ("fixed", "oracle"):
            continue
        if "base" in cls._fields:  # type: ignore[attr-defined]
            base = policies()["BetaTS"]()
            out[short] = cls.tuned(HORIZON, world.phases, N_ARMS, base=base)  # type: ignore[attr-defined]
        elif name == "REXP3":
            out[short] = cls.tuned(HORIZON, world.phases, N_ARMS, variation=_variation(world))  # type: ignore[attr-defined]
        else:
            out[short] = cls.tuned(HORIZON, world.phases, N_ARMS)  # type: ignore[attr-defined]
        for other, changes in getattr(cls, "aliases", {}).items():
            out[other] = out[short]._replace(**changes)
    return out


def _variation(world: World) -> float:
    """REXP3's budget: the sum over rounds of the largest change of a mean, at least one change of 0.1."""
    means = world.environment.realise(0).means(0, HORIZON)
    return max(0.1, float(np.abs(np.diff(means, axis=0)).max(axis=1).sum()))


class Standing(NamedTuple):
    """A policy's regret in a world, as a share of uniform play's."""

    world: str
    policy: str
    text: str
    mean: float
    low: float
    high: float
    regret: float


def compare(runs: int, folder: Path, workers: int | None, progress: bool | Callable[[float], None]) -> list[Standing]:
    """Play everybody everywhere."""
    cells = {
        (world.name, short): Cell(policy, world.environment, runs=runs, checkpoints=1)
        for world in WORLDS
        for short, policy in field(world).items()
    }
    batch = Batch(cells.values(), folder)
    batch.run(workers=workers, progress=progress, label="every policy, three worlds")
    out = []
    for (world, short), cell in cells.items():
        final = batch.result(cell).regret[:, -1]
        uniform = float(batch.result(cells[world, "uniform"]).regret[:, -1].mean())
        low, high = t_interval(final)
        text = repr(cell.policy)
        mean = float(final.mean())
        shares = mean / uniform, float(low) / uniform, float(high) / uniform
        out.append(Standing(world, short, text, *shares, mean))
    return out


def save_table(standings: list[Standing], path: Path) -> None:
    """The numbers behind the figure, as CSV."""
    import csv

    with replacing(path) as beside, beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["world", "policy", "share_of_uniform", "ci_low", "ci_high", "regret_mean", "parameters"])
        for s in standings:
            numbers = [f"{v:.5g}" for v in (s.mean, s.low, s.high, s.regret)]
            writer.writerow([s.world, s.policy, *numbers, s.text])


def draw(standings: list[Standing], path: Path) -> None:
    """Dots with intervals, one panel a world, policies in the order of their average rank over the changing worlds."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    shares = {(s.world, s.policy): s for s in standings}
    shorts = sorted({s.policy for s in standings})
    worlds = [world.name for world in WORLDS]

    def place(short: str) -> float:
        return float(sum(np.log(max(shares[world, short].mean, 1e-6)) for world in worlds[:2]))

    order = sorted(shorts, key=place, reverse=True)
    with matplotlib.rc_context({"svg.hashsalt": "driftbandit", "svg.fonttype": "path", "font.size": 9}):
        figure = Figure(figsize=(10.5, 8.2), layout="constrained")
        axes = figure.subplots(1, 3, sharey=True, sharex=True)
        for panel, world in zip(axes, worlds, strict=True):
            panel.set_title(world, fontsize=10)
            panel.axvline(1.0, color="#999999", linewidth=1, linestyle="--")
            for row, short in enumerate(order):
                s = shares[world, short]
                colour, marker = FAMILIES[family(short)]
                panel.plot([max(s.low, 1e-4), s.high], [row, row], color=colour, linewidth=1.3)
                panel.plot(s.mean, row, marker=marker, color=colour, markersize=5.5)
            panel.set_xscale("log")
            panel.grid(axis="x", color="#dddddd", linewidth=0.6)
            panel.grid(axis="y", color="#eeeeee", linewidth=0.6)
            panel.set_xlabel("regret as a share of uniform play's")
            panel.spines[["top", "right"]].set_visible(False)
        axes[0].set_yticks(range(len(order)), order)
        axes[0].set_ylim(-0.7, len(order) - 0.3)
        keys = [
            Line2D([], [], color=colour, marker=marker, linestyle="-", label=name)
            for name, (colour, marker) in FAMILIES.items()
        ]
        figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False)
        with replacing(path) as beside:
            form = path.suffix[1:]
            blank = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[form]
            figure.savefig(beside, format=form, dpi=130, metadata=blank)
