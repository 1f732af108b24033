"""Mean regret of DriftTS on design worlds beside the figures it was specified with (32 runs, seed 0).

    python benchmarks/drift_targets.py [world,world,...]

z is the difference in standard errors of both figures together; beyond 3 something has changed."""

import math
import sys

from driftbandit.environments import Abrupt, AbruptGap, PhaseTable, Smooth
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.drift_ts import DriftTS

T, RUNS = 100_000, 32


def trap(n_arms):
    """The best arm stays at .5; half-way another one, which nobody plays, jumps from .1 to .9."""
    low = (0.1,) * (n_arms - 2)
    return PhaseTable(means=((0.5, 0.1, *low), (0.5, 0.9, *low)), starts=(0, T // 2), horizon=T)


TARGETS = {
    "authors-5": (Abrupt(5, T, 10, world="authors"), 319, 5),
    "authors-10": (Abrupt(10, T, 10, world="authors"), 682, 21),
    "authors-30": (Abrupt(30, T, 10, world="authors"), 858, 10),
    "fresh-5-5": (Abrupt(5, T, 5), 339, 27),
    "fresh-5-10": (Abrupt(5, T, 10), 501, 32),
    "fresh-5-20": (Abrupt(5, T, 20), 828, 32),
    "fresh-10": (Abrupt(10, T, 10), 658, 26),
    "fresh-30": (Abrupt(30, T, 10), 1031, 30),
    "gap.05": (AbruptGap(5, T, 10, 0.05, world="authors"), 1208, 52),
    "gap.1": (AbruptGap(2, T, 5, 0.1, world="authors"), 180, 9),
    "gap.2": (AbruptGap(5, T, 5, 0.2, world="authors"), 345, 7),
    "smooth5-1e4-1e-3": (Smooth(5, 10_000, 1e-3), 377, 9),
    "smooth5-1e4-1e-4": (Smooth(5, 10_000, 1e-4), 151, 13),
    "smooth5-1e5-1e-4": (Smooth(5, T, 1e-4), 980, 34),
    "smooth10": (Smooth(10, T, 1e-4), 1892, 41),
    "smooth30-1e-3": (Smooth(30, T, 1e-3), 8171, 32),
    "smooth30-1e-4": (Smooth(30, T, 1e-4), 3082, 28),
    "stat5": (Abrupt(5, T, 1), 99, 8),
    "stat10": (Abrupt(10, T, 1), 125, 7),
    "stat30": (Abrupt(30, T, 1), 216, 13),
    "fast5": (Abrupt(5, T, 200), 3912, 42),
    "fast10": (Abrupt(10, T, 200), 5565, 38),
    "slow5": (Abrupt(5, 1_000_000, 2), 447, 29),
    "trap2": (trap(2), 572, 83),
    "trap5": (trap(5), 1163, 124),
}


def main(names):
    for name in names or TARGETS:
        world, mean, error = TARGETS[name]
        regret = simulate(DriftTS(), world, runs=RUNS, seed=0, checkpoints=1).regret[:, -1]
        own = regret.std(ddof=1) / math.sqrt(RUNS)
        z = (regret.mean() - mean) / math.hypot(error, own)
        print(f"{name:18s} {regret.mean():8.0f} ± {own:4.0f}   specified {mean} ± {error}   z = {z:+.1f}", flush=True)


if __name__ == "__main__":
    main([name for argument in sys.argv[1:] for name in argument.split(",")])
