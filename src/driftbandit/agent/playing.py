"""A player in the interpreter or as machine code. Not a part of `player`, which the compiled one is built on."""

from typing import Any

from driftbandit.player import Player


def make_player(
    policy: Any,
    n_arms: int,
    key: int = 0,
    half_life: int | None = None,
    time: int = 0,
    compiled: bool = False,
    most: int | None = None,
) -> Player:
    """A player in the interpreter, or as machine code, which needs the `lab` extra; both choose the same arms. A state
    of more than `most` numbers is refused."""
    if not compiled:
        return Player(policy, n_arms, key, half_life, time, most)
    try:
        from driftbandit.lab.engine.compiled_player import CompiledPlayer
    except ImportError as error:
        raise ValueError(f"compiled=True needs {error.name}: pip install 'driftbandit[lab]' brings it.") from None
    return CompiledPlayer(policy, n_arms, key, half_life, time, most)
