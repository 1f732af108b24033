"""Revenue with no range declared: the regret of a bandit over that of uniform play.

    python benchmarks/revenue.py [--runs 32] [--rounds 20000] [--out docs/field/revenue.md]

Three arms. 2% of all visitors buy; what they spend is log-normal with sigma 0.8 and a mean of 20, 30 or 45. Nothing
changes, and nothing is given to the bandit but the number of arms. The goal is a ratio of at most 0.3."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pages import shown_and_kept

from driftbandit import Bandit

SPEND, BUY, SIGMA = np.array([20.0, 30.0, 45.0]), 0.02, 0.8
GOAL = 0.3
BANDITS: dict[str, dict[str, Any]] = {
    "the default bandit": {},
    "without a floor": {"floor": 0.0},
    "without a floor and first tries: the policy only": {"floor": 0.0, "first": False},
}


def regret(seed: int, rounds: int, options: dict[str, Any]) -> float:
    """Of one run, in euros; the arms are in random order."""
    rng = np.random.default_rng(seed)
    spend = rng.permutation(SPEND)
    amounts = np.exp(SIGMA * rng.normal(size=(rounds, 3)) - 0.5 * SIGMA**2) * spend
    rewards = np.where(rng.random((rounds, 1)) < BUY, amounts, 0.0).tolist()
    bandit, lost = Bandit(3, seed=seed, compiled=True, **options), 0.0
    for row in rewards:
        decision = bandit.decide()
        bandit.reward(decision, row[decision.arm])
        lost += BUY * float(spend.max() - spend[decision.arm])
    return lost


def lines(runs: int, rounds: int) -> Iterator[str]:
    """The page."""
    uniform = rounds * BUY * float(SPEND.max() - SPEND.mean())
    yield "# Revenue with no range declared"
    yield ""
    yield f"Regret over that of uniform play, {runs} runs of {rounds:,} rounds: 2% of visitors buy for a log-normal"
    yield f"amount with sigma 0.8 and a mean of 20, 30 or 45. The goal is {GOAL:g}. Made by"
    yield "`python benchmarks/revenue.py`."
    yield ""
    yield "| | mean | median | worst run |"
    yield "|---|--:|--:|--:|"
    for name, options in BANDITS.items():
        found = np.array([regret(seed, rounds, options) for seed in range(runs)]) / uniform
        error = found.std(ddof=1) / runs**0.5
        yield f"| {name} | {found.mean():.3f} ± {error:.3f} | {np.median(found):.3f} | {found.max():.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    shown_and_kept(lines(given.runs, given.rounds), given.out)


if __name__ == "__main__":
    main()
