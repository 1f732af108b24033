"""DriftTS on real tables: the flights of examples/flights, no row learned twice.

    python benchmarks/drift_real.py [--runs 16] [--out docs/drift-ts/real.md]

An hour in which every arm has flights is played for as many rounds as the arm with the fewest has flights: then nobody
can need more rows than there are, whomever it plays. Each run shuffles the flights of an hour anew; all policies meet
the same shuffles, and learn at once. The hours keep their order."""

import argparse
import csv
import gzip
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pages import shown_and_kept

from driftbandit import Bandit
from driftbandit.spec.parse import parse

FILE = Path(__file__).parents[1] / "examples" / "flights" / "hourly.csv.gz"
TABLES = {"airports": ["EWR", "JFK", "LGA"], "carriers": ["UA", "B6", "EV", "DL", "AA", "MQ"]}
POLICIES = ("drift-ts", "ts", "kl-ucb", "dts(gamma=0.999)", "ds-ts(gamma=0.999)", "global-cts(hazard=0.0001)")


def hours(arms: list[str]) -> Iterator[tuple[list[int], list[int]]]:
    """Flights and flights on time of each arm, hour by hour, where all have some."""
    with gzip.open(FILE, "rt") as file:
        for row in csv.DictReader(file):
            flights = [int(row[arm]) for arm in arms]
            if min(flights) > 0:
                yield flights, [int(row[f"{arm}_on_time"]) for arm in arms]


def table(arms: list[str], seed: int) -> np.ndarray:
    """Rounds × arms: what each arm would pay, 1 for a flight on time; no flight stands in two places."""
    generator, blocks = np.random.default_rng(seed), []
    for flights, on_time in hours(arms):
        rows = min(flights)
        columns = [generator.permutation(n)[:rows] < good for n, good in zip(flights, on_time, strict=True)]
        blocks.append(np.column_stack(columns))
    return np.concatenate(blocks).astype(float)


def earned(policy: str, rewards: np.ndarray, seed: int) -> float:
    """The mean reward of one run."""
    bandit = Bandit(
        rewards.shape[1], parse(policy), reward_range=(0, 1), seed=seed, floor=0.0, first=False, compiled=True
    )
    total = 0.0
    for row in rewards:
        decision = bandit.decide()
        arm = decision.arm
        bandit.reward(decision, float(row[arm]))
        total += row[arm]
    return total / len(rewards)


def lines(runs: int) -> Iterator[str]:
    """The page, line by line as it is measured."""
    yield "# DriftTS on real tables"
    yield ""
    yield f"Made by `python benchmarks/drift_real.py --runs {runs}`: mean reward ± standard error over {runs} shuffles;"
    yield "and what it earned more than `ts` on the same shuffles, in points of a hundred."
    for name, arms in TABLES.items():
        tables = [table(arms, seed) for seed in range(runs)]
        fixed = np.mean([rewards.mean(axis=0) for rewards in tables], axis=0)
        yield ""
        yield f"## {name.capitalize()}: {len(tables[0]):,} rounds, {len(arms)} arms"
        yield ""
        yield "| policy | mean reward | over ts |"
        yield "|---|--:|--:|"
        found = {policy: np.array([earned(policy, tables[s], s) for s in range(runs)]) for policy in POLICIES}
        for policy, values in found.items():
            gain, root = 100.0 * (values - found["ts"]), math.sqrt(runs)
            more = f"{gain.mean():+.2f} ± {gain.std(ddof=1) / root:.2f}" if policy != "ts" else ""
            yield f"| `{policy}` | {values.mean():.4f} ± {values.std(ddof=1) / root:.4f} | {more} |"
        yield f"| always {arms[int(fixed.argmax())]}, the best fixed arm | {fixed.max():.4f} | |"
        yield f"| an arm at random | {fixed.mean():.4f} | |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    shown_and_kept(lines(args.runs), args.out)


if __name__ == "__main__":
    main()
