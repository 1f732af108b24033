"""Do the intervals of `replay` cover the truth, and does `tune` keep quiet where nothing changes?

Logs are simulated in worlds whose means are known, by a logger that draws evenly and by Thompson sampling with a tenth
of even draws. The truth for a follower is the average over its log of sum pi_t(a) mean_t(a): the same follower run with
the true means as guesses. Writes the tables in docs/logs:

    python benchmarks/log_coverage.py --only cover --out docs/logs/coverage-replay.md     (half an hour on one core)
    python benchmarks/log_coverage.py --only tune --out docs/logs/coverage-tune.md        (half an hour on one core)
"""

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.environments import Smooth, phased
from driftbandit.lab.support.tables import save_rows
from driftbandit.logs.bootstrap import block_mean
from driftbandit.logs.candidates import candidates
from driftbandit.logs.follow import follow
from driftbandit.logs.simulated import adaptive_log, uniform_log
from driftbandit.logs.tuned import half_life_grid, tune

POLICIES = ["ts", "dts @ 300", "ds-ts @ 300", "ds-ts(tau_max=0.1) @ inf"]
HEAD = ["question", "logger", "world", "events", "logs", "result", "95 % of it"]


def world_of(kind: str, n: int, rng: Any) -> Any:
    """A world of three arms, drawn anew for each log."""
    if kind == "stationary":
        return phased([rng.uniform(0.3, 0.6, 3)], [0], n)
    if kind == "abrupt":
        return phased(rng.uniform(0.2, 0.7, (8, 3)), np.arange(8) * (n // 8), n)
    return Smooth(n_arms=3, horizon=n, sigma=6.0 * math.pi / n)


class Cover:
    """For values and gains: how many intervals hold the truth, of how many, and their mean width."""

    def __init__(self, name: str, logger: Any, kind: str, n: int, seed: int) -> None:
        self.name, self.logger, self.kind, self.n, self.seed = name, logger, kind, n, seed
        self.hits = {"value": [0, 0, 0.0], "gain over ts": [0, 0, 0.0]}

    def play(self, number: int) -> None:
        """One more log."""
        rng = np.random.default_rng([self.seed, number])
        world = world_of(self.kind, self.n, rng)
        log = self.logger(world, seed=int(rng.integers(1 << 40)))
        tried = candidates(POLICIES, False)
        found = follow(log, tried, workers=1)
        guessed = truth_of(world, log, tried)
        total = found.events.sum()
        for at in range(len(tried)):
            value, noise, right = found.value[:, at].sum(), found.noise[:, at], guessed[at]
            self.count("value", value / total, noise, found.pieces, right / total)
            if at:
                value, noise, right = value - found.value[:, 0].sum(), noise - found.noise[:, 0], right - guessed[0]
                self.count("gain over ts", value / total, noise, found.pieces, right / total)

    def count(self, name: str, mean: float, noise: Any, events: Any, right: float) -> None:
        """One interval, as `replay` makes it."""
        made = block_mean(noise, events).moved(mean)
        self.hits[name][0] += made.low <= right <= made.high
        self.hits[name][1] += 1
        self.hits[name][2] += made.high - made.low

    def rows(self, logs: int) -> list[list[str]]:
        """Its lines of the table; the policies of one log share its noise, so that only logs count for certainty."""
        out = []
        for question, (hit, count, width) in self.hits.items():
            share = f"{100 * hit / count:.1f} % cover, {100 * width / count:.2f} points wide"
            sure = interval(round(hit / count * logs), logs)
            out.append([f"replay: {question}", self.name, self.kind, str(self.n), str(logs), share, sure])
        return out


class Tune:
    """How often `tune` recommends forgetting, and how near it comes to the best half-life."""

    def __init__(self, kind: str, n: int, seed: int) -> None:
        self.kind, self.n, self.seed = kind, n, seed
        self.chosen: list[float] = []  # recommended half-lives
        self.able = self.silent = (
            0  # logs with as many events as it says it needs, and those of them it said nothing on
        )
        self.grid: list[float] = []
        self.truth: Any = 0.0

    def play(self, number: int) -> None:
        """One more log."""
        rng = np.random.default_rng([self.seed, 7, number])
        world = world_of(self.kind, self.n, rng)
        log = uniform_log(world, seed=int(rng.integers(1 << 40)))
        result = tune(log)
        if result.recommended:
            self.chosen.append(next(t.half_life for t in result.trials if t.label == result.chosen))
        if result.needed <= log.n:
            self.able += 1
            self.silent += not result.recommended
        if self.kind != "stationary" and number < 60:  # the best half-life on average, by the truth
            self.grid = half_life_grid(log, True)
            self.truth = self.truth + truth_of(world, log, candidates([f"dts @ {h:.12g}" for h in self.grid], False))

    def rows(self, logs: int) -> list[list[str]]:
        """Its lines of the table."""
        finite, about = len(self.chosen), ["even", self.kind, str(self.n), str(logs)]
        what = f"a finite half-life {finite} times ({100 * finite / logs:.1f} %)"
        out = [["tune: recommends", *about, what, interval(finite, logs)]]
        if self.kind != "stationary" and finite:
            best = self.grid[int(np.argmax(self.truth))]
            near = sum(best / 3.0 <= h <= best * 3.0 for h in self.chosen)
            what = f"{near} of {finite} within a factor 3 of the best, {best:.0f}"
            out.append(["tune: how near", *about, what, interval(near, finite)])
            if self.able:
                spoke = self.able - self.silent
                what = f"spoke in {spoke} of the {self.able} logs that had the events it asked for"
                out.append(["tune: once there are enough", *about, what, interval(spoke, self.able)])
        return out


def truth_of(world: Any, log: Any, tried: Any) -> np.ndarray:
    """Each follower's sum of pi_t(a) mean_t(a): the same follower with the true means as guesses, without the noise."""
    means = world.means(0, world.horizon)
    found = follow(log, tried, workers=1, guesses=lambda events: means[events.time.astype(int)])
    return np.asarray(found.value.sum(axis=0) - found.noise.sum(axis=0))


def interval(hit: int, count: int) -> str:
    """Wilson's 95 % interval of a share, in percent."""
    z, p = 1.96, hit / count
    scale = 100 / (1 + z * z / count)
    centre, half = p + z * z / (2 * count), z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return f"{scale * max(centre - half, 0.0):.1f} to {scale * (centre + half):.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--events", type=int, default=4000)
    parser.add_argument("--tune-events", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["cover", "tune"])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    began = time.perf_counter()
    loggers = {"even": uniform_log, "ts + 10 % even": adaptive_log}
    kinds = ("stationary", "abrupt", "smooth")
    jobs: list[Any] = []
    if args.only != "tune":
        jobs += [Cover(n, loggers[n], kind, args.events, args.seed) for n in loggers for kind in kinds]
    if args.only != "cover":
        jobs += [Tune(kind, args.tune_events, args.seed) for kind in kinds[:2]]
    for number in range(args.logs):
        for job in jobs:
            job.play(number)
        if (number + 1) % 20 == 0 or number + 1 == args.logs:  # what is there so far is kept
            rows = [row for job in jobs for row in job.rows(number + 1)]
            if args.out:
                save_rows(HEAD, rows, args.out)
    for row in rows:
        print(" | ".join(row))
    print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
