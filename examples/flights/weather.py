"""Does context pay on flights, does forgetting, do both? Carriers as arms, with the weather: python weather.py [FOLDER]

With a folder, the figure is drawn there.
Each event is one flight, drawn as if somebody had picked it blindly among those of the same hour, airport and range:
the probability of a carrier is its share of them. Its delay is known an hour later."""

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.csv

from driftbandit.logs import Log, Replay, drift, replay

FEATURES = "origin,time:hour,time:day,wind:number,visibility:number,miles:number"
# ts neither uses context nor forgets; then context, forgetting, both. sd is about that of rewards mapped to [0, 1]
POLICIES = {
    "on time": ["lin-ts(sd=0.5)", "drift-ts", "drift-lin-ts"],
    "minutes": ["lin-ts(sd=0.03)", "drift-auto", "drift-lin-ts"],
}


def flights_log(reward: str, part: int | None = None) -> Log:
    """The flights with the reward "on time" (a cancelled flight is not) or "minutes": minus the delay, of flights that
    were not cancelled; the first so many, or all."""
    table = pyarrow.csv.read_csv(Path(__file__).parent / "weather.csv.gz")[:part]
    columns = {name: table[name].to_numpy() for name in table.column_names}
    delay = columns.pop("delay").astype(float)
    columns["reward"] = np.where(delay <= 0, 1.0, 0.0) if reward == "on time" else -delay
    columns["reward_time"] = columns["time"] + np.timedelta64(1, "h")
    kept = ~np.isnan(columns["reward"])
    return Log({name: column[kept] for name, column in columns.items()}, features=FEATURES)


def draw(found: dict[str, Replay], path: Path) -> None:
    """What every policy would have earned, with its interval, a panel for each reward."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(found), figsize=(9.0, 2.6), layout="constrained")
    for panel, (reward, answer) in zip(panels, found.items(), strict=True):
        rows = [*((line.label, line.value) for line in answer.lines), ("the log itself", answer.logger)]
        for place, (_, value) in enumerate(rows):
            panel.plot([value.low, value.high], [place, place], color="#0072b2")
            panel.plot(value.mean, place, "o", color="#0072b2")
        panel.set_yticks(range(len(rows)), [label for label, _ in rows])
        panel.invert_yaxis()
        panel.set_title(f"value per flight: {reward}", fontsize=10)
    figure.savefig(path)
    plt.close(figure)


def main(folder: str | None = None, part: int | None = None) -> None:
    """Answer for both rewards, from all flights or a part of them."""
    found = {}
    for reward, policies in POLICIES.items():
        began = time.perf_counter()
        log = flights_log(reward, part)
        found[reward] = replay(log, policies, own=False)
        print(f"\nreward: {reward}\n{drift(log)}\n{found[reward]}")
        print(f"  ({time.perf_counter() - began:.0f} s)", file=sys.stderr)
    if folder is not None:
        draw(found, Path(folder) / "weather.svg")


if __name__ == "__main__":
    main(*sys.argv[1:2])
