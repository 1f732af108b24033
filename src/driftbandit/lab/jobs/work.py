"""The unit of work: a cell is one policy in one world, all its runs; a chunk is some of those runs, some seconds long.

Cutting never depends on the workers, so that finished chunks can be found again, nor on the number of runs, so that
more runs later reuse all whole chunks."""

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine.arguments import with_world
from driftbandit.lab.engine.simulate import LANES, Simulation, simulate
from driftbandit.state import memory
from driftbandit.text import user_code

_WORK = 300_000_000  # rounds × arms in a chunk: between a fraction of a second and some seconds for most policies


class Chunk(NamedTuple):
    """A piece of work: runs first_run .. first_run + runs - 1 of a policy in a world."""

    policy: Any
    environment: Any
    runs: int
    seed: int = 0
    first_run: int = 0
    checkpoints: int = 200
    drift: bool = False  # measure recovery, detection and the rest of `lab.jobs.drift` as well
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


class Part(NamedTuple):
    """One policy in one environment. In a result read from disk the policy and the environment are texts."""

    cell: Cell
    rounds: np.ndarray  # checkpoints: numbers of rounds played
    regret: np.ndarray  # runs × checkpoints
    seconds: float = 0.0

    @property
    def policy(self) -> str:
        """The policy's label."""
        return self.cell.label

    @property
    def environment(self) -> str:
        """The environment's label."""
        return self.cell.world

    @property
    def final(self) -> np.ndarray:
        """The regret at the end, one number per run."""
        return np.asarray(self.regret[:, -1])

    def texts(self) -> tuple[str, str]:
        """The texts of the policy and of the environment, from which both can be made again."""
        return _text(self.cell.policy), _text(self.cell.environment)

    def identity(self) -> tuple[Any, ...]:
        """What must be the same in two results that differ in their runs only."""
        return (self.policy, self.environment, self.texts(), self.rounds.tolist())


def _bracket(values: Mapping[str, Any]) -> str:
    written = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()]
    return f" [{', '.join(written)}]" if written else ""


def _text(what: Any) -> str:
    return what if isinstance(what, str) else user_code.text_of(what)


def weight(chunk: Chunk) -> float:
    """About how much work a chunk is, for the time left."""
    return float(chunk.runs * chunk.environment.horizon * (5 + chunk.environment.n_arms))


def play_chunk(chunk: Chunk, stop: threading.Event | None = None) -> Simulation:
    """The chunk's regret at its checkpoints."""
    return simulate(
        chunk.policy,
        chunk.environment,
        chunk.runs,
        chunk.seed,
        first_run=chunk.first_run,
        checkpoints=chunk.checkpoints,
        workers=1,
        compiled=chunk.compiled,
        progress=False,
        stop=stop,
    )


_ROUNDS = 10**16  # at ten nanoseconds per round, three years of one core
_EXACT = 2**53  # beyond this, numbers that count rounds are no longer whole


def refuse_impossible(policy: Any, environment: Any, runs: int, checkpoints: Any = 200) -> None:
    """A ValueError of one sentence if the rounds cannot be counted or played, or if worlds, states or results would
    not fit into this machine's memory.

    >>> from driftbandit import DiscountedTS
    >>> from driftbandit.environments import Smooth
    >>> refuse_impossible(DiscountedTS(), Smooth(horizon=10**18), 1)
    Traceback (most recent call last):
    ...
    ValueError: horizon=1000000000000000000 is more than anybody can play; take at most 9007199254740992 rounds.
    """
    horizon, n_arms = environment.horizon, environment.n_arms
    if horizon > _EXACT:
        raise ValueError(f"horizon={horizon} is more than anybody can play; take at most {_EXACT} rounds.")
    if horizon * runs > _ROUNDS:
        raise ValueError(
            f"{runs} runs of {horizon} rounds are {horizon * runs:.1g} rounds, years of computing; take fewer."
        )
    marks = min(checkpoints, horizon) if isinstance(checkpoints, int) else len(checkpoints)
    _fits(8 * runs * marks, f"the regret of {runs} runs at {marks} checkpoints")
    _fits(8 * n_arms * getattr(environment, "phases", 1), f"a world of {n_arms} arms ({environment!r:.80})")
    try:
        world = environment.realise(stream_key(0, 0, WORLD))
    except MemoryError:
        raise ValueError(f"No memory holds a world of this size: {environment!r:.80}.") from None
    another = environment.realise(stream_key(0, 1, WORLD))
    if another is not world:
        _fits(runs * _size(world), f"{runs} runs' worlds ({environment!r:.80})")
    try:
        state = with_world(policy, world).init(n_arms)
    except MemoryError:
        raise ValueError(f"No memory holds what {policy!r:.80} has to remember; take a smaller size.") from None
    _fits(min(runs, LANES) * _size(state), f"what {policy!r:.80} has to remember in {min(runs, LANES)} runs at once")


def _size(value: Any) -> int:
    """Bytes of the arrays in a tuple of tuples."""
    if isinstance(value, tuple | list):
        return sum(_size(item) for item in value)
    return int(getattr(value, "nbytes", 8))


def _fits(needed: int, what: str) -> None:
    there = memory()
    if needed > there:
        raise ValueError(
            f"{what[:1].upper()}{what[1:]} would take {_amount(needed)} of memory; this machine has {_amount(there)}."
        )


def _amount(size: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TB"


_LONG_ENOUGH = 0.25  # seconds


def seconds_a_weight(chunk: Chunk) -> float:
    """Seconds for each unit of `weight`, from the first fraction of a second of the chunk's first runs."""
    stop = threading.Event()
    seen: list[tuple[float, float]] = []

    def look(share: float) -> None:
        now = time.perf_counter()
        seen.append((now, share))
        if now - seen[0][0] > _LONG_ENOUGH:
            stop.set()

    runs = min(chunk.runs, LANES)
    started = time.perf_counter()
    try:
        done = simulate(
            chunk.policy,
            chunk.environment,
            runs,
            chunk.seed,
            workers=1,
            trajectories=chunk.drift,
            progress=look,
            stop=stop,
        )
        return done.seconds / weight(chunk._replace(runs=runs))
    except KeyboardInterrupt:
        if not stop.is_set() or len(seen) < 2:
            raise  # somebody else's Ctrl-C
        (first, before), (last, after) = seen[0], seen[-1]
        if after <= before:
            return (last - started) / weight(chunk._replace(runs=runs))
        return (last - first) / (after - before) / weight(chunk._replace(runs=runs))
