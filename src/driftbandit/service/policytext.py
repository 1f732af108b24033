"""A policy named over HTTP: one of the library's, of a size that the service can hold."""

from typing import Any

from driftbandit.live.settings import MOST_NUMBERS, checked_policy
from driftbandit.state import started


def library_policy(text: str, n_arms: int) -> Any:
    """The policy that a text names, if it can decide live and its state fits."""
    from driftbandit.text.parse import parse_policy

    policy = checked_policy(parse_policy(text))
    started(policy, n_arms, MOST_NUMBERS)
    return policy
