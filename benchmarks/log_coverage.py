"""Do the intervals of `replay` cover the truth, and do `drift` and `tune` keep quiet where nothing changes?

Logs are simulated in worlds whose means are known, by a logger that draws evenly and by Thompson sampling with a tenth
of even draws. The truth for a follower is the average over its log of sum pi_t(a) mean_t(a): the same follower run with
the true means as guesses. Writes the tables in docs/logs; a quarter of an hour each on one core, with --minutes in
several sittings, since every log's result is kept in build/:

    python benchmarks/log_coverage.py --only cover --out docs/logs/coverage-replay.md
    python benchmarks/log_coverage.py --only drift --out docs/logs/coverage-drift.md
    python benchmarks/log_coverage.py --only tune --out docs/logs/coverage-tune.md
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
from driftbandit.lab.support.tables import save_rows
from driftbandit.logs.bootstrap import block_mean
from driftbandit.logs.candidates import candidates
from driftbandit.logs.drift_check import drift
from driftbandit.logs.follow import follow
from driftbandit.logs.half_lives import SPREADS, half_life_grid
from driftbandit.logs.simulated import adaptive_log, uniform_log
from driftbandit.logs.tuned import tune

POLICIES = ["ts", "dts @ 300", "ds-ts @ 300", "ds-ts(tau_max=0.1) @ inf"]
HEAD = ["question", "logger", "world", "events", "logs", "result", "95 % of it"]
TRUTHS = 100  # logs over which the best half-life is averaged


def world_of(kind: str, n: int, rng: Any, phase: int = 0) -> Any:
    """A world of three arms, drawn anew for each log; phases of equal length, eight if nothing is said."""
    if kind == "stationary":
        return phased([rng.uniform(0.3, 0.6, 3)], [0], n)
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
        tried = candidates(POLICIES, False)
        found = follow(log, tried, workers=1)
        right = truth_of(world, log, tried) / log.n
        mean = found.value.sum(axis=0) / log.n
        out = []
        for at in range(len(tried)):
            out.append(["value", *held(mean[at], found.noise[:, at], found.pieces, right[at])])
            if at:
                noise = found.noise[:, at] - found.noise[:, 0]
                out.append(["gain over ts", *held(mean[at] - mean[0], noise, found.pieces, right[at] - right[0])])
        return out

    def rows(self, played: list[Any]) -> list[list[str]]:
        """Its lines of the table; the policies of one log share its noise, so that only logs count for certainty."""
        out, logs = [], len(played)
        for question in ("value", "gain over ts"):
            found = np.array([[hit, width] for log in played for name, hit, width in log if name == question])
            share, width = found.mean(axis=0)
            about = [f"replay: {question}", self.name, self.kind, str(self.n), str(logs)]
            out.append([*about, f"{100 * share:.1f} % cover, {100 * width:.2f} points wide", interval(share, logs)])
        return out


def held(mean: float, noise: Any, events: Any, right: float) -> tuple[bool, float]:
    """Does the interval, made as `replay` makes it, hold the truth, and how wide is it?"""
    made = block_mean(noise, events).moved(mean)
    return bool(made.low <= right <= made.high), float(made.high - made.low)


class Tune:
    """How often `tune` recommends forgetting, and how near it comes to the best half-life; where it asks for more
    events, whether they are enough."""

    MOST = 120_000  # a log that is said to need more is not made

    def __init__(self, name: str, logger: Any, kind: str, n: int, seed: int) -> None:
        self.name, self.logger, self.kind, self.n, self.seed = name, logger, kind, n, seed
        self.case = f"tune, {name}, {kind}, {n}, seed {seed}"

    def play(self, number: int) -> dict[str, Any]:
        """One log; and where it is too short, by its own word, one that is long enough."""
        rng = np.random.default_rng([self.seed, 7, number])
        out = self.asked(self.n, rng)
        if self.kind != "stationary":
            if math.isinf(out["half_life"]) and out["needed"] <= self.MOST:
                out["again"] = self.asked(math.ceil(out["needed"]), rng)
            if number < TRUTHS:
                out["truth"] = self.truth(rng)
        return out

    def asked(self, n: int, rng: Any) -> dict[str, Any]:
        """What `tune` says of a log of so many events."""
        world = world_of(self.kind, n, rng, self.n // 8)
        result = tune(self.logger(world, seed=int(rng.integers(1 << 40))))
        half_life = math.inf
        if result.recommended:
            half_life = next(trial.half_life for trial in result.trials if trial.label == result.forgetter)
        return {
            "forgetter": result.forgetter,
            "half_life": half_life,
            "needed": result.needed,
            "itself": result.chosen == result.itself,
            "says": result.sentence.split(":")[0],
            "plain": self.plain(result.trials),
        }

    @staticmethod
    def plain(trials: Any) -> list[Any]:
        """What the plain rule would recommend: the longest half-life within one standard error of the best of the
        first part, if that very one gains in the last. ["", inf] if nothing."""
        close = [one for one in trials if one.kind != "itself" and one.behind.mean <= one.behind.error]
        longest = max(close, key=lambda one: (one.half_life, one.first))
        found = math.isfinite(longest.half_life) and longest.over_never.low > 0.0
        return [longest.label, longest.half_life] if found else ["", math.inf]

    def truth(self, rng: Any) -> dict[str, list[float]]:
        """What each policy really earns with each half-life, on one more log."""
        world = world_of(self.kind, self.n, rng, self.n // 8)
        log = self.logger(world, seed=int(rng.integers(1 << 40)))
        grid = half_life_grid(log, True)
        policies = ["dts", "ds-ts", *(f"ds-ts(tau_max={tau:g}, weight={weight:g})" for tau, weight in SPREADS)]
        tried = candidates([f"{policy} @ {h:.12g}" for policy in policies for h in grid], False)
        values = truth_of(world, log, tried).reshape(len(policies), len(grid)) / log.n
        return {"": grid, **{policy: list(row) for policy, row in zip(policies, values, strict=True)}}

    def rows(self, played: list[Any]) -> list[list[str]]:
        """Its lines of the table."""
        logs = len(played)
        about = [self.name, self.kind, str(self.n), str(logs)]
        finite = [one for one in played if math.isfinite(one["half_life"])]
        share = len(finite) / logs
        what = f"a finite half-life {len(finite)} times ({100 * share:.1f} %)"
        out = [["tune: recommends", *about, what, interval(share, logs)]]
        itself = sum(one["itself"] for one in played)
        what = f"drift-ts, which forgets by itself, {itself} times ({100 * itself / logs:.1f} %)"
        out.append(["tune: pastes", *about, what, interval(itself / logs, logs)])
        plain = [one["plain"] for one in played if one["plain"][0]]
        what = f"a finite half-life {len(plain)} times ({100 * len(plain) / logs:.1f} %)"
        out.append(["the plain rule: recommends", *about, what, interval(len(plain) / logs, logs)])
        if self.kind == "stationary":
            return out
        wrong = sum(one["says"] == "Forgetting by a half-life does not pay" for one in played)
        what = f"that forgetting does not pay, which is untrue here, {wrong} times ({100 * wrong / logs:.1f} %)"
        out.append(["tune: says", *about, what, interval(wrong / logs, logs)])
        best = self.best([one["truth"] for one in played if "truth" in one])
        more = [one["again"] for one in played if "again" in one]
        spoke = [one for one in more if math.isfinite(one["half_life"])]
        for name, some in (
            ("tune: how near", [(one["forgetter"], one["half_life"]) for one in finite]),
            ("tune: how near, with the events it asked for", [(one["forgetter"], one["half_life"]) for one in spoke]),
            ("the plain rule: how near", plain),
        ):
            if some:
                near = sum(1 / 3 <= half_life / best[label.split(" @ ")[0]] <= 3.0 for label, half_life in some)
                what = f"{near} of {len(some)} within a factor 3 of the best"
                out.append([name, *about, what, interval(near / len(some), len(some))])
        if more:
            what = f"asked for more, up to {self.MOST}, in {len(more)} logs; given them, spoke in {len(spoke)}"
            out.append(["tune: the events it asks for", *about, what, interval(len(spoke) / len(more), len(more))])
        return out

    @staticmethod
    def best(truths: list[dict[str, list[float]]]) -> dict[str, float]:
        """Each policy's best half-life on average."""
        grid = truths[0][""]
        means = {policy: np.mean([one[policy] for one in truths], axis=0) for policy in truths[0] if policy}
        return {policy: grid[int(np.argmax(values))] for policy, values in means.items()}


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
            result = f"{what}: {count} times ({100 * count / logs:.1f} %)"
            out.append(["drift: says", *about, result, interval(count / logs, logs)])
        return out


def truth_of(world: Any, log: Any, tried: Any) -> np.ndarray:
    """Each follower's sum of pi_t(a) mean_t(a): the same follower with the true means as guesses, without the noise."""
    means = world.means(0, world.horizon)
    found = follow(log, tried, workers=1, guesses=lambda events: means[events.time.astype(int)])
    return np.asarray(found.value.sum(axis=0) - found.noise.sum(axis=0))


def interval(share: float, count: int) -> str:
    """Wilson's 95 % interval of a share, in percent."""
    z = 1.96
    scale = 100 / (1 + z * z / count)
    centre = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return f"{scale * max(centre - half, 0.0):.1f} to {scale * (centre + half):.1f} %"


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
    parser.add_argument("--tune-events", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["cover", "drift", "tune"])
    parser.add_argument("--case", default="", metavar="TEXT", help="only cases with this in their name, as in abrupt")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop then; called again, it goes on")
    parser.add_argument("--kept", type=Path, default=Path("build/log_coverage.jsonl"), help="each log's result")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    loggers = {"even": uniform_log, "ts + 10 % even": adaptive_log}
    kinds = ("stationary", "abrupt", "smooth")
    jobs: list[Any] = []
    if args.only in (None, "cover"):
        jobs += [Cover(n, loggers[n], kind, args.events, args.seed) for n in loggers for kind in kinds]
    if args.only in (None, "drift"):
        worlds = ("equal arms", "stationary", "levels", "abrupt")
        jobs += [Verdicts(n, loggers[n], kind, args.tune_events, args.seed) for n in loggers for kind in worlds]
    if args.only in (None, "tune"):
        jobs += [Tune(n, loggers[n], kind, args.tune_events, args.seed) for n in loggers for kind in kinds[:2]]
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
