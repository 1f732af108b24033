"""What a policy believes, told of the arms by name and of rewards as they were given."""

from collections.abc import Iterable
from typing import Any

from driftbandit.player import Player


def can_explain(policy: Any) -> bool:
    """Whether this policy can say what it believes."""
    return hasattr(policy, "explain")


def explained(
    player: Player, names: list[Any], reward_range: tuple[float, float], retired: Iterable[int] = (), at: int = 0
) -> Any:
    """The policy's own account; where it tells what it expects from each arm, in the caller's rewards and without the
    arms that are retired."""
    gone = set(retired)
    told = [(name, "retired", slot) if slot in gone else name for slot, name in enumerate(names)]
    found = player.explain(told, at)
    if not hasattr(found, "in_rewards"):
        return found
    return found.in_rewards(*reward_range, [name for slot, name in enumerate(told) if slot not in gone])
