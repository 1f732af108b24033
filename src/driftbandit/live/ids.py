"""Decision ids, and the random numbers that belong to each.

The numbers of a decision are a hash of (the bandit's key, the decision's id, slot): `draws` with the id in the place of
the round. There is no counter to share between processes, and anyone who knows the key and the id can recompute them.

Ids made here begin with the time, so that a store appends them to its index instead of scattering them, and end with 80
random bits, so that nobody can guess them. They are made a block at a time together with their numbers: NumPy is quick
with 256 decisions at once, and slow with one."""

import hashlib
import os
import re
import time
from typing import Any

import numpy as np

from driftbandit.draws import Stream, mix
from driftbandit.live.records import Decision

_ID = re.compile(r"[A-Za-z0-9_.:~-]{1,128}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:~-]{0,127}")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def checked_id(value: Any) -> str:
    """A decision's id: 1 to 128 plain letters. A `Decision` stands for its id."""
    if isinstance(value, Decision):
        value = value.id
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError(f"A decision's id is a text of 1 to 128 letters, digits or _ . : ~ -; got {value!r:.60}.")
    return value


def checked_name(value: Any) -> str:
    """A bandit's name: 1 to 128 plain letters, beginning with a letter, a digit or _."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(
            "A bandit's name is a text of 1 to 128 letters, digits or _ . : ~ - that begins with a letter, a digit "
            f"or _; got {value!r:.60}."
        )
    return value


def made_ids(count: int) -> list[str]:
    """New ids: 12 hexadecimal digits of milliseconds, 20 of chance."""
    stamp = f"{time.time_ns() // 1_000_000 & 0xFFFFFFFFFFFF:012x}"
    chance = os.urandom(10 * count).hex()
    return [stamp + chance[i : i + 20] for i in range(0, 20 * count, 20)]


def hashed_round(decision: str) -> int:
    """The 63 bits of an id that stand where a round's number stands in a simulation."""
    return int.from_bytes(hashlib.blake2b(decision.encode(), digest_size=8).digest(), "little") >> 1


def numbered_round(decision: str) -> int:
    """The id itself as the round: for bandits that replay a simulation, whose ids are "0", "1", "2" ..."""
    if not decision.isascii() or not decision.isdigit() or len(decision) > 18:
        raise ValueError(f"This bandit replays a simulation: ids are the numbers of rounds; got {decision!r:.60}.")
    return int(decision)


ROUNDS = {"hash": hashed_round, "number": numbered_round}


def decision_stream(key: int, rounds: list[int]) -> Stream:
    """The numbers of the decisions with these rounds (`ROUNDS`) of the stream `key`; `at(n)` moves to the n-th."""
    places = np.array(rounds, np.uint64) + np.uint64(1)
    return Stream.of(np.asarray(mix(np.uint64(key) + places * _GOLDEN)))


class Supply:
    """Ids made ahead, with their numbers ready."""

    SMALLEST, LARGEST = 8, 256

    def __init__(self, key: int) -> None:
        self._key = key
        self._size = self.SMALLEST // 2
        self._block: tuple[list[str], Stream] = [], Stream(0)
        self._column = 0

    def take(self) -> tuple[str, Stream]:
        """The next id, and its numbers, valid until the next call. An interrupt at any place leaves every id with its
        own numbers."""
        column = self._column
        if column >= len(self._block[0]):
            self._size = min(2 * self._size, self.LARGEST)
            made = made_ids(self._size)
            block = made, decision_stream(self._key, [hashed_round(id) for id in made])
            self._column, self._block, column = len(made), block, 0
        self._column = column + 1
        ids, stream = self._block
        stream._column = column
        return ids[column], stream
