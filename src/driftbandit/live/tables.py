"""What both stores answer with the same SQL: a store says how its tables are called and how a value is written."""

from typing import Any

from driftbandit.live.errors import Damaged
from driftbandit.live.records import CHANGE, LATE, DecisionRow, Event

DECISION = ", ".join(DecisionRow._fields)
EVENT = ", ".join(Event._fields[1:])
KEPT = 3  # snapshots of a bandit


class Tables:
    """Reading that does not depend on the store."""

    SCHEMA = ""  # what stands before the name of a table
    VALUE = "?"  # what stands for a value

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        raise NotImplementedError

    def _find(self, sql: str, *values: Any) -> list[Any]:
        """The rows of a question with ? for values and @ before the names of tables."""
        return self._rows(sql.replace("?", self.VALUE).replace("@", self.SCHEMA), *values)

    def bandits(self) -> dict[str, int]:
        """The bandits in this journal, and their numbers."""
        return dict(self._find("SELECT name, number FROM @bandit ORDER BY name"))

    def number(self, name: str) -> int | None:
        """The number of the bandit with this name, or None."""
        rows = self._find("SELECT number FROM @bandit WHERE name = ?", name)
        return int(rows[0][0]) if rows else None

    def bandit_count(self) -> int:
        """How many bandits there are."""
        return int(self._find("SELECT count(*) FROM @bandit")[0][0])

    def snapshots(self, bandit: int) -> list[tuple[int, str]]:
        """The snapshots kept, newest first."""
        return self._find("SELECT n, body FROM @snapshot WHERE bandit = ? ORDER BY n DESC", bandit)

    def charts(self, bandit: int, width: int, since: int, until: int) -> list[tuple[int, str]]:
        """The cells of this width that begin in this time, oldest first."""
        sql = "SELECT start, body FROM @chart WHERE bandit = ? AND width = ? AND start >= ? AND start < ?"
        return self._find(sql + " ORDER BY start", bandit, width, since, until)

    def last_chart(self, bandit: int, width: int) -> tuple[int, str] | None:
        """The newest cell of this width."""
        sql = "SELECT start, body FROM @chart WHERE bandit = ? AND width = ? ORDER BY start DESC LIMIT 1"
        return next(iter(self._find(sql, bandit, width)), None)

    def groups(self, bandit: int, starts: list[int], until: int) -> list[tuple[int, int, int, float, float]]:
        """Outcomes by period and way of deciding."""
        return self._find(
            f"SELECT {_period(starts, 0, len(starts))}, how, count(*), sum(value), sum(value * value) FROM @event "
            f"WHERE bandit = ? AND decided >= ? AND decided < ? AND kind < {LATE} GROUP BY 1, 2 ORDER BY 1, 2",
            bandit, starts[0], until,
        )  # fmt: skip

    def counts(self, bandit: int) -> dict[str, int]:
        """How many decisions and how many events of each kind there are."""
        kinds = self._find("SELECT kind, count(*) FROM @event WHERE bandit = ? GROUP BY kind", bandit)
        decisions = self._find("SELECT count(*) FROM @decision WHERE bandit = ?", bandit)[0][0]
        return {"decisions": decisions, **{str(kind): count for kind, count in kinds}}

    def _recent(self, bandit: int, limit: int, newest_first: str) -> list[DecisionRow]:
        sql = f"SELECT {DECISION} FROM @decision WHERE bandit = ? ORDER BY {newest_first} LIMIT ?"
        return [DecisionRow(*row) for row in self._find(sql, bandit, limit)]

    def _astray(self) -> list[str]:
        """Outcomes that do not fit their decision, in words."""
        found = self._find(
            "SELECT e.decision FROM @event e LEFT JOIN @decision d ON d.bandit = e.bandit AND d.id = e.decision "
            f"WHERE e.kind < {CHANGE} AND (d.id IS NULL OR d.slot != e.slot OR d.how != e.how OR d.at != e.decided "
            "OR e.chance != COALESCE(d.chance, 0.0)) LIMIT 3"
        )
        return [f"an outcome does not fit its decision {row[0]}" for row in found]


def _period(starts: list[int], low: int, high: int) -> str:
    """SQL for the number of the period in which a decision was made, by bisection: cheap for thousands of periods."""
    if high - low == 1:
        return str(low)
    middle = (low + high) // 2
    return (
        f"CASE WHEN decided < {int(starts[middle])} THEN {_period(starts, low, middle)} "
        f"ELSE {_period(starts, middle, high)} END"
    )


def only_reading(statements: str, number: int) -> None:
    """What a reader does in the place of a step of migration."""
    raise Damaged(f"This journal has tables of version {number - 1}; open it for writing once to bring it forward.")
