"""Revenue with no range declared: the regret of the default policy over that of uniform play.

    python benchmarks/revenue.py [--runs 32] [--rounds 20000]

Three arms. 2% of all visitors buy; what they spend is log-normal with sigma 0.8 and a mean of 20, 30 or 45. Nothing
changes, and nothing is given to the policy but the number of arms. The goal is a ratio of at most 0.3."""

import argparse

import numpy as np

from driftbandit.core.draws import Stream
from driftbandit.player import Player
from driftbandit.policies.drift.drift_auto import DriftAuto

SPEND, BUY, SIGMA = np.array([20.0, 30.0, 45.0]), 0.02, 0.8
GOAL = 0.3


def regret(seed: int, rounds: int) -> float:
    """Of one run, in euros; the arms are in random order."""
    rng = np.random.default_rng(seed)
    spend = rng.permutation(SPEND)
    amounts = np.exp(SIGMA * rng.normal(size=(rounds, 3)) - 0.5 * SIGMA**2) * spend
    rewards = np.where(rng.random((rounds, 1)) < BUY, amounts, 0.0).tolist()
    player, stream, lost = Player(DriftAuto(), 3, key=seed), Stream(seed), 0.0
    for t, row in enumerate(rewards):
        arm = player.choose(stream.at(t))
        player.learn(arm, row[arm])
        lost += BUY * float(spend.max() - spend[arm])
    return lost


def main() -> None:
    """Print mean, standard error and median of the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=20_000)
    given = parser.parse_args()
    uniform = given.rounds * BUY * float(SPEND.max() - SPEND.mean())
    found = np.array([regret(seed, given.rounds) for seed in range(given.runs)]) / uniform
    error = found.std(ddof=1) / given.runs**0.5
    print(
        f"regret over that of uniform play: {found.mean():.3f} ± {error:.3f}, median {np.median(found):.3f}, "
        f"goal {GOAL:g}; {given.runs} runs of {given.rounds:,} rounds"
    )


if __name__ == "__main__":
    main()
