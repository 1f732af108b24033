"""How fast to forget, said the way people think of it, with the formula that was used.

>>> print(Forgetting.tuned(horizon=100_000, phases=10))
gamma = 1 - sqrt(phases / horizon) = 1 - sqrt(10 / 100000) = 0.99
>>> print(Forgetting.half_life(69.0))
gamma = 2 ** (-1 / rounds) = 2 ** (-1 / 69) = 0.990005
"""

import math
import warnings
from typing import NamedTuple

import numpy as np

from driftbandit.parameters import Domain, within

DISCOUNT: Domain = within(
    "(0, 1]", "tuned(horizon, phases) gives the theory's value, half_life(rounds) one to think in."
)
_THEORY_MIN = 1.0 - 1.0 / math.e  # below this no theorem of the paper applies


class Forgetting(NamedTuple):
    """A discount with the rule it came from."""

    gamma: float
    rule: str
    numbers: str

    def __str__(self) -> str:
        return f"gamma = {self.rule} = {self.numbers} = {self.gamma:.6g}"

    @property
    def rounds(self) -> float:
        """The effective memory 1 / (1 - gamma), in rounds."""
        return math.inf if self.gamma == 1.0 else 1.0 / (1.0 - self.gamma)

    @classmethod
    def half_life(cls, rounds: float) -> "Forgetting":
        """Evidence loses half its weight every `rounds` rounds."""
        number = isinstance(rounds, int | float | np.integer | np.floating)
        _need(
            number and rounds > 0 and math.isfinite(rounds),
            f"A half-life needs a positive number of rounds; got {rounds!r}.",
        )
        return cls(2.0 ** (-1.0 / rounds), "2 ** (-1 / rounds)", f"2 ** (-1 / {rounds:g})")

    @classmethod
    def tuned(cls, horizon: int, phases: int) -> "Forgetting":
        """Corollary 1 of the paper, for `phases` stationary phases (changes + 1) in `horizon` rounds."""
        _counts(horizon, phases)
        return cls(
            _kept(1.0 - math.sqrt(phases / horizon)), "1 - sqrt(phases / horizon)", f"1 - sqrt({phases} / {horizon})"
        )

    @classmethod
    def tuned_smooth(cls, horizon: int, beta: float) -> "Forgetting":
        """Corollary 2 of the paper, for drift in which the arms are close in at most about horizon**beta rounds."""
        _counts(horizon, 1)
        _need(
            isinstance(beta, int | float | np.floating) and 0.0 <= beta < 1.0,
            f"beta needs to be in [0, 1); got {beta!r}. `driftbandit theory` shows which values an environment admits.",
        )
        return cls(
            _kept(1.0 - horizon ** (beta - 1.0)), "1 - horizon ** (beta - 1)", f"1 - {horizon} ** ({beta:g} - 1)"
        )

    @classmethod
    def text_smooth(cls, horizon: int) -> "Forgetting":
        """What the paper's experiments use in smooth worlds, in text and code."""
        _counts(horizon, 1)
        return cls(_kept(1.0 - 10.0 / math.sqrt(horizon)), "1 - 10 / sqrt(horizon)", f"1 - 10 / sqrt({horizon})")

    @classmethod
    def code(cls, horizon: int, phases: int) -> "Forgetting":
        """What the authors' code uses in abrupt worlds: a memory ten times shorter than the text says."""
        _counts(horizon, phases)
        gamma = 1.0 - 10.0 * math.sqrt((phases - 1) / horizon)
        return cls(_kept(gamma), "1 - 10 sqrt((phases - 1) / horizon)", f"1 - 10 sqrt(({phases} - 1) / {horizon})")


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _counts(horizon: int, phases: int) -> None:
    numbers = all(isinstance(value, int | float | np.integer | np.floating) for value in (horizon, phases))
    _need(
        numbers and math.isfinite(horizon) and math.isfinite(phases) and horizon >= 1 and phases >= 1,
        f"Tuning needs horizon >= 1 and phases >= 1; got horizon={horizon!r}, phases={phases!r}.",
    )
    _need(phases <= horizon, f"Tuning needs phases <= horizon; got {phases} phases in {horizon} rounds.")


def _kept(gamma: float) -> float:
    """The formulas leave the theory's domain when the horizon is short for the number of phases; we then take its edge,
    and say so."""
    if gamma < _THEORY_MIN:
        warnings.warn(
            f"The formula gives gamma = {gamma:.4g}, below 1 - 1/e where the theory ends; using {_THEORY_MIN:.4g}. "
            "The horizon is short for so many phases.",
            stacklevel=4,
        )
        return _THEORY_MIN
    return gamma
