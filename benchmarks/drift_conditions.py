"""DriftTS with a floor of even play, with rewards that come late, and with rare rewards: mean regret, as three tables.

    python benchmarks/drift_conditions.py [--runs 16] [--out docs/drift-ts/conditions.md]

A floor is played by the `Explored` of safe_agent.py, which decides as an agent with that floor does. All policies of a
table meet the same worlds and rewards."""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages import shown_and_kept
from safe_agent import Explored

from driftbandit.agent.exploration import DEFAULT_FLOOR
from driftbandit.environments import Abrupt, Rare, Trap
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.beta_ts import BetaTS
from driftbandit.policies.delayed import Delayed
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.drift_ts import DriftTS

HORIZON = 100_000
DS_TS = DiscountedTS(gamma=0.999)


def regret(policy: Any, world: Any, runs: int) -> str:
    """Mean and standard error over the runs."""
    final = simulate(policy, world, runs=runs, seed=0, checkpoints=1, progress=False).regret[:, -1]
    return f"{final.mean():,.0f} ± {final.std(ddof=1) / math.sqrt(runs):,.0f}"


def table(head: list[str], rows: dict[str, list[tuple[Any, Any]]], runs: int) -> Iterator[str]:
    """A line for each name, its cells pairs of a policy and a world."""
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'--:|' * (len(head) - 1)}"
    for name, cells in rows.items():
        yield f"| {name} | {' | '.join(regret(policy, world, runs) for policy, world in cells)} |"


def lines(runs: int, horizon: int) -> Iterator[str]:
    """The page, line by line as it is measured."""
    still, jumps = Abrupt(5, horizon, 1), Abrupt(5, horizon, 10)
    yield "# DriftTS with a floor, with delays, with rare rewards"
    yield ""
    yield f"Made by `python benchmarks/drift_conditions.py`: mean regret ± standard error, {runs} runs, seed 0."
    yield ""
    yield f"## A floor of even play, {horizon:,} rounds"
    yield ""
    worlds = {"nothing changes, K = 5": still, "10 phases, K = 5": jumps, "trap, K = 5": Trap(5, horizon)}
    floors = (0.0, DEFAULT_FLOOR, 0.02)
    rows = {name: [(Explored(DriftTS(), False, floor), world) for floor in floors] for name, world in worlds.items()}
    yield from table(["world", *(f"floor {floor:g}" for floor in floors)], rows, runs)
    yield ""
    yield f"## Rewards that come late, {horizon:,} rounds, 10 phases, K = 5"
    yield ""
    delays = (0, 100, 1_000)
    policies = {"`drift-ts`": DriftTS(), "`ts`": BetaTS(), "`ds-ts(gamma=0.999)`": DS_TS}
    rows = {name: [(Delayed(base=base, rounds=d), jumps) for d in delays] for name, base in policies.items()}
    yield from table(["policy", *(f"{delay:,} rounds late" for delay in delays)], rows, runs)
    yield ""
    yield f"## Rare rewards, {horizon:,} rounds, 10 phases, K = 5"
    yield ""
    highest = (0.05, 0.01)
    rares = [Rare(5, horizon, 10, most) for most in highest]
    rows = {name: [(policy, world) for world in rares] for name, policy in policies.items()}
    rows["`ds-ts(gamma=0.999)`, tau_max a fifth of the largest mean"] = [
        (DS_TS._replace(tau_max=most / 5), world) for most, world in zip(highest, rares, strict=True)
    ]
    yield from table(["policy", *(f"means up to {most:g}" for most in highest)], rows, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--horizon", type=int, default=HORIZON)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    shown_and_kept(lines(args.runs, args.horizon), args.out)


if __name__ == "__main__":
    main()
