"""The figures of the short paper, drawn from what commands wrote below `docs`, with the colours of all figures."""

from typing import Any

import numpy as np

from driftbandit.lab.plots import COLOURS, choose_style, find_style, save_chart, thousands
from tools.paper import number_of, read_rows

__all__ = ["FIGURES", "save_chart"]

BELIEF = {  # columns, bottom to top: name, colour and hatching
    "stands still, or as good as": ("stationary", COLOURS[7], ""),
    "all arms jumped": ("all arms jumped", COLOURS[2], ""),
    "some arms jumped": ("some arms jumped", COLOURS[6], "//"),
    "every arm drifts": ("independent drift", COLOURS[5], ""),
    "all rise and fall together": ("common drift", COLOURS[3], ".."),
}
SUITES = (  # title, file, policy, rival, and the kinds apart from the averages
    (
        "Binary: DriftTS", "field/ratios.csv", "drift-ts", "global-cts(hazard=0.0001, max_runs=300)",
        ("stationary", "slow", "trap"),
    ),
    (
        "Scale: DriftLinTS", "field/scale/ratios.csv", "drift-lin-ts", "d-ucb(0.99, 0.0001)",
        ("rising", "trap"),
    ),
    (
        "Linear: DriftLinTS", "field/linear/ratios.csv", "drift-lin-ts",
        "cusum-lin-ucb(threshold=10, explore=0, local=False, alpha=0.3, lam=0.2)", ("rising", "trap"),
    ),
)  # fmt: skip
KINDS = {
    "gap": "gaps", "fast": "many changes", "slow": "one change", "local": "one arm at a time",
    "limited": "limited means", "common": "common level", "finite": "finite values", "rare": "rare successes",
    "all": "all arms or none", "arm": "one arm at a time", "walk": "random walks", "coordinate": "one feature",
    "cell": "one coefficient", "turns": "turns", "season": "seasons", "rotation": "rotation", "rising": "rising arm",
}  # fmt: skip
KIND_OF_FLOOR = {
    "trap": "traps", "rising": "rising arm", "local": "one arm at a time", "smooth": "random walks",
    "abrupt": "abrupt", "stationary": "stationary",
}  # fmt: skip


def draw_belief(figure: Any) -> None:
    """How the weight of all hypotheses is shared over one run."""
    rows = read_rows("drift-ts/belief.csv")
    axes = figure.subplots()
    below = np.zeros(len(rows))
    rounds = [float(row["round"]) for row in rows]
    for column, (name, colour, hatch) in BELIEF.items():
        above = below + [float(row[column]) for row in rows]
        axes.fill_between(
            rounds, below, above, facecolor=colour, hatch=hatch, edgecolor="white", linewidth=0.0, label=name
        )
        below = above
    axes.set(xlim=(0, rounds[-1]), ylim=(0, 1), xlabel="round", ylabel="share of the weight")
    axes.xaxis.set_major_formatter(thousands)
    axes.grid(visible=False)
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], names[::-1], loc="outside right center")


def draw_suite(axes: Any, title: str, file: str, policies: tuple[str, str], apart: tuple[str, ...]) -> None:
    """A dot per environment for our policy and a hollow mark for the rival, by kind of environment."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    rows = read_rows(file)
    kinds = [kind for kind in dict.fromkeys(row["kind"] for row in rows) if kind not in apart]
    order = [*kinds, *(kind for kind in apart if any(row["kind"] == kind for row in rows))]
    places = {kind: place for place, kind in enumerate(order)}
    if len(order) > len(kinds):
        axes.axhspan(len(kinds) - 0.5, len(order) - 0.5, color="#ececec", zorder=0, linewidth=0)
    axes.axvline(1.0, color="#333333", linewidth=1.0, zorder=2.5)
    for policy, shift in zip(policies, (-0.17, 0.17), strict=True):
        found = [row for row in rows if row["policy"] == policy]
        ours = policy == policies[0]
        colour = find_style("drift-ts")["color"] if ours else find_style(policy)["color"]
        axes.scatter(
            [number_of(row["ratio"]) for row in found],
            [places[row["kind"]] + shift for row in found],
            s=13, marker="o" if ours else "D", linewidths=0.0 if ours else 0.8, zorder=3,
            facecolors=colour if ours else "none", edgecolors=colour,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([0.25, 1, 4, 16]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="minor", bottom=False)
    axes.tick_params(labelsize=8)
    axes.set_yticks(range(len(order)), [KINDS.get(kind, kind) for kind in order])
    axes.set(ylim=(len(order) - 0.5, -0.5), title=title)
    axes.title.set_size(9.5)
    axes.grid(axis="y", visible=False)


def draw_ratios(figure: Any) -> None:
    """The three suites side by side."""
    for axes, (title, file, policy, rival, apart) in zip(figure.subplots(1, len(SUITES)), SUITES, strict=True):
        draw_suite(axes, title, file, (policy, rival), apart)
    figure.supxlabel("ratio to the best tuned policy", fontsize=9)


def draw_floor(figure: Any) -> None:
    """Regret with a floor over regret without, a line per kind of environment."""
    rows = {row["environments"]: row for row in read_rows("drift-ts/floor.md#Ratio to no floor")}
    floors = [column for column in next(iter(rows.values())) if column.startswith("floor ")]
    axes = figure.subplots()
    axes.axhline(1.0, color="#555555", linewidth=0.9)
    for number, (kind, name) in enumerate(KIND_OF_FLOOR.items()):
        axes.plot(
            range(len(floors)), [float(rows[kind][floor]) for floor in floors], label=name, **choose_style(number)
        )
    axes.set_xticks(range(len(floors)), [floor.removeprefix("floor ") for floor in floors])
    axes.set(xlabel="floor", ylabel="ratio to no floor", yscale="log")
    ticks = (0.5, 0.7, 1, 1.4, 2, 2.8)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks([], minor=True)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center")


FIGURES = {
    "belief": (draw_belief, (6.8, 1.9)),
    "ratios": (draw_ratios, (7.6, 3.9)),
    "floor": (draw_floor, (6.8, 2.2)),
}
