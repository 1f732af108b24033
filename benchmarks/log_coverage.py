"""Do the intervals of `replay` hold the truth, and does `drift` keep quiet where nothing changes or context does not
matter?

Logs are simulated in environments whose means are known, by a logger that draws uniformly and by Thompson sampling with
a tenth of uniform draws. The truth for a follower is the average over its log of sum pi_t(a) mean_t(a): the same
follower with the true means as guesses. "rare" has 0.6% successes. Writes the tables in docs/logs; with --minutes in
several sittings, since every log's result is kept in build/:

    python benchmarks/log_coverage.py --only cover --logs 100 --out docs/logs/coverage-replay.md
    python benchmarks/log_coverage.py --only drift --logs 100
    python benchmarks/log_coverage.py --only context --logs 500 --out docs/logs/context.md
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
from driftbandit.lab.files import save_rows
from driftbandit.logs import drift, replay
from driftbandit.logs.context import SHOWN, events_needed
from driftbandit.logs.follow import follow
from driftbandit.logs.replay import candidates

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from naive.simulated_logs import adaptive_log, uniform_log

POLICIES = ["ts", "uniform", "fixed(0)", "dts @ 300", "ds-ts(tau_max=0.1)"]
CONTEXTUAL = ["ts", "lin-ucb", "drift-lin-ts"]
CONTEXT_EVENTS = {"uniform": 9000, "ts + 10% uniform": 60_000}  # about what `drift` asks for
HEAD = ["question", "logger", "environment", "events", "logs", "result", "95% of it"]


def environment_of(kind: str, n: int, rng: Any, phase: int = 0) -> Any:
    """An environment of three arms, drawn anew for each log; phases of equal length, eight if nothing is said."""
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
        environment = environment_of(self.kind, self.n, rng)
        log = self.logger(environment, seed=int(rng.integers(1 << 40)))
        result = replay(log, POLICIES, own=False)
        right, logger = truth_of(environment, log)
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
    """How often `drift` says what, in environments of which it is known."""

    def __init__(self, name: str, logger: Any, kind: str, n: int, seed: int) -> None:
        self.name, self.logger, self.kind, self.n, self.seed = name, logger, kind, n, seed
        self.case = f"drift, {name}, {kind}, {n}, seed {seed}"

    def play(self, number: int) -> str:
        """One log's verdict."""
        rng = np.random.default_rng([self.seed, 9, number])
        environment = environment_of(self.kind, self.n, rng)
        return drift(self.logger(environment, seed=int(rng.integers(1 << 40)))).verdict

    def rows(self, played: list[str]) -> list[list[str]]:
        """Its lines of the table: the ranking moves and stays; the ranking moves at all; levels move."""
        about, logs = [self.name, self.kind, str(self.n), str(len(played))], len(played)
        out = []
        for what, verdicts in (
            ("the ranking moves and stays", ("ranking",)),
            ("the ranking moves, but it is unclear whether it stays", ("unclear",)),
            ("the levels move, the ranking does not", ("levels",)),
            ("nothing seems to move", ("nothing",)),
        ):
            count = sum(verdict in verdicts for verdict in played)
            result = f"{what}: {count} times ({100 * count / logs:.1f}%)"
            out.append(["drift: says", *about, result, interval(count / logs, logs)])
        return out


class Contexts:
    """How often `drift` finds that context pays, and whether `replay` of policies with context holds the truth.

    Three features: device (three levels), basket (a number) and member (a flag). Arms drift in kinds with drift.
    Only the level differs by device and basket, except in the kind "matters": there each device has its arm, and
    playing it gains a tenth of the rewards' standard deviation; for that `drift` asks its number of events."""

    def __init__(self, name: str, logger: Any, kind: str, n: int, seed: int, replays: bool) -> None:
        self.name, self.logger, self.kind, self.n, self.seed, self.replays = name, logger, kind, n, seed, replays
        self.case = f"context, {name}, {kind}, {n}, seed {seed}, replays {replays}"

    def play(self, number: int) -> list[Any]:
        """One log: which features are found, or for each question whether the interval holds the truth."""
        rng = np.random.default_rng([self.seed, 17, number])
        device, basket = rng.integers(0, 3, self.n), rng.normal(size=self.n)
        table = np.full((3, 3), -0.5)
        np.fill_diagonal(table, 1.0)
        table = table[rng.permutation(3)]
        means = environment_of("stationary" if self.kind != "drift" else "abrupt", self.n, rng).means(0, self.n)
        means = 0.5 * means + 0.2 + 0.1 * (device == 1)[:, None] + 0.04 * np.tanh(basket)[:, None]
        if self.kind == "matters":
            means = means + effect_of(means, device, table, SHOWN * 0.5) * table[device]
        environment = Means(means)
        more = {"device": np.array(["a", "b", "c"])[device], "basket": basket, "member": rng.random(self.n) < 0.5}
        log = self.logger(environment, int(rng.integers(1 << 40)), more=more, features="device,basket,member")
        if not self.replays:
            found = drift(log)
            return [[gain.feature, gain.pays] for gain in found.context] + [["asked for", events_needed(log)]]
        right, _ = truth_of(environment, log, CONTEXTUAL)
        out = []
        for line, truth in zip(replay(log, CONTEXTUAL, own=False).lines, right, strict=True):
            for name, estimate in (("value", line.value), ("IPS", line.ips), ("SNIPS", line.snips)):
                out.append([f"{name} of {line.label}", *held(estimate, truth)])
            if line.over_ts is not None:
                out.append([f"{line.label} over ts", *held(line.over_ts, truth - right[0])])
        return out

    def rows(self, played: list[Any]) -> list[list[str]]:
        """Its lines of the table."""
        if self.replays:
            return Cover(self.name, self.logger, f"context {self.kind}", self.n, self.seed).rows(played)
        about, logs = [self.name, f"context {self.kind}", str(self.n), str(len(played))], len(played)
        asked = float(np.median([log[-1][1] for log in played]))
        found = np.array([[pays for _, pays in log[:-1]] for log in played])
        out = []
        for name, share in [
            ("recommends context", found.any(axis=1).mean()),
            *((f"finds {feature}", found[:, at].mean()) for at, (feature, _) in enumerate(played[0][:-1])),
        ]:
            result = f"{100 * share:.1f}% of the logs; about {asked:.0f} events asked for"
            out.append([f"drift: {name}", *about, result, interval(share, logs)])
        return out


class Means:
    """An environment of means that are given for every round."""

    def __init__(self, means: np.ndarray) -> None:
        self.table, self.horizon = means, len(means)

    def means(self, start: int, stop: int) -> np.ndarray:
        return self.table[start:stop]


def effect_of(means: np.ndarray, device: np.ndarray, table: np.ndarray, gain: float) -> float:
    """The effect with which the best arm of each device gains so much over the best single arm."""
    low, high = 0.0, 1.0
    for _ in range(40):
        effect = 0.5 * (low + high)
        moved = means + effect * table[device]
        best = sum(moved[device == d].sum(axis=0).max() for d in range(3))
        low, high = (effect, high) if best - moved.sum(axis=0).max() < gain * len(means) else (low, effect)
    return effect


def truth_of(environment: Any, log: Any, policies: Any = POLICIES) -> tuple[np.ndarray, float]:
    """Each follower's average of sum pi_t(a) mean_t(a), and the logger's; of an adaptive logger, whose probabilities of
    other arms are not in the log, for the arms that it drew."""
    means = environment.means(0, environment.horizon)
    found = follow(log, candidates(policies), guesses=lambda events: means[events.time.astype(int)])
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
    parser.add_argument("--only", choices=["cover", "drift", "context"])
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
        environments = ("equal arms", "stationary", "levels", "abrupt")
        jobs += [Verdicts(n, loggers[n], kind, args.drift_events, args.seed) for n in loggers for kind in environments]
    if args.only in (None, "context"):
        for kind in ("does not matter", "drift", "matters"):
            jobs += [Contexts(n, loggers[n], kind, size, args.seed, False) for n, size in CONTEXT_EVENTS.items()]
        jobs += [Contexts(n, loggers[n], "matters", args.events, args.seed, True) for n in loggers]
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
