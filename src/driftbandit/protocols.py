"""What a policy and an environment are: the methods that everything else relies on."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Policy(Protocol):
    """What to play. `t` counts the rewards learnt so far; `rng` holds the random numbers of this round
    (`driftbandit.draws`).

    `init` returns a `NamedTuple` of one-dimensional NumPy arrays. `choose` may write only scratch into it, so that
    asking twice changes nothing; every lasting change is made by `learn`."""

    def init(self, n_arms: int) -> Any:
        """The state before the first round."""
        ...

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        """The arm to play in round t."""
        ...

    def learn(self, state: Any, t: int, arm: Any, reward: Any) -> None:
        """Write into the state what the reward of `arm` taught in round t."""
        ...


@runtime_checkable
class Environment(Protocol):
    """What the world does: mean rewards over time and the law rewards are drawn from."""

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        ...

    @property
    def horizon(self) -> int:
        """The number of rounds."""
        ...

    def realise(self, key: int) -> Any:
        """The world of one run, with every random choice made from the stream `key`; itself if nothing is random."""
        ...
