"""All measurements in one dictionary, and that dictionary as tables: on the terminal, and as Markdown."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.speed import goals, live, machine, numpy_loops, ours, peers, process, reference, scaling, workload
from benchmarks.speed.workload import Scale


class Table(NamedTuple):
    """A table with what it shows in a sentence."""

    title: str
    about: str
    head: list[str]
    rows: list[list[str]]


def measure(scale: Scale, place: Path | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Everything; `place` is where libraries are installed, None to leave them out. Takes minutes."""
    parts = _Parts(say)
    out: dict[str, Any] = {"machine": machine.describe(), "scale": scale._asdict(), "policies": []}
    parts.begin("policies")
    for name in workload.names(scale):
        say(f"policy {name}")
        for row in ours.rows(name, scale):
            if name in numpy_loops.LOOPS:
                plain = next((r["numpy_ns"] for r in out["policies"] if _same(r, row)), None)
                row["numpy_ns"] = plain or 1e9 * reference.numpy_seconds(name, row["n_arms"], scale)
                row["ratio"] = row["numpy_ns"] / row["ns"]
            out["policies"].append(row)
    parts.begin("fractional rewards")
    out["fractional"] = ours.fractional_rows(scale)
    parts.begin("the same in C")
    out["c"] = reference.c_rows(scale)
    parts.begin("growth")
    out["scaling"] = scaling.rows(scale)
    parts.begin("workers")
    out["workers"] = scaling.workers(scale)
    parts.begin("start")
    out["starts"], out["imports"] = process.starts(scale), process.imports(scale)
    parts.begin("memory")
    alone = [row for row in out["policies"] if not row["lockstep"] and row["n_arms"] <= process.MEMORY_ARMS]
    out["memory"] = process.memory(scale, {row["policy"]: row["ns"] for row in alone})
    parts.begin("live")
    out["live"] = live.rows(scale)
    if place is None:
        out["peers"] = peers.left_out("left out: without --quick and --no-peers they are measured")
    else:
        parts.begin("installing libraries")
        installed = peers.install(place, say)
        parts.begin("libraries")
        out["peers"] = peers.rows(scale, installed, say)
    out["live"] += [{**row, "us": 1e6 * row["cpu"]} for row in out["peers"] if row["kind"] == "live"]
    out["goals"] = goals.judged(out)
    out["machine"]["load_at_end"] = machine.load()
    out["parts_s"] = parts.seconds()
    out["seconds"] = sum(out["parts_s"].values())
    return out


class _Parts:
    """Says which part is being measured, and keeps how long each took: the whole has to fit into minutes."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._began = say, dict[str, float]()

    def begin(self, name: str) -> None:
        """The part before, if any, ends here."""
        self._say(name)
        self._began[name] = time.perf_counter()

    def seconds(self) -> dict[str, float]:
        """Wall time of each part, the last one up to now."""
        ends = [*self._began.values(), time.perf_counter()][1:]
        return {name: end - began for (name, began), end in zip(self._began.items(), ends, strict=True)}


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (one["policy"], one["n_arms"]) == (other["policy"], other["n_arms"]) and "numpy_ns" in one


def tables(data: dict[str, Any]) -> list[Table]:
    """The tables, in the order a reader asks."""
    out = [
        _goals(data),
        _policies(data),
        _c(data),
        _peers(data),
        _live(data),
        _starts(data),
        _imports(data),
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
        f"Made by `python -m benchmarks.speed` in {data['seconds']:.0f} s on: {machine.sentence(data['machine'])}.",
        "",
        f"Seconds by part: {', '.join(f'{name} {spent:.0f}' for name, spent in data['parts_s'].items())}.",
        "",
    ]
    for table in tables(data):
        lines += [f"## {table.title}", "", table.about, ""]
        for cells in [table.head, ["---"] * len(table.head), *table.rows]:
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _goals(data: dict[str, Any]) -> Table:
    rows = []
    for row in data["goals"]:
        limits, found = row["limits"], row["found"]
        arms = f", K = {' / '.join(map(str, row['arms']))}" if row["arms"] else ""
        limit = f"{'at least' if row['least'] else 'at most'} {_slashed(limits)} {row['unit']}".strip()
        beside = row["over_reference"]
        ratio = f"{_slashed(beside)} of {row['reference']}" if beside and any(beside) else "-"
        scaled = row["over_factor"]
        by_factor = f"{_slashed(scaled)}: {_verdict(row, 'verdicts_over_factor')}" if scaled and any(scaled) else "-"
        verdict = _verdict(row, "verdicts") + (f": {row['note']}" if row["note"] else "")
        rows.append([row["what"] + arms, limit, f"{_slashed(found)} {row['unit']}".strip(), verdict, ratio, by_factor])
    factor = goals.factors(data)
    about = (
        "The goals and what this run measured. Goals in nanoseconds were set on a machine where plain C takes "
        f"{_slashed(list(goals.C_THERE))} ns for a round of one run with 5, 10 and 30 arms. "
    )
    about += (
        f"On this machine it takes {_slashed(factor)} times that; the last column divides by it."
        if any(factor)
        else "C was not measured in this run, so the machines cannot be compared."
    )
    head = ["goal", "limit", "measured", "verdict", "compared with, in this run", "by the machine's factor"]
    return Table("Goals", about, head, rows)


def _verdict(row: dict[str, Any], key: str) -> str:
    """One word where all limits agree; otherwise where it was missed or not measured."""
    verdicts = row[key]
    if len(set(verdicts)) == 1:
        return str(verdicts[0])
    parts = []
    for word in ("missed", "not measured"):
        arms = [str(n_arms) for n_arms, verdict in zip(row["arms"], verdicts, strict=True) if verdict == word]
        parts += [f"{word} at K = {', '.join(arms)}"] if arms else []
    return "; ".join(parts)


def _slashed(values: list[Any]) -> str:
    return " / ".join("-" if value is None else f"{value:.3g}" for value in values)


def _policies(data: dict[str, Any]) -> Table:
    arms, rows = data["scale"]["arms"], []
    every = [*data["policies"], *data["fractional"]]
    found = {(row["policy"], row["lockstep"], row["n_arms"]): row for row in every}
    for name, lockstep in dict.fromkeys((row["policy"], row["lockstep"]) for row in every):
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
        f"a time, or {ours.LOCKSTEP_RUNS} runs in lockstep where marked. NumPy plays as many of the first rounds "
        "as fit into a fifth of a second, which flatters it where a round costs more the longer the record is. "
        "Rewards are 0 or 1, fractions where marked."
    )
    return Table("Every policy", about, ["policy", *heads], rows)


def _c(data: dict[str, Any]) -> Table:
    if isinstance(data["c"], str):
        return Table("DS-TS and C", f"Not measured: {data['c']}.", ["note"], [[data["c"]]])
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
    return Table("DS-TS and C", about, ["how", "arms", "ours, ns", "C, ns", "ours / C"], rows)


def _peers(data: dict[str, Any]) -> Table:
    arms = [n_arms for n_arms in data["scale"]["arms"] if n_arms <= 30]
    rows: list[list[str]] = []
    found = {
        (row["library"], row["policy"], row["n_arms"]): row for row in data["peers"] if row["kind"] == "environment"
    }
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
        f"Microseconds of CPU time a round on the same environments, {data['scale']['peer_horizon']:,} rounds; "
        f"that time "
        "over ours for DS-TS (64 runs in one call); mean regret ± standard error with the number of runs that "
        "fitted into the time. The last column has the reason if a library could not be run."
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


def _imports(data: dict[str, Any]) -> Table:
    rows = [[f"`{row['statement']}`", f"{row['wall_s']:.2f}", f"{row['cpu_s']:.2f}"] for row in data["imports"]]
    about = "What a warm start is made of: seconds of a Python process that does nothing but this."
    return Table("Imports", about, ["statement", "wall", "CPU"], rows)


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
    return Table("Growth", about, ["against", "policy", "sizes", "ns per round", "exponent"], rows)


def _workers(data: dict[str, Any]) -> Table:
    rows = [
        [
            name,
            f"{row['runs']:,}",
            *(", ".join(f"{value:.{digits}f}" for value in row[key]) for key, digits in _WORKERS),
            f"{row['exponent']:.2f}",
        ]
        for name, row in data["workers"].items()
    ]
    tried = ", ".join(str(count) for count in next(iter(data["workers"].values()), {"workers": []})["workers"])
    about = (
        f"The same runs with {tried} workers: seconds of wall time, CPU time of all threads, the usual speed-up over "
        "one worker (median of the turns), that of a bare loop in as many threads at the same moment (what the machine "
        "could give), and the exponent of wall time against workers, where -1 is ideal."
    )
    return Table("Workers", about, ["policy", "runs", "wall", "CPU", "speed-up", "bare loop", "exponent"], rows)


_WORKERS = (("wall_s", 3), ("cpu_s", 3), ("speedup", 2), ("machine", 2))


def _memory(data: dict[str, Any]) -> Table:
    rows = [
        [
            row["policy"],
            f"{row['horizon'] // 100:,}",
            f"{row['short_mb']:.2f}",
            f"{row['horizon']:,}",
            f"{row['long_mb']:.2f}",
            f"{row['long_mb'] - row['short_mb']:.2f}",
            "flat" if row["flat"] else "grows",
        ]
        for row in data["memory"]
    ]
    about = (
        "The most memory a whole process used for one run of a short and of a hundred times longer horizon, in MB, for "
        f"every policy whose cost names no horizon; less than {process.GROWN_MB:g} MB more is flat."
    )
    return Table(
        "Memory", about, ["policy", "rounds", "MB", "rounds, longer", "MB, longer", "difference", "verdict"], rows
    )


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
