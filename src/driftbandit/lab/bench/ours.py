"""Our own policies: time a round, one run at a time and in lockstep."""

import math
from typing import Any

from driftbandit.lab.bench import workload
from driftbandit.lab.bench.clock import Timing, measure
from driftbandit.lab.bench.workload import Scale
from driftbandit.lab.simulate import simulate

LOCKSTEP_RUNS = 64


def measured(policy: Any, n_arms: int, horizon: int, runs: int, repeats: int, lockstep: bool = False) -> Timing:
    """Time of one round of one run: everything `simulate` does, divided by rounds and runs, after a first call that
    compiles."""
    world = workload.environment(n_arms, horizon)

    def play() -> None:
        simulate(policy, world, runs=runs, workers=1, checkpoints=1, lockstep=lockstep)

    play()
    return measure(play, repeats).each(runs * horizon)


def rows(name: str, scale: Scale) -> list[dict[str, Any]]:
    """One row for each number of arms and way to run: the policy alone and, where it can, 64 runs in lockstep."""
    out = []
    for n_arms in scale.arms:
        policy = workload.tuned(name, scale.horizon, n_arms)
        ways = [False, True] if getattr(policy, "lockstep", False) else [False]
        for lockstep in ways:
            runs = LOCKSTEP_RUNS if lockstep else _enough(policy, n_arms, scale)
            timing = measured(policy, n_arms, scale.horizon, runs, scale.repeats, lockstep)
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


def _enough(policy: Any, n_arms: int, scale: Scale) -> int:
    """So many runs that a repeat takes about `scale.seconds`."""
    once = measured(policy, n_arms, scale.horizon, 1, 1).cpu * scale.horizon
    return max(1, min(LOCKSTEP_RUNS, math.ceil(scale.seconds / max(once, 1e-9))))
