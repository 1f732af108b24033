"""What a policy, an environment and a world are: the methods that everything else relies on."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Policy(Protocol):
    """What to play. `t` counts the rewards learnt so far; `rng` holds the random numbers of this round
    (`driftbandit.draws`).

    `init` returns a `NamedTuple` of one-dimensional NumPy arrays. `choose` may write only scratch into it, so that
    asking twice changes nothing; every lasting change is made by `learn`.

    A reward may come late, out of order or never, so `learn` reads nothing that `choose` left behind. A policy whose
    learning needs chance declares one parameter more, `learn(self, state, t, arm, reward, rng)`, and is given the
    numbers of round t, the clock of rewards learnt. Where every choice is followed by its reward they are the numbers
    its `choose` had, so what both need (a leader drawn among equals) is worked out twice to the same end; a number that
    learning alone uses comes from a slot that `choose` leaves alone.

    A policy that divides a reward by the probability of its arm has two methods more. `chance_of(self, state, t, arm,
    rng)` is the probability with which `choose`, given the same, plays the arm; whoever hands in rewards late keeps it
    with the decision. `learn_late` is `learn` with one parameter more at its end, that probability: divided by the
    present one a late reward would be biased, and without bound if the arm has sunk since. A reward that comes at once
    is learnt to the same bits either way."""

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

    def realise(self, key: int) -> "World":
        """The world of one run, with every random choice made from the stream `key`; itself if nothing is random."""
        ...


@runtime_checkable
class World(Protocol):
    """One run's world, with nothing left to chance but the rewards: what `Environment.realise` gives.

    `mean`, `best` and `pull` are compiled into the simulator's loop, where `arm` may be a row with one arm per run; the
    drift metrics and the theory also ask for whole tables (`means`)."""

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        ...

    @property
    def horizon(self) -> int:
        """The number of rounds."""
        ...

    def mean(self, t: int, arm: Any) -> Any:
        """The mean reward of an arm in round t."""
        ...

    def best(self, t: int) -> Any:
        """The largest mean in round t."""
        ...

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        """The reward of an arm in round t, drawn with the numbers of that round."""
        ...

    def means(self, start: int, stop: int) -> Any:
        """Rows start .. stop - 1 of the table of means, one column per arm."""
        ...
