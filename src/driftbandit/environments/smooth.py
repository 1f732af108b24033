"""An environment that drifts: the best arm wanders to and fro along a line of arms (Figures 5, 6 and 7b)."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import checked, described, within
from driftbandit.core.primitives import as_number
from driftbandit.environments.rewards import Bernoulli, check_law


@described(short="smooth", lockstep=True)
@checked
class Smooth(NamedTuple):
    """Means that fall off linearly from a point moving as a sine of speed `sigma` along the arms.

    mean of arm i in 1..K = (K-1)/K - |w(t) - i|/K with w(t) = 1 + (K-1)(1 + sin(sigma t))/2: between 0 and (K-1)/K,
    changing by less than sigma per round. `start` is the paper's convention for the first round (1 in its text, 0 in
    its code); `rescaled` multiplies by K/(2(K-1)), so that the best mean reaches 0.5 (Figure 7b). Means are computed,
    never stored: ten million rounds need no table."""

    n_arms: Annotated[int, within(">= 2")] = 5
    horizon: Annotated[int, within(">= 1")] = 10_000
    sigma: Annotated[float, within("> 0")] = 0.001
    start: Annotated[int, within("[0, 1]")] = 1
    rescaled: bool = False
    law: Any = Bernoulli()

    def validate(self) -> None:
        check_law(self.law, 0.0, 1.0)

    def centre(self, t: int) -> float:
        """Where the best mean lies on the line of arms 1..K in round t."""
        return 1.0 + (self.n_arms - 1) * (1.0 + math.sin(self.sigma * (t + self.start))) / 2.0

    def scale(self) -> float:
        """What all means are multiplied by."""
        return self.n_arms / (2.0 * (self.n_arms - 1)) if self.rescaled else 1.0

    def mean(self, t: int, arm: Any) -> Any:
        k = self.n_arms
        return self.scale() * ((k - 1.0) / k - abs((self.centre(t) - 1.0) - as_number(arm)) / k)

    def best(self, t: int) -> float:
        place = self.centre(t) - 1.0
        k = self.n_arms
        nearest = math.floor(place + 0.5)
        return self.scale() * ((k - 1.0) / k - abs(place - nearest) / k)

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        return self.law.draw(self.mean(t, arm), rng)

    def best_arm(self, t: int) -> int:
        return min(math.ceil(self.centre(t) - 1.5), self.n_arms - 1)

    def means(self, start: int, stop: int) -> np.ndarray:
        place = np.array([self.centre(t) for t in range(start, stop)])[:, None] - 1.0
        k = self.n_arms
        return np.asarray(self.scale() * ((k - 1.0) / k - np.abs(place - np.arange(k)) / k))

    def realise(self, key: int) -> "Smooth":
        return self
