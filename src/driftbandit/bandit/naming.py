"""The bandits of a journal by their names. One that is moved to another database has its name in both: here until it is
handed over, there from then on (`moving`)."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from driftbandit.bandit.asks import ARCHIVED
from driftbandit.bandit.inputs import checked_labels
from driftbandit.errors import Moved, StoreError


class Named(NamedTuple):
    """A bandit that has a name in this journal."""

    number: int
    created: int
    target: str | None = None  # where it was moved to
    origin: str | None = None  # where it is being moved from, while it has not been handed over


class Naming:
    """The names of a `Journal`."""

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
