"""`driftbandit run`: play policies in environments and compare their regret."""

import argparse
from pathlib import Path
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import (
    MOST_RUNS,
    add_example,
    add_executor,
    add_interpreted,
    add_seed,
    add_workers,
    completes,
    need_lab,
    whole,
)

_EXAMPLES = """\
  driftbandit run ds-ts ts drift-ts --runs 20
      three policies with their default parameters in the default environment; differences from the first

  driftbandit run "ds-ts(gamma=0.99)" ts --env "smooth(n_arms=5, horizon=10000)" --env abrupt --plot regret.svg
      parameters in brackets; what is not given keeps its default; several environments

  driftbandit run my_policy.py:MyPolicy ts --label "My policy" --label TS --drift --out results
      a policy of your own, named in tables and figures, with drift metrics; tables, curves and figures in a folder

  driftbandit run --init study.toml
      writes a commented study: policies, environments, lists of values to sweep

  driftbandit run study.toml
      plays it; finished work is kept in study-results, so the same command continues after a stop

  driftbandit run study.toml --executor dask:tcp://10.0.0.5:8786
      on a Dask cluster; the numbers are the same on every kind of worker

  driftbandit run monday.parquet tuesday.parquet --plot both.pdf
      results that --out saved, drawn again; nothing is played

`driftbandit list` shows all names, `driftbandit list ds-ts` the parameters of one policy. A cluster runs what it is
sent: use one on a trusted network only.
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "run", "play policies in environments and compare their regret", _EXAMPLES)
    played = parser.add_argument(
        "what", nargs="*", metavar="POLICY|FILE", help="policies by their text, a study (.toml, .py), or saved results"
    )
    completes(played, "policies")
    place = parser.add_argument(
        "--env", action="append", metavar="TEXT",
        help='an environment by its text; may be repeated (default: "Abrupt()": 5 arms, 10 phases, 100,000 rounds)',
    )  # fmt: skip
    completes(place, "environments")
    parser.add_argument("--runs", type=whole(1, MOST_RUNS), metavar="N", help="runs (default: the study's, or 100)")
    add_seed(parser, None, " (default: the study's, or 0)")
    parser.add_argument("--horizon", type=whole(1), metavar="T", help="rounds, for every environment")
    parser.add_argument(
        "--label", action="append", metavar="TEXT", help="name of a policy in tables and figures, in their order"
    )
    parser.add_argument("--drift", action="store_true", help="also measure recovery, detection and the like")
    parser.add_argument(
        "--out", metavar="FOLDER|FILE.parquet", help="where to save (default: STUDY-results for a study)"
    )
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the regret curves: .svg, .png or .pdf")
    parser.add_argument("--width", type=float, metavar="INCHES", help="width of the figure (default: 7.6)")
    parser.add_argument("--title", metavar="TEXT", help="title of the figure")
    add_executor(parser)
    add_workers(parser, "how many, if the executor does not say (default: one per core)")
    add_interpreted(parser)
    parser.add_argument("--dry-run", action="store_true", help="print how much work it is, and write nothing")
    parser.add_argument("--init", metavar="FILE.toml", help="write a commented study to start from, and stop")
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Play, save, print."""
    if args.init:
        from driftbandit.lab.experiments.study_file import write_template

        print(f"wrote {write_template(args.init)}; play it with: driftbandit run {args.init}")
        return
    if not args.what:
        raise ValueError("Name a policy, a study or a saved result. See: driftbandit run --help")
    need_lab(*([] if args.interpreted else ["numba"]), "scipy", "pyarrow", *(["matplotlib"] if args.plot else []))
    from driftbandit.lab.plots.style import ENDINGS
    from driftbandit.lab.support.files import writable

    if args.plot and not args.dry_run:
        writable(args.plot, ENDINGS)
    if all(text.endswith(".parquet") for text in args.what):
        _read(args)
        return
    from driftbandit.lab.experiments import run as experiment

    study, name = _study(args)
    out = args.out or (f"{name}-results" if name else None)
    if args.dry_run:
        _print_plan(experiment.plan(study, _folder(out)), study.runs, args)
        return
    if out:
        writable(out if _folder(out) is None else Path(out) / "summary.csv")
    result = experiment.run(
        study, folder=_folder(out), executor=args.executor, workers=args.workers, compiled=not args.interpreted
    )
    _report(args, [result], _save(result, out) if out else [])


def _folder(out: str | None) -> str | None:
    """The folder of --out; None if it names a file."""
    return None if out is None or out.endswith(".parquet") else out


def _study(args: argparse.Namespace) -> tuple[Any, str | None]:
    """The study and, if it came from a file, its name."""
    import dataclasses

    from driftbandit.lab.experiments.study import Study, Variants
    from driftbandit.lab.experiments.study_file import load_study

    changes = {key: getattr(args, key) for key in ("runs", "seed", "horizon") if getattr(args, key) is not None}
    if args.drift:
        changes["drift"] = True
    first, labels = args.what[0], args.label or []
    if len(args.what) == 1 and Path(first).suffix in (".toml", ".py"):
        if args.env or labels:
            raise ValueError(f"{first} has environments and labels of its own; leave --env and --label out.")
        return dataclasses.replace(load_study(first), **changes), Path(first).stem
    files = [text for text in args.what if text.endswith((".toml", ".parquet"))]
    if files:
        raise ValueError(f"{files[0]} has policies of its own; run it without others.")
    if len(labels) > len(args.what):
        raise ValueError(f"{len(labels)} labels are too many for {len(args.what)} policies; give one --label each.")
    named = [Variants(text, label=label) for text, label in zip(args.what, labels, strict=False)]
    return Study([*named, *args.what[len(named) :]], args.env or ["Abrupt()"], id="run", **changes), None


def _read(args: argparse.Namespace) -> None:
    """Print and draw results that were saved."""
    from driftbandit.lab.experiments.result import Result

    _report(args, [Result.load(path) for path in args.what], [])


def _save(result: Any, out: str) -> list[Path]:
    from driftbandit.lab.experiments import sweep

    paths: list[Path] = result.save(out)
    return paths if _folder(out) is None else [*paths, *sweep.save_figures(result, out)]


def _report(args: argparse.Namespace, results: list[Any], written: list[Path]) -> None:
    """Draw if asked, then print: what is saved is saved before anything is printed."""
    if args.plot:
        from driftbandit.lab.plots import regret

        wide = {} if args.width is None else {"width": args.width}
        written.append(regret.plot(results, args.plot, args.title, **wide))
    if args.json:
        shown = [_as_json(result) for result in results]
        print_json({**(shown[0] if len(shown) == 1 else {"results": shown}), "wrote": written})
        return
    for result in results:
        _print(result)
    print("\n" if written else "", end="")
    for path in written:
        print(f"wrote {path}")


def _print(result: Any) -> None:
    from driftbandit.lab.experiments import sweep

    if result.tally and result.tally.reused:
        print(f"{result.tally.reused} of {sum(result.tally)} chunks were ready, {result.tally.computed} computed")
    if len(result.parts) <= 60:
        for environment in result.environments:
            head, rows = result.table(environment)
            title = f"{environment}, {len(result.runs)} runs, seed {result.provenance.get('seed')}"
            print_table(head[: len(rows[0])], rows, title)
    else:
        print(f"{len(result.parts)} policies and environments: see summary.csv")
    for best in sweep.best_cells(result):
        print(
            f"\nbest of the swept in {best.cell.world}: {best.cell.label}: regret {best.regret} on {best.runs} runs"
            f" that were not used to choose it; cells that are as good within the noise: {best.as_good}"
        )
        for line in sweep.distances(result, best):
            print(f"  {line}")
    if result.drift:
        from driftbandit.lab.jobs.drift import DRIFT_HEAD, drift_row

        print()
        title = "drift: rounds to recover from a change, ... (docs/reference/drift-metrics.md)"
        print_table(DRIFT_HEAD, [drift_row(line) for line in result.drift], title)


def _as_json(result: Any) -> dict[str, Any]:
    """Everything that would be printed, as data."""
    from driftbandit.lab.experiments import sweep

    best = [
        {"environment": one.cell.world, "policy": one.cell.label, "regret": one.regret, "runs": one.runs,
         "as_good": one.as_good}
        for one in sweep.best_cells(result)
    ]  # fmt: skip
    return {**result.to_dict(), "best_of_swept": best, "chunks": result.tally}


def _print_plan(plan: Any, runs: int, args: argparse.Namespace) -> None:
    import os

    from driftbandit.lab.support.progress import duration

    workers = args.workers or os.cpu_count() or 1
    if args.json:
        print_json({**plan._asdict(), "runs": runs, "workers": workers})
        return
    print(f"{plan.cells} cells of {runs} runs in {plan.chunks} chunks, {plan.ready} of them ready")
    print(
        f"{plan.rounds:.3g} rounds to play: about {duration(plan.seconds)} with one worker, "
        f"{duration(plan.seconds / workers)} with {workers}, not counting compilation"
    )
