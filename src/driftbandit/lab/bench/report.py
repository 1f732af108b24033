"""All measurements in one dictionary, and that dictionary as tables: on the terminal, and as Markdown."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.lab.bench import live, machine, ours, peers, process, reference, scaling, workload
from driftbandit.lab.bench.workload import Scale


class Table(NamedTuple):
    """A table with what it shows in a sentence."""

    title: str
    about: str
    head: list[str]
    rows: list[list[str]]


def measure(scale: Scale, place: Path | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Everything; `place` is where libraries are installed, None to leave them out. Takes minutes."""
    began, loops = time.perf_counter(), reference.numpy_loops()
    out: dict[str, Any] = {"machine": machine.describe(), "scale": scale._asdict(), "policies": []}
    for name in workload.names(scale):
        say(f"policy {name}")
        for row in ours.rows(name, scale):
            if loops is not None and name in loops.LOOPS:
                plain = next((r["numpy_ns"] for r in out["policies"] if _same(r, row)), None)
                row["numpy_ns"] = plain or 1e9 * reference.numpy_seconds(loops, name, row["n_arms"], scale)
                row["ratio"] = row["numpy_ns"] / row["ns"]
            out["policies"].append(row)
    say("the same in C")
    out["c"] = reference.c_rows(scale)
    say("growth")
    out["scaling"] = scaling.rows(scale)
    say("two workers")
    out["workers"] = scaling.workers(scale)
    say("start and memory")
    out["starts"], out["memory"] = process.starts(scale), process.memory(scale)
    say("live")
    out["live"] = live.rows(scale)
    out["peers"] = [] if place is None else peers.rows(scale, place, say)
    out["live"] += [{**row, "us": 1e6 * row["cpu"]} for row in out["peers"] if row["kind"] == "live"]
    out["machine"]["load_at_end"] = machine.load()
    out["seconds"] = time.perf_counter() - began
    return out


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (one["policy"], one["n_arms"]) == (other["policy"], other["n_arms"]) and "numpy_ns" in one


def tables(data: dict[str, Any]) -> list[Table]:
    """The tables, in the order a reader asks."""
    out = [
        _policies(data),
        _c(data),
        _peers(data),
        _live(data),
        _starts(data),
        _scaling(data),
        _workers(data),
        _memory(data),
    ]
    return [table for table in out if table.rows]


def markdown(data: dict[str, Any]) -> str:
    """The tables as a page, beginning with where they were measured."""
    lines = [
        "# Speed, measured",
        "",
        f"Made by `driftbandit bench` in {data['seconds']:.0f} s on: {machine.sentence(data['machine'])}.",
        "",
    ]
    for table in tables(data):
        lines += [f"## {table.title}", "", table.about, ""]
        for cells in [table.head, ["---"] * len(table.head), *table.rows]:
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _policies(data: dict[str, Any]) -> Table:
    arms, rows = data["scale"]["arms"], []
    found = {(row["policy"], row["lockstep"], row["n_arms"]): row for row in data["policies"]}
    for name, lockstep in dict.fromkeys((row["policy"], row["lockstep"]) for row in data["policies"]):
        cells = [found[name, lockstep, n_arms] for n_arms in arms]
        rows.append(
            [
                name + (" (lockstep)" if lockstep else ""),
                *(_short(cell["ns"]) for cell in cells),
                *(_short(cell["runs_per_second"]) for cell in cells),
                *(f"{cell['ratio']:.0f}" if "ratio" in cell else "-" for cell in cells),
            ]
        )
    heads = [f"{what} K={n_arms}" for what in ("ns", "runs/s", "NumPy/ours") for n_arms in arms]
    about = (
        f"Nanoseconds of CPU time a round (choose, pull, learn, regret) on one core, {data['scale']['horizon']:,} "
        "rounds, ten phases, tuned by theory; whole runs a second; how many times longer plain NumPy takes. One run at "
        f"a time, or {ours.LOCKSTEP_RUNS} runs in lockstep where it says so. NumPy plays as many of the first rounds "
        "as fit into a fifth of a second, which flatters it where a round costs more the longer the record is."
    )
    return Table("Every policy", about, ["policy", *heads], rows)


def _c(data: dict[str, Any]) -> Table:
    if isinstance(data["c"], str):
        return Table("DS-TS beside C", f"Not measured: {data['c']}.", ["note"], [[data["c"]]])
    mine = {(row["n_arms"], row["lockstep"]): row["ns"] for row in data["policies"] if row["policy"] == "ds-ts"}
    rows = []
    for row in data["c"]:
        ns, way = mine[row["n_arms"], row["lockstep"]], "lockstep" if row["lockstep"] else "one run"
        rows.append([way, str(row["n_arms"]), f"{ns:.1f}", f"{row['ns']:.1f}", f"{ns / row['ns']:.2f}"])
    rows.sort(key=lambda cells: (cells[0], int(cells[1])))
    about = (
        "The same loop in plain C without intrinsics (cc -O3 -march=native): one run with xoshiro and a ziggurat, "
        "lockstep with 32 lanes that the compiler vectorises."
    )
    return Table("DS-TS beside C", about, ["how", "arms", "ours, ns", "C, ns", "ours / C"], rows)


def _peers(data: dict[str, Any]) -> Table:
    arms = [n_arms for n_arms in data["scale"]["arms"] if n_arms <= 30]
    rows: list[list[str]] = []
    found = {(row["library"], row["policy"], row["n_arms"]): row for row in data["peers"] if row["kind"] == "world"}
    first = {n_arms: found.get(("driftbandit", "ds-ts", n_arms)) for n_arms in arms}
    for library, policy in dict.fromkeys((row["library"], row["policy"]) for row in data["peers"]):
        failed = [
            row
            for row in data["peers"]
            if row["kind"] == "failed" and (row["library"], row["policy"]) == (library, policy)
        ]
        cells = [found.get((library, policy, n_arms)) for n_arms in arms]
        version = next((row.get("version", "") for row in data["peers"] if row["library"] == library), "")
        name = f"{library} {version}".strip()
        times = [f"{1e6 * cell['cpu']:.3g}" if cell else "-" for cell in cells]
        slower = [
            f"{cell['cpu'] / mine['cpu']:.0f}" if cell and mine else "-"
            for cell, mine in zip(cells, first.values(), strict=True)
        ]
        regrets = [_regret(cell) for cell in cells]
        rows.append([name, policy, *times, *slower, *regrets, failed[0]["reason"] if failed else ""])
    heads = [f"{what} K={n_arms}" for what in ("µs", "× ds-ts", "regret") for n_arms in arms]
    about = (
        f"Microseconds of CPU time a round on the same worlds, {data['scale']['peer_horizon']:,} rounds; that time "
        "over ours for DS-TS (64 runs in one call); mean regret ± standard error with the number of runs that "
        "fitted into the time. A library that is missing says why."
    )
    return Table("Other libraries", about, ["library", "policy", *heads, "note"], rows)


def _regret(cell: dict[str, Any] | None) -> str:
    values = cell["regrets"] if cell else []
    if not values:
        return "-"
    error = f" ± {statistics.stdev(values) / len(values) ** 0.5:.0f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.0f}{error} ({len(values)})"


def _live(data: dict[str, Any]) -> Table:
    rows = [[row["library"], row["policy"], str(row["n_arms"]), f"{row['us']:.3g}"] for row in data["live"]]
    about = "One decision and one reward, one by one, microseconds of CPU time; of a batch, one decision."
    return Table(
        "Live",
        about,
        ["library", "policy", "arms", "µs"],
        rows,
    )


def _starts(data: dict[str, Any]) -> Table:
    rows = [
        [row["policy"], row["way"], *(f"{row[key]:.2f}" for key in ("cold_s", "cold_cpu_s", "warm_s", "warm_cpu_s"))]
        for row in data["starts"]
    ]
    about = "Seconds from starting Python to the result of 1,000 rounds, nothing compiled yet (cold) and again (warm)."
    return Table("Start", about, ["policy", "runs", "cold, wall", "cold, CPU", "warm, wall", "warm, CPU"], rows)


def _scaling(data: dict[str, Any]) -> Table:
    rows = [
        [
            row["against"],
            row["policy"],
            ", ".join(f"{size:,}" for size in row["sizes"]),
            ", ".join(_short(ns) for ns in row["ns"]),
            f"{row['exponent']:.2f}",
        ]
        for row in data["scaling"]
    ]
    about = "Nanoseconds a round of one run, and the exponent on doubly logarithmic axes: 0 is flat, 1 is proportional."
    return Table("Growth", about, ["against", "policy", "sizes", "ns a round", "exponent"], rows)


def _workers(data: dict[str, Any]) -> Table:
    rows = [
        [name, *(f"{row[key]:.3f}" for key in ("one_wall_s", "two_wall_s")), f"{row['speedup']:.2f}",
         *(f"{row[key]:.3f}" for key in ("one_cpu_s", "two_cpu_s"))]
        for name, row in data["workers"].items()
    ]  # fmt: skip
    about = "The same runs with one thread and with two: seconds of wall time, and CPU time of all threads."
    return Table("Two workers", about, ["policy", "one, wall", "two, wall", "speed-up", "one, CPU", "two, CPU"], rows)


def _memory(data: dict[str, Any]) -> Table:
    rows = [
        [
            row["policy"],
            f"{row['horizon'] // 100:,}",
            f"{row['short_mb']:.1f}",
            f"{row['horizon']:,}",
            f"{row['long_mb']:.1f}",
        ]
        for row in data["memory"]
    ]
    about = "The most memory a whole process used for one run of a short and of a hundred times longer horizon, in MB."
    return Table("Memory", about, ["policy", "rounds", "MB", "rounds, longer", "MB, longer"], rows)


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
