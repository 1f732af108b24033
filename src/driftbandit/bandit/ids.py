"""Ids of decisions with their random numbers, and bandits by their names.

The random numbers of a decision are a hash of (the bandit's key, the decision's id, slot): `draws` with the id in the
place of the round. Processes share no counter, and the key and the id are enough to recompute them."""

import hashlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from driftbandit.bandit.inputs import checked_labels
from driftbandit.bandit.records import Decision
from driftbandit.core.draws import Stream, mix
from driftbandit.errors import Moved, StoreError

ARCHIVED = "archived "  # begins the name of a note: the bandit is archived, which keeps it out of lists
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


class Named(NamedTuple):
    """A bandit that has a name in this journal."""

    number: int
    created: int
    target: str | None = None  # where it was moved to
    origin: str | None = None  # where it is being moved from, while it has not been handed over


class Naming:
    """The names of a `Journal`. A bandit that is moved to another database has its name in both: here until it is
    handed over, there from then on (`moving`)."""

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        raise NotImplementedError

    def bandits(self) -> dict[str, int]:
        """The bandits in this journal, and their numbers."""
        return dict(
            self._rows("SELECT name, number FROM @bandit WHERE number NOT IN (SELECT bandit FROM @moved) ORDER BY name")
        )

    def find(self, name: str) -> Named | None:
        """The bandit of this name, also one that was moved away or is on its way here."""
        sql = "SELECT number, created, target, origin FROM @bandit LEFT JOIN @moved ON bandit = number WHERE name = ?"
        return next((Named(*row) for row in self._rows(sql, name)), None)

    def number(self, name: str) -> int | None:
        """The number of the bandit with this name, or None; an error if it decides in another database."""
        found = self.find(name)
        if found is None:
            return None
        if found.target is not None:
            raise Moved(name, found.target)
        if found.origin is not None:
            raise StoreError(f"Bandit {name} is being moved to this database; try again in a moment.")
        return found.number

    def names(
        self, search: str = "", after: str = "", limit: int = 1 << 40, among: Sequence[str] = (),
        labels: Mapping[str, str] | None = None, archived: bool = False,
    ) -> list[str]:  # fmt: skip
        """Names of bandits, in order: those after a name that contain a text, in upper or lower case, and have all of
        these labels; those that are archived, or those that are not; if names are given, only those `among` them, where
        "button:*" stands for all that begin with "button:"."""
        if "\0" in search + after:  # in no name, and PostgreSQL takes no such text
            return []
        pattern = "".join("!" + letter if letter in "!%_" else letter for letter in search.lower())
        only, among_values = match_names(among)
        pairs = list(checked_labels(labels or {}).items())
        labelled = (
            "SELECT bandit AS number, name FROM @label WHERE label = ? AND value = ?"  # by an index in this order
        )
        others = f" AND number IN (SELECT number FROM ({labelled}) AS other)" * (len(pairs) - 1)
        sql = (
            f"SELECT name FROM {f'({labelled}) AS labelled' if pairs else '@bandit'} WHERE name > ? "
            f"AND lower(name) LIKE ? ESCAPE '!' AND {only}{others} AND name {'' if archived else 'NOT '}IN "
            "(SELECT text FROM @meta WHERE substr(name, 1, ?) = ?) AND number NOT IN (SELECT bandit FROM @moved) "
            "ORDER BY name LIMIT ?"
        )
        wanted = *chain(*pairs[:1]), after, f"%{pattern}%", *among_values, *chain(*pairs[1:])
        found = self._rows(sql, *wanted, len(ARCHIVED), ARCHIVED, limit)
        return [str(row[0]) for row in found]


def match_names(among: Sequence[str]) -> tuple[str, list[Any]]:
    """A condition on names in SQL, and its values; "button:*" stands for all names that begin with "button:"."""
    lengths = [(len(one) - 1, one[:-1]) if one.endswith("*") else (1 << 10, one) for one in among]
    return f"({' OR '.join(['substr(name, 1, ?) = ?'] * len(among)) or '1 = 1'})", list(chain.from_iterable(lengths))
