"""The streams of compiled code: the numbers of `driftbandit.core.draws`, hashed on demand or some rounds ahead."""

from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import ATTEMPTS, Draws, beta_attempt, beta_passes, round_key
from driftbandit.core.primitives import compilable, where
from driftbandit.lab.engine import simd
from driftbandit.lab.engine.lane_arrays import LaneArray
from driftbandit.lab.engine.numba_methods import register

_LANE_BITS = 8
_LANE_MASK = (1 << _LANE_BITS) - 1
AHEAD = 32  # rounds whose normals are computed together for a single run
TOGETHER = 8  # arms whose Beta draws are made together: one AVX-512 register of float64


class KeyStream(NamedTuple):
    """A stream whose numbers are hashed on demand: one run's, or one per lane."""

    keys: Any

    def at(self, t: int) -> Any:
        return Draws(round_key(self.keys[0], t))


class AheadStream(NamedTuple):
    """A single run's stream that computes the normals of many rounds at once, since they do not depend on rewards."""

    keys: Any
    steps: Any  # 0, 1, .. as a row, one for each round ahead
    eight: Any  # 0, 1, .., 7 as a row
    filled: Any  # first round of the block held
    normal_rows: Any

    def at(self, t: int) -> Any:
        return AheadDraws(round_key(self.keys[0], t), t, self)


class AheadDraws(NamedTuple):
    """One round of an `AheadStream`; the same numbers as `Draws` gives."""

    key: Any
    t: Any
    stream: Any

    def block_keys(self, first: int) -> Any:
        return round_key(self.stream.keys[0], self.stream.steps[0] + first)

    def normals(self, out: Any) -> None:
        if len(out) > len(self.stream.normal_rows):
            Draws(self.key).normals(out)
            return
        column = self.t % AHEAD
        first = self.t - column
        if self.stream.filled[0] != first:
            Draws(self.block_keys(first)).normals(self.stream.normal_rows)
            self.stream.filled[0] = first
        for i in range(len(out)):
            out[i] = self.stream.normal_rows.store[i, column]

    def betas(self, a: Any, b: Any, out: Any) -> None:
        n = len(out)
        for first in range(0, n, TOGETHER):
            arm = min(self.stream.eight[0] + first, n - 1)  # beyond the last arm, the last one again: the same numbers
            value, odd = usual_betas(self.key, arm, a[arm], b[arm])
            out[arm] = value
            while odd != 0:
                slot = min(first + simd.lowest_bit(odd), n - 1)
                out[slot] = Draws(self.key).beta(a[slot], b[slot], slot)
                odd &= odd - 1


class LaneStream(NamedTuple):
    """The streams of many runs in lockstep, one per lane."""

    keys: Any
    eight: Any  # 0, 1, .., 7 as a row
    todo: Any  # scratch: arm and lane, in one number, of the Beta draws that were not accepted at once

    def at(self, t: int) -> Any:
        return LaneDraws(round_key(self.keys[0], t), t, self)


class LaneDraws(NamedTuple):
    """One round of a `LaneStream`; for each lane the same numbers as `Draws` gives."""

    key: Any
    t: Any
    stream: Any

    def betas(self, a: Any, b: Any, out: Any) -> None:
        # One attempt for every lane; then, eight at a time over all arms and lanes, those that were not accepted.
        todo, keys, lanes = self.stream.todo, self.stream.keys.store, out.store.shape[1]
        together = len(todo) // lanes  # rows that fit in `todo` even if no lane is accepted
        for begin in range(0, len(out), together):
            n = 0
            for arm in range(begin, min(begin + together, len(out))):
                value, settled, _, _, _ = first_betas(self.key, arm, a[arm], b[arm])
                out[arm] = value
                unsure = simd.false_lanes(settled)
                while unsure != 0:
                    todo[n] = (arm << _LANE_BITS) + simd.lowest_bit(unsure)
                    n += 1
                    unsure &= unsure - 1
            for first in range(0, n, TOGETHER):
                item = todo[min(self.stream.eight[0] + first, n - 1)]
                arms = item >> _LANE_BITS
                lane = item & _LANE_MASK
                place = arms * lanes + lane
                value, odd = usual_betas(round_key(keys[lane], self.t), arms, a.store[place], b.store[place])
                out.store[place] = value
                while odd != 0:
                    one = todo[min(first + simd.lowest_bit(odd), n - 1)]
                    i = one >> _LANE_BITS
                    j = one & _LANE_MASK
                    out.store[i, j] = Draws(round_key(keys[0, j], self.t)).beta(a.store[i, j], b.store[i, j], i)
                    odd &= odd - 1


@compilable
def first_betas(key: Any, arm: Any, wins: Any, losses: Any) -> Any:
    """The first attempt at Beta draws, entry by entry: the values, which of them are accepted, and their material."""
    x, y, u = Draws(key).beta_material(arm, 0)
    ga, gb, sure = beta_attempt(wins, losses, x, y, u)
    flat = (wins == 1.0) & (losses == 1.0)
    return where(flat, u, ga / (ga + gb)), (sure & (wins >= 1.0) & (losses >= 1.0)) | flat, x, y, u


@compilable
def usual_betas(key: Any, arm: Any, wins: Any, losses: Any) -> Any:
    """Beta draws for a row of arms, by as many attempts as the slowest entry needs. Also, as the bits of a number, the
    entries with a parameter below 1, which `Draws.beta` has to draw."""
    value, settled, x, y, u = first_betas(key, arm, wins, losses)
    attempt = 0
    while simd.false_lanes(settled) != 0 and attempt < ATTEMPTS:
        settled = settled | beta_passes(wins, losses, x, y, u) | (wins < 1.0) | (losses < 1.0)
        if simd.false_lanes(settled) == 0:
            break
        attempt += 1
        x, y, u = Draws(key).beta_material(arm, attempt)
        ga, gb, sure = beta_attempt(wins, losses, x, y, u)
        value = where(settled, value, ga / (ga + gb))
        settled = settled | sure
    return value, simd.false_lanes((wins >= 1.0) & (losses >= 1.0))


for _draws in (AheadDraws, LaneDraws):  # what needs only the key is that of `Draws`
    for _name, _method in vars(Draws).items():
        if not (_name.startswith("_") or hasattr(_draws, _name)) and callable(_method):
            setattr(_draws, _name, _method)
for _cls in (Draws, KeyStream, AheadStream, AheadDraws, LaneStream, LaneDraws):
    register(_cls)


def ahead_stream(key: int, n_arms: int) -> AheadStream:
    """The stream of a single run."""
    return AheadStream(
        np.array([key], np.uint64),
        _count(AHEAD),
        _count(TOGETHER),
        np.full(1, -1, np.int64),
        LaneArray(np.zeros((n_arms, AHEAD))),
    )


def _count(lanes: int) -> LaneArray:
    """0, 1, 2 .. as a row."""
    return LaneArray(np.arange(lanes, dtype=np.int64).reshape(1, lanes))


def lane_stream(keys: list[int], n_arms: int) -> LaneStream:
    """The streams of runs in lockstep."""
    return LaneStream(LaneArray(np.array([keys], np.uint64)), _count(TOGETHER), np.zeros(n_arms * len(keys), np.int64))
