"""A bandit in memory: the time of one decision and one reward, one by one as a service asks, and of one decision
out of a batch."""

from typing import Any

from benchmarks.speed import workload
from benchmarks.speed.clock import measure
from benchmarks.speed.workload import Scale
from driftbandit.bandit import Bandit

ARMS = (10, 1000)
BATCH = 1000
POLICIES = ("ds-ts", "ts", "drift-ts")  # normal draws, Beta draws, many hypotheses; goals are about first and last


def rows(scale: Scale) -> list[dict[str, Any]]:
    """Few and many arms: interpreted, as the base install has it, and as machine code."""
    return [
        row
        for name in POLICIES
        for n_arms in ARMS
        for compiled in (False, True)
        for row in _rows(name, n_arms, compiled, scale)
    ]


def _rows(name: str, n_arms: int, compiled: bool, scale: Scale) -> list[dict[str, Any]]:
    bandit = Bandit(n_arms, workload.tuned(name, scale.horizon, n_arms), reward_range=(0, 1), seed=1, compiled=compiled)
    steps = max(20, min(scale.horizon // 10, 20_000 // n_arms))

    def serve() -> None:
        for step in range(steps):
            bandit.reward(bandit.decide(), float(step & 1))

    serve()  # compiles, or fills the first blocks of draws
    way = "compiled" if compiled else "interpreted"
    row = {"library": "driftbandit", "policy": f"{name}, {way}", "way": way, "n_arms": n_arms}
    out = [{**row, "us": 1e6 * measure(serve, 5 * scale.repeats).cpu / steps}]
    if compiled and n_arms == ARMS[0]:
        count = min(BATCH, scale.horizon)
        bandit.decide_many(count)
        timing = measure(lambda: bandit.decide_many(count), 5 * scale.repeats)
        row |= {"policy": f"{name}, compiled, decide_many({count}), a decision", "way": "batch"}
        out.append({**row, "us": 1e6 * timing.cpu / count})
    return out
