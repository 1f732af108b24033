"""Decision ids and their random numbers.

The random numbers of a decision are a hash of (the bandit's key, the decision's id, slot): `draws` with the id in the
place of the round. Processes share no counter, and the key and the id are enough to recompute them."""

import hashlib
import os
import re
import time
from typing import Any

import numpy as np

from driftbandit.bandit.records import Decision
from driftbandit.core.draws import Stream, mix

_ID = re.compile(r"[A-Za-z0-9_.:~-]{1,128}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:~-]{0,127}")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def check_id(value: Any, of: str = "decision") -> str:
    """A valid id, of a decision also from the `Decision`."""
    if type(value) is Decision:
        value = value.id
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError(f"A {of}'s id is a text of 1 to 128 letters, digits or _ . : ~ -; got {value!r:.60}.")
    return value


def check_name(value: Any) -> str:
    """A valid name of a bandit."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(
            "A bandit's name is a text of 1 to 128 letters, digits or _ . : ~ - that begins with a letter, a digit "
            f"or _; got {value!r:.60}."
        )
    return value


def make_ids(count: int) -> list[str]:
    """New ids. They begin with 12 hexadecimal digits of milliseconds, so that a store appends them to its index, and
    end with 80 random bits, so that they cannot be guessed."""
    stamp = f"{time.time_ns() // 1_000_000 & 0xFFFFFFFFFFFF:012x}"
    random = os.urandom(10 * count).hex()
    return [stamp + random[i : i + 20] for i in range(0, 20 * count, 20)]


def hash_round(decision: str) -> int:
    """63 bits of an id, which take the place of a simulation's round; an id that was erased begins with them."""
    if decision[:1] == "=":
        return int(decision[1:17], 16)
    return int.from_bytes(hashlib.blake2b(decision.encode(), digest_size=8).digest(), "little") >> 1


def number_round(decision: str) -> int:
    """The id itself as the round, where it is "0", "1", "2" ...: a bandit in memory then plays the arms of a
    simulation. Other ids are hashed."""
    plain = len(decision) <= 12 and decision.isascii() and decision.isdigit() and str(int(decision)) == decision
    return int(decision) if plain else hash_round(decision)


ROUNDS = {"hash": hash_round, "number": number_round}


def decision_stream(key: int, rounds: list[int]) -> Stream:
    """The random numbers of the decisions with these rounds (`ROUNDS`); `at(n)` moves to the n-th."""
    places = np.array(rounds, np.uint64) + np.uint64(1)
    return Stream.of(np.asarray(mix(np.uint64(key) + places * _GOLDEN)))


class Supply:
    """Ids made ahead with their random numbers, since NumPy is slow with one at a time and fast with 256."""

    SMALLEST, LARGEST = 8, 256

    def __init__(self, key: int) -> None:
        self._key = key
        self._size = self.SMALLEST // 2
        self._block: tuple[list[str], Stream] = [], Stream(0)
        self._column = 0

    def take(self) -> tuple[str, Stream]:
        """The next id and its random numbers, valid until the next call. An interrupt at any line leaves every id with
        its own numbers."""
        column = self._column
        if column >= len(self._block[0]):
            self._size = min(2 * self._size, self.LARGEST)
            made = make_ids(self._size)
            block = made, decision_stream(self._key, [hash_round(id) for id in made])
            self._column, self._block, column = len(made), block, 0
        self._column = column + 1
        ids, stream = self._block
        stream._column = column
        return ids[column], stream
