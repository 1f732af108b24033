"""Does forgetting pay on flights? Which of three airports, or of six carriers, departs on time: python flights.py

Each event is one flight of an hour, drawn as if somebody had picked it blindly: the chance of an arm is its share of
the hour's flights. What became of it is known an hour later. The data are hourly counts of 2013 (see LICENSE.txt)."""

import csv
import gzip
import sys
import time
from pathlib import Path

import numpy as np

from driftbandit.logs import Log, drift, replay, tune

HERE = Path(__file__).parent
QUESTIONS = {"airports": ["EWR", "JFK", "LGA"], "carriers": ["UA", "B6", "EV", "DL", "AA", "MQ"]}
POLICIES = ["kl-ucb", "ds-ts @ 2 h", "ds-ts @ 1 d", "dts @ 4 h", "dts @ 1 d", "dts @ 4 weeks"]


def flights_log(arms: list[str]) -> Log:
    """The counts as a log: one row a flight, all of an hour at the hour, and no order within it."""
    columns: dict[str, list] = {
        "time": [],
        "arm": [],
        "reward": [],
        "propensity": [],
        "reward_time": [],
        "available": [],
    }
    with gzip.open(HERE / "hourly.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            flights = {arm: int(row[arm]) for arm in arms if int(row[arm])}
            total = sum(flights.values())
            hour = np.datetime64(row["hour"] + ":00:00", "s")
            for arm, n in flights.items():
                punctual = int(row[f"{arm}_on_time"])
                columns["reward"] += [1.0] * punctual + [0.0] * (n - punctual)
                columns["arm"] += [arm] * n
                columns["propensity"] += [n / total] * n
            columns["time"] += [hour] * total
            columns["reward_time"] += [hour + np.timedelta64(1, "h")] * total
            columns["available"] += ["|".join(flights)] * total
    columns["time"], columns["reward_time"] = (np.array(columns[name]) for name in ("time", "reward_time"))
    order = np.random.default_rng(0).permutation(len(columns["arm"]))  # within an hour no order is known
    order = order[np.argsort(columns["time"][order], kind="stable")]
    return Log({name: np.array(column)[order] for name, column in columns.items()}, arms=arms)


def main() -> None:
    """Ask both questions; with a folder as argument, draw the figures there."""
    from driftbandit.logs.figures import save_drift, save_tune

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    for question, arms in QUESTIONS.items():
        began = time.perf_counter()
        log = flights_log(arms)
        print(f"\n{question}: {log.n:,} flights")
        found = drift(log)
        for scale in found.scales:
            gains = (
                f"{100 * e.mean:+.1f} [{100 * e.low:+.1f}, {100 * e.high:+.1f}]" for e in (scale.oracle, scale.last)
            )
            print("  by {:7}  oracle {}, last period's best {} points".format(scale.name, *gains))
        print(f"  {found.sentence}")
        result = replay(log, POLICIES, own=False)
        for line in result.lines:
            gain = line.over_ts.like
            print(
                f"  {line.label:14} {line.value.mean:.4f}, over ts {100 * gain.mean:+.2f} "
                f"[{100 * gain.low:+.2f}, {100 * gain.high:+.2f}] points in weeks like these"
            )
        tuned = tune(log)
        for warning in tuned.warnings:
            print(f"  beware: {warning}")
        print(f"  {tuned.sentence}\n  {tuned.paste.rpartition('agent = ')[2]}")
        if folder is not None:
            for ending in ("svg", "png"):
                save_drift(log, found, folder / f"{question}-drift.{ending}")
                save_tune(log, tuned, folder / f"{question}-tune.{ending}")
        print(f"  ({time.perf_counter() - began:.0f} s)", file=sys.stderr)


if __name__ == "__main__":
    main()
