"""What the rules of real life cost in regret: delayed rewards, a floor, a holdback, and forgetting by the clock.

    python benchmarks/live_cost.py [--runs 20] [--out docs/live/cost.csv]

A start with the same `--runs` and `--out` continues where an earlier one was stopped.

Played by the parts a live bandit is made of (rules, fold, the draws of decisions), without a store. Rewards are 0 or 1;
DS-TS has the discount its theory gives for the environment. Time is counted in ticks of which the environment has
10,000; traffic is one decision a tick, or comes in days: ten times as dense by day as by night, and the same on
average."""

import argparse
import csv
import functools
import heapq
import math
import os
import statistics
from pathlib import Path

import numpy as np

from driftbandit import DiscountedTS
from driftbandit.bandit.fold import Fold
from driftbandit.bandit.opening import policy_maker
from driftbandit.bandit.records import CHANGE, REWARD, Change, Event, decision_stream
from driftbandit.bandit.settings import first_config
from driftbandit.core.draws import ENVIRONMENT, Stream, stream_key
from driftbandit.core.draws import REWARD as LUCK
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt, Smooth

TICKS, ARMS, TICK = 10_000, 5, 1_000_000  # a tick is a second
ENVIRONMENTS = {
    "abrupt": Abrupt(n_arms=ARMS, horizon=TICKS, phases=5),
    "smooth": Smooth(n_arms=ARMS, horizon=TICKS, sigma=0.001),
}
GAMMA = {"abrupt": DiscountedTS.tuned(TICKS, 5).gamma, "smooth": DiscountedTS.text(TICKS, 1, smooth=True).gamma}


def arrivals(traffic, chance):
    """The times of the decisions, in microseconds."""
    if traffic == "even":
        return np.arange(TICKS) * TICK
    day = TICKS / 10
    rate = np.where((np.arange(TICKS) % day) < day / 2, 20 / 11, 2 / 11)
    counts = chance.poisson(rate)
    return np.sort(np.repeat(np.arange(TICKS), counts) * TICK + chance.integers(0, TICK, counts.sum()))


def regret(name, run, delay=0, floor=0.0, holdback=0.0, half_life=False, traffic="even"):
    """The regret of one run."""
    environment = to_lists(ENVIRONMENTS[name].realise(stream_key(7, run, ENVIRONMENT)))
    rewards_rng = Stream(stream_key(7, run, LUCK))
    policy = DiscountedTS(GAMMA[name])
    options = {"first": False, "floor": floor, "holdback": holdback, "baseline": "uniform" if holdback else None}
    if half_life:  # the same memory, by the clock
        options["half_life"] = -math.log(2.0) / math.log(GAMMA[name])
    config = first_config(policy, ARMS, stream_key(7, run, 2), "hash", options)
    fold = Fold(policy_maker())
    fold.apply([Event(1, CHANGE, 0, "#1", 1, body=Change("create", "", False, config).text())])
    times = arrivals(traffic, np.random.default_rng([7, run]))
    due, total = [], 0.0
    for first in range(0, len(times), 256):
        block = times[first : first + 256]
        numbers = decision_stream(int(config.key), list(range(first, first + len(block))))
        for column, at in enumerate(block):
            at, n = int(at), first + column
            while due and due[0][0] <= at:
                fold.apply([heapq.heappop(due)[2]])
            tick = at // TICK
            slot, how = fold.choose(numbers.at(column), None, at)
            value = float(environment.pull(tick, slot, rewards_rng.at(n)))
            heapq.heappush(due, (at + delay * TICK, n, Event(0, REWARD, at, "", slot, how, value, at)))
            total += environment.best(tick) - environment.mean(tick, slot)
    return total * TICKS / len(times)


CASES = [
    ("nothing", {}),
    ("rewards 10 ticks late", {"delay": 10}),
    ("rewards 100 ticks late", {"delay": 100}),
    ("rewards 1000 ticks late", {"delay": 1000}),
    ("floor 0.005, the default", {"floor": 0.005}),
    ("floor 0.01", {"floor": 0.01}),
    ("floor 0.02", {"floor": 0.02}),
    ("floor 0.05", {"floor": 0.05}),
    ("holdback 0.05, uniform", {"holdback": 0.05}),
    ("holdback 0.1, uniform", {"holdback": 0.1}),
    ("half-life by the clock", {"half_life": True}),
    ("half-life by the clock, 100 late", {"half_life": True, "delay": 100}),
    ("days and nights", {"traffic": "days"}),
    ("days and nights, half-life by the clock", {"traffic": "days", "half_life": True}),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    head = ["rule", "environment", "regret", "se", "more than nothing", "se of that", "runs"]
    done = kept(args.out, args.runs)
    rows = []
    for what, options in CASES:
        for name in ENVIRONMENTS:
            row = done.get((what, name)) or measured(what, name, options, args.runs)
            rows.append(row)
            print(*row, sep="\t", flush=True)
            if args.out:
                write(args.out, head, rows)


def kept(path, runs):
    """The rows that an earlier start of the same size has written already."""
    if path is None or not path.exists():
        return {}
    with path.open(newline="") as file:
        return {(row[0], row[1]): row for row in csv.reader(file) if row[-1] == str(runs)}


@functools.cache
def without_rules(name, runs):
    """The regret of every run with immediate rewards and no rules."""
    return [regret(name, run) for run in range(runs)]


def measured(what, name, options, runs):
    """One row: the mean regret, and how much more it is than without rules, run by run."""
    base = without_rules(name, runs)
    values = [regret(name, run, **options) for run in range(runs)] if options else base
    more = [value - first for value, first in zip(values, base, strict=True)]
    return [
        what, name, f"{statistics.mean(values):.1f}", f"{error(values):.1f}", f"{statistics.mean(more):+.1f}",
        f"{error(more):.1f}", str(runs),
    ]  # fmt: skip


def error(values):
    """The standard error of a mean."""
    return statistics.stdev(values) / math.sqrt(len(values))


def write(path, head, rows):
    """The whole file at once, so that a stop leaves a whole one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    os.replace(part, path)


if __name__ == "__main__":
    main()
