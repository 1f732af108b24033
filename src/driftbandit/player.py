"""A policy at work: its state, its clock and its random numbers.

Everything that plays a policy outside the simulator's loop plays it here: a bandit in memory, the fold of a journal,
the audit, the policies that follow a log. What a policy does is then the same everywhere, bit for bit."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from driftbandit.beliefs import chance_of_largest
from driftbandit.draws import Stream, mix
from driftbandit.half_life import half_to_the, learn_by_time
from driftbandit.primitives import TIES, chance_of, learns_by_chance, stride, teach_late, weighs
from driftbandit.state import from_plain, grown, started, to_arrays, to_lists, to_plain
from driftbandit.validity import check_state

REDRAWS = 64  # times a policy that insists on an arm which may not be played is asked again
_SAMPLES = 1 << 45  # rounds whose numbers estimate probabilities, beyond every round in use


class Probabilities(dict[Any, float]):
    """Each arm's probability of being chosen now, with `error`: a bound for quadrature, two standard errors for
    sampling, 0 if exact."""

    error: float = 0.0


class Player:
    """A policy with what it has learned.

    Without a half-life, evidence fades with the number of rewards, as the policy defines it. With one (in microseconds)
    it fades with time: `decided` is when a reward's arm was chosen, and `at` the time at which one asks.

    `choose` and `probabilities` change nothing that lasts: they work on the state itself if the policy says which of
    its fields are scratch (`scratch`), and otherwise on a copy."""

    def __init__(
        self,
        policy: Any,
        n_arms: int,
        key: int = 0,
        half_life: int | None = None,
        time: int = 0,
        most: int | None = None,
    ) -> None:
        self.policy, self.n_arms, self.key, self.half_life = policy, n_arms, key, half_life
        self.learned = 0  # rewards: the policy's own clock
        self.time = time  # that the weights of the state refer to, with a half-life
        self.weighs = weighs(policy)  # whether a late reward needs the probability that its arm had
        self._coins = Stream(key) if learns_by_chance(type(policy)) else None  # random numbers for learning
        self._in_place = hasattr(policy, "scratch")
        self._hold(to_lists(started(policy, n_arms, most)))

    def rekey(self, key: int) -> None:
        """Take random numbers for learning from another stream."""
        self.key = key
        self._coins = None if self._coins is None else Stream(key)

    def _hold(self, state: Any) -> None:
        """Go on from this state of lists."""
        self.state = state
        self._view: Any = None
        self._viewed: tuple[int, int] | None = None

    def lists(self) -> Any:
        """The state as plain lists; to be read only."""
        return self.state

    def arrays(self, at: int = 0) -> Any:
        """A copy of the state as it stands at a time, as arrays."""
        return to_arrays(self._faded(at), self.policy.init(self.n_arms))

    # ---- choosing ----------------------------------------------------------------------------------------------------

    def choose(self, rng: Any, allowed: list[int] | None = None, at: int = 0) -> int:
        """The arm that the policy plays with these random numbers, among the allowed ones (None: all)."""
        view = self.view(at)
        arm = self._ask(view, rng)
        return arm if allowed is None or arm in allowed else self._keep_to(allowed, arm, view, rng)

    def view(self, at: int = 0) -> Any:
        """The state to choose from at a time; choosing may write into its scratch."""
        if self._in_place and self.half_life is None:
            return self.state
        stamp = self.learned, 0 if self.half_life is None else at
        if self._viewed != stamp:
            self._view, self._viewed = self._faded(at), stamp
        return self._view

    def _faded(self, at: int) -> Any:
        """A copy of the state as it stands at a time."""
        state = copy_lists(self.lists())
        if self.half_life is not None and at > self.time:
            self.policy.fade(state, half_to_the((at - self.time) / self.half_life))
        return state

    def _ask(self, view: Any, rng: Any) -> int:
        return int(self.policy.choose(view, self.learned, rng))

    def _keep_to(self, allowed: list[int], arm: int, view: Any, rng: Any) -> int:
        """The policy's choice among the allowed arms, where its own is not one of them.

        Where the choice is the arm of largest score, the largest among the allowed is taken: the same sample, fewer
        candidates. Where the policy drew the arm from probabilities, they are renormalised. Otherwise the policy is
        asked again with other random numbers. An arm is drawn uniformly where none of this finds one."""
        scores, chances = getattr(view, "scores", None), getattr(view, "chances", None)
        if scores is not None and scores[arm] >= max(scores):
            top = max(scores[slot] for slot in allowed)
            ties = [slot for slot in allowed if scores[slot] == top]
            if ties:
                return ties[int(rng.uniform(TIES) * len(ties))]
        if chances is not None:
            left = rng.uniform(TIES) * sum(chances[slot] for slot in allowed)
            for slot in allowed:
                left -= chances[slot]
                if left < 0.0:
                    return slot
        else:
            for attempt in range(REDRAWS):
                arm = self._ask(view, rng.again(attempt))
                if arm in allowed:
                    return arm
        return allowed[int(rng.uniform(TIES) * len(allowed))]

    def probability_of(self, slot: int, rng: Any, at: int = 0) -> float:
        """The probability with which a policy that `weighs` plays this arm, given the same numbers as `choose`."""
        found = float(chance_of(self.policy, self.view(at), self.learned, slot, rng))
        if not 0.0 <= found <= 1.000001:  # a policy of the user's
            raise ValueError(f"chance_of of {type(self.policy).__name__} must be a probability; it is {found!r}.")
        return found

    def probabilities(self, allowed: list[int], at: int = 0, draws: int = 2000) -> tuple[np.ndarray, float]:
        """The policy's probability of each allowed arm, and how far it may be off.

        Computed where they follow from the state (`exact_chances`), by quadrature where the policy has a belief to
        integrate, read off where it draws from probabilities, and otherwise estimated from `draws` choices, whose
        random numbers are fixed by the key: everyone who asks about the same state gets the same answer."""
        if len(allowed) == 1:
            return np.ones(1), 0.0
        found = self._computed(allowed, at)
        return found if found is not None else self._sampled(allowed, at, draws)

    def belief(self, at: int = 0) -> Any:
        """The policy's belief about the arms, if it has one."""
        make = getattr(self.policy, "belief", None)
        return None if make is None else make(self.arrays(at))

    def _computed(self, allowed: list[int], at: int) -> tuple[np.ndarray, float] | None:
        exactly = getattr(self.policy, "exact_chances", None)
        if exactly is not None:
            return np.asarray(exactly(self.arrays(at), self.learned, allowed)), 0.0
        belief = self.belief(at)
        if belief is None:
            return None
        if hasattr(belief, "chance_of_largest"):  # a mixture, which has its own way
            values, error = belief.chance_of_largest(allowed)
            return np.asarray(values), float(error)
        return chance_of_largest(type(belief)(*(np.asarray(field)[allowed] for field in belief)))

    def _sampled(self, allowed: list[int], at: int, draws: int) -> tuple[np.ndarray, float]:
        keys = np.array([stride(_SAMPLES + n) for n in range(draws)], np.uint64)
        stream = Stream.of(np.asarray(mix(np.uint64(self.key) + keys)))
        counts = np.zeros(self.n_arms)
        for n in range(draws):
            counts[self.choose(stream.at(n), allowed, at)] += 1
            chances = getattr(self.view(at), "chances", None)
            if chances is not None:  # drawn from probabilities, which the policy has just written down
                return renormalise(np.array([chances[slot] for slot in allowed], np.float64)), 0.0
        values = counts[allowed] / draws
        # An arm never seen in n draws may still have a probability of about 1/n: the last term keeps the error above 0.
        return values, float(2.0 * np.sqrt(values * (1.0 - values) / draws).max() + 2.0 / draws)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def learn(self, slot: int, reward: float, decided: int = 0, probability: float | None = None) -> None:
        """Learn the reward of an arm that was chosen at a time, with this probability where the policy `weighs`."""
        t, policy, coins = self.learned, self.policy, self._coins
        rng = None if coins is None else coins.at(t)
        if self.half_life is not None:
            value = reward if rng is None else policy.seen(reward, rng)
            self.time = learn_by_time(policy, self.state, self.time, self.half_life, slot, value, decided)
        elif probability is not None and self.weighs:
            teach_late(policy, self.state, t, slot, reward, rng, probability)
        elif rng is None:
            policy.learn(self.state, t, slot, reward)
        else:
            policy.learn(self.state, t, slot, reward, rng)
        self.learned = t + 1

    def learn_many(self, rewards: Iterable[tuple[int, float, int, float | None]]) -> None:
        """Learn several rewards: tuples of slot, reward, time of the decision, probability or None."""
        for slot, reward, decided, probability in rewards:
            self.learn(slot, reward, decided, probability)

    # ---- changing ----------------------------------------------------------------------------------------------------

    def add_arm(self) -> None:
        """One more arm, about which nothing is known."""
        state = grown(self.lists(), self.policy, self.n_arms, self.learned)
        self.n_arms += 1
        self._hold(state)

    def change_half_life(self, half_life: int | None, at: int) -> None:
        """Forget at another pace from a time on; what is known is first brought to that time."""
        state = copy_lists(self.lists())
        if self.half_life is not None and at > self.time:
            self.policy.fade(state, half_to_the((at - self.time) / self.half_life))
        if hasattr(self.policy, "settle"):
            self.policy.settle(state, self.learned, self.policy.gamma if self.half_life is None else 1.0)
        self.half_life, self.time = half_life, max(self.time, at)
        self._hold(state)

    def explain(self, names: list[Any], at: int = 0) -> Any:
        """What the policy believes, in its own terms."""
        if not hasattr(self.policy, "explain"):
            raise ValueError(f"{type(self.policy).__name__} cannot explain its choices; DriftTS can.")
        return self.policy.explain(self.arrays(at), names)

    # ---- snapshots ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """What was learned, as JSON can hold it. Scratch is left out, so that asking changes nothing here."""
        state = to_plain(self.lists())
        for name in getattr(self.policy, "scratch", ()):
            del state[name]
        return {"learned": self.learned, "time": self.time, "state": state}

    def load(self, data: Any) -> None:
        """Go on from what `dump` gave. A state that no sequence of plays could produce is refused by a ValueError."""
        like = self.policy.init(self.n_arms)
        plain, learned, time = data["state"], data["learned"], data["time"]
        if not isinstance(plain, dict):
            raise ValueError("the state is not an object.")
        for number, name in ((learned, "learned"), (time, "time")):
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 62:
                raise ValueError(f"{name} is a whole number of 0 or more.")
        fresh = to_plain(to_lists(like))
        scratch = {name: fresh[name] for name in getattr(self.policy, "scratch", ())}
        state = from_plain({**plain, **scratch}, like)
        check_state(self.policy, to_arrays(state, like), learned, like)
        self.learned, self.time = learned, time
        self._hold(state)


def copy_lists(state: Any) -> Any:
    """A copy of a state of lists."""
    copied = [copy_lists(field) if isinstance(field, tuple) else field.copy() for field in state]
    return tuple.__new__(type(state), copied)


def renormalise(values: np.ndarray) -> np.ndarray:
    """Probabilities that add up to 1 in proportion to these; uniform if these are all 0.

    >>> renormalise(np.array([0.0, 0.0])).tolist(), renormalise(np.array([0.1, 0.3])).round(6).tolist()
    ([0.5, 0.5], [0.25, 0.75])
    """
    whole = values.sum()
    return values / whole if whole > 0.0 else np.full(len(values), 1.0 / len(values))
