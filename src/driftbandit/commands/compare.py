"""`driftbandit compare`: an experiment of your own, from a file or straight from the command line."""

import argparse
import math
from pathlib import Path
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import (
    MOST_RUNS,
    add_example,
    add_interpreted,
    add_seed,
    add_workers,
    completes,
    need_lab,
    shortened,
    whole,
)

_EXAMPLES = """\
  driftbandit compare study.toml
      play what the file says; finished work is kept in study-results, so the same command continues after a stop

  driftbandit compare ds-ts.tuned sw-ts.tuned --env "abrupt(n_arms=10, phases=10)" --runs 50
      straight from the command line

  driftbandit compare "my_policy.py:MyPolicy(gamma=0.9)" ds-ts --env smooth --drift --out results/mine
      a policy of your own, with drift metrics

  driftbandit compare study.toml --dry-run
      how much work it is, and about how long it takes

  driftbandit compare study.toml --executor dask:tcp://10.0.0.5:8786
      on a Dask cluster; the numbers are the same on every kind of worker

`driftbandit init` writes a study to begin with. A cluster runs what it is sent: use one on a trusted network only.
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(
        subparsers, "compare", "play a study of your own: policies, worlds, lists of parameters", _EXAMPLES
    )
    parser.add_argument(
        "what", nargs="+", metavar="FILE|POLICY", help="a study (.toml or .py), or policies by their text"
    )
    world = parser.add_argument(
        "--env", action="append", metavar="TEXT", help='a world by its text; may be repeated (default: "Abrupt()")'
    )
    completes(world, "environments")
    parser.add_argument(
        "--runs", type=whole(1, MOST_RUNS), metavar="N", help="runs of each cell (default: the file's, or 100)"
    )
    add_seed(parser, None, " (default: 0)")
    parser.add_argument("--horizon", type=whole(1), metavar="T", help="rounds, for every world")
    parser.add_argument("--drift", action="store_true", help="measure recovery, detection and the rest as well")
    parser.add_argument("--out", metavar="FOLDER", help="where results are kept (default: FILE-results, or nowhere)")
    parser.add_argument(
        "--executor",
        metavar="WHO",
        help="threads (default), a number of processes, processes:N, dask, dask:ADDRESS, ray or ray:ADDRESS",
    )
    add_workers(parser, "how many, where WHO does not say (default: one per core)")
    add_interpreted(parser)
    parser.add_argument("--dry-run", action="store_true", help="say how much work it is, and stop")
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Plan, play, save, print."""
    need_lab(*([] if args.interpreted else ["numba"]), "scipy", "pyarrow", "matplotlib")
    from driftbandit.lab.experiments import comparison
    from driftbandit.lab.jobs import executors

    if args.executor:
        executors.parse(args.executor)
    study, name = _study(args)
    out = args.out or (f"{name}-results" if name else None)
    if args.dry_run:
        _say_plan(study, out, args)
        return
    done = comparison.compare(study, out, args.executor, args.workers, compiled=not args.interpreted)
    written = _save(done, out) if out else []
    if args.json:
        print_json(_as_json(done, written))
        return
    if done.tally.reused:
        print(f"{done.tally.reused} of {sum(done.tally)} chunks were ready, {done.tally.computed} computed")
    _print(done)
    print("\n" if written else "", end="")
    for path in written:
        print(f"wrote {path}")


def _study(args: argparse.Namespace) -> tuple[Any, str | None]:
    """The study and, if it came from a file, its name."""
    import dataclasses

    from driftbandit.lab.experiments.study import Study
    from driftbandit.lab.experiments.study_file import load

    changes = {key: getattr(args, key) for key in ("runs", "seed", "horizon") if getattr(args, key) is not None}
    if args.drift:
        changes["drift"] = True
    first = args.what[0]
    if len(args.what) == 1 and Path(first).suffix in (".toml", ".py"):
        if args.env:
            raise ValueError(f"{first} brings its own worlds; leave --env out.")
        return dataclasses.replace(load(first), **changes), Path(first).stem
    files = [text for text in args.what if text.endswith(".toml")]
    if files:
        raise ValueError(f"{files[0]} is a study and brings its own policies; compare it alone.")
    return Study(args.what, args.env or ["Abrupt()"], **changes), None


def _say_plan(study: Any, folder: str | None, args: argparse.Namespace) -> None:
    import os

    from driftbandit.lab.experiments.comparison import plan

    found = plan(study, folder)
    workers = args.workers or os.cpu_count() or 1
    if args.json:
        print_json({**found._asdict(), "runs": study.runs, "workers": workers})
        return
    print(f"{found.cells} cells of {study.runs} runs in {found.chunks} chunks, {found.ready} of them ready")
    seconds = found.seconds or 0.0
    print(
        f"{found.rounds:.3g} rounds to play: about {_duration(seconds)} with one worker, "
        f"{_duration(seconds / workers)} with {workers}, beside compiling"
    )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(seconds, 0.0):.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"


def _print(done: Any) -> None:
    from driftbandit.lab.experiments import sweep

    lines = done.summary()
    reference = done.study.reference or done.study.policies[0].name
    shown = lines if len(lines) <= 60 else []
    for world in done.worlds if shown else []:
        rows = [
            [line.policy, f"{line.regret.mean:.1f}", _ends(line.regret), *_difference(line.difference)]
            for line in shown
            if line.environment == world
        ]
        head = ["policy", "regret", "95 % interval", f"above {shortened(reference, 40)}", "95 % interval"]
        print_table(head, rows, f"{world}, {done.study.runs} runs, seed {done.study.seed}")
    if not shown:
        print(f"{len(lines)} cells: see summary.csv")
    for grid in sweep.grids(done) if done.study.runs >= 4 else []:
        for best in sweep.best_by_world(done, grid):
            print(
                f"\nbest of the swept in {best.cell.world}: {best.cell.label}: regret {best.regret} on {best.runs} "
                f"runs that had no part in choosing it; {best.as_good} of the cells are as good within the noise"
            )
            for text in _distance(done, best):
                print(f"  {text}")
    if done.study.drift:
        _print_drift(done)


def _distance(done: Any, best: Any) -> list[str]:
    """How far the policies that were not swept are from the best cell."""
    from driftbandit.lab.experiments import sweep

    out = []
    for number, cell in enumerate(done.cells):
        if cell.world == best.cell.world and not cell.policy_values:
            far = sweep.excess(done, best, number)
            better = "; better than the best of the swept" if far.percent.high < 0.0 else ""
            out.append(
                f"{cell.label}: regret {far.percent.mean:+.1f} % "
                f"({far.percent.low:+.1f} to {far.percent.high:+.1f}){better}"
            )
    return out


def _print_drift(done: Any) -> None:
    rows = []
    for line in done.drift():
        rows.append(
            [
                line.policy,
                line.environment,
                f"{line.recovery.mean:.0f}",
                f"{line.recovered:.0%}",
                f"{line.worst_phase.mean:.1f}",
                f"{line.best_share.mean:.1%}",
                f"{line.against_fixed.mean:.1f}",
                f"{line.price.mean:.1f}" if line.price else "-",
                f"{line.delay.mean:.0f}" if line.delay else "-",
                f"{line.missed:.0%}" if line.missed is not None else "-",
                f"{line.still_alarms.mean:.2f}" if line.still_alarms else "-",
            ]
        )
    head = ["policy", "environment", "recovery", "recovered", "worst phase", "best arm", "above best fixed arm"]
    head += ["price of forgetting", "detection delay", "missed", "false alarms when still"]
    print()
    print_table(head, rows, "drift: rounds to recover from a change, ... (docs/reference/drift-metrics.md)")


def _ends(interval: Any) -> str:
    return "-" if math.isnan(interval.low) else f"{interval.low:.1f} to {interval.high:.1f}"


def _difference(difference: Any) -> list[str]:
    return ["-", "-"] if difference is None else [f"{difference.mean:+.1f}", _ends(difference)]


def _save(done: Any, out: str) -> list[Path]:
    from driftbandit.lab.experiments import sweep
    from driftbandit.lab.plots import regret

    paths: list[Path] = done.save(out)
    for world in done.worlds:
        here = [cell for cell in done.cells if cell.world == world]
        if 1 < len(here) <= 16 and len(done.worlds) <= 20:
            result = done.result(world)
            paths.append(regret.plot(result, Path(out) / f"regret-{result.provenance['id']}.svg"))
    return [*paths, *sweep.save_figures(done, out)]


def _as_json(done: Any, written: list[Path]) -> dict[str, Any]:
    """Everything that would be printed, as data."""
    from driftbandit.lab.experiments import sweep

    grids = sweep.grids(done) if done.study.runs >= 4 else []
    best = [(one.cell.world, one.cell.label, one) for grid in grids for one in sweep.best_by_world(done, grid)]
    return {
        "title": done.study.title,
        "runs": done.study.runs,
        "seed": done.study.seed,
        "reference": done.study.reference or done.study.policies[0].name,
        "summary": done.summary(),
        "best_of_swept": [
            {"environment": world, "policy": label, "regret": one.regret, "runs": one.runs, "as_good": one.as_good}
            for world, label, one in best
        ],
        "drift": done.drift() if done.study.drift else None,
        "chunks": done.tally,
        "wrote": written,
    }
