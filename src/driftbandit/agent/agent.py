"""One policy playing live: named arms, its own random stream and clock, snapshots."""

import contextlib
import copy
import hashlib
import importlib.util
import json
import math
import os
import threading
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

import driftbandit
from driftbandit.agent.inputs import (
    arm_names,
    as_float,
    checked_count,
    checked_range,
    checked_seed,
    from_json_arm,
    listed,
    no_number,
    to_json_arm,
)
from driftbandit.agent.interpreted import PlainPolicy
from driftbandit.beliefs import chance_of_largest
from driftbandit.draws import POLICY, Stream, stream_key
from driftbandit.primitives import TIES
from driftbandit.protocols import Policy
from driftbandit.state import from_plain, grown, to_arrays, to_lists, to_plain

FORMAT = 2  # of snapshots; another one is refused
_FAR = 1 << 50  # decisions of a live agent never get here: the rounds from here on serve `probabilities` and redraws
_REDRAWS = 64


class Chances(dict[Any, float]):
    """Each arm's chance of being chosen now, with `error`: a bound for quadrature, two standard errors for sampling, 0
    if exact."""

    error: float = 0.0


class Agent:
    """A policy that decides for real.

    >>> from driftbandit import Agent, DiscountedTS
    >>> agent = Agent(DiscountedTS.half_life(100), arms=["red", "green"], seed=7)
    >>> arm = agent.choose()
    >>> agent.learn(arm, reward=1.0)
    >>> text = agent.snapshot()
    >>> Agent.restore(text).choose() == agent.choose()
    True

    `arms` are any distinct hashable names, or a number of arms. Rewards lie in `reward_range`, which is mapped to the
    policies' [0, 1]; one outside is refused, or clipped with outside="clip", or taken as it is with outside="allow"
    (for policies that can bear it). The clock counts the rewards learnt; an answer may come late or never, and asking
    again changes nothing but the draw. Threads may share an agent.

    A seed makes every choice repeatable; without one the stream comes from the operating system. With `compiled=True`
    (needs the `lab` extra) the policy runs as machine code: the same choices, in about a microsecond once it is
    compiled."""

    def __init__(
        self,
        policy: Any,
        arms: int | Iterable[Hashable],
        seed: int | None = None,
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        outside: str = "refuse",
        compiled: bool = False,
    ) -> None:
        if isinstance(policy, type) or not isinstance(policy, Policy):
            raise TypeError(f"Agent needs a policy such as DiscountedTS(gamma=0.99); got {policy!r:.60}.")
        names = arm_names(arms)
        low, high = checked_range(reward_range)
        if outside not in ("refuse", "clip", "allow"):
            raise ValueError(f'outside is "refuse", "clip" or "allow"; got {outside!r}.')
        self.policy, self.outside, self.reward_range = policy, outside, (low, high)
        self.rewards_learnt = 0
        self.decisions = 0
        self.clipped = 0
        self._arms: list[Hashable] = names
        self._slot = {name: slot for slot, name in enumerate(names)}
        self._removed: set[int] = set()
        self._compiled = compiled
        key = int.from_bytes(os.urandom(8), "little") if seed is None else stream_key(checked_seed(seed), 0, POLICY)
        self._stream = Stream(key)  # for what the agent itself decides by chance: ties between available arms
        self._play(policy.init(len(names)))
        self._lock = threading.RLock()

    @property
    def arms(self) -> list[Hashable]:
        """The arms that can be chosen, in the order they were added."""
        return [name for slot, name in enumerate(self._arms) if slot not in self._removed]

    @property
    def state(self) -> Any:
        """A copy of what the policy knows, as arrays; removed arms keep their place."""
        with self._lock:
            return to_arrays(self._state, self.policy.init(len(self._arms)))

    def choose(self, n: int | None = None, *, available: Iterable[Hashable] | None = None) -> Any:
        """The arm to play now, among all or among the `available` ones; with `n`, a list of arms for n decisions that
        are taken before any of their rewards is known."""
        with self._lock:
            if n is not None:
                return self._choose_batch(n, available)
            if available is None and not self._removed:
                arm = self._player.choose(self.rewards_learnt, self.decisions)
            else:
                arm = self._choose_slot(self._allowed(available), self.decisions)
            self.decisions += 1
            return self._arms[arm]

    def learn(self, arm: Hashable, reward: float) -> None:
        """Take in the reward of an arm that was played."""
        with self._lock:
            slot = self._slot_of(arm)
            value, clipped = self._scaled(reward)
            self._player.learn(self.rewards_learnt, slot, value)
            self.rewards_learnt += 1
            self.clipped += clipped

    def add_arm(self, arm: Hashable) -> None:
        """One more arm, of which nothing is known yet."""
        with self._lock:
            with contextlib.suppress(TypeError):  # what cannot be hashed is refused below
                if self._slot.get(arm) in self._removed:
                    raise ValueError(
                        f"Arm {arm!r:.60} was removed and its name stays taken; add it under another name."
                    )
            names = arm_names([*self._arms, arm])
            self._play(grown(to_lists(self._state), self.policy, len(self._arms)), len(names))
            self._arms = names
            self._slot[arm] = len(names) - 1

    def remove_arm(self, arm: Hashable) -> None:
        """Never choose this arm again. What was learnt from it stays in the policy's sums until it is forgotten the
        usual way."""
        with self._lock:
            slot = self._slot_of(arm)
            if len(self._arms) - len(self._removed) == 1:
                raise ValueError(f"Arm {arm!r} is the last one; add another before removing it.")
            self._removed.add(slot)

    def probabilities(self, draws: int = 2000) -> Chances:
        """Each arm's chance of being chosen now; `error` says how exact it is.

        By quadrature where the policy has a belief to integrate (the Thompson samplers), read off where it draws from
        probabilities (EXP3), otherwise by `draws` choices that the agent does not count."""
        with self._lock:
            allowed = self._allowed(None)
            out = Chances()
            belief = getattr(self.policy, "belief", None)
            if belief is not None and len(allowed) > 1:
                whole = belief(to_arrays(self._state, self.policy.init(len(self._arms))))
                values, out.error = chance_of_largest(type(whole)(*(np.asarray(field)[allowed] for field in whole)))
            else:
                values, out.error = self._sampled_chances(allowed, draws)
            out.update({self._arms[slot]: float(value) for slot, value in zip(allowed, values, strict=True)})
            return out

    def snapshot(self) -> str:
        """Everything the agent is, as JSON text: policy, arms, state, stream, clock."""
        with self._lock:
            data = {
                "format": FORMAT,
                "driftbandit": driftbandit.__version__,
                "policy": repr(self.policy),
                "arms": [to_json_arm(arm) for arm in self._arms],
                "removed": sorted(self._removed),
                "reward_range": list(self.reward_range),
                "outside": self.outside,
                "clipped": self.clipped,
                "rewards_learnt": self.rewards_learnt,
                "decisions": self.decisions,
                "key": str(self._stream.key),
                "state": to_plain(to_lists(self._state)),
            }
            return json.dumps({**data, "check": checksum(data)}, allow_nan=False)

    @classmethod
    def restore(cls, text: str, policies: Mapping[str, type] | None = None, compiled: bool = False) -> "Agent":
        """An agent that continues exactly where the snapshot was taken. `policies` names classes of your own,
        {"MyPolicy": MyPolicy}."""
        from driftbandit.text.parse import parse

        try:
            data = json.loads(text, parse_constant=no_number)
            version = data["format"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ValueError(
                "This is no snapshot of an agent: it is not complete JSON with a format number. Was the file cut short?"
            ) from None
        if isinstance(version, bool) or version != FORMAT:
            raise ValueError(
                f"This snapshot has format {version!r:.40}; this version reads format {FORMAT}. "
                + ("Read it with the version that made it." if version == 1 else "Update driftbandit to read it.")
            )
        try:
            policy = parse(data["policy"], extra=dict(policies or {}))
            agent = cls(
                policy,
                [from_json_arm(arm) for arm in data["arms"]],
                seed=0,
                reward_range=tuple(data["reward_range"]),
                outside=data["outside"],
            )
            agent._stream = Stream(checked_count(int(data["key"]), 1 << 64))
            agent._compiled = compiled
            agent._play(from_plain(data["state"], policy.init(len(agent._arms))))
            agent._removed = {checked_count(slot, len(agent._arms)) for slot in data["removed"]}
            if len(agent._removed) == len(agent._arms):
                raise ValueError("every arm is removed.")
            agent.clipped, agent.rewards_learnt, agent.decisions = (
                checked_count(data[name], _FAR) for name in ("clipped", "rewards_learnt", "decisions")
            )
            if data.get("check", checksum(data)) != checksum(data):
                raise ValueError("its checksum does not match what it holds.")
        except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
            detail = f"{error.args[0]!r} is missing." if isinstance(error, KeyError) else f"{error!s:.200}"
            raise ValueError(f"This snapshot is damaged and was not restored: {detail}") from None
        return agent

    # ---- inside ------------------------------------------------------------------------------------------------------

    @property
    def _state(self) -> Any:
        return self._player.state

    def _play(self, state: Any, n_arms: int | None = None) -> None:
        """Give the policy a state to go on from, in the interpreter or as machine code."""
        if self._compiled:
            if importlib.util.find_spec("numba") is None:
                raise ValueError("compiled=True needs Numba: pip install 'driftbandit[lab]' brings it.")
            from driftbandit.lab.engine.compiled_player import LivePolicy

            n_arms = n_arms or len(self._arms)
            arrays = to_arrays(to_lists(state), self.policy.init(n_arms))
            self._player: Any = LivePolicy(self.policy, arrays, self._stream.key, n_arms)
        else:
            self._player = PlainPolicy(self.policy, state, self._stream.key)

    def _choose_batch(self, n: int, available: Iterable[Hashable] | None) -> list[Any]:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise ValueError(f"choose(n) needs a whole number of 0 or more; got {n!r:.60}.")
        if available is None and not self._removed:
            slots = self._player.choose_many(self.rewards_learnt, self.decisions, int(n))
        else:
            allowed = self._allowed(available)
            slots = [self._choose_slot(allowed, self.decisions + j) for j in range(n)]
        self.decisions += int(n)
        return [self._arms[slot] for slot in slots]

    def _choose_slot(self, allowed: list[int], decision: int) -> int:
        """The policy's choice, kept to the allowed arms.

        Where the choice is the arm of largest score, the largest among the allowed is taken: the same sample, fewer
        candidates. Where the policy drew the arm from probabilities, they are renormalised. Otherwise it is asked again
        with other draws, and if it insists (a scheduled pull), an allowed arm is drawn evenly."""
        arm = self._player.choose(self.rewards_learnt, decision)
        if len(allowed) == len(self._arms) or arm in allowed:
            return int(arm)
        scores = getattr(self._state, "scores", None)
        if scores is not None and scores[arm] >= max(scores):
            top = max(scores[slot] for slot in allowed)
            ties = [slot for slot in allowed if scores[slot] == top]
            return ties[int(self._stream.at(decision).uniform(TIES) * len(ties))]
        chances = getattr(self._state, "chances", None)
        if chances is not None:
            left = self._stream.at(decision).uniform(TIES) * sum(chances[slot] for slot in allowed)
            for slot in allowed:
                left -= chances[slot]
                if left < 0.0:
                    return slot
        for n in range(_REDRAWS):
            arm = self._player.choose(self.rewards_learnt, _FAR + _FAR * (n + 1) + decision)
            if arm in allowed:
                return int(arm)
        return allowed[int(self._stream.at(decision).uniform(TIES) * len(allowed))]

    def _sampled_chances(self, allowed: list[int], draws: int) -> tuple[np.ndarray, float]:
        """How often each allowed arm is chosen, and two standard errors of that."""
        if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
            raise ValueError(f"probabilities needs draws of 1 or more; got {draws!r:.60}.")
        if len(allowed) == 1:
            return np.ones(1), 0.0
        counts = np.zeros(len(self._arms))
        held = self._player
        self._play(copy.deepcopy(held.state))  # `choose` may write scratch that `learn` reads: asking changes nothing
        try:
            for n in range(draws):
                counts[self._choose_slot(allowed, _FAR + n)] += 1
                if hasattr(self._state, "chances"):  # drawn from probabilities, which the policy has just written down
                    exact = np.array([self._state.chances[slot] for slot in allowed])
                    return exact / exact.sum(), 0.0
        finally:
            self._player = held
        values = counts[allowed] / draws
        # An arm never seen in n draws may still have a chance of about 1/n: the last term keeps the error from being 0.
        return values, float(2.0 * np.sqrt(values * (1.0 - values) / draws).max() + 2.0 / draws)

    def _allowed(self, available: Iterable[Hashable] | None) -> list[int]:
        if available is None:
            return [slot for slot in range(len(self._arms)) if slot not in self._removed]
        if isinstance(available, str | bytes) or not isinstance(available, Iterable):
            raise ValueError(f"choose(available=...) needs a list of arms; got {available!r:.60}.")
        slots = sorted({self._slot_of(arm) for arm in available})
        if not slots:
            raise ValueError("choose(available=...) needs at least one arm; got none.")
        return slots

    def _slot_of(self, arm: Hashable) -> int:
        try:
            slot = self._slot.get(arm)
        except TypeError:
            slot = None
        if slot is None or slot in self._removed:
            what = "was removed" if slot is not None else "is unknown"
            raise ValueError(f"Arm {arm!r} {what}; the arms are {listed(self.arms)}.")
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
        return (value - low) / (high - low), clipped

    def __repr__(self) -> str:
        return f"Agent({self.policy!r}, arms={listed(self.arms)}, rewards_learnt={self.rewards_learnt})"


def checksum(data: dict[str, Any]) -> str:
    """A digest of everything in a snapshot but itself, however the JSON is laid out: altered numbers are noticed."""
    rest = {name: value for name, value in data.items() if name != "check"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, allow_nan=False).encode()).hexdigest()[:16]
