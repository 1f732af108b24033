"""`driftbandit theory`: what the theorems promise one policy in one world, and what is measured."""

import argparse
import textwrap
from typing import Any

from driftbandit.commands._output import add_json, print_json, print_table
from driftbandit.commands._shared import MOST_RUNS, add_example, add_seed, add_workers, completes, need_lab, whole
from driftbandit.text import load

_EXAMPLES = """\
  driftbandit theory --env "Abrupt(n_arms=5, horizon=100000, phases=10)" --policy ds-ts.tuned
      facts of the world, bounds with their conditions, and a paragraph in plain words

  driftbandit theory --env "Smooth(n_arms=5, horizon=10000, sigma=0.001)" --policy "ds-ts(gamma=0.9)" --measure 100
      the same with the regret of 100 runs, and the best gamma by simulation

  driftbandit theory --env "AbruptGap(n_arms=5, gap=0.1)" --policy ds-ts.tuned --measure 40 --figure bound.svg
      bound against measured regret over the horizon, on a logarithmic axis
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = add_example(subparsers, "theory", "say what the theorems promise a policy in a world", _EXAMPLES)
    world = parser.add_argument(
        "--env", default="Abrupt()", metavar="TEXT", help='the environment\'s text (default: "Abrupt()")'
    )
    completes(world, "environments")
    played = parser.add_argument("--policy", default="ds-ts", metavar="TEXT", help="the policy's text (default: ds-ts)")
    completes(played, "policies")
    parser.add_argument(
        "--measure",
        type=whole(4, MOST_RUNS),
        metavar="RUNS",
        help="play this many runs, and look for the best gamma of DS-TS",
    )
    parser.add_argument(
        "--figure", metavar="FILE.svg", help="draw bound and measured regret over T (.png and .csv beside it)"
    )
    add_seed(parser)
    add_workers(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> None:
    """Diagnose, bound, measure, and say it in words."""
    need_lab("numba", "scipy", *(["matplotlib"] if args.figure else []))
    from driftbandit.lab.investigations.guarantee import theory
    from driftbandit.lab.jobs.sizes import refuse_impossible

    if args.figure:
        from driftbandit.lab.plots.regret import ENDINGS
        from driftbandit.lab.support.files import writable

        if not args.measure:
            raise ValueError("--figure shows measured regret beside the bounds: add --measure 40 or so.")
        writable(args.figure, ENDINGS)
    world = load.load_environment(args.env)
    policy = load.load_policy(args.policy, world=world)
    refuse_impossible(policy, world, args.measure or 1)
    found = theory(world, policy, args.measure or 0, args.seed, args.workers)
    written = _figure(args, world, found) if args.figure else []
    if args.json:
        print_json(_as_json(world, policy, found, written))
        return
    print(f"{world!r}\n{policy!r}\n")
    print_table(
        ["quantity", "value", "what it is"], [list(fact) for fact in found.facts], "the world (as run 0 meets it)"
    )
    print()
    _bounds(found)
    if 2 * found.found.phases < found.found.horizon:  # a drifting world has no phases to speak of
        rows = [[order.policy, order.formula, _power(order.log10)] for order in found.orders.values()]
        title = "Table 1 of the paper: orders without constants or logarithms"
        print()
        print_table(["policy", "order of regret", "its size here"], rows, title)
    print("\n" + textwrap.fill(found.paragraph(), 110))
    for path in written:
        print(f"wrote {path}")


def _as_json(world: Any, policy: Any, found: Any, written: list[Any]) -> dict[str, Any]:
    """Everything that would be printed, as data; bounds as decimal logarithms, since some have thousands of digits."""
    bounds = [
        {
            "statement": bound.name,
            "for": bound.scope,
            "lower": bound.lower,
            "log10": bound.log10,
            "vacuous": bound.vacuous,
            "holds": bound.holds,
            "failed": [str(c) for c in bound.conditions if not c.holds],
            "log10_measured_over_bound": found.gap_to(bound),
        }
        for bound in [*found.bounds, found.floor]
    ]
    orders = [{"policy": o.policy, "order": o.formula, "log10": o.log10} for o in found.orders.values()]
    facts = [dict(zip(("quantity", "value", "what"), fact, strict=True)) for fact in found.facts]
    words = found.paragraph()
    return {
        "environment": repr(world), "policy": repr(policy), "facts": facts, "bounds": bounds, "orders": orders,
        "in_words": words, "wrote": written,
    }  # fmt: skip


def _bounds(found: Any) -> None:
    rows = []
    for bound in [*found.bounds, found.floor]:
        verdict = "vacuous" if bound.vacuous else ("says something" if bound.holds else "conditions fail")
        above = found.gap_to(bound)
        sign = ">= " if bound.lower else "<= "
        measured = "-" if above is None else f"10^{above:+.1f} times"
        rows.append([bound.name, bound.scope, sign + _power(bound.log10), verdict, measured])
    print_table(
        ["statement", "for", "bound", "verdict", "measured regret x"], rows, "what is proved (vacuous: not below T)"
    )
    failed = dict.fromkeys(f"{bound.name}: {c}" for bound in found.bounds for c in bound.conditions if not c.holds)
    for line in failed:
        print(f"  {line}")


def _power(log10: float | None) -> str:
    if log10 is None:
        return "undefined"
    return f"10^{log10:.2f}" if abs(log10) >= 6.0 else f"{10.0**log10:.4g}"


def _figure(args: argparse.Namespace, world: Any, found: Any) -> list[Any]:
    from driftbandit.lab.investigations import bound_and_regret
    from driftbandit.lab.plots import bound_plot
    from driftbandit.lab.theory import first_useful_horizon

    points = bound_and_regret.measure(world, lambda w: load.load_policy(args.policy, world=w), args.measure, args.seed)
    facts, tau_max = found.found, found.policy.tau_max
    arms = facts.suboptimal_arms
    beyond = bound_and_regret.far(facts.phases, facts.gap, facts.mu_max, tau_max, arms)
    useful = first_useful_horizon(
        phases=facts.phases, gap=facts.gap, mu_max=facts.mu_max, tau_max=tau_max, sum_over=arms
    )
    title = f"DS-TS, {world.n_arms} arms, {facts.phases} phases, smallest gap {facts.gap:.3g}, {args.measure} runs"
    return bound_plot.save_bounds(points, beyond, useful, args.figure, title)
