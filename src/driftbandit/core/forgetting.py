"""Discounts from a half-life, from the paper's formulas and from the authors' code."""

import math
import warnings
from typing import Any

import numpy as np

from driftbandit.core.parameters import Domain, within

DISCOUNT: Domain = within(
    "(0, 1]", "tuned(horizon, phases) gives the theory's value, half_life(rounds) one from a half-life."
)
_THEORY_MIN = 1.0 - 1.0 / math.e  # below this no theorem of the paper applies


def half_life_discount(rounds: float) -> float:
    """2 ** (-1 / rounds): evidence loses half its weight every `rounds` rounds.

    >>> round(half_life_discount(69.0), 6)
    0.990005
    """
    number = isinstance(rounds, int | float | np.integer | np.floating)
    if not (number and rounds > 0 and math.isfinite(rounds)):
        raise ValueError(f"A half-life needs a positive number of rounds; got {rounds!r}.")
    return float(2.0 ** (-1.0 / rounds))


def _half_life(cls: Any, rounds: float) -> Any:
    """The policy whose evidence loses half its weight in so many rounds."""
    return cls(half_life_discount(rounds))


HALF_LIFE = classmethod(_half_life)  # `half_life` of a policy whose first parameter is gamma


def tune_discount(horizon: int, phases: int) -> float:
    """Corollary 1 of the paper, for `phases` stationary phases (changes + 1): 1 - sqrt(phases / horizon)."""
    return _clip(1.0 - math.sqrt(phases / horizon))


def tune_smooth_discount(horizon: int, beta: float) -> float:
    """Corollary 2, for drift in which the arms are close in at most about horizon**beta rounds: 1 - horizon ** (beta -
    1)."""
    if not isinstance(beta, int | float) or not 0.0 <= beta < 1.0:
        raise ValueError(
            f"beta needs to be in [0, 1); got {beta!r}. `driftbandit theory` shows which values an environment admits."
        )
    return _clip(1.0 - horizon ** (beta - 1.0))


def text_smooth_discount(horizon: int) -> float:
    """The paper's experiments in smooth environments, in text and code: 1 - 10 / sqrt(horizon)."""
    return _clip(1.0 - 10.0 / math.sqrt(horizon))


def code_discount(horizon: int, phases: int) -> float:
    """The authors' code in abrupt environments, 1 - 10 sqrt((phases - 1) / horizon): a memory ten times shorter than in
    the text."""
    return _clip(1.0 - 10.0 * math.sqrt((phases - 1) / horizon))


def _clip(gamma: float) -> float:
    """The formulas leave the theory's domain when the horizon is short for the number of phases."""
    if gamma < _THEORY_MIN:
        warnings.warn(
            f"The formula gives gamma = {gamma:.4g}, below 1 - 1/e where the theory ends; using {_THEORY_MIN:.4g}. "
            "The horizon is short for so many phases.",
            stacklevel=4,
        )
        return _THEORY_MIN
    return gamma
