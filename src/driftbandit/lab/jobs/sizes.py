"""Can this be played at all? Sizes that no memory holds, and times nobody lives to see, are refused before any work."""

from typing import Any

from driftbandit.draws import WORLD, stream_key
from driftbandit.lab.engine.arguments import with_world
from driftbandit.lab.engine.runs import LANES
from driftbandit.state import memory

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
