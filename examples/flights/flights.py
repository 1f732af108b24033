"""Does forgetting pay on flights? Which of three airports, or of six carriers, departs on time: python flights.py

Each event is one flight of an hour, drawn as if somebody had picked it blindly: the probability of an arm is its share
of the hour's flights. Its outcome is known an hour later. The data are hourly counts of 2013 (see LICENSE.txt)."""

import csv
import gzip
import sys
import time
from pathlib import Path

import numpy as np

from driftbandit.logs import Log, drift, replay

HERE = Path(__file__).parent
QUESTIONS = {"airports": ["EWR", "JFK", "LGA"], "carriers": ["UA", "B6", "EV", "DL", "AA", "MQ"]}
POLICIES = ["drift-ts", "kl-ucb", "ds-ts @ 1 d", "dts @ 4 h", "dts @ 1 d", "dts @ 4 weeks"]


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
    return Log({name: np.array(column)[order] for name, column in columns.items()})


def main() -> None:
    """Answer both questions; with a folder as argument, draw the figures there."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    for question, arms in QUESTIONS.items():
        began = time.perf_counter()
        log = flights_log(arms)
        found = drift(log)
        print(f"\n{question}\n{found}\n{replay(log, POLICIES, own=False)}")
        if folder is not None:
            for ending in ("svg", "png"):
                found.plot(log, folder / f"{question}-drift.{ending}")
        print(f"  ({time.perf_counter() - began:.0f} s)", file=sys.stderr)


if __name__ == "__main__":
    main()
