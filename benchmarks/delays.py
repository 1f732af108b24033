"""What late rewards cost: the field of policies with rewards that come 0 to 4,000 rounds late, as a figure and a table.

python benchmarks/delays.py --out docs/logs/delays        (writes delays.svg, delays.png and delays.csv)
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.plots.chart import save_chart
from driftbandit.lab.plots.style import look
from driftbandit.lab.support.tables import save_rows
from driftbandit.policies.delayed import Delayed
from driftbandit.text.parse import parse_policy

POLICIES = {
    "ts": "ts",
    "kl-ucb": "kl-ucb",
    "ds-ts, half-life 70": "ds-ts(gamma=0.99)",
    "ds-ts, half-life 700": "ds-ts(gamma=0.999)",
    "dts, half-life 70": "dts(gamma=0.99)",
    "dts, half-life 700": "dts(gamma=0.999)",
}
DELAYS = (0, 10, 100, 1000, 4000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    world = Abrupt(n_arms=5, horizon=20_000, phases=4)
    rows: list[list[Any]] = []
    for name, text in POLICIES.items():
        for random in (False, True):
            for delay in DELAYS:
                if random and not delay:
                    continue
                policy = Delayed(parse_policy(text), delay, random)
                final = simulate(policy, world, args.runs, 0, checkpoints=1, progress=False).regret[:, 0]
                error = final.std(ddof=1) / np.sqrt(args.runs)
                rows.append([name, delay, "random" if random else "fixed", round(final.mean(), 1), round(error, 1)])
    save_rows(["policy", "delay", "kind", "regret", "standard error"], rows, args.out.with_suffix(".csv"))

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for number, name in enumerate(POLICIES):
            mine = [row for row in rows if row[0] == name and row[2] == "fixed"]
            style = look(number)
            axes.plot(range(len(mine)), [row[3] for row in mine], label=name, markerfacecolor="white", **style)
            low, high = ([row[3] + side * row[4] for row in mine] for side in (-2, 2))
            axes.fill_between(range(len(mine)), low, high, color=style["color"], alpha=0.15, linewidth=0)
        axes.set_xticks(range(len(DELAYS)), [f"{delay:,}".replace(",", "\u2009") for delay in DELAYS])
        axes.set_xlabel("rewards come this many rounds late")
        axes.set_ylabel(f"regret after 20\u2009000 rounds ({args.runs} runs)")
        axes.set_title("five arms, four phases of 5\u2009000 rounds: what late rewards cost", loc="left")
        figure.legend(loc="outside right upper", handlelength=4)

    for ending in (".svg", ".png"):
        save_chart(draw, args.out.with_suffix(ending), (8.4, 4.4))


if __name__ == "__main__":
    main()
