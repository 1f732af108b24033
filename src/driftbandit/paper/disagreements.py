"""Where the paper's text, its sources and its authors' code disagree, and the effect of each disagreement on regret.

Each effect compares two policies, or one policy in two environments, that differ only in the disputed point."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments.abrupt import Lagged
from driftbandit.errors import NotComputed
from driftbandit.lab.intervals import t_interval
from driftbandit.lab.work import Cell
from driftbandit.paper.claims.evidence import extra_final
from driftbandit.paper.items.item import Item, PaperOptions, make_policy
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.exp3 import EXP3S


class Side(NamedTuple):
    """One side of a disagreement, in one item's environment."""

    name: str
    policy: Any
    environment: Any


Pairs = Iterator[tuple[Side, Side]]


class Effect(NamedTuple):
    """A disagreement."""

    id: str
    title: str
    explanation: str
    items: tuple[str, ...]  # the items in whose environments it is measured
    pairs: Callable[[Any, Any], Pairs]  # of an item and its environment


class MeasuredEffect(NamedTuple):
    """The effect in one environment: final regrets of both sides, and the mean difference within runs, low and high."""

    item: str
    first: str
    second: str
    regrets: tuple[np.ndarray, np.ndarray]
    difference: tuple[float, float, float]


class Measurement(NamedTuple):
    """An effect with its rows, or the reason without rows."""

    effect: Effect
    rows: tuple[MeasuredEffect, ...]
    missing: str = ""


def _both(label: str, item: Item) -> Iterator[Any]:
    return (make_policy(label, kind, item.environment) for kind in ("text", "code"))


def _discount(label: str, **changes: Any) -> Callable[[Any, Any], Pairs]:
    def pairs(item: Item, environment: Any) -> Pairs:
        text, code = _both(label, item)
        second = code._replace(**changes)
        yield (
            Side(f"text, gamma = {text.gamma:.6g}", text, environment),
            Side(f"code, gamma = {code.gamma:.6g}", second, environment),
        )

    return pairs


def _forgetting(item: Item, environment: Any) -> Pairs:
    for policy in _both("ds-ts", item):
        first = Side(f"mean kept, gamma = {policy.gamma:.6g}", policy._replace(forget_below=0.0), environment)
        yield first, Side("mean forgotten below N = 1e-8", policy._replace(forget_below=1e-8), environment)


def _misprint(item: Item, environment: Any) -> Pairs:
    right, code = _both("exp3s", item)
    printed = EXP3S.misprinted(environment.horizon, environment.phases, environment.n_arms)
    first = Side(f"corrected, explore = {right.explore:.4g}", right, environment)
    yield first, Side(f"as printed, explore = {printed.explore:.4g}", printed, environment)
    yield first, Side(f"authors' code, explore = {code.explore:.4g}", code, environment)


def _forced_play(item: Item, environment: Any) -> Pairs:
    code = make_policy("sw-lb-sda", "code", item.environment)
    original = Side("original publication, exponent 0.5", code._replace(forced_power=0.5), environment)
    yield original, Side(f"code, exponent {code.forced_power:g}", code, environment)


def _warmup(item: Item, environment: Any) -> Pairs:
    code = make_policy("cusum-ucb", "code", item.environment)
    original = Side("without (original publication)", code._replace(warmup=False), environment)
    yield Side("with forced warm-up (code)", code, environment), original


def _corollary2(item: Item, environment: Any) -> Pairs:
    used = make_policy("ds-ts", "text", item.environment)
    corollary = DiscountedTS.tuned_smooth(item.environment.horizon, 0.5)
    yield (
        Side(f"used, 1 - 10 / sqrt(T) = {used.gamma:.6g}", used, environment),
        Side(f"Corollary 2, 1 - 1 / sqrt(T) = {corollary.gamma:.6g}", corollary, environment),
    )


def _lag(item: Item, environment: Any) -> Pairs:
    for label in ("ds-ts", "sw-ts"):
        policy = make_policy(label, "code", item.environment)
        yield Side(f"{label}, no lag", policy, environment), Side(f"{label}, lag", policy, Lagged(environment))


def _fresh_environments(item: Item, environment: Any) -> Pairs:
    for label in ("ds-ts", "sw-ts", "d-ucb"):
        policy = make_policy(label, "code", item.environment)
        first = Side(f"{label}, the authors' environment", policy, item.make_environment("authors"))
        yield first, Side(f"{label}, fresh environments", policy, item.make_environment("fresh"))


EFFECTS = (
    Effect(
        "gamma", "DS-TS's discount",
        "The text and Corollary 1 have 1 - sqrt(B_T / T); the authors' code has 1 - 10 sqrt((B_T - 1) / T), a memory a "
        "tenth as long. Means are kept on both sides.",
        ("fig3a", "fig3b", "fig3c", "fig3d"), _discount("ds-ts", forget_below=0.0),
    ),
    Effect(
        "forgetting", "Means of idle arms",
        "In the paper an arm that is not played keeps its mean forever; in the code its mean becomes 0 once its "
        "discounted count falls below 1e-8.",
        ("fig3a", "fig3b"), _forgetting,
    ),
    Effect(
        "exp3s", "EXP3.S's exploration rate",
        "The printed formula closes a parenthesis too late: it always gives 1, which is uniform play. Here the text's "
        "parameters use the original publication's formula; the code uses a tenth of it, with B_T - 1 for B_T.",
        ("fig3a", "fig3b"), _misprint,
    ),
    Effect(
        "d-ucb", "D-UCB's discount",
        "Text: 1 - sqrt(B_T / T) / 4. Code: a sixteenth with abrupt changes, a twelfth with smooth ones.",
        ("fig3a", "fig3b", "fig6a"), _discount("d-ucb"),
    ),
    Effect(
        "sw-lb-sda", "SW-LB-SDA's forced exploration",
        "The original publication has the exponent 1/2, the authors' code 0.333; the paper names none.",
        ("fig3a", "fig3b"), _forced_play,
    ),
    Effect(
        "cusum", "CUSUM's warm-up",
        "The authors' code plays every arm M times at the start and after each of its alarms; neither the paper nor "
        "the original publication mentions it.",
        ("fig3a", "fig3b"), _warmup,
    ),
    Effect(
        "smooth-gamma", "DS-TS's discount with smooth changes",
        "The text sets beta = 1/2, for which Corollary 2 gives 1 - 1 / sqrt(T), and then takes ten times that distance "
        "from 1.",
        ("fig6a", "fig6b", "fig6c"), _corollary2,
    ),
    Effect(
        "lag", "The simulator's lag",
        "In the authors' simulator a round's rewards come from the means of the round before, while its regret is "
        "measured by the means of the round.",
        ("fig3a", "fig6a"), _lag,
    ),
    Effect(
        "environments", "One environment or many",
        "According to the text each run has its own environment; the code draws one with seed 0 and uses it in all "
        "runs. Compare the spreads over runs: with one environment the interval does not cover others.",
        ("fig3a", "fig3b"), _fresh_environments,
    ),
)  # fmt: skip


def _pairs(options: PaperOptions, items: Mapping[str, Item], effect: Effect) -> Iterator[tuple[str, str, Side, Side]]:
    """(name of the pair, item, first, second) for the items that are run."""
    for name in effect.items:
        if name in items:
            environment = items[name].make_environment(options.environment)
            for number, (first, second) in enumerate(effect.pairs(items[name], environment)):
                yield f"effect/{effect.id}/{name}/{number}", name, first, second


def effect_cells(options: PaperOptions, items: Mapping[str, Item]) -> dict[str, Cell]:
    """The simulations behind all effects, by name, for the items that are run."""
    cells = {}
    for effect in EFFECTS:
        for name, item, *sides in _pairs(options, items, effect):
            for which, side in zip(("first", "second"), sides, strict=True):
                setting = options.runs, options.seed, items[item].checkpoints
                cells[f"{name}/{which}"] = Cell(side.policy, side.environment, *setting)
    return cells


def measure_effects(run: Any) -> list[Measurement]:
    """Every effect, as far as this run has its simulations."""
    found = []
    for effect in EFFECTS:
        rows = []
        try:
            for name, item, first, second in _pairs(run.options, run.items, effect):
                a, b = extra_final(run, f"{name}/first"), extra_final(run, f"{name}/second")
                low, high = (float(end) for end in t_interval(b - a))
                rows.append(MeasuredEffect(item, first.name, second.name, (a, b), (float((b - a).mean()), low, high)))
            missing = "" if rows else f"not run: {', '.join(effect.items)}"
        except NotComputed as error:
            rows, missing = [], str(error)
        found.append(Measurement(effect, tuple(rows), missing))
    return found
