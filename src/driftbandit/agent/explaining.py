"""What a policy believes, told of the arms by name and of rewards as they were given."""

from collections.abc import Iterable
from typing import Any

from driftbandit.state import to_arrays


def can_explain(policy: Any) -> bool:
    """Whether this policy can say what it believes."""
    return hasattr(policy, "explain")


def explained(
    policy: Any, state: Any, names: list[Any], reward_range: tuple[float, float], retired: Iterable[int] = ()
) -> Any:
    """The policy's own account; where it tells what it expects from each arm, in the caller's rewards and without the
    arms that are retired."""
    if not can_explain(policy):
        raise ValueError(f"{type(policy).__name__} cannot explain itself; DriftTS can.")
    gone = set(retired)
    told = [(name, "retired", slot) if slot in gone else name for slot, name in enumerate(names)]
    found = policy.explain(to_arrays(state, policy.init(len(names))), told)
    if not hasattr(found, "in_rewards"):
        return found
    return found.in_rewards(*reward_range, [name for slot, name in enumerate(told) if slot not in gone])
