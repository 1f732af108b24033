"""Our own policies: time a round, one run at a time and in lockstep."""

import math
from typing import Any

from benchmarks.speed import workload
from benchmarks.speed.clock import Timing, measure
from benchmarks.speed.workload import Scale
from driftbandit.lab.engine.simulate import simulate

LOCKSTEP_RUNS = 64
FRACTIONAL = ("drift-ts",)  # policies for which a reward between 0 and 1 is more work than 0 or 1
_ENOUGH = 1.0  # seconds of repeats after which a cell is measured well enough
_WARM_ROUNDS = 1000  # what is compiled does not depend on the horizon, so the first call may be short


def measured(
    policy: Any, n_arms: int, horizon: int, runs: int, repeats: int, lockstep: bool = False, fractional: bool = False
) -> Timing:
    """Time of one round of one run: everything `simulate` does, divided by rounds and runs, after a first call that
    compiles."""

    def play(rounds: int = horizon, count: int = runs) -> None:
        environment = workload.environment(n_arms, rounds, fractional)
        simulate(policy, environment, runs=count, workers=1, checkpoints=1, lockstep=lockstep)

    play(min(horizon, _WARM_ROUNDS), runs if lockstep else 1)
    return measure(play, repeats, _ENOUGH).each(runs * horizon)


def fractional_rows(scale: Scale) -> list[dict[str, Any]]:
    """The rows of the policies that work harder for rewards between 0 and 1, in an environment that pays such."""
    return [
        {**row, "policy": f"{name}, fractions"}
        for name in workload.names(scale)
        if name in FRACTIONAL
        for row in rows(name, scale, True)
    ]


def rows(name: str, scale: Scale, fractional: bool = False) -> list[dict[str, Any]]:
    """One row for each number of arms and way to run: one run and, where it can, 64 runs in lockstep."""
    out = []
    for n_arms in scale.arms:
        policy = workload.tuned(name, scale.horizon, n_arms)
        ways = [False, True] if getattr(policy, "lockstep", False) else [False]
        for lockstep in ways:
            timing = _timed(policy, n_arms, lockstep, scale, fractional)
            out.append(
                {
                    "policy": name,
                    "n_arms": n_arms,
                    "lockstep": lockstep,
                    "ns": 1e9 * timing.cpu,
                    "wall_ns": 1e9 * timing.wall,
                    "runs_per_second": 1.0 / (timing.cpu * scale.horizon),
                }
            )
    return out


def _timed(policy: Any, n_arms: int, lockstep: bool, scale: Scale, fractional: bool) -> Timing:
    """64 runs in lockstep, or so many one by one that a repeat takes about `scale.seconds`."""
    if lockstep:
        return measured(policy, n_arms, scale.horizon, LOCKSTEP_RUNS, scale.repeats, lockstep, fractional)
    once = measured(policy, n_arms, scale.horizon, 1, 1, False, fractional)
    spent = once.cpu * scale.horizon
    runs = max(1, min(LOCKSTEP_RUNS, math.ceil(scale.seconds / max(spent, 1e-9))))
    more = measured(policy, n_arms, scale.horizon, runs, scale.repeats, False, fractional)
    # A single run that long is as good as a repeat.
    return Timing(min(once.cpu, more.cpu), min(once.wall, more.wall)) if runs == 1 else more
