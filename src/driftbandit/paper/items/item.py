"""An item of the paper: an environment, the policies that play in it, and how to save and draw the result.

Each kind of item (regret curves, regret against the gap, means, orders) is a subclass; an item is data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.lab.result import Result
from driftbandit.lab.study import provenance
from driftbandit.lab.work import Cell
from driftbandit.policies.beta_ts import BetaTS, SlidingTS
from driftbandit.policies.detecting_ucb import CusumUCB, MonitoredUCB
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.exp3 import EXP3S
from driftbandit.policies.lb_sda import SlidingLBSDA
from driftbandit.policies.ucb import DiscountedUCB
from driftbandit.spec.user_code import text_of

PARAMETERS = ("text", "code")  # what the paper prints, what the authors' code runs


@dataclass(frozen=True)
class PaperOptions:
    """What to reproduce, and how."""

    out: Path  # the folder for results, figures and the report
    items: tuple[str, ...] = ()  # ids or families; none means all
    runs: int = 100
    parameters: tuple[str, ...] = PARAMETERS
    environment: str = "authors"  # or "fresh": another environment in each run
    seed: int = 0
    workers: int | None = None
    quick: bool = False  # the report warns that there are few runs
    executor: Any = None  # where the simulations run: `lab.executors`


EIGHT = ("exp3s", "sw-lb-sda", "cusum-ucb", "d-ucb", "m-ucb", "ts", "sw-ts", "ds-ts")
SIX = tuple(label for label in EIGHT if label not in ("cusum-ucb", "m-ucb"))  # for smooth changes
KNOWN = "ds-ts-mu"  # DS-TS with tau_max from the largest mean

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
_SLOW = ("sw-ts", "ts")  # computed first, so that all cores finish an item at about the same time


class ItemKey(NamedTuple):
    """Which of an item's simulations."""

    label: str
    parameters: str
    gap: float | None = None


def make_policy(label: str, parameters: str, environment: Any, mu_max: float = 1.0) -> Any:
    """A policy by the paper's short name, with the parameters of the paper's text or of its authors' code.

    >>> from driftbandit.environments import Abrupt
    >>> make_policy("ds-ts", "text", Abrupt(n_arms=5, horizon=100_000, phases=10)).gamma
    0.99
    """
    smooth = not hasattr(environment, "phases")
    sizes = environment.horizon, 1 if smooth else environment.phases, environment.n_arms
    policy = getattr(_CLASSES[label], parameters)(*sizes, smooth=smooth)
    return policy._replace(tau_max=mu_max / 5) if label == KNOWN else policy


@dataclass(frozen=True, kw_only=True)
class Item:
    """One figure or table of the paper, or one that it announces. `run` below is a `reproduction.PaperRun`."""

    id: str
    title: str
    place: str  # where in the paper: "Figure 3(a)"
    shows: str  # the content, in a sentence
    environment: Any = None  # the authors' environment; None for an item without one
    labels: tuple[str, ...] = ()  # the policies, by the paper's short names
    gaps: tuple[float, ...] = ()  # the values of the gap, where it is varied
    mu_max: float = 1.0  # the largest mean, for KNOWN
    checkpoints: int = 1000

    def make_environment(self, which: str = "authors", gap: float | None = None) -> Any:
        """The environment: "authors" is the same in all runs, "fresh" differs from run to run.

        Environments with smooth changes are not random, and so the same in both."""
        changes: dict[str, Any] = {} if gap is None else {"gap": gap}
        if which == "fresh" and hasattr(self.environment, "instance"):
            changes["instance"] = "fresh"
        return type(self.environment)(**{**self.environment._asdict(), **changes}) if changes else self.environment

    def policies(self, parameters: str) -> dict[str, Any]:
        """The policies under one parameter set."""
        return {label: make_policy(label, parameters, self.environment, self.mu_max) for label in self.labels}

    def keys(self, options: PaperOptions) -> list[ItemKey]:
        """The simulations the item needs."""
        return [
            ItemKey(label, parameters, gap)
            for parameters in options.parameters
            for label in self.labels
            for gap in self.gaps or (None,)
        ]

    def cells(self, options: PaperOptions) -> dict[ItemKey, Cell]:
        """Those simulations as cells. Where text and code agree a cell occurs twice, and is computed once."""
        found = {}
        for key in sorted(self.keys(options), key=lambda key: key.label not in _SLOW):
            policy = self.policies(key.parameters)[key.label]
            environment = self.make_environment(options.environment, key.gap)
            found[key] = Cell(policy, environment, options.runs, options.seed, self.checkpoints)
        return found

    def size(self, run: Any) -> tuple[float, float]:
        """Width and height of the figure in inches."""
        return 10.2 if len(run.options.parameters) > 1 else 6.6, 4.2

    def draw(self, run: Any, figure: Any) -> None:
        """Fill an empty figure."""
        raise NotImplementedError(f"{type(self).__name__} needs a method draw.")

    def save(self, run: Any, path: Path, note: dict[str, Any]) -> None:
        """Write the simulations as a result like any other: `Result.load` and `driftbandit run` read it."""
        parts = []
        for key in self.keys(run.options):
            part = run.outcome(self.id, *key)
            place = text_of(part.cell.environment)
            names = {"policy_name": f"{key.label} ({key.parameters})", "environment_name": place}
            parts.append(part._replace(cell=part.cell._replace(**names)))
        about = provenance([part.cell for part in parts], self.id, self.title, self.shows)
        Result(parts, {**about, **note}).save(path)
