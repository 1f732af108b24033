"""The default floor, by measurement: regret of DriftTS and DriftLinTS under several floors of uniform play.

    python benchmarks/floor.py [--runs 32] [--out docs/drift-ts/floor.md]

A floor is played by the `Explored` of safe_bandit.py, which decides as a bandit with that floor does. All floors meet
the same environments and rewards. The default floor of `Bandit` is the one with the smallest mean over all kinds in the
last table."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pages import shown_and_kept
from safe_bandit import Explored

from driftbandit.environments.scaled import Scaled
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.drift import DriftLinTS, DriftTS

FLOORS = (0.0, 0.002, 0.005, 0.01, 0.02)
KINDS = {
    "stationary": "nothing changes",
    "abrupt": "ten phases",
    "smooth": "random walks",
    "local": "arms jump one at a time",
    "trap": "an idle arm becomes the best at half time",
    "rising": "the worst arm climbs to the top",
}
LAWS = ("binary", "gauss-0.1", "gauss-1", "revenue", "latency", "beta")


def lines(runs: int, horizon: int) -> Iterator[str]:
    """The page, line by line as it is measured."""
    yield "# The default floor, by measurement"
    yield ""
    yield f"Made by `python benchmarks/floor.py`: mean regret ± standard error, {runs} runs of {horizon:,} rounds,"
    yield "5 arms, seed 0. DriftTS plays the binary rewards, DriftLinTS the others."
    ratios: dict[str, list[np.ndarray]] = {}
    for kind, about in KINDS.items():
        yield ""
        yield f"## {about.capitalize()} (`{kind}`)"
        yield ""
        yield f"| rewards | {' | '.join(f'floor {floor:g}' for floor in FLOORS)} |"
        yield f"|---|{'--:|' * len(FLOORS)}"
        for law in LAWS:
            base, environment = DriftTS() if law == "binary" else DriftLinTS(), Scaled(kind, law, 5, horizon)
            played = [
                simulate(Explored(base, False, floor), environment, runs=runs, seed=0, checkpoints=1, progress=False)
                for floor in FLOORS
            ]
            final = np.array([result.regret[:, -1] for result in played])
            errors = final.std(axis=1, ddof=1) / np.sqrt(runs)
            digits = 0 if final[0].mean() >= 100 else 1
            means = zip(final.mean(axis=1), errors, strict=True)
            cells = (f"{mean:,.{digits}f} ± {error:,.{digits}f}" for mean, error in means)
            yield f"| {law} | {' | '.join(cells)} |"
            ratios.setdefault(kind, []).append(final.mean(axis=1) / final[0].mean())
    yield ""
    yield "## Ratio to no floor, geometric mean over the laws"
    yield ""
    yield f"| environments | {' | '.join(f'floor {floor:g}' for floor in FLOORS)} |"
    yield f"|---|{'--:|' * len(FLOORS)}"
    mean_of = {kind: np.exp(np.log(rows).mean(axis=0)) for kind, rows in ratios.items()}
    mean_of["all kinds"] = np.exp(np.mean([np.log(row) for row in mean_of.values()], axis=0))
    for name, row in mean_of.items():
        yield f"| {name} | {' | '.join(f'{ratio:.2f}' for ratio in row)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    shown_and_kept(lines(args.runs, args.horizon), args.out)


if __name__ == "__main__":
    main()
