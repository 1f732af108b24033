"""DriftTS with rewards that come late, and with rare rewards: mean regret, as two tables.

    python benchmarks/drift_conditions.py [--runs 16] [--out docs/drift-ts/conditions.md]

All policies of a table meet the same environments and rewards."""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages import shown_and_kept

from driftbandit.environments import Abrupt, Rare
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.beta_ts import BetaTS
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.drift import DriftTS
from driftbandit.policies.wrappers import Delayed

HORIZON = 100_000
DS_TS = DiscountedTS(gamma=0.999)


def regret(policy: Any, environment: Any, runs: int) -> str:
    """Mean and standard error over the runs."""
    final = simulate(policy, environment, runs=runs, seed=0, checkpoints=1, progress=False).regret[:, -1]
    return f"{final.mean():,.0f} ± {final.std(ddof=1) / math.sqrt(runs):,.0f}"


def table(head: list[str], rows: dict[str, list[tuple[Any, Any]]], runs: int) -> Iterator[str]:
    """A line for each name, its cells pairs of a policy and an environment."""
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'--:|' * (len(head) - 1)}"
    for name, cells in rows.items():
        yield f"| {name} | {' | '.join(regret(policy, environment, runs) for policy, environment in cells)} |"


def lines(runs: int, horizon: int) -> Iterator[str]:
    """The page, line by line as it is measured."""
    jumps = Abrupt(5, horizon, 10)
    yield "# DriftTS with delays, with rare rewards"
    yield ""
    yield f"Made by `python benchmarks/drift_conditions.py`: mean regret ± standard error, {runs} runs, seed 0."
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
    rows = {name: [(policy, environment) for environment in rares] for name, policy in policies.items()}
    rows["`ds-ts(gamma=0.999)`, tau_max a fifth of the largest mean"] = [
        (DS_TS._replace(tau_max=most / 5), environment) for most, environment in zip(highest, rares, strict=True)
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
