"""A policy with its state and its stream, in plain Python: what a live agent asks and tells.

`driftbandit.lab.engine.compiled_player.LivePolicy` is the same in machine code; both choose the same arms."""

from typing import Any

from driftbandit.draws import Stream
from driftbandit.primitives import learns_by_chance, teach, teach_late
from driftbandit.state import to_lists


class PlainPolicy:
    """A policy played by the interpreter. Its state is kept as plain lists, the fastest form for one number at a
    time."""

    def __init__(self, policy: Any, state: Any, key: int) -> None:
        self.policy, self.state, self.stream = policy, to_lists(state), Stream(key)
        # The same stream once more: rewards may be far behind decisions, and a stream computes rounds in blocks.
        self.behind = Stream(key) if learns_by_chance(type(policy)) else None

    @property
    def kept(self) -> Any:
        """What was learnt: the state itself."""
        return self.state

    def rekey(self, key: int) -> None:
        """Draw from another stream from now on."""
        self.stream = Stream(key)

    def choose(self, t: int, decision: int) -> int:
        """The arm for one decision."""
        return int(self.policy.choose(self.state, t, self.stream.at(decision)))

    def learn(self, t: int, arm: int, reward: float) -> None:
        """Take in one reward, the t-th."""
        teach(self.policy, self.state, t, arm, reward, self.behind and self.behind.at(t))

    def learn_late(self, t: int, arm: int, reward: float, chance: float) -> None:
        """Take in one reward of an arm that was played with this probability."""
        teach_late(self.policy, self.state, t, arm, reward, self.behind and self.behind.at(t), chance)

    def choose_many(self, t: int, decision: int, n: int) -> list[int]:
        """The arms of n decisions without a reward between them."""
        return [self.choose(t, decision + j) for j in range(n)]
