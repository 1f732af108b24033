"""Which rewards a policy can handle and what a world pays, compared before anything is played.

A Beta posterior of a reward of -3 is not a posterior, yet the arithmetic goes on for a while and prints a regret. So
every policy says in its description which rewards it can compute with: `rewards="[0, 1]"`, or `"any"`. (That is about
arithmetic: for which rewards a policy's promises hold, its documentation says.) Reward laws say what they pay."""

from typing import Any

import numpy as np

UNIT, ANY = "[0, 1]", "any"


def bears(policy: Any) -> str:
    """The rewards a policy can compute with; a wrapper's are those of what it wraps. A class that says nothing is the
    user's own and taken to bear any."""
    said = getattr(policy, "rewards", None)
    if said is None and hasattr(policy, "base"):
        return bears(policy.base)
    return ANY if said is None else str(said)


def pays(world: Any) -> str | None:
    """What a world pays: "[0, 1]", "any", or None if it does not say, as a user's own need not."""
    said = getattr(world, "pays", None)
    if said is not None:
        return str(said)
    if hasattr(world, "law"):
        paid = getattr(world.law, "pays", None)
        return _means(world) if paid == "the mean" else paid
    return pays(world.base) if hasattr(world, "base") else None


def _means(world: Any) -> str:
    """What a world without noise pays: its means."""
    table = getattr(world, "table", None)
    inside = table is None or bool(((np.asarray(table) >= 0.0) & (np.asarray(table) <= 1.0)).all())
    return UNIT if inside else ANY


def refused_rewards(policy: Any, why: str, cure: str) -> str:
    """The sentence by which rewards are refused that a policy cannot bear."""
    return f"{type(policy).__name__} can bear rewards in [0, 1] only, and {why} lets others in; {cure}."


def check_rewards(policy: Any, world: Any) -> None:
    """Refuse to play a policy in a world that pays what it cannot handle."""
    if bears(policy) == UNIT and pays(world) == ANY:
        law = getattr(world, "law", None) or world
        raise ValueError(
            f"{type(policy).__name__} can bear rewards in [0, 1] only, and {law!r:.60} pays others; take a law such as "
            "TruncatedGaussian(sd=0.1), or a policy for any rewards such as DiscountedTS()."
        )
