"""The streams of compiled code: the numbers of `driftbandit.draws`, hashed as they are asked for or some rounds
ahead."""

from typing import Any, NamedTuple

import numpy as np

from driftbandit.draws import Draws, gamma_clear, gamma_squeeze, round_key
from driftbandit.lab import rows
from driftbandit.lab.kernel import register
from driftbandit.lab.rows import LaneArray
from driftbandit.numerics import where

AHEAD = 8  # rounds whose draws are computed together when a run plays alone: one AVX-512 register of float64


class KeyStream(NamedTuple):
    """A stream whose numbers are hashed as they are asked for: one run's, or one a lane."""

    keys: Any

    def at(self, t: int) -> Any:
        """The numbers of round t."""
        return Draws(round_key(self.keys[0], t))


class AheadStream(NamedTuple):
    """A single run's stream that computes the normals of eight rounds at once, since nothing in them depends on what is
    learnt meanwhile."""

    keys: Any
    steps: Any  # 0, 1, .. as a row
    filled: Any  # first round of the block held
    normal_rows: Any

    def at(self, t: int) -> Any:
        """The numbers of round t."""
        return AheadDraws(round_key(self.keys[0], t), t, self)


class AheadDraws(NamedTuple):
    """One round of an `AheadStream`; the same numbers as `Draws` gives."""

    key: Any
    t: Any
    stream: Any

    def block_keys(self, first: int) -> Any:
        """The keys of the block's rounds, as a row."""
        return round_key(self.stream.keys[0], self.stream.steps[0] + first)

    def uniform(self, slot: int) -> Any:
        """As `Draws.uniform`."""
        return Draws(self.key).uniform(slot)

    def normal(self, slot: int) -> Any:
        """As `Draws.normal`."""
        return Draws(self.key).normal(slot)

    def spare(self, attempt: int) -> Any:
        """As `Draws.spare`."""
        return Draws(self.key).spare(attempt)

    def beta(self, a: float, b: float, slot: int) -> Any:
        """As `Draws.beta`."""
        return Draws(self.key).beta(a, b, slot)

    def normals(self, out: Any) -> None:
        """As `Draws.normals`, from the block."""
        column = self.t % AHEAD
        first = self.t - column
        if self.stream.filled[0] != first:
            Draws(self.block_keys(first)).normals(self.stream.normal_rows)
            self.stream.filled[0] = first
        for i in range(len(out)):
            out[i] = self.stream.normal_rows.store[i, column]

    def betas(self, a: Any, b: Any, out: Any) -> None:
        """As `Draws.betas`, eight arms at a time. Arms whose first attempt needs a closer look are drawn again one by
        one, which starts from the same numbers and gives what it would have given."""
        n = len(out)
        for first in range(0, n, AHEAD):
            arm = min(self.stream.steps[0] + first, n - 1)  # beyond the last arm, the last one again: the same numbers
            x, y, u, v = Draws(self.key).beta_material(arm)
            wins = a[arm]
            losses = b[arm]
            ga, sure_a = gamma_squeeze(wins - 1.0 / 3.0, x, u)
            gb, sure_b = gamma_squeeze(losses - 1.0 / 3.0, y, v)
            flat = (wins == 1.0) & (losses == 1.0)
            out[arm] = where(flat, u, ga / (ga + gb))
            usual = (wins >= 1.0) & (losses >= 1.0)
            doubtful = rows.false_lanes((sure_a & sure_b & usual) | flat)
            if doubtful != 0:
                clear_a = sure_a | gamma_clear(wins - 1.0 / 3.0, x, u)
                clear_b = sure_b | gamma_clear(losses - 1.0 / 3.0, y, v)
                doubtful = rows.false_lanes((clear_a & clear_b & usual) | flat)
            while doubtful != 0:
                slot = min(first + rows.lowest_bit(doubtful), n - 1)
                out[slot] = Draws(self.key).beta(a[slot], b[slot], slot)
                doubtful &= doubtful - 1


for _cls in (Draws, KeyStream, AheadStream, AheadDraws):
    register(_cls)


def ahead_stream(key: int, n_arms: int) -> AheadStream:
    """The stream of a run that plays alone, with room for its blocks."""
    return AheadStream(
        np.array([key], np.uint64),
        LaneArray(np.arange(AHEAD, dtype=np.int64).reshape(1, AHEAD)),
        np.full(1, -1, np.int64),
        LaneArray(np.zeros((n_arms, AHEAD))),
    )
