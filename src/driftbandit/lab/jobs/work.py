"""The unit of work: a cell is one policy in one world, all its runs; a chunk is some of those runs, some seconds long.

Cutting never depends on the workers, so that finished chunks can be found again, nor on the number of runs, so that
more runs later reuse all whole chunks."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from driftbandit.lab.engine.runs import LANES

_WORK = 300_000_000  # rounds × arms in a chunk: between a fraction of a second and some seconds for most policies


class Chunk(NamedTuple):
    """A piece of work: runs first_run .. first_run + runs - 1 of a policy in a world."""

    policy: Any
    environment: Any
    runs: int
    seed: int = 0
    first_run: int = 0
    checkpoints: int = 200
    drift: bool = False  # measure recovery, detection and the rest of `lab.jobs.phases` as well
    compiled: bool = True  # by machine code or by the interpreter, which changes no number


class Cell(NamedTuple):
    """One policy in one world, all its runs. The names and values are what tables call it; they change no number."""

    policy: Any
    environment: Any
    runs: int = 100
    seed: int = 0
    checkpoints: int = 200
    drift: bool = False  # measure recovery, detection and the rest as well
    first_run: int = 0  # runs first_run .. first_run + runs - 1
    policy_name: str = ""  # the policy's name in tables
    environment_name: str = ""
    policy_values: Mapping[str, Any] = {}  # what the lists of the policy gave
    environment_values: Mapping[str, Any] = {}

    @property
    def values(self) -> dict[str, Any]:
        """All swept values by name."""
        return {**self.environment_values, **self.policy_values}

    @property
    def label(self) -> str:
        """Policy and values in one line."""
        return self.policy_name + _bracket(self.policy_values)

    @property
    def world(self) -> str:
        """World and values in one line."""
        return self.environment_name + _bracket(self.environment_values)

    def chunks(self) -> list[Chunk]:
        """The cell's runs in pieces that take a few seconds each."""
        size = max(1, _WORK // (self.environment.horizon * self.environment.n_arms))
        size = size // LANES * LANES if size >= LANES else size
        fixed = (self.checkpoints, self.drift)
        end = self.first_run + self.runs
        return [
            Chunk(self.policy, self.environment, min(size, end - first), self.seed, first, *fixed)
            for first in range(self.first_run, end, size)
        ]


def _bracket(values: Mapping[str, Any]) -> str:
    written = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()]
    return f" [{', '.join(written)}]" if written else ""


def weight(chunk: Chunk) -> float:
    """About how much work a chunk is, for the time left."""
    return float(chunk.runs * chunk.environment.horizon * (5 + chunk.environment.n_arms))
