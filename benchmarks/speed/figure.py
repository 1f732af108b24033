"""The measurements as a figure: who is how fast, and how the time grows with the number of arms."""

from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.speed import workload
from driftbandit.lab.plots import find_style, save_chart


def save(data: dict[str, Any], path: str | Path) -> Path:
    """Draw and write, SVG, PNG or PDF by the ending."""
    count = len(_lines_of(data, _arms(data)))
    return save_chart(lambda figure: draw(figure, data), path, (12.0, max(6.0, 1.6 + 0.19 * count)))


def draw(figure: Any, data: dict[str, Any]) -> None:
    """Left, time per round at ten arms of everything measured, one line per policy; right, time against arms of the
    policies most asked about, each next to the same in plain NumPy."""
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.05])
    _dots(left, data, _arms(data))
    _growth(right, data)


def _arms(data: dict[str, Any]) -> int:
    return 10 if 10 in data["scale"]["arms"] else int(data["scale"]["arms"][0])


# What a mark is, by its shape and filling: colour alone would be lost in print and to some readers. The colours are
# Okabe and Ito's.
_KINDS: dict[str, dict[str, Any]] = {
    "ours, one run": {"marker": "o", "color": "#0072b2"},
    "ours, 64 runs in lockstep": {"marker": "D", "color": "#0072b2", "markerfacecolor": "white"},
    "plain C, one run": {"marker": "^", "color": "#d55e00"},
    "plain C, lockstep": {"marker": "^", "color": "#d55e00", "markerfacecolor": "white"},
    "plain NumPy": {"marker": "x", "color": "#000000"},
    "other libraries": {"marker": "s", "color": "#cc79a7"},
}


class _Line(NamedTuple):
    """One line of the left panel: a name, and its times by kind."""

    label: str
    times: dict[str, float]


def _lines_of(data: dict[str, Any], n_arms: int) -> list[_Line]:
    """A line for each policy and each library's policy, the slowest at the bottom."""
    found: dict[str, dict[str, float]] = {}
    for row in data["policies"]:
        if row["n_arms"] == n_arms:
            times = found.setdefault(row["policy"], {})
            times["ours, 64 runs in lockstep" if row["lockstep"] else "ours, one run"] = row["ns"]
            if "numpy_ns" in row:
                times["plain NumPy"] = row["numpy_ns"]
    if not isinstance(data["c"], str) and "ds-ts" in found:
        for row in data["c"]:
            if row["n_arms"] == n_arms:
                found["ds-ts"]["plain C, lockstep" if row["lockstep"] else "plain C, one run"] = row["ns"]
    for row in data["peers"]:
        if row["kind"] == "environment" and row["n_arms"] == n_arms and row["library"] != "driftbandit":
            label = f"{row['library']}: {row['policy'].partition(' (')[0]}"
            found[label] = {"other libraries": 1e9 * row["cpu"]}
    return sorted((_Line(*pair) for pair in found.items()), key=lambda line: -min(line.times.values()))


def _dots(axes: Any, data: dict[str, Any], n_arms: int) -> None:
    lines = _lines_of(data, n_arms)
    for kind, style in _KINDS.items():
        points = [(line.times[kind], place) for place, line in enumerate(lines) if kind in line.times]
        if points:
            axes.plot(*zip(*points, strict=True), linestyle="none", label=kind, markersize=5, **style)
    for place, line in enumerate(lines):
        ends = min(line.times.values()), max(line.times.values())
        axes.plot(ends, (place, place), color="#999999", linewidth=0.7, zorder=1)
        axes.annotate(
            _time(ends[1]), (ends[1], place), (6, 0), textcoords="offset points", va="center", fontsize=6.5
        )  # fmt: skip
        if len(line.times) > 1:
            axes.annotate(
                _time(ends[0]), (ends[0], place), (-6, 0), textcoords="offset points",
                va="center", ha="right", fontsize=6.5,
            )  # fmt: skip
    axes.set_yticks(range(len(lines)), [line.label for line in lines], fontsize=7.5 if len(lines) > 25 else 8.5)
    axes.set(
        xscale="log",
        xlabel=f"time a round at {n_arms} arms, ns of CPU time (logarithmic)",
        ylim=(-0.8, len(lines) - 0.2),
    )
    times = [time for line in lines for time in line.times.values()]
    axes.set_xlim(min(times) / 14, max(times) * 8)  # room for the figures next to the marks
    axes.grid(axis="y", visible=False)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -_below(len(lines))), ncols=2)


def _growth(axes: Any, data: dict[str, Any]) -> None:
    measured = list(dict.fromkeys(row["policy"] for row in data["policies"]))
    names = [name for name in workload.SHOWN if name in measured]
    for name in names:
        for lockstep in (False, True):
            rows = [row for row in data["policies"] if (row["policy"], row["lockstep"]) == (name, lockstep)]
            if not rows:
                continue
            style = {**find_style(name), **({"markerfacecolor": "white"} if lockstep else {})}
            label = name + (", lockstep" if lockstep else "")
            axes.plot([row["n_arms"] for row in rows], [row["ns"] for row in rows], label=label, **style)
        twin = [row for row in data["policies"] if row["policy"] == name and not row["lockstep"] and "numpy_ns" in row]
        if twin:
            style = {**find_style(name), "linewidth": 0.8, "markersize": 3.5, "alpha": 0.75}
            axes.plot([row["n_arms"] for row in twin], [row["numpy_ns"] for row in twin], **style)
    if not isinstance(data["c"], str):
        for lockstep in (False, True):
            rows = [row for row in data["c"] if row["lockstep"] == lockstep]
            label = "ds-ts in C" + (", lockstep" if lockstep else "")
            axes.plot(
                [r["n_arms"] for r in rows],
                [r["ns"] for r in rows],
                ":",
                color="#555555",
                marker="+" if lockstep else "x",
                label=label,
            )
    sizes = data["scale"]["arms"]
    axes.set(xscale="log", yscale="log", xlabel="arms", ylabel="ns of CPU time a round")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.legend(
        fontsize=7.5, loc="upper center", bbox_to_anchor=(0.42, -_below(len(_lines_of(data, _arms(data))))), ncols=4,
        handlelength=3.0, columnspacing=1.2, title_fontsize=8,
        title="thick lines: ours; thin lines: the same policy in plain NumPy",
    )  # fmt: skip


def _below(lines: int) -> float:
    """How far below the axes a legend begins, as a share of their height, so that it clears the label."""
    return 0.45 / max(4.6, 0.2 + 0.19 * lines)


def _time(ns: float) -> str:
    if ns < 1000:
        return f"{ns:.3g} ns"
    return f"{ns / 1e3:.3g} µs" if ns < 1e6 else f"{ns / 1e6:.3g} ms"
