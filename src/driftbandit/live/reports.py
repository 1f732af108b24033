"""What a bandit can tell: its arms, probabilities, history, uplift and health."""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from driftbandit.agent import Probabilities, page
from driftbandit.agent.explaining import explained
from driftbandit.checks import counted
from driftbandit.half_life import SECOND, moment, policy_told
from driftbandit.live import reporting, rules, settings, words
from driftbandit.live.errors import Unknown, damage_told
from driftbandit.live.ids import checked_id
from driftbandit.live.records import DEFAULT, KINDS, LATE, REWARD, WAYS, Change, Decision
from driftbandit.live.uplift import Uplift, measured

_COUNTED = {REWARD: "rewards", DEFAULT: "defaults", LATE: "late"}


class History(NamedTuple):
    """Counts over time, one row per stretch and one column per arm."""

    starts: list[int]  # microseconds: when each stretch begins
    width: int  # microseconds
    arms: list[Any]
    decisions: list[list[int]]
    outcomes: list[list[int]]
    rewards: list[list[float]]  # sums


class Outcome(NamedTuple):
    """A decision and its outcome."""

    decision: Decision
    kind: str | None  # "reward", "default", or None while nothing came
    reward: float | None
    late: float | None  # a reward that came after the default
    came: int | None = None  # when the outcome was written, in microseconds since 1970
    waiting: bool = False  # whether it is still to be learned


class Reports:
    """The questions; `Bandit` adds what changes something."""

    name: str
    _replica: Any
    _fold: Any
    _journal: Any
    _number: int
    _lock: Any

    @property
    def arms(self) -> list[Hashable]:
        """The arms that can be chosen, in the order they were added."""
        names = settings.names_of(self._fold.config)
        return [names[slot] for slot in self._fold.config.active]

    @property
    def policy(self) -> Any:
        """The policy that decides now."""
        return self._fold.player.policy

    @property
    def config(self) -> Any:
        """Everything that was chosen about this bandit."""
        return self._fold.config

    @property
    def state(self) -> Any:
        """A copy of what the policy knows now, as arrays; retired arms keep their place."""
        with self._lock:
            return self._fold.player.arrays(self._replica.now())

    def fingerprint(self) -> str:
        """The whole folded state as text: equal texts are equal bits."""
        with self._lock:
            return str(self._fold.dump())

    def probabilities(self, *, available: Iterable[Hashable] | None = None, draws: int = 2000) -> Probabilities:
        """Each arm's chance of being chosen now, all rules included; `error` says how exact it is."""
        if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
            raise ValueError(f"probabilities needs draws of 1 or more; got {draws!r:.60}.")
        with self._lock:
            fold, config = self._fold, self._fold.config
            slots = fold.active if available is None else settings.slots_of(config, available)
            values, error = rules.probabilities(config, fold.player, slots, self._replica.now(), draws)
            names = settings.names_of(config)
            out = Probabilities({names[slot]: float(values[slot]) for slot in (slots or range(len(names)))})
            out.error = error
            return out

    def explain(self) -> Any:
        """What the policy believes about the world and every arm, printable, if it can say so; `DriftTS` can."""
        with self._lock:
            fold, config = self._fold, self._fold.config
            names = settings.names_of(config)
            return explained(fold.player, names, config.reward_range, config.retired, self._replica.now())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        config = self.config
        told = "; ".join([f"bandit {self.name}, {counted(self._fold.n, 'event')}", *words.sentences(config)])
        return page.chances_table(policy_told(self.policy, config.half_life), told, self.probabilities(draws=200))

    def outcome(self, id: str | Decision) -> Outcome:
        """A decision's record."""
        id = checked_id(id)
        found = self._journal.standing(self._number, [id]).get(id)
        if found is None:
            raise Unknown(f"There is no decision {id!r:.140}.")
        return self._outcome(found)

    def recent(self, limit: int = 20) -> list[Outcome]:
        """The last decisions, newest first, with their outcomes."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1000:
            raise ValueError(f"recent needs a number from 1 to 1000; got {limit!r:.60}.")
        rows = self._journal.recent(self._number, limit)
        found = self._journal.standing(self._number, [row.id for row in rows])
        return [self._outcome(found[row.id]) for row in rows if row.id in found]

    def _outcome(self, found: Any) -> Outcome:
        row = found.row
        with damage_told():
            made = Decision(row.id, settings.names_of(self._fold.config)[row.slot], row.at, row.known, WAYS[row.how])
            waiting = found.kind is not None and self._fold.config.holds and row.at > self._fold.settled
            return Outcome(made, KINDS.get(found.kind or 0), found.value, found.late, found.came, waiting)

    def changes(self) -> list[dict[str, Any]]:
        """Every change of configuration: when, what (with arms and values), who."""
        out: list[dict[str, Any]] = []
        before = None
        for _, event in self._journal.changes(self._number):
            change = Change.read(event.body)
            what = words.describe_change(change, before)
            out.append({"at": event.at, "what": what, "who": change.who, "config": change.config._asdict()})
            before = change.config
        return out

    def history(self, since: Any = None, until: Any = None, points: int = 200) -> History:
        """Decisions, outcomes and rewards over time, counted by the store in at most `points` stretches. Times are
        datetimes, or how long ago: "7 days", a timedelta or seconds. With `wait`, an outcome counts at the
        time when its decision is that old."""
        now = self._replica.now()
        begin, end = (
            None if value is None else moment(value, now, name) for name, value in (("since", since), ("until", until))
        )
        return self._history(begin, end, points)

    def _history(self, since: int | None, until: int | None, points: int) -> History:
        """The same, with times in microseconds since 1970."""
        if isinstance(points, bool) or not isinstance(points, int) or not 1 <= points <= 10_000:
            raise ValueError(f"history needs 1 to 10,000 points; got {points!r:.60}.")
        end = self._replica.now() + 1 if until is None else until
        first = self._journal.first_at(self._number)
        begin = (end if first is None else first) if since is None else since
        if begin > end:
            raise ValueError("history needs since <= until.")
        width = max(1, -(-(end - begin) // points))
        names = settings.names_of(self._fold.config)
        count = max(1, -(-max(1, end - begin) // width))
        decisions = [[0] * len(names) for _ in range(count)]
        outcomes = [[0] * len(names) for _ in range(count)]
        rewards = [[0.0] * len(names) for _ in range(count)]
        with damage_told():
            for stretch, slot, _, made, came, total in self._tally(self._journal, begin, end, width):
                decisions[stretch][slot] += made
                outcomes[stretch][slot] += came
                rewards[stretch][slot] += total
        return History([begin + width * n for n in range(count)], width, names, decisions, outcomes, rewards)

    def _tally(self, journal: Any, begin: int, end: int, width: int) -> list[tuple[Any, ...]]:
        """Counts per stretch of time, by this journal. With `wait`, an outcome counts when its decision is that old."""
        wait = self._fold.config.wait
        due = None if wait is None else (wait, self._fold.settled)
        return journal.tally(self._number, begin, end, width, due)  # type: ignore[no-any-return]

    def uplift(self, since: Any = None, confidence: float = 0.95) -> Uplift:
        """What the policy gains over the baseline: mean rewards of the two groups of decisions, compared within each
        period of one configuration, and an interval for the difference. `since` limits it to recent decisions, as in
        "7 days" (or a timedelta, seconds, a datetime)."""
        start = 0 if since is None else moment(since, self._replica.now(), "since")
        return measured(self._journal, self._number, start, confidence, self._old_enough())

    def _old_enough(self) -> int:
        """Decisions before this time have their outcome, or may have it at any time."""
        return 1 << 62 if self._fold.config.wait is None else self._fold.settled + 1

    def settle(self) -> int:
        """Settle every decision that is `wait` old: write the default where no reward came, and learn all outcomes. The
        number of defaults. This happens automatically, before decisions and while nothing happens."""
        return int(self._replica.settle_all())

    def refresh(self) -> None:
        """Fold what other processes have written so far; this happens by itself a few milliseconds later."""
        self._replica.catch_up()

    def health(self) -> dict[str, Any]:
        """Counts and, in a process that writes, lags: for a page or a monitor. `waiting` counts outcomes that are
        learned when their decision is old enough, `late` rewards that came after `wait`. `delays` is a sentence about
        how long rewards take, `warnings` has one for each way of reporting that is likely to mislead the policy."""
        counts, fold = self._journal.counts(self._number), self._fold
        delays = fold.reported.delays
        out = {
            "decisions": counts.get("decisions", 0),
            **{_COUNTED[kind]: counts.get(str(kind), 0) for kind in (REWARD, DEFAULT, LATE)},
            "waiting": len(fold.waiting),
            "events": fold.n,
            "clipped": fold.clipped,
            "delays": None if delays is None else f"{delays}.",
            "warnings": reporting.warnings(fold.config, fold.reported, counts.get("decisions", 0)),
        }
        if self._replica.writer is None:  # only looking: the process that writes knows the rest
            return out
        return out | {
            "queued": self._replica.writer.waiting,
            "commits": self._replica.writer.commits,
            "failed": self._replica.writer.failed,
            "lag_ms": self._replica.lag * 1000.0,
            "clock_set_back_s": self._replica.clock.set_back / SECOND,
            "clock_ahead_s": self._fold.config.ahead / SECOND,
            "arithmetic": self._fold.config.arithmetic,
            "note": self._replica.note,
        }
