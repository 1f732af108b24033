"""A policy at work: its state, its clock and its random numbers.

Everything that plays a policy outside the simulator's loop plays it here: a bandit in memory, the fold of a journal,
the audit, the policies that follow a log. What a policy does is then the same everywhere, bit for bit."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core import primitives
from driftbandit.core import state as states
from driftbandit.core.beliefs import largest_probabilities
from driftbandit.core.draws import Stream, mix
from driftbandit.core.validity import check_state
from driftbandit.spec.half_life import half_to_the, learn_by_time

JOINT = 2  # arms of the joint form in a snapshot, and the fewest that a policy is given
REDRAWS = 64  # how often a policy chooses again after an arm that is not allowed
_SAMPLES = 1 << 45  # rounds whose numbers estimate probabilities, beyond every round in use


class Probabilities(dict[Any, float]):
    """Each arm's probability of being chosen now, with `error`: a bound for quadrature, two standard errors for
    sampling, 0 if exact."""

    error: float = 0.0


class Player:
    """A policy with its state.

    Without a half-life, evidence fades with the number of rewards, as the policy defines it. With one (in microseconds)
    it fades with time: `decided` is when a reward's arm was chosen, and `at` the time of the question.

    With `n_features`, the policy is contextual: `choose`, `learn` and `probabilities` need `features`, as described in
    `core.protocols.Policy`; `learn` gets those with which the arm was chosen. In the joint form `resize` sets the
    number of arms of the next choices.

    `choose` and `probabilities` leave the state unchanged. They work on a copy of the state, or on the state
    itself if the policy lists the fields that choosing may overwrite (`scratch`)."""

    def __init__(
        self, policy: Any, n_arms: int, key: int = 0, half_life: int | None = None, time: int = 0,
        most: int | None = None, n_features: int = 0, joint: bool = False,
    ) -> None:  # fmt: skip
        self.n_features, self.joint = n_features, joint
        if n_features and not hasattr(policy, "choose_in" if half_life is None else "take_in"):
            why = "" if half_life is None else " with a half-life"
            raise ValueError(f"{type(policy).__name__} cannot use features{why}.")
        self.policy, self.n_arms, self.key, self.half_life = policy, n_arms, key, half_life
        self.learned = 0  # rewards: the policy's own clock
        self.time = time  # that the weights of the state refer to, with a half-life
        # Whether a late reward needs the probability that its arm had.
        self.uses_probability = primitives.uses_probability(policy)
        coins = primitives.learns_with_random_numbers(type(policy))
        self._coins = Stream(key) if coins else None  # random numbers for learning
        self._in_place = hasattr(policy, "scratch")
        self._scratches: dict[int, list[tuple[int, Any]]] = {}  # by the number of arms: places and fields of a state
        self._hold(states.to_lists(states.start_state(policy, n_arms, most, n_features, joint)))

    def rekey(self, key: int) -> None:
        """Take random numbers for learning from another stream."""
        self.key = key
        self._coins = None if self._coins is None else Stream(key)

    def _hold(self, state: Any) -> None:
        """Go on from this state of lists."""
        self.state = state
        self._view: Any = None
        self._viewed: tuple[int, int] | None = None

    def first_state(self) -> Any:
        """The state before the first reward."""
        return states.init_state(self.policy, self.n_arms, self.n_features, self.joint)

    def lists(self) -> Any:
        """The state as plain lists; to be read only."""
        return self.state

    def arrays(self, at: int = 0) -> Any:
        """A copy of the state as it stands at a time, as arrays."""
        return states.to_arrays(self.faded(at), self.first_state())

    # ---- choosing ----------------------------------------------------------------------------------------------------

    def choose(self, rng: Any, allowed: list[int] | None = None, at: int = 0, features: Any = None) -> int:
        """The arm that the policy plays with these random numbers, among the allowed ones (None: all)."""
        view = self.state if self._in_place and self.half_life is None else self.view(at)
        if features is None and not self.n_features:
            arm = int(self.policy.choose(view, self.learned, rng))
        else:
            features = self.check_features(features, self.n_arms)
            arm = int(self.policy.choose_in(view, self.learned, rng, features))
        return arm if allowed is None or arm in allowed else self._keep_to(allowed, arm, view, rng, features)

    def resize(self, n_arms: int) -> None:
        """Choose among so many arms from now on, at least two, in the joint form. What is learned does not depend on
        their number; only scratch does."""
        if n_arms == self.n_arms:
            return
        self.n_arms = n_arms
        if n_arms not in self._scratches:
            self._scratches[n_arms] = list(_find_resized(self.state, self.first_state()))
        fields = list(self.state)
        for place, field in self._scratches[n_arms]:
            fields[place] = field
        self._replace(tuple.__new__(type(self.state), fields))

    def _replace(self, state: Any) -> None:
        """Go on from the same state with other scratch."""
        self._hold(state)

    def check_features(self, features: Any, arms: int = 1) -> Any:
        """The features as a list of floats: in the joint form of this many arms. Others are refused."""
        needed = self.n_features * (arms if self.joint else 1)
        try:
            found = [] if features is None else list(map(float, features))
        except (TypeError, ValueError):
            found = [math.nan]
        if len(found) != needed or not all(map(math.isfinite, found)):
            raise ValueError(f"Expected {needed} features, each a finite number; got {features!r:.60}.")
        return found

    def view(self, at: int = 0) -> Any:
        """The state to choose from at a time; choosing may write into its scratch."""
        if self._in_place and self.half_life is None:
            return self.state
        stamp = self.learned, 0 if self.half_life is None else at
        if self._viewed != stamp:
            self._view, self._viewed = self.faded(at), stamp
        return self._view

    def faded(self, at: int) -> Any:
        """A copy of the state as it stands at a time, as lists."""
        state = copy_lists(self.lists())
        if self.half_life is not None and at > self.time:
            self.policy.fade(state, half_to_the((at - self.time) / self.half_life))
        return state

    def _ask(self, view: Any, rng: Any, features: Any = None) -> int:
        if features is None:
            return int(self.policy.choose(view, self.learned, rng))
        return int(self.policy.choose_in(view, self.learned, rng, features))

    def _keep_to(self, allowed: list[int], arm: int, view: Any, rng: Any, features: Any = None) -> int:
        """The policy's choice among the allowed arms, where its own is not one of them.

        Where the policy drew the arm from probabilities, they are renormalised; otherwise see `choose_among`."""
        scores, probabilities = getattr(view, "scores", ()), getattr(view, "probabilities", None)
        if probabilities is not None and (not len(scores) or scores[arm] < max(scores)):
            left = rng.uniform(primitives.AMONG) * sum(probabilities[slot] for slot in allowed)
            for slot in allowed:
                left -= probabilities[slot]
                if left < 0.0:
                    return slot
            return allowed[int(rng.uniform(primitives.AMONG) * len(allowed))]
        return int(choose_among(_Again(self, features), view, self.learned, rng, arm, scores, allowed))

    def probability_of(self, slot: int, rng: Any, at: int = 0) -> float:
        """The probability with which the policy plays this arm, given the same numbers as `choose`."""
        found = float(primitives.arm_probability(self.policy, self.view(at), self.learned, slot, rng))
        if not 0.0 <= found <= 1.000001:  # a policy of the user's
            raise ValueError(
                f"primitives.arm_probability of {type(self.policy).__name__} must be a probability; it is {found!r}."
            )
        return found

    def probabilities(
        self, allowed: list[int], at: int = 0, draws: int = 2000, features: Any = None
    ) -> tuple[np.ndarray, float]:
        """The policy's probability of each allowed arm, and how far it may be off.

        Computed by quadrature where the policy has a belief, and read off where it draws from probabilities. Otherwise,
        or with features, estimated from `draws` choices. Their random numbers are fixed by the key: the same state
        always gives the same answer."""
        if len(allowed) == 1:
            return np.ones(1), 0.0
        belief = None if self.n_features else self.belief(at)
        if belief is None:
            return self._sample_probabilities(allowed, at, draws, features)
        if hasattr(belief, "largest_probabilities"):  # a mixture, which has its own way
            values, error = belief.largest_probabilities(allowed)
            return np.asarray(values), float(error)
        return largest_probabilities(type(belief)(*(np.asarray(field)[allowed] for field in belief)))

    def belief(self, at: int = 0) -> Any:
        """The policy's belief about the arms, if it has one."""
        make = getattr(self.policy, "belief", None)
        return None if make is None else make(self.arrays(at))

    def _sample_probabilities(
        self, allowed: list[int], at: int, draws: int, features: Any = None
    ) -> tuple[np.ndarray, float]:
        keys = np.array([primitives.stride(_SAMPLES + n) for n in range(draws)], np.uint64)
        stream = Stream.of(np.asarray(mix(np.uint64(self.key) + keys)))
        counts = np.zeros(self.n_arms)
        for n in range(draws):
            counts[self.choose(stream.at(n), allowed, at, features)] += 1
            probabilities = getattr(self.view(at), "probabilities", None)
            if probabilities is not None:  # drawn from probabilities, which the policy has just written down
                weights = np.array([probabilities[slot] for slot in allowed], np.float64)
                total = weights.sum()
                return weights / total if total > 0.0 else np.full(len(allowed), 1.0 / len(allowed)), 0.0
        values = counts[allowed] / draws  # an arm never seen in n draws may have a probability of about 1/n
        return values, float(2.0 * np.sqrt(values * (1.0 - values) / draws).max() + 2.0 / draws)

    # ---- learning ----------------------------------------------------------------------------------------------------

    def learn(
        self, slot: int, reward: float, decided: int = 0, probability: float | None = None, features: Any = None
    ) -> None:
        """Learn the reward of an arm that was chosen at a time, with this probability where the policy uses it."""
        t, policy, coins = self.learned, self.policy, self._coins
        rng = None if coins is None else coins.at(t)
        if self.n_features or features is not None:
            features = self.check_features(features)
        if self.half_life is not None:
            value = reward if rng is None or features is not None else policy.seen(reward, rng)
            self.time = learn_by_time(policy, self.state, self.time, self.half_life, slot, value, decided, features)
        elif features is not None:
            policy.learn_in(self.state, t, slot, reward, features)
        elif probability is not None and self.uses_probability:
            primitives.learn_late_reward(policy, self.state, t, slot, reward, rng, probability)
        elif rng is None:
            policy.learn(self.state, t, slot, reward)
        else:
            policy.learn(self.state, t, slot, reward, rng)
        self.learned = t + 1

    def learn_many(self, rewards: Iterable[tuple[Any, ...]]) -> None:
        """Learn several rewards: tuples of slot, reward, time of the decision, probability or None, and features."""
        for row in rewards:
            self.learn(*row)

    # ---- changing ----------------------------------------------------------------------------------------------------

    def add_arm(self, past: dict[str, Any] | None = None, at: int = 0, features: Any = None) -> bool:
        """One more arm, and whether something is known of it, by a `past` that the policy can take: the arm that it is
        `like`, or its `mean` reward, which is `worth` so many rewards with these features at this time."""
        if not states.can_know_arms(self.policy, self.n_features > 0):
            past = None
        state, known = self.lists(), (past, features)
        if past is not None and self.half_life is not None:
            state, self.time = self.faded(at), max(self.time, at)
        state = states.add_arm_to(state, self.policy, self.n_arms, self.learned, self.n_features, self.joint, *known)
        self.n_arms += 1
        self._hold(state)
        return past is not None

    def change_half_life(self, half_life: int | None, at: int) -> None:
        """Forget at another pace from a time on; the state is first brought to that time."""
        state = self.faded(at)
        if hasattr(self.policy, "settle"):
            self.policy.settle(state, self.learned, self.policy.gamma if self.half_life is None else 1.0)
        self.half_life, self.time = half_life, max(self.time, at)
        self._hold(state)

    # ---- snapshots ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """What was learned, as JSON can hold it. Scratch is left out, so that asking changes nothing here."""
        state = self._with_size(JOINT, lambda: states.to_json(self.lists()))
        for part, name in _scratch(self.policy, state):
            del part[name]
        return {"learned": self.learned, "time": self.time, "state": state}

    def load(self, data: Any) -> None:
        """Go on from what `dump` gave. A state that no sequence of plays could produce is refused by a ValueError."""
        self._with_size(JOINT, lambda: self._load(data))

    def _with_size(self, n_arms: int, action: Callable[[], Any]) -> Any:
        """Do this with so many arms in the joint form, where their number is not part of the state."""
        if not self.joint:
            return action()
        before = self.n_arms
        self.resize(n_arms)
        try:
            return action()
        finally:
            self.resize(before)

    def _load(self, data: Any) -> None:
        like = self.first_state()
        plain, learned, time = data["state"], data["learned"], data["time"]
        if not isinstance(plain, dict):
            raise ValueError("the state is not an object.")
        if not all(type(number) is int and 0 <= number < 1 << 62 for number in (learned, time)):
            raise ValueError("learned and time are whole numbers of 0 or more.")
        plain, fresh = _copy_fields(plain), states.to_json(states.to_lists(like))
        for (part, name), (full, _) in zip(_scratch(self.policy, plain), _scratch(self.policy, fresh), strict=True):
            part[name] = full[name]
        state = states.to_arrays(states.from_json(plain, like), like)
        check_state(self.policy, state, learned, like)
        self.learned, self.time = learned, time
        self._hold(states.to_lists(state))


def _copy_fields(state: Any) -> Any:
    """A copy of a state as JSON has it, which shares the lists of numbers."""
    return {name: _copy_fields(part) for name, part in state.items()} if isinstance(state, dict) else state


class _Again(NamedTuple):
    """A player's policy with the features of a choice."""

    player: Player
    features: Any

    def choose(self, state: Any, t: int, rng: Any) -> int:
        return self.player._ask(state, rng, self.features)


@primitives.compilable
def choose_among(policy: Any, state: Any, t: int, rng: Any, arm: int, scores: Any, allowed: Any) -> Any:
    """The policy's choice `arm` if it is one of those allowed. If not, and it is the arm of largest score, the largest
    among the allowed: the same sample, fewer candidates. Otherwise the policy chooses again with other random numbers.
    An arm is drawn uniformly where this finds none."""
    for slot in allowed:
        if slot == arm:
            return slot
    largest = len(scores) > 0
    for i in range(len(scores)):
        if scores[i] > scores[arm]:
            largest = False
    if largest:
        top = scores[allowed[0]]
        for slot in allowed:
            top = max(top, scores[slot])
        ties = 0
        for slot in allowed:
            ties += 1 if scores[slot] == top else 0
        left = int(rng.uniform(primitives.AMONG) * ties)
        for slot in allowed:
            if scores[slot] == top:
                if left == 0:
                    return slot
                left -= 1
    for attempt in range(REDRAWS):
        again = policy.choose(state, t, rng.again(attempt))
        for slot in allowed:
            if slot == again:
                return slot
    return allowed[int(rng.uniform(primitives.AMONG) * len(allowed))]


def _scratch(policy: Any, state: Any) -> Iterator[tuple[Any, str]]:
    """Where the scratch of a state is: "two.scores" is the field `scores` of its field `two`."""
    for path in getattr(policy, "scratch", ()):
        *parts, name = path.split(".")
        holder = state
        for part in parts:
            holder = holder[part]
        if not isinstance(holder, dict):
            raise ValueError(f"the state of {path} is not an object.")
        yield holder, name


def _find_resized(state: Any, like: Any) -> Iterator[tuple[int, Any]]:
    """The places and fields of a first state that are of another length than in this one; as lists, if it has lists."""
    for place, (field, other) in enumerate(zip(state, like, strict=True)):
        if len(field) != len(other):
            yield place, other if isinstance(field, np.ndarray) else other.tolist()


def copy_lists(state: Any) -> Any:
    """A copy of a state of lists."""
    return tuple.__new__(type(state), [copy_lists(one) if isinstance(one, tuple) else one.copy() for one in state])
