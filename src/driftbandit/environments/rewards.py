"""Reward laws: how a reward is drawn once the mean is known. Every law has exactly the mean it is given."""

import math
from typing import Annotated, Any, NamedTuple

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import where


@described(pays="[0, 1]", lockstep=True)
@checked
class Bernoulli(NamedTuple):
    """1 with probability `mean`, else 0."""

    def draw(self, mean: Any, rng: Any) -> Any:
        return where(rng.uniform(0) < mean, 1.0, 0.0)


@described(pays="the mean", lockstep=True)
@checked
class Constant(NamedTuple):
    """The mean itself: no noise, which makes tests and explanations exact."""

    def draw(self, mean: Any, rng: Any) -> Any:
        return mean + 0.0


@described(pays="any", lockstep=True)
@checked
class Gaussian(NamedTuple):
    """Normal around the mean. Rewards can lie outside [0, 1]: only policies that allow this should play here."""

    sd: Annotated[float, within("> 0")] = 0.1  # standard deviation

    def draw(self, mean: Any, rng: Any) -> Any:
        return mean + self.sd * rng.normal(0)


@described(pays="[0, 1]")
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


@described(pays="[0, 1]")
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


@described(pays="any")
@checked
class LogNormal(NamedTuple):
    """The mean times a log-normal factor: amounts for a positive mean, and for a negative one costs such as waiting
    times, of which smaller ones are better. With a `share` below 1, the rest pays 0: how much is spent depends on the
    arm, how many buy does not."""

    sigma: Annotated[float, within("> 0")] = 1.0  # standard deviation of the factor's logarithm
    share: Annotated[float, within("(0, 1]")] = 1.0  # of rewards that are not 0

    def draw(self, mean: Any, rng: Any) -> Any:
        if rng.uniform(0) >= self.share:
            return 0.0
        return mean / self.share * math.exp(self.sigma * rng.normal(0) - 0.5 * self.sigma * self.sigma)


@described(pays="any")
@checked
class Purchases(NamedTuple):
    """Revenue: a share mean / spend buys, for a log-normal amount of mean `spend`; the others pay 0."""

    spend: Annotated[float, within("> 0")] = 1.0
    sigma: Annotated[float, within("> 0")] = 1.0  # standard deviation of the amount's logarithm

    def draw(self, mean: Any, rng: Any) -> Any:
        if rng.uniform(0) * self.spend >= mean:
            return 0.0
        return self.spend * math.exp(self.sigma * rng.normal(0) - 0.5 * self.sigma * self.sigma)


@described(pays="any")
@checked
class Poisson(NamedTuple):
    """Whole numbers: how often something happened."""

    def draw(self, mean: Any, rng: Any) -> Any:
        """A reward with this mean, 0 or more; by inversion, in parts of at most 500."""
        count = 0.0
        part = 0
        while mean > 0.0:
            rate = min(mean, 500.0)
            probability = math.exp(-rate)
            left = rng.uniform(part)
            n = 0.0
            while left >= probability and n < 2000.0:
                left -= probability
                n += 1.0
                probability *= rate / n
            count += n
            mean -= rate
            part += 1
        return count


@described(pays="any")
@checked
class Outliers(NamedTuple):
    """Normal around the mean, and now and then another `size` up or down, as a broken sensor or a double booking."""

    sd: Annotated[float, within("> 0")] = 0.1
    size: Annotated[float, within("> 0")] = 50.0
    share: Annotated[float, within("[0, 1]")] = 5e-4  # of rewards that are far off

    def draw(self, mean: Any, rng: Any) -> Any:
        u = rng.uniform(0)
        off = 0.0 if u >= self.share else self.size if u < 0.5 * self.share else -self.size
        return mean + self.sd * rng.normal(0) + off


def check_law(law: Any, low: float, high: float) -> Any:
    """The law, Bernoulli if none is given, after making sure that it can have means between `low` and `high`."""
    law = Bernoulli() if law is None else law
    if isinstance(law, type) or not hasattr(law, "draw"):
        raise ValueError(f"A reward law has a method draw(mean, rng), as Bernoulli() has; got {law!r:.60}.")
    if isinstance(law, Bernoulli | BetaLaw | TruncatedGaussian) and not (low >= 0.0 and high <= 1.0):
        raise ValueError(
            f"{type(law).__name__} rewards need means in [0, 1]; scale the means or give another law, such as "
            "Gaussian(sd=0.1)."
        )
    if isinstance(law, Purchases) and not 0.0 <= low <= high <= law.spend:
        raise ValueError(
            f"Purchases(spend={law.spend:g}) needs means from 0 to {law.spend:g}; got {low:g} to {high:g}."
        )
    if isinstance(law, Poisson) and not 0.0 <= low <= high <= 1e6:
        raise ValueError(f"Poisson needs means from 0 to 1,000,000; got {low:g} to {high:g}.")
    return law
