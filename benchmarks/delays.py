"""What late rewards cost: every policy of the field with rewards that come 0 to 4,000 rounds late, as a figure.

Policies are tuned by their own theory for an environment without delays. What was played is kept in the .csv file
next to the figure, so that a run that was stopped (or has --minutes) goes on:

    python benchmarks/delays.py --out docs/logs/delays        (writes delays.csv, delays.svg and delays.png)
"""

import argparse
import csv
import math
import time
from pathlib import Path
from typing import Any

from PIL import Image

from driftbandit.environments import Abrupt
from driftbandit.field.suite import find_facts
from driftbandit.field.suites import BINARY, list_entrants, make_policy
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.files import save_rows
from driftbandit.lab.plots import MARKERS, save_chart, thousands
from driftbandit.policies.wrappers import Delayed

ENVIRONMENT = Abrupt(n_arms=5, horizon=20_000, phases=4)
HEAD = ["policy", "tuned", "delay", "runs", "regret", "standard error"]
DELAYS = (0, 10, 100, 1000, 4000)
SHADES = ("#c6dbef", "#85b7d9", "#4292c6", "#0b559f", "#041f42")  # the later the darker, for any eyes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop then; called again, it goes on")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    table, end = args.out.with_suffix(".csv"), time.monotonic() + 60.0 * args.minutes
    rows = _kept(table, args.runs)
    names = [name for name in list_entrants() if name == "uniform" or name not in BINARY.no_rivals + BINARY.aside]
    for name in names:
        policy = make_policy(f"{name}.tuned", find_facts(ENVIRONMENT))
        for delay in DELAYS:
            key = (name, repr(policy), str(delay), str(args.runs))
            if key in rows or time.monotonic() > end:
                continue
            final = simulate(Delayed(policy, delay), ENVIRONMENT, args.runs, 0, checkpoints=1, progress=False).regret[
                :, 0
            ]
            rows[key] = [f"{final.mean():.1f}", f"{final.std(ddof=1) / math.sqrt(args.runs):.1f}"]
            save_rows(HEAD, [[*key, *found] for key, found in rows.items()], table)
    found = _table(rows)
    print(f"{sum(len(row) for row in found.values())} of {len(names) * len(DELAYS)} played")
    for ending in (".svg", ".png"):
        path = save_chart(lambda figure: _draw(figure, found, args.runs), args.out.with_suffix(ending), (5.4, 9.2))
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)  # a third of the size


def _kept(path: Path, runs: int) -> dict[tuple[str, ...], list[str]]:
    """What was played before, by everything it depends on."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        head, *lines = list(csv.reader(file))
    return {tuple(line[:4]): line[4:] for line in lines if head == HEAD and line[3] == str(runs)}


def _table(rows: dict[tuple[str, ...], list[str]]) -> dict[str, dict[int, tuple[float, float]]]:
    out: dict[str, dict[int, tuple[float, float]]] = {}
    for (name, _, delay, _), (mean, error) in rows.items():
        out.setdefault(name, {})[int(delay)] = float(mean), float(error)
    return out


def _draw(figure: Any, found: dict[str, Any], runs: int) -> None:
    """A line per policy, best without delay on top; a dot for each delay."""
    axes = figure.add_subplot()
    order = sorted((name for name in found if 0 in found[name]), key=lambda name: found[name][0][0])
    for place, name in enumerate(order):
        means = [found[name][delay] for delay in DELAYS if delay in found[name]]
        axes.plot(
            [min(m for m, _ in means), max(m for m, _ in means)], [place, place], color="#bbbbbb", lw=1.2, zorder=1
        )
        for number, (mean, error) in enumerate(means):
            axes.errorbar(
                [mean], [place], xerr=[2.0 * error], color=SHADES[number], marker=MARKERS[number], markersize=5.5,
                markeredgecolor="#333333", markeredgewidth=0.5, elinewidth=0.9, zorder=2 + number,
            )  # fmt: skip
    for number, delay in enumerate(DELAYS):
        axes.plot([], [], ls="", marker=MARKERS[number], color=SHADES[number], markeredgecolor="#333333",
                  markeredgewidth=0.5, label=thousands(delay))  # fmt: skip
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(thousands)
    axes.set_xlabel(f"regret after {thousands(ENVIRONMENT.horizon)} rounds, {runs} runs ± 2 standard errors")
    axes.set_title(
        f"{ENVIRONMENT.n_arms} arms, a change every {thousands(ENVIRONMENT.horizon // ENVIRONMENT.phases)} rounds",
        loc="left",
    )
    figure.legend(loc="outside lower center", ncols=len(DELAYS), title="rewards come this many rounds late",
                  handletextpad=0.2, columnspacing=1.2)  # fmt: skip


if __name__ == "__main__":
    main()
