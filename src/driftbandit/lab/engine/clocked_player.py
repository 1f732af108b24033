"""A live agent's policy with a half-life by the clock, as machine code: the same choices as
`agent.clocked.ClockedPolicy`."""

from typing import Any

from numba import types

from driftbandit.draws import Stream
from driftbandit.half_life import half_to_the, learn_by_time
from driftbandit.lab.engine.compiled_player import LivePolicy, StateRef, load
from driftbandit.primitives import learns_by_chance
from driftbandit.state import to_arrays, to_lists


def fade_once(policy: Any, ref: Any, elapsed: int, half_life: int) -> None:
    """Let this much time go by."""
    policy.fade(load(ref), half_to_the(elapsed / half_life))


def learn_once_at(policy: Any, ref: Any, time: int, half_life: int, arm: int, reward: float, decided: int) -> Any:
    """Take in one reward by the age of its decision; the state's time afterwards."""
    return learn_by_time(policy, load(ref), time, half_life, arm, reward, decided)


class ClockedLivePolicy(LivePolicy):
    """`kept` is what was learnt, as it stood at `time`; `state` is a copy that has faded to the moment of the last
    `look`, to choose from."""

    def __init__(self, policy: Any, state: Any, key: int, n_arms: int, half_life: int, time: int) -> None:
        super().__init__(policy, state, key, n_arms)
        self._kept = to_arrays(to_lists(state), state)
        self._kept_ref = StateRef(self._kept)
        self.half_life, self.time = half_life, time
        self._fade = self._entry(fade_once, types.int64, types.int64)
        self._learn_at = self._entry(learn_once_at, types.int64, types.int64, types.int64, types.float64, types.int64)
        self._coins = Stream(key) if learns_by_chance(type(policy)) else None

    @property
    def kept(self) -> Any:
        """What was learnt."""
        return self._kept

    def look(self, now: int) -> None:
        """See what is known as it stands now."""
        for field, source in zip(self.state, self._kept, strict=True):
            field[:] = source
        if now > self.time:
            self._fade(self.policy, self._ref, now - self.time, self.half_life)

    def learn_at(self, t: int, arm: int, reward: float, decided: int) -> None:
        """Take in the t-th reward, of an arm chosen at this time."""
        if self._coins is not None:
            reward = self.policy.seen(reward, self._coins.at(t))
        self.time = int(
            self._learn_at(self.policy, self._kept_ref, self.time, self.half_life, arm, float(reward), decided)
        )
