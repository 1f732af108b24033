"""DriftTS with one constant changed, or one part taken away: regret in design worlds, and the ratio to it as it is.

    python benchmarks/drift_variants.py [--runs 32] [--only NAME ...] [--out docs/drift-ts/variants.md]

Design worlds only: constants may be chosen by this table, and check worlds are not looked at. Every variant is compiled
in a process of its own, with a cache of its own, because constants are part of the machine code; what was measured is
kept in build/drift-variants, so that a run that was stopped goes on. All variants meet the same worlds and rewards."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from driftbandit.lab.support.files import replacing

WORLDS = (
    "authors-K5",
    "fresh-K5-p10",
    "gap.2-K5",
    "fast-K5",
    "local-K5",
    "common.2",
    "smooth-K5-short",
    "stat-K5",
    "trap-K5",
)
STILL_OR_TRAP = ("stat-K5", "trap-K5")  # not part of the mean: what helps one hurts the other
VARIANTS: dict[str, dict[str, float]] = {
    "as it is": {},
    "without bank S": {"RHO": 1.0},
    "without tides": {"TIDE": 0.0},
    "without drifters": {"TIDE": 1.0},
    "without haste": {"HASTE": 0.0},
    "a hazard that does not grow": {"GROW": 0.0},
    "all of the growth": {"GROW": 1.0},
    "RATE 1/8": {"RATE": 1 / 8},
    "RATE 1/32": {"RATE": 1 / 32},
    "GROW 1/8": {"GROW": 1 / 8},
    "GROW 1/2": {"GROW": 1 / 2},
    "SHARE 1/16": {"SHARE": 1 / 16},
    "SHARE 1": {"SHARE": 1.0},
    "TIDE 1/16": {"TIDE": 1 / 16},
    "TIDE 1/2": {"TIDE": 1 / 2},
    "RHO 1/4": {"RHO": 1 / 4},
    "HASTE 4": {"HASTE": 4.0},
    "HASTE 16": {"HASTE": 16.0},
    "EVERY 4": {"EVERY": 4},
    "EVERY 16": {"EVERY": 16},
    "EVERY 64": {"EVERY": 64},
}
KEPT = Path("build/drift-variants")


def change(constants: dict[str, float]) -> None:
    """Set constants in all modules of the policy, before anything of it is compiled."""
    from driftbandit.policies import drift_bank, drift_births, drift_draw, drift_ts

    for name, value in constants.items():
        modules = [module for module in (drift_bank, drift_births, drift_draw, drift_ts) if hasattr(module, name)]
        if not modules:
            raise ValueError(f"DriftTS has no constant {name}.")
        for module in modules:
            setattr(module, name, value)
    drift_draw.TO_DRIFTER = (1.0 - drift_draw.TIDE) / drift_bank.RATES
    drift_draw.TO_TIDE = drift_draw.TIDE / drift_bank.RATES


def play(constants: dict[str, float], runs: int) -> dict[str, list[float]]:
    """The regret of every run in every world, in this process."""
    change(constants)
    from driftbandit.lab.engine.simulate import simulate
    from driftbandit.lab.field.suite import chosen
    from driftbandit.policies.drift_ts import DriftTS

    out = {}
    for world in chosen(WORLDS):
        played = simulate(DriftTS(), world.environment, runs=runs, seed=0, checkpoints=1, progress=False, workers=1)
        out[world.name] = played.regret[:, -1].tolist()
    return out


def measured(name: str, runs: int) -> dict[str, np.ndarray]:
    """The regret of a variant, from what is kept or from a process of its own."""
    file = KEPT / f"{name.replace('/', '-').replace(' ', '_')}-{runs}.json"
    if not file.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as cache:
            words = [sys.executable, __file__, "--runs", str(runs), "--play", name, "--keep", str(file)]
            subprocess.run(words, check=True, env={**os.environ, "DRIFTBANDIT_CACHE": cache})
    return {world: np.array(values) for world, values in json.loads(file.read_text()).items()}


def lines(names: list[str], runs: int) -> Iterator[str]:
    """The table, line by line as it is measured."""
    yield "# DriftTS with one constant changed, or one part taken away"
    yield ""
    yield f"Made by `python benchmarks/drift_variants.py`: mean regret of {runs} runs, seed 0, in design worlds. The"
    yield "last column is the geometric mean of its ratio to it as it is, over the changing worlds (all but stat"
    yield "and trap), with its standard error by a bootstrap over the runs, which all variants share."
    yield ""
    yield f"| variant | {' | '.join(WORLDS)} | ratio |"
    yield f"|---|{'--:|' * (len(WORLDS) + 1)}"
    base = measured("as it is", runs)
    for name in names:
        found = measured(name, runs)
        cells = [f"{found[world].mean():,.0f} ± {found[world].std(ddof=1) / math.sqrt(runs):,.0f}" for world in WORLDS]
        yield f"| {name} | {' | '.join(cells)} | {ratio(found, base, runs)} |"


def ratio(found: dict[str, np.ndarray], base: dict[str, np.ndarray], runs: int) -> str:
    """The geometric mean of ratios of mean regret, and how far chance may move it."""
    worlds = [world for world in WORLDS if world not in STILL_OR_TRAP]
    generator = np.random.default_rng(0)
    rows = [np.arange(runs), *(generator.integers(0, runs, runs) for _ in range(400))]
    logs = [np.mean([math.log(found[w][row].mean() / base[w][row].mean()) for w in worlds]) for row in rows]
    return f"{math.exp(logs[0]):.3f} ± {np.std(logs[1:]):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, metavar="NAME", help="some of: " + ", ".join(VARIANTS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--play", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.play:
        with replacing(args.keep) as draft:
            draft.write_text(json.dumps(play(VARIANTS[args.play], args.runs)), encoding="utf-8")
        return
    page = []
    for line in lines(args.only or list(VARIANTS), args.runs):
        print(line, flush=True)
        page.append(line)
    if args.out is not None:
        with replacing(args.out) as draft:
            draft.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
