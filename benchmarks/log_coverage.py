"""Do the intervals of `replay` hold the truth, and does `drift` keep quiet where nothing changes?

Logs are simulated in environments whose means are known, by a logger that draws uniformly and by Thompson sampling with
a tenth of uniform draws. The truth for a follower is the average over its log of sum pi_t(a) mean_t(a): the same
follower with the true means as guesses. "rare" has 0.6% successes. Writes the tables in docs/logs; with --minutes in
several sittings, since every log's result is kept in build/:

    python benchmarks/log_coverage.py --only cover --logs 100 --out docs/logs/coverage-replay.md
    python benchmarks/log_coverage.py --only drift --logs 100
"""

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.environments import Smooth, phased
from driftbandit.lab.support.files import save_rows
from driftbandit.logs import drift, replay
from driftbandit.logs.follow import follow
from driftbandit.logs.replay import candidates

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from naive.simulated_logs import adaptive_log, uniform_log

POLICIES = ["ts", "uniform", "fixed(0)", "dts @ 300", "ds-ts(tau_max=0.1)"]
HEAD = ["question", "logger", "world", "events", "logs", "result", "95% of it"]


def world_of(kind: str, n: int, rng: Any, phase: int = 0) -> Any:
    """A world of three arms, drawn anew for each log; phases of equal length, eight if nothing is said."""
    if kind == "stationary":
        return phased([rng.uniform(0.3, 0.6, 3)], [0], n)
    if kind == "rare":
        return phased([rng.uniform(0.003, 0.009, 3)], [0], n)
    if kind == "equal arms":
        return phased([np.full(3, rng.uniform(0.3, 0.6))], [0], n)
    if kind == "levels":
        starts = np.arange(0, n, n // 30)
        return phased(rng.uniform(0.3, 0.6, 3) + rng.normal(0.0, 0.08, (len(starts), 1)).clip(-0.25, 0.25), starts, n)
    if kind == "abrupt":
        starts = np.arange(0, n, phase or n // 8)
        return phased(rng.uniform(0.2, 0.7, (len(starts), 3)), starts, n)
    return Smooth(n_arms=3, horizon=n, sigma=6.0 * math.pi / n)


class Cover:
    """For values and gains: does the interval hold the truth, and how wide is it?"""

    def __init__(self, name: str, logger: Any, kind: str, n: int, seed: int) -> None:
        self.name, self.logger, self.kind, self.n, self.seed = name, logger, kind, n, seed
        self.case = f"cover, {name}, {kind}, {n}, seed {seed}"

    def play(self, number: int) -> list[Any]:
        """One log: for each question and policy whether its interval holds the truth, and its width."""
        rng = np.random.default_rng([self.seed, number])
        world = world_of(self.kind, self.n, rng)
        log = self.logger(world, seed=int(rng.integers(1 << 40)))
        result = replay(log, POLICIES, own=False)
        right, logger = truth_of(world, log)
        out = []
        for line, truth in zip(result.lines, right, strict=True):
            out.append([f"value of {line.label}", *held(line.value, truth)])
            out.append([f"{line.label} over the logger", *held(line.over_logger, truth - logger)])
            if line.over_ts is not None:
                out.append([f"{line.label} over ts", *held(line.over_ts, truth - right[0])])
        return out

    def rows(self, played: list[Any]) -> list[list[str]]:
        """Its lines of the table; the policies of one log share its noise, so that only logs count for certainty."""
        out, logs = [], len(played)
        for question in dict.fromkeys(name for log in played for name, *_ in log):
            found = np.array([[hit, width] for log in played for name, hit, width in log if name == question])
            share, width = found.mean(axis=0)
            about = [f"replay: {question}", self.name, self.kind, str(self.n), str(logs)]
            out.append(
                [*about, f"{100 * share:.1f}% hold the truth, {100 * width:.2f} points wide", interval(share, logs)]
            )
        return out


def held(estimate: Any, right: float) -> tuple[bool, float]:
    """Does the interval hold the truth, and how wide is it?"""
    return bool(estimate.low <= right <= estimate.high), float(estimate.high - estimate.low)


class Verdicts:
    """How often `drift` says what, in worlds of which it is known."""

    def __init__(self, name: str, logger: Any, kind: str, n: int, seed: int) -> None:
        self.name, self.logger, self.kind, self.n, self.seed = name, logger, kind, n, seed
        self.case = f"drift, {name}, {kind}, {n}, seed {seed}"

    def play(self, number: int) -> str:
        """One log's verdict."""
        rng = np.random.default_rng([self.seed, 9, number])
        world = world_of(self.kind, self.n, rng)
        return drift(self.logger(world, seed=int(rng.integers(1 << 40)))).verdict

    def rows(self, played: list[str]) -> list[list[str]]:
        """Its lines of the table: the ranking moves and stays; the ranking moves at all; levels move."""
        about, logs = [self.name, self.kind, str(self.n), str(len(played))], len(played)
        out = []
        for what, verdicts in (
            ("the ranking moves and stays", ("ranking",)),
            ("the ranking moves, but does not stay, or it is unclear", ("fleeting", "unclear")),
            ("the levels move, the ranking does not", ("levels",)),
            ("nothing seems to move", ("nothing",)),
        ):
            count = sum(verdict in verdicts for verdict in played)
            result = f"{what}: {count} times ({100 * count / logs:.1f}%)"
            out.append(["drift: says", *about, result, interval(count / logs, logs)])
        return out


def truth_of(world: Any, log: Any) -> tuple[np.ndarray, float]:
    """Each follower's average of sum pi_t(a) mean_t(a), and the logger's; of an adaptive logger, whose probabilities of
    other arms are not in the log, for the arms that it drew."""
    means = world.means(0, world.horizon)
    found = follow(log, candidates(POLICIES), guesses=lambda events: means[events.time.astype(int)])
    events = log.whole()
    logger = means[events.time.astype(int), events.arm].mean() if log.summary.adaptive else means.mean()
    return np.asarray(found.truth.sum(axis=0) / log.n), float(logger)


def interval(share: float, count: int) -> str:
    """Wilson's 95% interval of a share, in percent."""
    z = 1.96
    scale = 100 / (1 + z * z / count)
    centre = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return f"{scale * max(centre - half, 0.0):.1f} to {scale * (centre + half):.1f}%"


def kept_in(path: Path) -> dict[str, dict[int, Any]]:
    """What earlier sittings found, by case and number of the log; a line cut short by a crash is played again."""
    out: dict[str, dict[int, Any]] = defaultdict(dict)
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            case, number, found = json.loads(line)
        except ValueError:
            continue
        out[case][number] = found
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--events", type=int, default=4000)
    parser.add_argument("--drift-events", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["cover", "drift"])
    parser.add_argument("--case", default="", metavar="TEXT", help="only cases with this in their name, as in abrupt")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop then; called again, it goes on")
    parser.add_argument("--kept", type=Path, default=Path("build/log_coverage.jsonl"), help="each log's result")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    loggers = {"uniform": uniform_log, "ts + 10% uniform": adaptive_log}
    kinds = ("stationary", "rare", "abrupt", "smooth")
    jobs: list[Any] = []
    if args.only in (None, "cover"):
        jobs += [Cover(n, loggers[n], kind, args.events, args.seed) for n in loggers for kind in kinds]
    if args.only in (None, "drift"):
        worlds = ("equal arms", "stationary", "levels", "abrupt")
        jobs += [Verdicts(n, loggers[n], kind, args.drift_events, args.seed) for n in loggers for kind in worlds]
    jobs = [job for job in jobs if args.case in job.case]
    args.kept.parent.mkdir(parents=True, exist_ok=True)
    kept = kept_in(args.kept)
    end = time.monotonic() + 60.0 * args.minutes
    with args.kept.open("a") as file:
        file.write("\n")  # ends a line that a crash cut short
        for number in range(args.logs):
            for job in jobs:
                if number not in kept[job.case] and time.monotonic() < end:
                    kept[job.case][number] = found = job.play(number)
                    file.write(json.dumps([job.case, number, found]) + "\n")
                    file.flush()
    rows = []
    for job in jobs:
        played = [found for number, found in sorted(kept[job.case].items()) if number < args.logs]
        rows += job.rows(played) if played else []
    if args.out:
        save_rows(HEAD, rows, args.out)
    for row in rows:
        print(" | ".join(row))
    left = sum(number not in kept[job.case] for job in jobs for number in range(args.logs))
    print(f"{left} logs left" if left else "all logs played", file=sys.stderr)


if __name__ == "__main__":
    main()
