"""Trying arms on purpose, whatever the policy thinks of them: the one definition that everything live decides by.

A published policy may leave an arm unplayed for ever ("An arm never tried" in docs/reference/errata.md). Two rules
prevent that, for any policy:

* `first`: each available arm once, in random order, before any is left to the policy;
* `floor`: with that probability an arm drawn evenly from the available ones. Additive, so that an arm's chance is
  floor / K + (1 - floor) * (the policy's): clipping small chances and dividing by their sum would be biased.

Both take their numbers from slots of their own, so that switching them on changes no other draw."""

from collections.abc import Sequence
from typing import Any

import numpy as np

FLOOR, EVEN = (1 << 38) + 1, (1 << 38) + 2  # slots of a decision's numbers: is the arm drawn evenly, and which one


# The smallest floor, of those tried, with which an arm that becomes best while nobody looks was found in 100 of 100
# runs (docs/how-to/safety.md); a larger one costs more.
DEFAULT_FLOOR = 0.005


def even(rng: Any, slots: Sequence[int]) -> int:
    """One of the slots, each as likely as any other."""
    return slots[int(rng.uniform(EVEN) * len(slots))]


def explored(rng: Any, floor: float, untried: Sequence[int], allowed: Sequence[int]) -> int | None:
    """The slot that is played whatever the policy would say, or None if the policy is to be asked.

    `untried` are those of the `allowed` slots that come first; give none to do without that rule."""
    if untried:
        return even(rng, untried)
    if floor > 0.0 and rng.uniform(FLOOR) < floor:
        return even(rng, allowed)
    return None


def mixed(chances: np.ndarray, floor: float) -> np.ndarray:
    """The chances of the allowed arms under the floor, from those the policy alone would have.

    >>> mixed(np.array([1.0, 0.0]), 0.02).tolist()
    [0.99, 0.01]
    """
    return floor / len(chances) + (1.0 - floor) * chances
