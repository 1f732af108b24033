"""DriftAuto: which of two policies plays, and what each of them is given to learn.

While at most two values of rewards were seen, DriftTS plays, with 1 for the larger value and 0 for the smaller. From
the third value on DriftLinTS plays. It learns from the first reward on, but not after 1,000 rewards of two values; a
third value that comes later is the first reward of a new DriftLinTS. A first value counts as a success if it is above
0. If the second value shows that this was wrong, DriftTS begins anew with the second."""

from .draws import Round
from .drift_lin_ts import NaiveDriftLinTS
from .drift_ts import NaiveDriftTS

TRIAL = 1000


class NaiveDriftAuto:
    """DriftAuto, in the order of its description. The clocks of both policies count the rewards that they learned.

    Draws: those of the policy that plays."""

    def __init__(self, n_arms: int) -> None:
        self.n_arms = n_arms
        self.t = 0
        self.values: list[float] = []
        self.two, self.many = NaiveDriftTS(n_arms), NaiveDriftLinTS(n_arms)

    def choose(self, t: int, rng: Round) -> int:
        if len(self.values) < 3:
            return self.two.choose(self.two.t, rng)
        return self.many.choose(self.many.t, rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        if reward not in self.values and len(self.values) < 3:
            self.note(reward)
        if len(self.values) == 1:
            self.two.learn(self.two.t, arm, 1.0 if reward > 0.0 else 0.0)
        if len(self.values) == 2:
            self.two.learn(self.two.t, arm, 1.0 if reward == max(self.values) else 0.0)
        if len(self.values) == 3 or self.t < TRIAL:
            self.many.learn(self.many.t, arm, reward)
        self.t += 1

    def note(self, reward: float) -> None:
        """A value that was not seen before."""
        self.values.append(reward)
        if len(self.values) == 2:
            first = self.values[0]
            if (first > 0.0) != (first > reward):
                self.two = NaiveDriftTS(self.n_arms)
        if len(self.values) == 3 and self.t >= TRIAL:
            self.many = NaiveDriftLinTS(self.n_arms)
