"""META: elimination with replays, which restarts only when no arm is left that did well throughout the episode."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.core import checked, within
from driftbandit.policies.cusum_ucb import changes_in


class MetaState(NamedTuple):
    """The episode under way: its stack of base procedures, and sums of importance-weighted rewards over dyadic windows."""

    begun: Any  # place on the stack: first round of the procedure; place 0 is the root
    ends: Any  # round in which it is over; the root has none
    active_from: Any  # lowest place on the stack at which the arm is active: it is active there and above
    entry_arm: Any  # ring: the arm of a round ...
    entry: Any  # ... and its entry, (number of active arms) * reward
    gains: Any  # level * K + arm: sum of the arm's entries in the last 2**(level + 1) rounds
    afresh: Any  # the same sums of the block of 2**(level + 1) rounds under way, which replace them at its end
    limit: Any  # level: a spread of gains above this evicts
    slack: Any  # level: how far the spread may be from the limit at most, by what has happened since it was last measured
    top: Any  # length 1: place of the running procedure
    start: Any  # length 1: first round of the episode
    alarms: Any  # length 1: new episodes so far
    planned: Any  # scratch, length 1: length of the replay that the round's choice found, 0 for none
    chances: Any  # scratch: probability of each arm in the last choice


@checked
class Meta(NamedTuple):
    """Randomised elimination that checks itself: replays of random length give all arms another chance.

    A round plays uniformly among the arms active in the running procedure. An arm leaves a procedure when over some stretch of that
    procedure's life its importance-weighted rewards fall behind another arm's by more than c0 ln(T) sqrt(max(K L, K**2)). At random times a
    replay begins, in which all arms are active; what it finds also counts for the procedures below it. When the root has lost all arms, everything
    is forgotten and an episode begins.

    Needs the horizon only. It follows "significant" changes: those after which no arm is good throughout. Its regret is of order sqrt(K S T) up to
    logarithms for S significant changes, S unknown, and S can be far below the number of changes. As with all such policies the constants are the price: with
    the theory's an arm worse by 0.5 survives thousands of rounds. Rewards in [0, 1].

    Unconfirmed: the constant c0 and the power of the logarithm in the eviction rule; c0 here is a practical value, found by trial. The
    paper compares all intervals; here those that end now and have a dyadic length, O(K log t) a round and usually
    O(log t), since a window is compared only when enough has been won and lost for it to matter.

    Kept: the arm and entry of as many rounds as the longest window has, the largest power of two <= horizon: 10 bytes a round
    (84 MB for 10 million rounds), in memory only as far as the run gets. Past `horizon` windows grow no longer.

    Reference: Suk and Kpotufe 2022, "Tracking most significant arm switches in bandits"."""

    short = "meta"
    forgets = "begins anew when no arm is left that was good throughout the episode; replays test evicted arms"
    knows = "the horizon"
    cost = "O(K log t)"
    reference = "Suk, Kpotufe 2022"

    horizon: Annotated[int, within(">= 1")] = 100_000  # T
    c0: Annotated[float, within("> 0")] = 0.1  # how sure an eviction must be
    replays: Annotated[float, within(">= 0")] = 1.0  # multiplier of the probability of a replay

    def init(self, n_arms: int) -> MetaState:
        """The first episode: all arms active."""
        levels = self.horizon.bit_length() - 1  # windows of 2, 4, ..., 2**levels rounds
        most = math.ceil(math.log2(self.horizon))
        log = math.log(self.horizon)
        lengths = [2 ** (level + 1) for level in range(levels)]
        limits = [self.c0 * log * math.sqrt(max(n_arms * (length - 1), n_arms**2)) for length in lengths]
        return MetaState(
            begun=np.zeros(most + 2, np.int64),
            ends=np.full(most + 2, 2**62, np.int64),
            active_from=np.zeros(n_arms, np.int64),
            entry_arm=np.zeros(2**levels, np.int16),
            entry=np.zeros(2**levels),
            gains=np.zeros(max(levels, 1) * n_arms),
            afresh=np.zeros(max(levels, 1) * n_arms),
            limit=np.array(limits, np.float64),
            slack=np.array(limits, np.float64),
            top=np.zeros(1, np.int64),
            start=np.zeros(1, np.int64),
            alarms=np.zeros(1, np.int64),
            planned=np.zeros(1, np.int64),
            chances=np.zeros(n_arms),
        )
