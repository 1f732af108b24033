"""The measurements as a figure: who is how fast, and how the time grows with the number of arms."""

from pathlib import Path
from typing import Any

from driftbandit.lab.chart import save_chart
from driftbandit.lab.figure import look


def save(data: dict[str, Any], path: str | Path) -> Path:
    """Draw and write, SVG, PNG or PDF by the ending."""
    count = len(_bars_of(data, _arms(data)))
    return save_chart(lambda figure: draw(figure, data), path, (11.5, max(6.0, 1.2 + 0.165 * count)))


def draw(figure: Any, data: dict[str, Any]) -> None:
    """Left, time a round at ten arms of everything measured; right, time against arms of the policies with a NumPy
    twin, each beside that twin."""
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.15])
    _bars(left, data, _arms(data))
    _lines(right, data)


def _arms(data: dict[str, Any]) -> int:
    return 10 if 10 in data["scale"]["arms"] else int(data["scale"]["arms"][0])


# What a bar is, by hatching: colour alone would be lost in print.
_KINDS = {
    "ours": {"color": "#0072b2", "hatch": ""},
    "ours, lockstep": {"color": "#003a5c", "hatch": ""},
    "plain C": {"color": "#e69f00", "hatch": "////"},
    "plain NumPy": {"color": "#dddddd", "hatch": "...."},
    "other libraries": {"color": "#ffffff", "hatch": "xxxx"},
}


def _bars_of(data: dict[str, Any], n_arms: int) -> list[tuple[float, str, str]]:
    bars: list[tuple[float, str, str]] = []
    for row in data["policies"]:
        if row["n_arms"] == n_arms:
            kind = "ours, lockstep" if row["lockstep"] else "ours"
            bars.append((row["ns"], row["policy"] + (", lockstep" if row["lockstep"] else ""), kind))
            if "numpy_ns" in row and not row["lockstep"]:
                bars.append((row["numpy_ns"], f"{row['policy']}, NumPy", "plain NumPy"))
    if not isinstance(data["c"], str):
        for row in data["c"]:
            if row["n_arms"] == n_arms:
                bars.append((row["ns"], "ds-ts, C" + (", lockstep" if row["lockstep"] else ""), "plain C"))
    for row in data["peers"]:
        if row["kind"] == "world" and row["n_arms"] == n_arms and row["library"] != "driftbandit":
            bars.append((1e9 * row["cpu"], f"{row['library']}: {row['policy'].partition(' (')[0]}", "other libraries"))
    return sorted(bars, reverse=True)


def _bars(axes: Any, data: dict[str, Any], n_arms: int) -> None:
    bars = _bars_of(data, n_arms)
    used = [kind for kind in _KINDS if any(bar[2] == kind for bar in bars)]
    for kind in used:
        places = [place for place, bar in enumerate(bars) if bar[2] == kind]
        axes.barh(
            places,
            [bars[place][0] for place in places],
            0.72,
            label=kind,
            edgecolor="#222222",
            linewidth=0.6,
            **_KINDS[kind],
        )
    for place, bar in enumerate(bars):
        axes.text(bar[0] * 1.12, place, _time(bar[0]), va="center", fontsize=6.5)
    size = 7 if len(bars) > 30 else 8.5
    axes.set_yticks(range(len(bars)), [bar[1] for bar in bars], fontsize=size)
    axes.set(
        xscale="log",
        xlabel=f"time a round at {n_arms} arms, ns of CPU time (logarithmic)",
        ylim=(-0.8, len(bars) - 0.2),
    )
    axes.set_xlim(right=max(bar[0] for bar in bars) * 6)
    axes.grid(axis="y", visible=False)
    axes.set_axisbelow(True)
    axes.legend(loc="upper right", fontsize=8, handleheight=1.2)


def _lines(axes: Any, data: dict[str, Any]) -> None:
    names = list(dict.fromkeys(row["policy"] for row in data["policies"] if "numpy_ns" in row))
    names = names or list(dict.fromkeys(row["policy"] for row in data["policies"]))[:8]
    for number, name in enumerate(names):
        for lockstep in (False, True):
            rows = [row for row in data["policies"] if (row["policy"], row["lockstep"]) == (name, lockstep)]
            if not rows:
                continue
            style = {**look(number), **({"markerfacecolor": "white"} if lockstep else {})}
            label = name + (", lockstep" if lockstep else "")
            axes.plot([row["n_arms"] for row in rows], [row["ns"] for row in rows], label=label, **style)
        twin = [row for row in data["policies"] if row["policy"] == name and not row["lockstep"] and "numpy_ns" in row]
        if twin:
            style = {**look(number), "linewidth": 0.8, "markersize": 3.5, "alpha": 0.75}
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
        fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=4, handlelength=3.4,
        title="thick lines: ours; thin lines: the same policy in plain NumPy", title_fontsize=8,
    )  # fmt: skip


def _time(ns: float) -> str:
    if ns < 1000:
        return f"{ns:.3g} ns"
    return f"{ns / 1e3:.3g} µs" if ns < 1e6 else f"{ns / 1e6:.3g} ms"
