"""One policy playing live: named arms, its own random stream and clock, snapshots."""

import math
import threading
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from driftbandit.agent import clocked, forks, page, snapshots
from driftbandit.agent.explaining import explained
from driftbandit.agent.exploration import DEFAULT_FLOOR, explored, mixed
from driftbandit.agent.inputs import (
    arm_name,
    arm_names,
    as_float,
    check_own,
    checked_choice,
    checked_draws,
    checked_n,
    checked_probability,
    checked_range,
    checked_seed,
    checked_share,
    listed,
    shown,
    too_deep,
)
from driftbandit.agent.playing import make_player
from driftbandit.draws import POLICY, Stream, stream_key
from driftbandit.half_life import checked_half_life, policy_told, spelt
from driftbandit.parameters import LARGEST
from driftbandit.player import Probabilities
from driftbandit.policies.drift_ts import DriftTS
from driftbandit.protocols import Policy
from driftbandit.rewards import bears, refused_rewards

if TYPE_CHECKING:
    from driftbandit.policies.drift_belief import Explanation


class Agent:
    """A policy that decides for real.

    >>> from driftbandit import Agent
    >>> agent = Agent(arms=["red", "green"], seed=7)
    >>> arm = agent.choose()
    >>> agent.learn(arm, reward=1.0)
    >>> text = agent.snapshot()
    >>> Agent.restore(text).choose() == agent.choose()
    True

    Without a policy it plays `DriftTS`, which has nothing to tune. `arms` are distinct names (texts, numbers, tuples of
    them), or a number of arms. Rewards lie in `reward_range`, which is mapped to the policies' [0, 1]; a reward outside
    it is refused, or clipped with outside="clip", or taken as it is with outside="allow" (for policies that can handle
    it). The clock counts the rewards learnt; a reward may come late or never, and asking again changes nothing but the
    draw. Threads may share an agent.

    A policy as published may never try an arm that looks bad at first, or that became good while nobody looked. So an
    agent plays each available arm once before it asks the policy (`first`), and with probability `floor` it plays an
    arm drawn evenly from the available ones. `first=False, floor=0.0` is the policy alone; docs/how-to/safety.md has
    the cost.

    A seed makes every choice repeatable: the same calls give the same arms, in every copy, in every process that
    restores the snapshot, in every worker forked from this one. Several workers with the same seed therefore explore in
    unison. Without a seed the stream comes from the operating system, and every copy and every forked worker gets a
    stream of its own; so does `restore(text, fresh=True)`.

    With `half_life` ("6 h", a timedelta, seconds) evidence fades by the clock, not by the number of rewards: a policy
    that discounts loses half the weight of what it knows in that time, and `learn(arm, reward, at=...)` weighs a late
    reward by the age of its decision. `now` gives the time in simulations; otherwise it is the system's time.

    Rewards that come after `remove_arm` are ignored, and counted in `ignored`, or refused with late="refuse". With
    `compiled=True` (needs the `lab` extra) the policy runs as machine code: the same choices, in about a microsecond
    once it is compiled."""

    def __init__(
        self,
        policy: Any = None,
        arms: int | Iterable[Hashable] = (),
        seed: int | None = None,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        outside: str = "refuse",
        first: bool = True,
        floor: float = DEFAULT_FLOOR,
        late: str = "ignore",
        half_life: Any = None,
        compiled: bool = False,
    ) -> None:
        if policy is None:
            policy = DriftTS()
        if isinstance(policy, type) or not isinstance(policy, Policy):
            raise TypeError(f"Agent needs a policy such as DriftTS(), and arms=...; got {shown(policy)}.")
        names = arm_names(arms)
        check_own(policy, len(names))
        self.policy, self.reward_range = policy, checked_range(reward_range)
        self.outside: str = checked_choice("outside", outside, ("refuse", "clip", "allow"))
        if outside == "allow" and bears(policy) == "[0, 1]":
            raise ValueError(refused_rewards(policy, 'outside="allow"', 'outside="clip" keeps them inside'))
        self.first: bool = checked_choice("first", first, (True, False))
        self.floor = checked_share("floor", floor)
        self.late: str = checked_choice("late", late, ("ignore", "refuse"))
        self.decisions = self.clipped = self.ignored = 0
        self._arms: list[Hashable] = names
        self._slot = {name: slot for slot, name in enumerate(names)}
        self._removed: set[int] = set()
        self._untried = set(range(len(names))) if first else set()
        self._compiled = compiled
        self.half_life = None if half_life is None else checked_half_life(half_life, policy)
        self._seeded = seed is not None
        # For what the agent itself decides by chance: exploration, and ties between available arms.
        self._stream = Stream(snapshots.own_key() if seed is None else stream_key(checked_seed(seed), 0, POLICY))
        self._player = make_player(policy, len(names), self._stream.key, self.half_life, 0, compiled)
        self._lock = threading.RLock()
        forks.watch(self)

    @property
    def arms(self) -> list[Hashable]:
        """The arms that can be chosen, in the order they were added."""
        return [name for slot, name in enumerate(self._arms) if slot not in self._removed]

    @property
    def rewards_learnt(self) -> int:
        """How many rewards the policy has learned."""
        return self._player.learned

    @property
    def state(self) -> Any:
        """A copy of what the policy knows now, as arrays; removed arms keep their place."""
        with self._lock:
            return self._player.arrays(clocked.asked_at(self.half_life, None))

    @overload
    def choose(self, n: None = None, *, available: Iterable[Hashable] | None = None, now: Any = None) -> Any: ...

    @overload
    def choose(self, n: int, *, available: Iterable[Hashable] | None = None, now: Any = None) -> list[Any]: ...

    def choose(self, n: int | None = None, *, available: Iterable[Hashable] | None = None, now: Any = None) -> Any:
        """The arm to play now, among all or among the `available` ones; with `n`, a list of arms for n decisions that
        are made before any of their rewards is known."""
        with self._lock:
            allowed = self._allowed(available) if available is not None or self._removed else None
            at = clocked.asked_at(self.half_life, now)
            if n is None:
                return self._arms[self._chosen(allowed, at)]
            return [self._arms[self._chosen(allowed, at)] for _ in range(checked_n(n))]

    def learn(
        self, arm: Hashable, reward: float, *, at: Any = None, now: Any = None, probability: float | None = None
    ) -> None:
        """Take in the reward of an arm that was played; with a half-life, `at` is when it was chosen (now).

        Rewards are learned in the order of these calls, so make them in the order of the choices: a policy that looks
        for changes takes a day's successes, learned before its failures, for a change.

        A policy that divides by the arm's probability (EXP3S, REXP3, Meta) takes the present one, which is right if
        nothing was learnt since the choice. For a late reward give the `probability` that the arm had, as
        `probabilities()` told it just before the choice; other policies make no use of it."""
        with self._lock:
            decided = clocked.decided_at(self.half_life, at, now)
            slot = self._slot_of(arm, removed_too=self.late == "ignore")
            value, clipped = self._scaled(reward)
            chance = None if probability is None else checked_probability(probability)
            if slot in self._removed:
                self.ignored += 1
                return
            self._player.learn(slot, value, decided or 0, chance)
            self._untried.discard(slot)
            self.clipped += clipped

    def add_arm(self, arm: Hashable) -> None:
        """One more arm, about which nothing is known yet. The name of a removed arm may be used again: it is then a new
        arm, and rewards under that name belong to the new arm from now on."""
        with self._lock:
            name = arm_name(arm)
            arm_names([*self.arms, name])
            n_arms = len(self._arms)
            self._player.add_arm()
            self._arms.append(name)
            self._slot[name] = n_arms
            if self.first:
                self._untried.add(n_arms)

    def remove_arm(self, arm: Hashable) -> None:
        """Never choose this arm again. What was learnt from it stays in the policy's sums until it is forgotten in the
        usual way."""
        with self._lock:
            slot = self._slot_of(arm)
            if len(self._arms) - len(self._removed) == 1:
                raise ValueError(f"Arm {shown(arm)} is the last one; add another before removing it.")
            self._removed.add(slot)
            self._untried.discard(slot)

    def probabilities(self, draws: int = 2000, *, now: Any = None) -> Probabilities:
        """Each arm's chance of being chosen now, exploration included; `error` says how exact it is.

        Computed by quadrature where the policy has a belief to integrate (the Thompson samplers), read off where it
        draws from probabilities (EXP3), and otherwise estimated from `draws` choices that the agent does not count."""
        draws = checked_draws(draws)
        with self._lock:
            at = clocked.asked_at(self.half_life, now)
            allowed, out = self._allowed(None), Probabilities()
            untried = np.array([slot in self._untried for slot in allowed])
            if untried.any():
                values = untried / untried.sum()
            else:
                values, error = self._player.probabilities(allowed, at, draws)
                values, out.error = mixed(values, self.floor), (1.0 - self.floor) * error
            out.update({self._arms[slot]: float(value) for slot, value in zip(allowed, values, strict=True)})
            return out

    def explain(self) -> "Explanation":
        """What the policy believes about the world and every arm, printable, if it can say so; `DriftTS` can."""
        with self._lock:
            told: Explanation = explained(self._player, self._arms, self.reward_range)
            return told

    def snapshot(self) -> str:
        """Everything the agent is, as JSON text: policy, arms, state, stream, clock. Its checksum protects against
        accidents, not against people."""
        with self._lock:
            return snapshots.taken(self)

    @classmethod
    def restore(
        cls,
        text: str,
        policies: Mapping[str, type] | None = None,
        compiled: bool = False,
        *,
        fresh: bool = False,
    ) -> "Agent":
        """An agent that continues exactly where the snapshot was taken; with `fresh` it knows the same things but draws
        from a stream of its own, as each of several workers should. `policies` names classes of your own, {"MyPolicy":
        MyPolicy}; nothing else is ever loaded, imported or called. A snapshot that no sequence of plays could produce
        is refused."""
        from driftbandit.text.parse import parse_snapshot

        data = snapshots.read(text)
        with snapshots.damage_told():
            policy = parse_snapshot(data["policy"], extra=dict(policies or {}))
        return snapshots.revived(cls, policy, data, compiled, fresh)

    def __reduce__(self) -> Any:
        """Copies, deep copies and pickles are independent agents: a seeded one continues as this one does, one without
        a seed gets a stream of its own."""
        with self._lock:
            return _copied, (type(self), self.policy, self.snapshot(), self._compiled, not self._seeded)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _own_stream_unless_seeded(self) -> None:
        """After a fork: what a process draws without a seed is its own."""
        if not self._seeded:
            self._stream = Stream(snapshots.own_key())
            self._player.rekey(self._stream.key)

    def _explored(self, allowed: list[int] | None, decision: int) -> int | None:
        """The slot that exploration plays in this decision, if it does; then it is no longer untried."""
        untried = [slot for slot in allowed or range(len(self._arms)) if slot in self._untried] if self._untried else ()
        if not untried and self.floor == 0.0:
            return None
        every = range(len(self._arms)) if allowed is None else allowed
        slot = explored(self._stream.at(decision), self.floor, untried, every)
        if slot is not None:
            self._untried.discard(slot)
        return slot

    def _chosen(self, allowed: list[int] | None, at: int) -> int:
        """The slot of the next decision."""
        decision = self.decisions
        slot = self._explored(allowed, decision)
        self.decisions += 1
        return self._player.choose(self._stream.at(decision), allowed, at) if slot is None else slot

    def _allowed(self, available: Iterable[Hashable] | None) -> list[int]:
        if available is None:
            return [slot for slot in range(len(self._arms)) if slot not in self._removed]
        if isinstance(available, str | bytes) or not isinstance(available, Iterable):
            raise ValueError(f"choose(available=...) needs a list of arms; got {shown(available)}.")
        slots = sorted({self._slot_of(arm) for arm in available})
        if not slots:
            raise ValueError("choose(available=...) needs at least one arm; got none.")
        return slots

    def _slot_of(self, arm: Hashable, removed_too: bool = False) -> int:
        try:
            slot = None if too_deep(arm) else self._slot.get(arm)
        except TypeError:
            slot = None
        if slot is None or (slot in self._removed and not removed_too):
            what = "was removed" if slot is not None else "is unknown"
            raise ValueError(f"Arm {shown(arm)} {what}; the arms are {listed(self.arms)}.")
        return slot

    def _scaled(self, reward: Any) -> tuple[float, int]:
        """The reward mapped to [0, 1], and 1 if it had to be clipped."""
        value = reward if type(reward) is float else as_float(reward)
        low, high = self.reward_range
        if not math.isfinite(value):
            raise ValueError(f"A reward is a finite number; got {value}. Nothing was learnt.")
        clipped = 0
        if not low <= value <= high and self.outside != "allow":
            if self.outside == "refuse":
                raise ValueError(
                    f"Reward {value:g} lies outside reward_range=({low:g}, {high:g}); nothing was learnt. "
                    'Widen the range, or give outside="clip".'
                )
            value, clipped = min(max(value, low), high), 1
        scaled = (value - low) / (high - low)
        if not abs(scaled) <= LARGEST:
            raise ValueError(
                f"Reward {value:g} is more than {LARGEST:g} times the width of reward_range=({low:g}, {high:g}); "
                "nothing was learnt. Widen the range."
            )
        return scaled, clipped

    def __repr__(self) -> str:
        half_life = "" if self.half_life is None else f", half_life={spelt(self.half_life)!r}"
        told = policy_told(self.policy, self.half_life)
        return (
            f"Agent({told}, arms={listed(self.arms)}{half_life}, floor={self.floor:g}, "
            f"rewards_learnt={self.rewards_learnt})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return page.table(self)


def _copied(cls: type[Agent], policy: Any, text: str, compiled: bool, fresh: bool) -> Agent:
    return snapshots.revived(cls, policy, snapshots.read(text), compiled, fresh)
