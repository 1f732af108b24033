"""`driftbandit run`: play policies in environments and compare their regret."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from driftbandit.cli._shared import add_example, add_option, need, print_contents, print_json, whole

_EXAMPLES = """\
  driftbandit run ds-ts ts drift-ts --runs 20
      three policies with their default parameters in the default environment; differences from the first
  driftbandit run "ds-ts(gamma=0.99)" ts --environment "smooth(n_arms=5, horizon=10000)" --plot regret.svg
      parameters in brackets; others keep their defaults
  driftbandit run my_policy.py:MyPolicy ts --label "My policy" --label TS --drift --out results
      your own policy, named in tables and figures, with drift metrics; tables, curves and figures in a folder
  driftbandit run --init study.toml
      writes a commented study: policies, environments, lists of values to sweep
  driftbandit run study.toml --executor dask:tcp://10.0.0.5:8786
      plays it, on a Dask cluster; finished work is kept in study-results, so the same command continues after a stop
  driftbandit run monday.parquet tuesday.parquet --plot both.pdf
      results that --out saved, drawn again; nothing is played

`driftbandit list ds-ts` shows the parameters of a policy. A cluster runs the code it is sent: use a trusted network.
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "run", "play policies in environments and compare their regret", _EXAMPLES)
    text = "policies by their text, a study (.toml), or saved results"
    parser.add_argument("what", nargs="*", metavar="POLICY|FILE", help=text)
    text = 'an environment by its text; may be repeated (default: "Abrupt()": 5 arms, 10 phases, 100,000 rounds)'
    parser.add_argument("--environment", action="append", metavar="TEXT", help=text)
    add_option(parser, "runs", help="runs (default: the study's, or 100)")
    add_option(parser, "seed", default=None, help="the same seed gives the same numbers (default: the study's, or 0)")
    parser.add_argument("--horizon", type=whole(1), metavar="T", help="rounds, for every environment")
    parser.add_argument(
        "--label", action="append", metavar="TEXT", help="name of a policy in tables and figures, in their order"
    )
    parser.add_argument("--drift", action="store_true", help="also measure recovery, detection and the like")
    parser.add_argument(
        "--out", metavar="FOLDER|FILE.parquet", help="where to save (default: STUDY-results for a study)"
    )
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the regret curves: .svg, .png or .pdf")
    parser.add_argument("--width", type=float, default=7.6, metavar="INCHES", help="of the figure (default: 7.6)")
    parser.add_argument("--title", metavar="TEXT", help="title of the figure")
    add_option(parser, "executor")
    add_option(parser, "workers", help="how many, if the executor does not specify it (default: one per core)")
    text = "play without compiling: the same numbers, some hundred times slower; for a policy that does not compile"
    parser.add_argument("--interpreted", action="store_true", help=text)
    parser.add_argument("--init", metavar="FILE.toml", help="write a commented study to start from, and stop")
    add_option(parser, "json")


def run(args: argparse.Namespace) -> None:
    """Play, save, print."""
    if args.init:
        from driftbandit.lab.study import write_template

        print(f"wrote {write_template(args.init)}; play it with: driftbandit run {args.init}")
        return
    if not args.what:
        raise ValueError("Name a policy, a study or a saved result. See: driftbandit run --help")
    need(*([] if args.interpreted else ["numba"]), "pyarrow", *(["matplotlib"] if args.plot else []))
    from driftbandit.lab import plots
    from driftbandit.lab import study as studies
    from driftbandit.lab.files import writable
    from driftbandit.lab.result import Result

    if args.plot:
        writable(args.plot, plots.ENDINGS)
    written: list[Path] = []
    if all(text.endswith(".parquet") for text in args.what):
        results = [Result.load(path) for path in args.what]
    else:
        study, name = _make_study(args)
        out = args.out or (f"{name}-results" if name else None)
        folder = None if out is None or out.endswith(".parquet") else Path(out)
        if out:
            writable(folder / "summary.csv" if folder else out)
        compiled = not args.interpreted
        results = [studies.run(study, folder=folder, executor=args.executor, workers=args.workers, compiled=compiled)]
        if out:
            written = results[0].save(out)
    if args.plot:
        written.append(plots.plot(results, args.plot, args.title, args.width))
    if args.json:
        shown = [result.to_dict() for result in results]
        print_json({**(shown[0] if len(shown) == 1 else {"results": shown}), "wrote": written})
        return
    for result in results:
        print_contents(result)
    print("\n" if written else "", end="")
    for path in written:
        print(f"wrote {path}")


def _make_study(args: argparse.Namespace) -> tuple[Any, str | None]:
    """The study and, if it came from a file, its name."""
    from driftbandit.lab.study import Study, Variants, load_study
    from driftbandit.spec.parse import expand_grid

    changes = {key: getattr(args, key) for key in ("runs", "seed", "horizon") if getattr(args, key) is not None}
    if args.drift:
        changes["drift"] = True
    first, labels = args.what[0], args.label or []
    if len(args.what) == 1 and Path(first).suffix == ".toml":
        if args.environment or labels:
            raise ValueError(f"{first} lists environments and labels; leave --environment and --label out.")
        return dataclasses.replace(load_study(first), **changes), Path(first).stem
    files = [text for text in args.what if text.endswith((".toml", ".parquet"))]
    if files:
        raise ValueError(f"{files[0]} lists its policies; run it without others.")
    policies = [one for text in args.what for one in expand_grid(text)]
    if len(labels) > len(policies):
        raise ValueError(f"{len(labels)} labels are too many for {len(policies)} policies; give one --label each.")
    named = [Variants(text, label=label) for text, label in zip(policies, labels, strict=False)]
    return Study([*named, *policies[len(named) :]], args.environment or ["Abrupt()"], **changes), None
