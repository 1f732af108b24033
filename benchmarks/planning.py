"""How many decisions a bandit needs, how fast changes may be, and how large a holdback must be, by simulation.

    python benchmarks/planning.py [--runs 100] [--out docs/planning]

Every bandit plays as it ships: the default policy, every arm tried first, a floor of 0.5%. Rewards are 0 or 1 and
learned at once; with `wait`, add the decisions that are made meanwhile. Three tables:

decisions.csv  the share of the better arm in the second half of the first n decisions; other arms have the lower rate
changes.csv    regret over that of choosing at random, if all rates are drawn again every so many decisions
holdback.csv   how often the 95% interval of the uplift over the baseline lies above 0, and the reward per decision;
               in an A/B test, one half of the decisions get the baseline and the other half the best arm"""

import argparse
import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safe_bandit import Explored

from driftbandit.core.primitives import learn_reward
from driftbandit.environments import Abrupt, PhaseTable
from driftbandit.lab import simulate
from driftbandit.policies import DriftTS, FixedArm, Uniform

SHIPPED = Explored(DriftTS())
HELD = 777  # a slot of random numbers that no policy uses
SIZES = (1_000, 10_000, 100_000)
RATES = ((0.01, 0.02), (0.05, 0.06), (0.10, 0.12), (0.20, 0.25), (0.50, 0.60))
EVERY = (100, 300, 1_000, 3_000, 10_000)
HOLDBACKS = (0.01, 0.05, 0.1, 0.2)
LENGTHS = (3_000, 10_000, 30_000, 100_000)
SCENARIOS = {
    "rates 5%, 5.5% and 6%": (((0.05, 0.055, 0.06),), 100_000),
    "rates 5%, 7% and 10%": (((0.05, 0.07, 0.10),), 100_000),
    "5%, 10% and 15%, in turn every 10,000 decisions": (
        ((0.10, 0.05, 0.15), (0.15, 0.10, 0.05), (0.05, 0.15, 0.10)),
        10_000,
    ),
}  # the baseline is the first arm


class HeldState(NamedTuple):
    """The wrapped policy's state, and whether the last decision was held back."""

    base: Any
    held: Any


class Held(NamedTuple):
    """A policy on all arms but the last, which is played in a share of the decisions and not learned."""

    base: Any
    share: float = 0.1
    last: int = 3

    def init(self, n_arms):
        return HeldState(self.base.init(n_arms - 1), np.zeros(1, np.int64))

    def choose(self, state, t, rng):
        asked = self.base.choose(state.base, t, rng)
        state.held[0] = 1 if rng.uniform(HELD) < self.share else 0
        return self.last if state.held[0] == 1 else asked

    def learn(self, state, t, arm, reward, rng):
        if state.held[0] == 0:
            learn_reward(self.base, state.base, t, arm, reward, rng)


def decisions(runs):
    """Rows of the share of the better arm."""
    yield ["low", "high", "arms", *(f"{size}" for size in SIZES)]
    points = sorted({point for size in SIZES for point in (size // 2, size)})
    for low, high in RATES:
        for n_arms in (2, 5):
            means = ((high, *[low] * (n_arms - 1)),)
            environment = PhaseTable(means=means, starts=(0,), horizon=SIZES[-1])
            found = simulate(SHIPPED, environment, runs=runs, seed=0, checkpoints=points, progress=False)
            wrong = dict(zip(points, found.regret.mean(axis=0) / (high - low), strict=True))
            shares = [1.0 - (wrong[size] - wrong[size // 2]) / (size - size // 2) for size in SIZES]
            yield [f"{low:.2f}", f"{high:.2f}", n_arms, *(f"{share:.2f}" for share in shares)]


def changes(runs):
    """Rows of the regret over that of choosing at random."""
    yield ["decisions between changes", "regret over random"]
    for every in EVERY:
        environment = Abrupt(n_arms=5, horizon=10 * every, phases=10)
        mine, random = (
            simulate(policy, environment, runs=runs, seed=0, checkpoints=1, progress=False).regret[:, -1].mean()
            for policy in (SHIPPED, Uniform())
        )
        yield [every, f"{mine / random:.2f}"]


def holdback(runs):
    """Rows of the power of a holdback and of an A/B test, and their reward per decision."""
    yield ["scenario", "holdback", *(f"{what} {n}" for n in LENGTHS for what in ("found", "reward"))]
    longest = LENGTHS[-1]
    for name, (phases, every) in SCENARIOS.items():
        count = longest // every
        means = [phases[phase % len(phases)] for phase in range(count)]
        environment = PhaseTable(
            means=tuple((*rates, rates[0]) for rates in means),  # the last arm is the baseline, for decisions held back
            starts=tuple(every * phase for phase in range(count)),
            horizon=longest,
        )
        tests = {f"{share:g}": Held(SHIPPED, share) for share in HOLDBACKS}
        tests["A/B test"] = Held(FixedArm(int(np.argmax(means[0]))), 0.5)  # of the arm that is the best at first
        for label, policy in tests.items():
            played = simulate(policy, environment, runs=runs, seed=0, trajectories=True, checkpoints=1, progress=False)
            held, row = played.arms == len(means[0]), [name, label]
            for n in LENGTHS:
                wins, others = (np.where(group[:, :n], played.rewards[:, :n], 0).sum(axis=1) for group in (~held, held))
                found = compare(wins, (~held)[:, :n].sum(axis=1), others, held[:, :n].sum(axis=1))
                row += [f"{found:.2f}", f"{played.rewards[:, :n].mean():.4f}"]
            yield row


def compare(wins, n, others, m):
    """How often the interval of the difference between two rates lies above 0, as `Bandit.uplift` computes it."""
    error = np.sqrt(variance(wins, n) / n + variance(others, m) / m)
    return float(np.mean(wins / n - others / m - 1.96 * error > 0))


def variance(wins, n):
    """The variance of an outcome; where all are equal, that of the group with one more outcome that differs."""
    rate = np.where(wins == 0, 1 / (n + 1), np.where(wins == n, n / (n + 1), wins / n))
    return rate * (1 - rate)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="+", choices=("decisions", "changes", "holdback"), help="some of the tables")
    args = parser.parse_args()
    for table in (decisions, changes, holdback):
        if args.only and table.__name__ not in args.only:
            continue
        rows = []
        for row in table(args.runs):
            rows.append(row)
            print(*row, sep="\t", flush=True)
        if args.out:
            args.out.mkdir(parents=True, exist_ok=True)
            with (args.out / f"{table.__name__}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
