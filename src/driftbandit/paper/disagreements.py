"""Where the paper's text, its sources and its authors' code disagree, and the effect of each disagreement on regret.

Each effect compares two policies, or one policy in two environments, that differ only in the disputed point."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments.abrupt import Lagged
from driftbandit.errors import NotComputed
from driftbandit.lab.summaries import Interval, interval
from driftbandit.lab.work import Cell
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
    """A disagreement, as disagreements.toml has it."""

    id: str
    title: str
    explanation: str
    items: tuple[str, ...]  # the items in whose environments it is measured
    pairs: Callable[[Any, Any], Pairs]  # of an item and its environment


class MeasuredEffect(NamedTuple):
    """The effect in one environment: final regrets of both sides, and the difference within runs."""

    item: str
    first: str
    second: str
    regrets: tuple[np.ndarray, np.ndarray]
    difference: Interval


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


_COMPARED: Mapping[str, Callable[[Any, Any], Pairs]] = {
    "gamma": _discount("ds-ts", forget_below=0.0),
    "forgetting": _forgetting,
    "exp3s": _misprint,
    "d-ucb": _discount("d-ucb"),
    "sw-lb-sda": _forced_play,
    "cusum": _warmup,
    "smooth-gamma": _corollary2,
    "lag": _lag,
    "environments": _fresh_environments,
}
EFFECTS = tuple(
    Effect(**{**found, "items": tuple(found["items"])}, pairs=_COMPARED[found["id"]])
    for found in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["effect"]
)


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
                a, b = (run.extra(f"{name}/{side}").regret[:, -1] for side in ("first", "second"))
                rows.append(MeasuredEffect(item, first.name, second.name, (a, b), interval(b - a)))
            missing = "" if rows else f"not run: {', '.join(effect.items)}"
        except NotComputed as error:
            rows, missing = [], str(error)
        found.append(Measurement(effect, tuple(rows), missing))
    return found
