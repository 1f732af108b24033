"""DriftTS with one constant changed, or one part taken away: its regret over that of DriftTS as it is.

    python benchmarks/drift_variants.py [--runs 32] [--only NAME ...] [--out docs/drift-ts/variants.md]

Design environments only: constants may be chosen by this table, and check environments are not looked at. Every variant
is compiled in a separate process with a separate cache, because constants are part of the machine code; what was
measured is kept in build/drift-variants, so that a run that was stopped goes on. All variants meet the same
environments and rewards."""

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
from pages import shown_and_kept

from driftbandit.environments.named import BINARY as ENVIRONMENTS
from driftbandit.environments.named import DESIGN, SuiteEnvironment
from driftbandit.field.suite import choose_environments
from driftbandit.lab.files import replace_file

KINDS = ("abrupt", "gap", "smooth", "fast", "local", "common")  # of the design environments that change
APART = ("stationary", "trap")  # not part of the mean: what helps one hurts the other
VARIANTS: dict[str, dict[str, float]] = {
    "as it is": {},
    "without bank S": {"RHO": 1.0},
    "without common drift": {"COMMON_SHARE": 0.0},
    "without independent drift": {"COMMON_SHARE": 1.0},
    "without haste": {"HASTE": 0.0},
    "values below the mean too": {"LEAST": 0.0},
    "everything counted once": {"SURE": 1.0},
    "a hazard that does not grow": {"GROW": 0.0},
    "all of the growth": {"GROW": 1.0},
    "RATE 1/8": {"RATE": 1 / 8},
    "RATE 1/32": {"RATE": 1 / 32},
    "GROW 1/8": {"GROW": 1 / 8},
    "GROW 1/2": {"GROW": 1 / 2},
    "SHARE 1/16": {"SHARE": 1 / 16},
    "SHARE 1": {"SHARE": 1.0},
    "COMMON_SHARE 1/16": {"COMMON_SHARE": 1 / 16},
    "COMMON_SHARE 1/2": {"COMMON_SHARE": 1 / 2},
    "RHO 1/4": {"RHO": 1 / 4},
    "RHO 3/4": {"RHO": 3 / 4},
    "V0 1/8": {"V0": 1 / 8},
    "V0 1/2": {"V0": 1 / 2},
    "rates a factor 4 apart": {"APART": 4.0},
    "rates a factor 16 apart": {"APART": 16.0},
    "fastest rate 1/16": {"FASTEST": 1 / 16},
    "fastest rate 1/256": {"FASTEST": 1 / 256},
    "SURE 1.5": {"SURE": 1.5},
    "SURE 3": {"SURE": 3.0},
    "HASTE 2": {"HASTE": 2.0},
    "HASTE 8": {"HASTE": 8.0},
    "EVERY 8": {"EVERY": 8},
    "EVERY 32": {"EVERY": 32},
    "EVERY 64": {"EVERY": 64},
}
KEPT = Path("build/drift-variants")


def change(constants: dict[str, float]) -> None:
    """Set constants in all modules of the policy, before anything of it is compiled."""
    from driftbandit.policies.drift import drift_ts, hypotheses, runs

    for name, value in constants.items():
        modules = [module for module in (hypotheses, runs, drift_ts) if hasattr(module, name)]
        if not modules:
            raise ValueError(f"DriftTS has no constant {name}.")
        for module in modules:
            setattr(module, name, value)
    runs.TO_INDEPENDENT = (1.0 - runs.COMMON_SHARE) / hypotheses.RATES
    runs.TO_COMMON = runs.COMMON_SHARE / hypotheses.RATES


def play(constants: dict[str, float], runs: int) -> dict[str, list[float]]:
    """The regret of every run in every environment, in this process."""
    change(constants)
    from driftbandit.lab.engine.simulate import simulate
    from driftbandit.policies.drift import DriftTS

    out = {}
    for environment in design_environments():
        played = simulate(
            DriftTS(), environment.environment, runs=runs, seed=0, checkpoints=1, progress=False, workers=1
        )
        out[environment.name] = played.regret[:, -1].tolist()
    return out


def design_environments() -> list[SuiteEnvironment]:
    return [
        environment for environment in choose_environments((DESIGN,), ENVIRONMENTS) if environment.kind in KINDS + APART
    ]


def measured(name: str, runs: int) -> dict[str, np.ndarray]:
    """The regret of a variant, from what is kept or from a separate process."""
    file = KEPT / f"{name.replace('/', '-').replace(' ', '_')}-{runs}.json"
    if not file.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as cache:
            words = [sys.executable, __file__, "--runs", str(runs), "--play", name, "--keep", str(file)]
            subprocess.run(words, check=True, env={**os.environ, "DRIFTBANDIT_CACHE": cache})
    return {environment: np.array(values) for environment, values in json.loads(file.read_text()).items()}


def lines(names: list[str], runs: int) -> Iterator[str]:
    """The table, line by line as it is measured."""
    kinds = {
        kind: [environment.name for environment in design_environments() if environment.kind == kind]
        for kind in KINDS + APART
    }
    changing = [name for kind in KINDS for name in kinds[kind]]
    columns = {**{kind: kinds[kind] for kind in KINDS}, "all these": changing, **{kind: kinds[kind] for kind in APART}}
    yield "# DriftTS with one constant changed, or one part taken away"
    yield ""
    apart = sum(len(kinds[kind]) for kind in APART)
    yield f"Made by `python benchmarks/drift_variants.py`: {runs} runs, seed 0, in {len(changing)} design environments"
    yield f"that change and {apart} that are stationary or traps. Regret over that of DriftTS as it is: the geometric"
    yield "mean over the environments of each kind (their number in brackets) ± its standard error by a bootstrap over"
    yield "the runs, which all variants share."
    yield ""
    yield f"| variant | {' | '.join(f'{name} ({len(environments)})' for name, environments in columns.items())} |"
    yield f"|---|{'--:|' * len(columns)}"
    base = measured("as it is", runs)
    for name in names:
        if name != "as it is":
            found = measured(name, runs)
            yield f"| {name} | {' | '.join(ratio(found, base, column, runs) for column in columns.values())} |"


def ratio(found: dict[str, np.ndarray], base: dict[str, np.ndarray], environments: list[str], runs: int) -> str:
    """The geometric mean of ratios of mean regret, and its standard error."""
    generator = np.random.default_rng(0)
    rows = [np.arange(runs), *(generator.integers(0, runs, runs) for _ in range(400))]
    logs = [np.mean([math.log(found[w][row].mean() / base[w][row].mean()) for w in environments]) for row in rows]
    middle = math.exp(logs[0])
    return f"{middle:.2f} ± {middle * np.std(logs[1:]):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, metavar="NAME", help="some of: " + ", ".join(VARIANTS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--play", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.play:
        with replace_file(args.keep) as draft:
            draft.write_text(json.dumps(play(VARIANTS[args.play], args.runs)), encoding="utf-8")
        return
    shown_and_kept(lines(args.only or list(VARIANTS), args.runs), args.out)


if __name__ == "__main__":
    main()
