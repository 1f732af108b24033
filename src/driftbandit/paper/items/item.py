"""What every item of the paper is: a world, the policies that play in it, and how to save and draw what came out.

The kinds of item (regret curves, regret against the gap, means, sets, orders) are subclasses; an item is data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from driftbandit.lab.engine.simulate import Simulation
from driftbandit.lab.jobs.work import Cell
from driftbandit.policies.beta_ts import BetaTS, SlidingTS
from driftbandit.policies.cusum_ucb import CusumUCB
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.exp3 import EXP3S
from driftbandit.policies.m_ucb import MonitoredUCB
from driftbandit.policies.sliding_lb_sda import SlidingLBSDA
from driftbandit.policies.ucb import DiscountedUCB

PARAMETERS = ("text", "code")  # what the paper prints, what the authors' code runs


@dataclass(frozen=True)
class PaperOptions:
    """What to reproduce, and how."""

    out: Path  # the folder for results, figures and the report
    items: tuple[str, ...] = ()  # ids or families; none means all
    runs: int = 100
    parameters: tuple[str, ...] = PARAMETERS
    environment: str = "authors"  # or "fresh": a new world for each run
    seed: int = 0
    workers: int | None = None
    quick: bool = False  # said in the report, so that nobody takes ten runs for a hundred
    executor: Any = None  # where the simulations are done: `lab.jobs.executors`
    additions: tuple[str, ...] = ()  # policies not the paper's: drawn with its regret curves, in no claim


class PlayedPaper(Protocol):
    """A reproduction with its results: what `job.PaperRun` is to an item."""

    options: PaperOptions

    @property
    def items(self) -> Mapping[str, Any]:
        """The items by their ids."""
        ...

    @property
    def failures(self) -> Mapping[str, str]:
        """Items that have no results, and why."""
        ...

    def outcome(self, item_id: str, label: str, parameters: str, gap: float | None = None) -> Simulation:
        """What came out of one simulation."""
        ...

    def final(self, item_id: str, label: str, parameters: str, gap: float | None = None) -> np.ndarray:
        """The regret at the end of one simulation, one number per run."""
        ...


NARROW_WIDTH = 4.4  # inches: at 400 pixels its letters are as large as those of the text
EIGHT = ("exp3s", "sw-lb-sda", "cusum-ucb", "d-ucb", "m-ucb", "ts", "sw-ts", "ds-ts")
SIX = tuple(label for label in EIGHT if label not in ("cusum-ucb", "m-ucb"))  # those of the smooth worlds
KNOWN = "ds-ts-mu"  # DS-TS that was told the largest mean there can be

_CLASSES: dict[str, Any] = {
    "exp3s": EXP3S,
    "sw-lb-sda": SlidingLBSDA,
    "cusum-ucb": CusumUCB,
    "d-ucb": DiscountedUCB,
    "m-ucb": MonitoredUCB,
    "ts": BetaTS,
    "sw-ts": SlidingTS,
    "ds-ts": DiscountedTS,
    KNOWN: DiscountedTS,
}
_SLOW = ("sw-ts", "ts")  # computed first, so that both cores finish an item at about the same time

AnyItem = TypeVar("AnyItem", bound="Item")


class ItemKey(NamedTuple):
    """Which of an item's simulations."""

    label: str
    parameters: str
    gap: float | None = None


def policy_for(label: str, parameters: str, world: Any, mu_max: float = 1.0) -> Any:
    """A policy by the paper's short name, with the parameters of the paper's text or of its authors' code.

    >>> from driftbandit.environments import Abrupt
    >>> policy_for("ds-ts", "text", Abrupt(n_arms=5, horizon=100_000, phases=10)).gamma
    0.99
    """
    smooth = not hasattr(world, "phases")
    cls, sizes = _CLASSES[label], (world.horizon, 1 if smooth else world.phases, world.n_arms)
    made = getattr(cls, parameters)(*sizes, smooth=smooth)
    return made._replace(tau_max=mu_max / 5) if label == KNOWN else made


@dataclass(frozen=True, kw_only=True)
class Item:
    """One figure or table of the paper, or one that it announces."""

    id: str
    title: str  # what stands above the figure
    place: str  # where in the paper: "Figure 3(a)"
    shows: str  # what it is meant to show, in a sentence
    world: Any = None  # the authors' world; None for an item without simulation
    labels: tuple[str, ...] = ()  # the policies, by the paper's short names
    gaps: tuple[float, ...] = ()  # the values of the gap, where it is varied
    mu_max: float = 1.0  # the largest mean, told to KNOWN alone
    checkpoints: int = 1000

    def environment(self, which: str = "authors", gap: float | None = None) -> Any:
        """The world to play in: "authors" is the authors' single one, "fresh" draws a new one for each run.

        Smooth worlds have nothing to draw and are the same in both."""
        changes: dict[str, Any] = {} if gap is None else {"gap": gap}
        if which == "fresh" and hasattr(self.world, "world"):
            changes["world"] = "fresh"
        return type(self.world)(**{**self.world._asdict(), **changes}) if changes else self.world

    def policies(self, parameters: str) -> dict[str, Any]:
        """The policies under one parameter set."""
        return {label: policy_for(label, parameters, self.world, self.mu_max) for label in self.labels}

    def cells(self, options: PaperOptions) -> dict[ItemKey, Cell]:
        """The simulations the item needs. Where text and code agree a cell occurs twice, and is computed once."""
        found = {}
        for gap in self.gaps or (None,):
            world = self.environment(options.environment, gap) if self.labels else None
            for parameters in options.parameters:
                for label, policy in self.policies(parameters).items():
                    cell = Cell(policy, world, options.runs, options.seed, self.checkpoints)
                    found[ItemKey(label, parameters, gap)] = cell
        return dict(sorted(found.items(), key=lambda entry: entry[0].label not in _SLOW))

    def scaled(self: AnyItem, horizon: int) -> AnyItem:
        """The same with a shorter horizon, for tests; parameters follow the horizon."""
        if self.world is None:
            return self
        world = type(self.world)(**{**self.world._asdict(), "horizon": horizon})
        return replace(self, world=world)

    def size(self, run: PlayedPaper, narrow: bool = False) -> tuple[float, float]:
        """Width and height of the figure in inches; narrow ones are for the screen of a telephone."""
        panels = len(run.options.parameters)
        return (NARROW_WIDTH, 0.9 + 3.0 * panels) if narrow else (10.2 if panels > 1 else 6.6, 4.2)

    def draw(self, run: PlayedPaper, figure: Any) -> None:
        """Fill an empty figure."""
        raise NotImplementedError(f"{type(self).__name__} needs a method draw.")

    def save(self, run: PlayedPaper, path: Path, note: dict[str, Any]) -> None:
        """Write what was drawn as Parquet, with `note` in the file's metadata."""
        raise NotImplementedError(f"{type(self).__name__} needs a method save.")
