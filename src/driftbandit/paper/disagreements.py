"""Where the paper's text, its sources and its authors' code disagree, and what each disagreement does to regret.

Each effect is two policies, or one policy in two worlds, that differ in the disputed point alone. The simulations are
extra cells of the paper's job; what coincides with an item's own is computed once."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments.lagged import Lagged
from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.stats.intervals import t_interval
from driftbandit.paper.claims.evidence import NotComputed, extra_final
from driftbandit.paper.items.item import policy_for
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.exp3 import EXP3S


class Side(NamedTuple):
    """One side of a disagreement, in one item's world."""

    name: str  # what it is called in the report
    policy: Any
    world: Any


class Effect(NamedTuple):
    """A disagreement."""

    id: str
    title: str
    explanation: str  # who says what
    items: tuple[str, ...]  # the items in whose worlds it is measured
    sides: Callable[[Any, str], list[tuple[Side, Side]]]  # item, kind of world: pairs (first, second)


class MeasuredEffect(NamedTuple):
    """The measured effect in one world: second minus first, within runs."""

    item: str
    first: str
    second: str
    first_mean: float
    second_mean: float
    difference: float
    low: float
    high: float
    spread: tuple[float, float]  # standard deviations over runs

    @property
    def relative(self) -> float:
        """The difference as a share of the first; NaN if that is 0."""
        return self.difference / self.first_mean if self.first_mean > 0 else math.nan


class Measurement(NamedTuple):
    """An effect with its rows; `missing` says why there are none."""

    effect: Effect
    rows: tuple[MeasuredEffect, ...]
    missing: str = ""


def _gammas(item: Any, which: str) -> list[tuple[Side, Side]]:
    text, code = (policy_for("ds-ts", kind, item.world) for kind in ("text", "code"))
    world = item.environment(which)
    frozen = code._replace(forget_below=0.0)
    return [
        (Side(f"text, gamma = {text.gamma:.6g}", text, world), Side(f"code, gamma = {code.gamma:.6g}", frozen, world))
    ]


def _forgetting(item: Any, which: str) -> list[tuple[Side, Side]]:
    world, pairs = item.environment(which), []
    for kind in ("text", "code"):
        policy = policy_for("ds-ts", kind, item.world)._replace(forget_below=0.0)
        pairs.append(
            (
                Side(f"mean kept, gamma = {policy.gamma:.6g}", policy, world),
                Side("mean forgotten below N = 1e-8", policy._replace(forget_below=1e-8), world),
            )
        )
    return pairs


def _misprint(item: Any, which: str) -> list[tuple[Side, Side]]:
    world = item.environment(which)
    right, code = (policy_for("exp3s", kind, item.world) for kind in ("text", "code"))
    printed = EXP3S.misprinted(item.world.horizon, getattr(item.world, "phases", 1), item.world.n_arms)
    first = Side(f"corrected, explore = {right.explore:.4g}", right, world)
    return [
        (first, Side(f"as printed, explore = {printed.explore:.4g}", printed, world)),
        (first, Side(f"authors' code, explore = {code.explore:.4g}", code, world)),
    ]


def _discounts(item: Any, which: str) -> list[tuple[Side, Side]]:
    world = item.environment(which)
    text, code = (policy_for("d-ucb", kind, item.world) for kind in ("text", "code"))
    return [
        (Side(f"text, gamma = {text.gamma:.6g}", text, world), Side(f"code, gamma = {code.gamma:.6g}", code, world))
    ]


def _forced(item: Any, which: str) -> list[tuple[Side, Side]]:
    code, world = policy_for("sw-lb-sda", "code", item.world), item.environment(which)
    return [(Side("original publication, exponent 0.5", code._replace(forced_power=0.5), world),
             Side(f"code, exponent {code.forced_power:g}", code, world))]  # fmt: skip


def _warmup(item: Any, which: str) -> list[tuple[Side, Side]]:
    policy, world = policy_for("cusum-ucb", "code", item.world), item.environment(which)
    return [(Side("with forced warm-up (code)", policy, world),
             Side("without (original publication)", policy._replace(warmup=False), world))]  # fmt: skip


def _corollary2(item: Any, which: str) -> list[tuple[Side, Side]]:
    used, world = policy_for("ds-ts", "text", item.world), item.environment(which)
    corollary = DiscountedTS.tuned_smooth(item.world.horizon, 0.5)
    return [(Side(f"used, 1 - 10 / sqrt(T) = {used.gamma:.6g}", used, world),
             Side(f"Corollary 2, 1 - 1 / sqrt(T) = {corollary.gamma:.6g}", corollary, world))]  # fmt: skip


def _lag(item: Any, which: str) -> list[tuple[Side, Side]]:
    world, pairs = item.environment(which), []
    for label in ("ds-ts", "sw-ts"):
        policy = policy_for(label, "code", item.world)
        pairs.append((Side(f"{label}, no lag", policy, world), Side(f"{label}, lag", policy, Lagged(world))))
    return pairs


def _worlds(item: Any, which: str) -> list[tuple[Side, Side]]:
    pairs = []
    for label in ("ds-ts", "sw-ts", "d-ucb"):
        policy = policy_for(label, "code", item.world)
        first = Side(f"{label}, the authors' world", policy, item.environment("authors"))
        pairs.append((first, Side(f"{label}, fresh worlds", policy, item.environment("fresh"))))
    return pairs


EFFECTS = (
    Effect(
        "gamma", "DS-TS's discount",
        "The text and Corollary 1 have 1 - sqrt(B_T / T); the authors' code has 1 - 10 sqrt((B_T - 1) / T), which "
        "remembers far less. Means are kept on both sides.",
        ("fig3a", "fig3b", "fig3c", "fig3d"), _gammas,
    ),
    Effect(
        "forgetting", "Means of idle arms",
        "In the paper an arm that is not played keeps its mean for ever; in the code its mean reads as 0 once its "
        "discounted count falls below 1e-8.",
        ("fig3a", "fig3b"), _forgetting,
    ),
    Effect(
        "exp3s", "EXP3.S's exploration rate",
        "The printed formula closes a parenthesis too late and always gives 1, which is uniform play. Here the text's "
        "parameters have the formula it was taken from; the code runs a tenth of that, with B_T - 1 for B_T.",
        ("fig3a", "fig3b"), _misprint,
    ),
    Effect(
        "d-ucb", "D-UCB's discount",
        "Text: 1 - sqrt(B_T / T) / 4. Code: a sixteenth in abrupt worlds, a twelfth in smooth ones.",
        ("fig3a", "fig3b", "fig6a"), _discounts,
    ),
    Effect(
        "sw-lb-sda", "SW-LB-SDA's forced exploration",
        "The original publication has the exponent 1/2, the authors' code 0.333; the paper names none.",
        ("fig3a", "fig3b"), _forced,
    ),
    Effect(
        "cusum", "CUSUM's warm-up",
        "The authors' code plays every arm M times at the start and after each of its alarms; neither the paper nor "
        "the original publication says so.",
        ("fig3a", "fig3b"), _warmup,
    ),
    Effect(
        "smooth-gamma", "DS-TS's discount in smooth worlds",
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
        "worlds", "One world or many",
        "The text reads as if each run had a world of its own; the code draws one world with seed 0 and uses it in all "
        "runs. Compare the spreads over runs: with one world the interval says nothing about other worlds.",
        ("fig3a", "fig3b"), _worlds,
    ),
)  # fmt: skip


def _pairs(options: Any, items: Mapping[str, Any], effect: Effect) -> Iterator[tuple[str, str, Side, Side]]:
    """(name of the pair, item, first, second) for the items that are run."""
    for name in effect.items:
        if name in items:
            for number, (first, second) in enumerate(effect.sides(items[name], options.environment)):
                yield f"effect/{effect.id}/{name}/{number}", name, first, second


def effect_cells(options: Any, items: Mapping[str, Any]) -> dict[str, Cell]:
    """The simulations behind all effects, by name, for the items that are run."""
    cells = {}
    for effect in EFFECTS:
        for name, item, *sides in _pairs(options, items, effect):
            for which, side in zip(("first", "second"), sides, strict=True):
                cells[f"{name}/{which}"] = Cell(
                    side.policy, side.world, options.runs, options.seed, items[item].checkpoints
                )
    return cells


def measured(run: Any) -> list[Measurement]:
    """Every effect, as far as this run has its simulations."""
    found = []
    for effect in EFFECTS:
        try:
            rows = tuple(
                _row(item, first, second, *(extra_final(run, f"{name}/{which}") for which in ("first", "second")))
                for name, item, first, second in _pairs(run.options, run.items, effect)
            )
            missing = "" if rows else f"not run: {', '.join(effect.items)}"
        except NotComputed as error:
            rows, missing = (), str(error)
        found.append(Measurement(effect, rows, missing))
    return found


def _row(item: str, first: Side, second: Side, a: np.ndarray, b: np.ndarray) -> MeasuredEffect:
    low, high = (float(end) for end in t_interval(b - a))
    spread = tuple(float(x.std(ddof=1)) if len(x) > 1 else math.nan for x in (a, b))
    return MeasuredEffect(
        item, first.name, second.name, float(a.mean()), float(b.mean()), float((b - a).mean()), low, high,
        (spread[0], spread[1]),
    )  # fmt: skip
