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
from driftbandit.logs.estimates import block_mean
from driftbandit.logs.follow import follow
from driftbandit.logs.replay import candidates, effective_size

FEATURES = "origin,time:hour,time:day,wind:number,visibility:number,miles:number"
# ts neither uses context nor forgets; then context, forgetting, both. sd is about that of rewards mapped to [0, 1]
POLICIES = {
    "on time": ["lin-ts(sd=0.5)", "drift-ts", "drift-lin-ts"],
    "minutes": ["lin-ts(sd=0.03)", "drift-auto", "drift-lin-ts"],
}
# for minutes, a policy with neither that is given the noise: ts takes mapped minutes for successes and failures
GAUSSIAN = "d-gts(gamma=1, noise=0.03, prior_mean=0.95, prior_sd=0.03)"


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


def gains_over(log: Log, base: str, policies: list[str]) -> str:
    """What the policies gain per event over this one, with intervals by blocks of time."""
    followed, width = follow(log, candidates([base, *policies])), log.reward_range[1] - log.reward_range[0]
    lines = [f"gain per event over {base}:"]
    for at, label in enumerate(policies, 1):
        size = min(effective_size(followed, 0), effective_size(followed, at))
        gain = block_mean(followed.value[:, at] - followed.value[:, 0], followed.events, size=size).scaled(width)
        lines.append(f"{label:16} {gain.mean:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]")
    return "\n".join(lines)


def draw(found: dict[str, Replay], path: Path) -> None:
    """What every policy would have earned, with its interval, a panel for each reward."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(found), figsize=(9.0, 2.6), layout="constrained")
    for panel, (reward, answer) in zip(panels, found.items(), strict=True):
        rows = [*((line.label.split("(")[0], line.value) for line in answer.lines), ("the log itself", answer.logger)]
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
        if reward == "minutes":
            print(gains_over(log, GAUSSIAN, ["ts", *policies[:2]]))
        print(f"  ({time.perf_counter() - began:.0f} s)", file=sys.stderr)
    if folder is not None:
        draw(found, Path(folder) / "weather.svg")


if __name__ == "__main__":
    main(*sys.argv[1:2])
