"""What a journal counts: rows that it has, and the daily counts of rows that were dropped.

A dropped row is added to the counts of its day in the transaction that deletes it (`commit`), so that every row is
counted once at every moment. A day is split where the configuration changed, so that periods of one configuration can
still be compared."""

from bisect import bisect_right
from typing import Any

from driftbandit.bandit.records import LATE, REWARD

DECIDED = 0  # in daily counts, the kind of a decision; others are kinds of events
DAY = 86_400 * 1_000_000  # microseconds
_DAILY = "SELECT start, slot, how, kind, n, total, squares FROM @daily WHERE bandit = ? AND start >= ? AND start < ?"


class Counting:
    """The counts of a `Journal`."""

    oldest, newest = "at, id", "at DESC, id DESC"  # orders of decisions

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        raise NotImplementedError

    def _between(self, table: str, bandit: int, since: int, until: int) -> tuple[str, list[Any]]:
        """SQL for the rows of a stretch of time, and its values."""
        raise NotImplementedError

    def first_at(self, bandit: int) -> int | None:
        """The time of the first decision; where it was dropped, the beginning of its day."""
        daily = self._rows("SELECT min(start) FROM @daily WHERE bandit = ?", bandit)
        rows = self._rows(f"SELECT at FROM @decision WHERE bandit = ? ORDER BY {self.oldest} LIMIT 1", bandit)
        found = [int(row[0]) for row in daily + rows if row[0] is not None]
        return min(found, default=None)

    def least_known(self, bandit: int, since: int, until: int) -> int | None:
        """The fewest events that a decision of this time knew."""
        where, values = self._between("decision", bandit, since, until)
        return self._rows(f"SELECT min(known) FROM @decision WHERE {where}", *values)[0][0]  # type: ignore[no-any-return]

    def tally(
        self, bandit: int, since: int, until: int, width: int, due: tuple[int, int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Counts per stretch of `width` microseconds: (stretch, slot, how, decisions, outcomes, sum of rewards).
        Outcomes count when they were written. With `due`, a wait and the time up to which all decisions are settled,
        they count when their decision was that old, and only if it is settled. What was dropped of a day counts at its
        beginning."""
        where, values = self._between("decision", bandit, since, until)
        out = self._rows(
            "SELECT (at - ?) / ?, slot, how, count(*), 0, CAST(0 AS float8) FROM @decision "
            f"WHERE {where} GROUP BY 1, 2, 3", since, width, *values,
        )  # fmt: skip
        out += [
            ((start - since) // width, slot, how, rows, 0, 0.0)
            if kind == DECIDED
            else ((start - since) // width, slot, how, 0, rows, total)
            for start, slot, how, kind, rows, total, _ in self._rows(_DAILY, bandit, since, until)
            if kind < LATE
        ]
        if due is None:
            where, values = self._between("event", bandit, since, until)
            return out + self._rows(
                "SELECT (at - ?) / ?, slot, how, 0, count(*), sum(value) FROM @event "
                f"WHERE {where} AND kind < {LATE} GROUP BY 1, 2, 3", since, width, *values,
            )  # fmt: skip
        since, until = since - due[0], min(until - due[0], due[1] + 1)
        where, values = self._between("decision", bandit, since, until)
        out += self._outcomes_of_dropped(bandit, since, until, width, due[0])
        # One look per decision, whatever the server believes about the number of rows.
        return out + self._rows(
            "SELECT (at - ?) / ?, slot, how, 0, count(value), sum(value) FROM (SELECT at, slot, how, "
            "(SELECT value FROM @event o WHERE o.bandit = d.bandit AND o.decision = d.id AND (o.kind = 3) = false) "
            f"AS value FROM @decision d WHERE {where}) AS paid WHERE value IS NOT NULL GROUP BY 1, 2, 3",
            since, width, *values,
        )  # fmt: skip

    def _outcomes_of_dropped(self, bandit: int, since: int, until: int, width: int, wait: int) -> list[Any]:
        """The same counts of outcomes that came after the journal's beginning, of decisions from before it."""
        found = self._rows("SELECT at FROM @base WHERE bandit = ?", bandit)
        if not found or not since - DAY < found[0][0] < until + DAY:
            return []
        where, values = self._between("event", bandit, found[0][0] - DAY, found[0][0] + wait + DAY)
        return self._rows(
            "SELECT (decided - ?) / ?, slot, how, 0, count(value), sum(value) FROM @event e "
            f"WHERE {where} AND kind < {LATE} AND decided >= ? AND decided < ? AND NOT EXISTS "
            "(SELECT 1 FROM @decision d WHERE d.bandit = e.bandit AND d.id = e.decision) GROUP BY 1, 2, 3",
            since, width, *values, since, until,
        )  # fmt: skip

    def groups(self, bandit: int, starts: list[int], until: int) -> list[tuple[int, int, int, float, float]]:
        """For each period of time (they begin at `starts`; the last ends at `until`) and each way of deciding:
        outcomes, sum and sum of squares of rewards of decisions made then, as (period, how, count, sum, squares)."""
        dropped = [
            (bisect_right(starts, start) - 1, how, rows, total, squares)
            for start, _, how, kind, rows, total, squares in self._rows(_DAILY, bandit, starts[0], until)
            if REWARD <= kind < LATE
        ]
        return dropped + self._rows(
            f"SELECT {_period(starts, 0, len(starts))}, how, count(*), sum(value), sum(value * value) FROM @event "
            f"WHERE bandit = ? AND decided >= ? AND decided < ? AND kind < {LATE} GROUP BY 1, 2 ORDER BY 1, 2",
            bandit, starts[0], until,
        )  # fmt: skip

    def count_decisions(self, bandit: int) -> int:
        """How many decisions were written, by `head`; those that were dropped count too."""
        return int(self._rows("SELECT COALESCE(sum(decisions), 0) FROM @head WHERE bandit = ?", bandit)[0][0])


def _period(starts: list[int], low: int, high: int) -> str:
    """SQL for the number of the period in which a decision was made, by bisection: cheap for thousands of periods."""
    if high - low == 1:
        return str(low)
    middle = (low + high) // 2
    return (
        f"CASE WHEN decided < {int(starts[middle])} THEN {_period(starts, low, middle)} "
        f"ELSE {_period(starts, middle, high)} END"
    )
