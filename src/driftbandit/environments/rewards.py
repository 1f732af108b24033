"""Reward laws: how a reward is drawn once the mean is known. Every law has exactly the mean it is given."""

import math
from typing import Annotated, Any, NamedTuple

from driftbandit.parameters import checked, described, within
from driftbandit.primitives import where


@described(
    pays="[0, 1]",
    lockstep=True,
)
@checked
class Bernoulli(NamedTuple):
    """1 with probability `mean`, else 0."""

    def draw(self, mean: Any, rng: Any) -> Any:
        """A reward with this mean."""
        return where(rng.uniform(0) < mean, 1.0, 0.0)


@described(
    pays="the mean",
    lockstep=True,
)
@checked
class Constant(NamedTuple):
    """The mean itself: no noise, which makes tests and explanations exact."""

    def draw(self, mean: Any, rng: Any) -> Any:
        """A reward with this mean."""
        return mean + 0.0


@described(
    pays="any",
    lockstep=True,
)
@checked
class Gaussian(NamedTuple):
    """Normal around the mean. Rewards can lie outside [0, 1]: only policies that allow this should play here."""

    sd: Annotated[float, within("> 0")] = 0.1  # standard deviation

    def draw(self, mean: Any, rng: Any) -> Any:
        """A reward with this mean."""
        return mean + self.sd * rng.normal(0)


@described(
    pays="[0, 1]",
)
@checked
class BetaLaw(NamedTuple):
    """Beta distributed with the given mean; `concentration` is the sum of its two parameters, so larger means less
    noise."""

    concentration: Annotated[float, within("> 0")] = 10.0

    def draw(self, mean: Any, rng: Any) -> Any:
        """A reward with this mean; at 0 and 1 the law is a point."""
        if mean <= 0.0:
            return 0.0
        if mean >= 1.0:
            return 1.0
        return rng.beta(self.concentration * mean, self.concentration * (1.0 - mean), 0)


@described(
    pays="[0, 1]",
)
@checked
class TruncatedGaussian(NamedTuple):
    """Normal around the mean, kept inside the widest interval around the mean that fits into [0, 1].

    Cutting equally on both sides keeps the mean exactly where it was; cutting at 0 and 1 would move it."""

    sd: Annotated[float, within("> 0")] = 0.1  # standard deviation before cutting

    def draw(self, mean: Any, rng: Any) -> Any:
        """A reward with this mean, by rejection: from the normal if the interval is wide, from the uniform law if it is
        narrow."""
        half = min(mean, 1.0 - mean)
        if half <= 0.0:
            return mean + 0.0
        for attempt in range(1000):
            z, u = rng.spare(attempt)
            if half > self.sd:
                x = self.sd * z
                if abs(x) <= half:
                    return mean + x
            else:
                x = half * (2.0 * u - 1.0)
                if rng.uniform(attempt) < math.exp(-0.5 * (x / self.sd) * (x / self.sd)):
                    return mean + x
        return mean + 0.0


def checked_law(law: Any, low: float, high: float) -> Any:
    """The law, Bernoulli if none is given, after making sure that it can have means between `low` and `high`."""
    law = Bernoulli() if law is None else law
    if isinstance(law, type) or not hasattr(law, "draw"):
        raise ValueError(f"A reward law has a method draw(mean, rng), as Bernoulli() has; got {law!r:.60}.")
    if isinstance(law, Bernoulli | BetaLaw | TruncatedGaussian) and not (low >= 0.0 and high <= 1.0):
        raise ValueError(
            f"{type(law).__name__} rewards need means in [0, 1]; scale the means or give another law, such as "
            "Gaussian(sd=0.1)."
        )
    return law
