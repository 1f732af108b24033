"""The methods that policies and environments must have."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Policy(Protocol):
    """What to play. `t` counts the rewards learned so far; `rng` holds the random numbers of this round
    (`driftbandit.core.draws`).

    `init` returns a `NamedTuple` of one-dimensional NumPy arrays. `choose` may write only scratch into it, so that
    choosing twice changes nothing; every lasting change is made by `learn`.

    A reward may come late, out of order or never, so `learn` reads nothing that `choose` left behind. A policy that
    learns with random numbers declares one parameter more, `learn(self, state, t, arm, reward, rng)`, and is given the
    numbers of round t. Where every choice is followed by its reward they are the numbers its `choose` had. A number
    that only `learn` uses comes from a slot that `choose` does not use.

    A policy that divides a reward by the probability of its arm has two methods more. `arm_probability(self, state, t,
    arm, rng)` is the probability with which `choose`, given the same, plays the arm; callers that report rewards
    late keep it with the decision. `learn_late` is `learn` with that probability as one parameter more: divided by
    the present one, a late reward would be biased, and unbounded if the arm's probability has fallen since. A reward
    that comes at once is learned to the same bits either way.

    A contextual policy uses features, numbers that describe each round or each arm in each round. It has
    `init(n_arms, n_features=0, joint=False)`, `choose_in(state, t, rng, features)` and `learn_in(state, t, arm, reward,
    features)` besides. In the disjoint form a round has one context of `n_features` numbers, given to both. In the
    joint form every arm has features: `choose_in` gets those of all arms, one arm after the other, and `learn_in` those
    of the arm played. A policy without the joint form leaves the parameter `joint` out."""

    def init(self, n_arms: int) -> Any: ...

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        """The arm to play in round t."""
        ...

    def learn(self, state: Any, t: int, arm: Any, reward: Any) -> None:
        """Update the state with the reward of `arm` in round t."""
        ...


@runtime_checkable
class Environment(Protocol):
    """Mean rewards over time and the law rewards are drawn from."""

    @property
    def n_arms(self) -> int: ...

    @property
    def horizon(self) -> int: ...

    def realise(self, key: int) -> "Realisation":
        """The environment of one run, with every random choice made from the stream `key`; itself if nothing is
        random."""
        ...


@runtime_checkable
class Realisation(Protocol):
    """One run's environment, where only the rewards are still random: the result of `Environment.realise`.

    `mean`, `best` and `pull` are compiled into the simulator's loop, where `arm` may be a row with one arm per run.
    The drift metrics and the theory also use whole tables (`means`).

    A contextual environment has `n_features` of 1 or more and `joint`, and so has its realisation, with
    `features(t, rng, out)`, which writes the features of round t, and `mean_in(t, arm, features)`, `best_in(t,
    features)` and `pull_in(t, arm, features, rng)` instead of the methods below. Features are laid out as for a
    `Policy`, and come from a stream that depends on nothing but the run: all policies meet the same contexts, also
    those without features. There are no lanes and no table of means."""

    @property
    def n_arms(self) -> int: ...

    @property
    def horizon(self) -> int: ...

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
