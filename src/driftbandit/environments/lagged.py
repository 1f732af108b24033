"""The one-round lag of the authors' simulator, as an environment: to measure its effect on regret."""

from typing import Any, NamedTuple

from driftbandit.core.parameters import checked
from driftbandit.core.protocols import Environment
from driftbandit.environments.phased import means_of_base


@means_of_base
class LaggedEnvironment(NamedTuple):
    """A realised environment whose rewards are one round old.

    It has no lockstep, which compares the environments of different runs field by field; `base` is one field."""

    n_arms: int
    horizon: int
    base: Any

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        """The reward of an arm in round t, drawn with the means of the round before."""
        return self.base.pull(max(t - 1, 0), arm, rng)


@checked
class Lagged(NamedTuple):
    """Another environment with rewards that are one round late: round t pays by the means of round t - 1, and regret
    counts the means of round t.

    This is how the authors' simulator works: it moves to the new means only after a round was played under the old
    ones. Use it to compare with numbers from their code; a fair experiment uses `base` itself. Their last round is also
    scored by the means of the one before, which this leaves out: it is a single round. It has no short name, so that
    it is not used in a command by accident."""

    base: Any  # the environment, e.g. Abrupt()

    def validate(self) -> None:
        if isinstance(self.base, type) or not isinstance(self.base, Environment):
            raise ValueError(f"Lagged needs an environment such as Abrupt(); got {self.base!r:.60}.")

    @property
    def n_arms(self) -> int:
        return self.base.n_arms  # type: ignore[no-any-return]

    @property
    def horizon(self) -> int:
        return self.base.horizon  # type: ignore[no-any-return]

    def realise(self, key: int) -> LaggedEnvironment:
        return LaggedEnvironment(self.n_arms, self.horizon, self.base.realise(key))
