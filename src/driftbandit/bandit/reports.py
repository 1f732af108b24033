"""What a bandit reports: its arms, probabilities, history, uplift and health."""

import contextlib
import copy
import json
import math
from collections.abc import Hashable, Mapping
from datetime import timedelta
from typing import Any

from driftbandit.bandit import reporting, settings
from driftbandit.bandit.beliefs import arm_beliefs, coefficients, copy_player, expected_rewards
from driftbandit.bandit.candidates import copy_candidates, split_context
from driftbandit.bandit.effects import (
    ContextExplanation,
    Effects,
    describe_effects,
    map_best_arms,
    measure_effects,
    measure_gain,
)
from driftbandit.bandit.inputs import Config, check_whole
from driftbandit.bandit.interface import Arms, Candidates, Context, History, Outcome, ReadableBandit
from driftbandit.bandit.journal import Journal
from driftbandit.bandit.opening import bandit_number, reading
from driftbandit.bandit.records import KINDS, WAYS, Change, Decision, as_datetime, check_id
from driftbandit.bandit.replica import Replica
from driftbandit.bandit.reporting import Uplift, measure_uplift
from driftbandit.core.state import to_arrays
from driftbandit.errors import NotFound, report_damage
from driftbandit.player import Probabilities
from driftbandit.policies.drift.belief import Expected
from driftbandit.spec.half_life import moment

_CONTEXTS = 500  # recent ones, in which the gain of context is measured


class View(ReadableBandit):
    """A bandit with a journal or in memory that reports only; `Bandit` adds what changes something."""

    _replica: Replica
    _fold: Any
    _lock: Any
    _journal: Any
    _number: int

    def __init__(self, target: Any, name: str, policies: Mapping[str, type] | None = None) -> None:
        """`target` is a path, a URL, or a journal open for reading, which stays open."""
        self.name = name
        self._shared = isinstance(target, Journal)
        self._journal = target if self._shared else reading(target)
        try:
            self._number = bandit_number(self._journal, name)
            self._replica = Replica(self._journal, None, self._number, dict(policies or {}))
            self._fold, self._lock = self._replica.fold, self._replica.lock
            self.refresh()
            if self._fold.config is None:
                raise NotFound(f"Bandit {name!r:.60} has no configuration yet.")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the journal, if it was opened for this view."""
        if not self._shared:
            self._journal.close()

    # ---- the state as the journal has it, for the page, monitors and tests: arms by slot, times in microseconds ------

    @property
    def stored(self) -> Any:
        """The configuration as the journal keeps it: arms by slot, times in microseconds."""
        return self._fold.config

    @property
    def player(self) -> Any:
        """The policy at work; to be read only."""
        return self._fold.player

    def compile(self) -> bool:
        """Let the policy decide and learn as machine code from now on, with the same bits; whether it does."""
        return bool(self._replica.compile())

    @property
    def state(self) -> Any:
        """A copy of the policy's state now, as arrays; retired arms keep their place."""
        with self._lock:
            player = self._fold.player
            state = player.faded(self._replica.now())
        return to_arrays(state, player.first_state())

    def fingerprint(self) -> str:
        """The whole folded state as text: equal texts are equal bits."""
        with self._lock:
            return str(self._fold.dump())

    @property
    def events(self) -> int:
        """The number of events folded so far."""
        return int(self._fold.n)

    @property
    def settled(self) -> int:
        """With `wait`: every decision made until this time has its outcome. Microseconds since 1970."""
        return int(self._fold.settled)

    @property
    def lag(self) -> float:
        """How many seconds this process is behind the journal."""
        return float(self._replica.lag)

    @property
    def stopped(self) -> str:
        """Why no further event can be folded, and so no decision made; empty while all is well."""
        return str(self._replica._stuck or "")

    @property
    def delays(self) -> str:
        """How long rewards take, in a sentence; empty while there are few."""
        return str(self._fold.reported.delays)

    def now(self) -> int:
        """The time by the bandit's clock, in microseconds since 1970."""
        return int(self._replica.now())

    # ---- reports -----------------------------------------------------------------------------------------------------

    @property
    def arms(self) -> list[Hashable]:
        config, names = self._fold.config, settings.names_of(self._fold.config)
        return [] if config.candidates else [names[slot] for slot in config.active]

    @property
    def policy(self) -> Any:
        return self._fold.player.policy

    @property
    def config(self) -> Config:
        return settings.public_config(self._fold.config, self._fold.player.policy)

    def probabilities(
        self, context: Context = None, *, candidates: Candidates = None, available: Arms = None, draws: int = 2000
    ) -> Probabilities:
        if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
            raise ValueError(f"probabilities needs draws of 1 or more; got {draws!r:.60}.")
        with self._lock:
            fold, config = self._fold, self._fold.config
            slots = fold.active if available is None else settings.slots_of(config, available)
            at = self._replica.now()
            names, features = self._features(context, candidates, at)
            compute = fold.ask_probabilities(slots, at, draws, features)
        values, error = compute()
        out = Probabilities({names[slot]: float(values[slot]) for slot in (slots or range(len(names)))})
        out.error = error
        return out

    def greedy(self, context: Context = None, *, candidates: Candidates = None, available: Arms = None) -> Hashable:
        with self._lock:
            fold, config, now = self._fold, self._fold.config, self._replica.now()
            slots: list[int] = list(config.active) if available is None else settings.slots_of(config, available)
            names, features = self._features(context, candidates, now)
            slots = list(range(len(names))) if config.candidates else slots
            if config.fixed is not None and config.fixed in slots:
                return names[int(config.fixed)]
            means: list[float | None] = []
            if features is None:
                means = arm_beliefs(fold.player.policy, fold.player.arrays(now), config).mean
            else:
                with contextlib.suppress(ValueError):  # the policy has no such belief
                    found = expected_rewards(copy_player(fold.player, now), config, features)
                    means = [one.mean if math.isfinite(one.sd) else None for one in found]
            sign = 1.0 if config.goal == "maximise" else -1.0
            believed = {slot: sign * mean for slot, mean in enumerate(means) if slot in slots and mean is not None}
            if not believed:
                values, _ = fold.probabilities(slots, now, features=features)
                believed = {slot: float(values[slot]) for slot in slots}
            return names[max(believed, key=lambda slot: believed[slot])]

    def _features(self, context: Any, candidates: Any, at: int) -> tuple[list[Hashable], list[float] | None]:
        """The names of the arms and the numbers of a context to ask about, without one of the mean context; or the
        names of the candidates, and the numbers of all."""
        fold, asked = self._fold, context
        if candidates is not None:
            asked = copy_candidates(candidates)
        elif context is None and fold.features and not fold.config.candidates:
            asked = {}
        kept, features = fold.read_context(asked, at)
        return (kept.names if fold.config.candidates else settings.names_of(fold.config)), features

    def expected(self, context: Context = None, *, candidates: Candidates = None) -> dict[Hashable, Expected]:
        with self._lock:
            fold, config, at = self._fold, self._fold.config, self._replica.now()
            names, features = self._features(context, candidates, at)
            known = copy_player(fold.player, at)
        found = expected_rewards(known, config, features)
        return {names[slot]: found[slot] for slot in (range(len(found)) if config.candidates else config.active)}

    def _known(self) -> tuple[Any, Any, Any, Any]:
        """The configuration, the features, their statistics and the player's beliefs, all of this moment."""
        with self._lock:
            fold = self._fold
            return fold.config, fold.features, copy.copy(fold.seen), copy_player(fold.player, self._replica.now())

    def explain(self) -> Any:
        config, features, seen, known = self._known()
        names = settings.names_of(config)
        shown = [(name, "retired", slot) if slot in config.retired else name for slot, name in enumerate(names)]
        beliefs = coefficients(known) if features else None
        found: Any = None
        if hasattr(known.policy, "explain"):
            found = known.policy.explain(known.arrays(), shown)
        elif beliefs is None:
            raise ValueError(f"{type(known.policy).__name__} cannot explain its choices; DriftAuto can.")
        origin, unit = config.scale
        if hasattr(found, "in_rewards"):
            named = [] if config.candidates else [shown[slot] for slot in config.active]
            found = found.in_rewards(origin, origin + unit, named)
        if beliefs is None:
            return found
        learned = (len(config.active) > 1 or config.candidates) and seen.learned > 0
        effects = measure_effects(beliefs, features, seen, config.active, config.scale, config.candidates)
        arms = {} if config.candidates else self.expected()
        sentences = describe_effects(effects, [names[slot] for slot in config.active], unit)
        return ContextExplanation(found, arms, sentences if learned else {})

    def effects(self) -> Effects:
        config, features, seen, known = self._known()
        beliefs = coefficients(known) if features else None
        if beliefs is None:
            why = "has no expected rewards in a context" if features else "is used without features"
            raise ValueError(f"{type(known.policy).__name__} {why}, so there are no effects to show.")
        names, slots, unit = settings.names_of(config), config.active, config.scale[1]
        arms = [] if config.candidates else [names[slot] for slot in slots]
        if not (seen.learned and beliefs.known):
            return Effects(arms, [], None, None)
        found = measure_effects(beliefs, features, seen, slots, config.scale, config.candidates, 24)
        if len(arms) < 2:
            return Effects(arms, found, None, None)
        rows = self._journal.recent(self._number, _CONTEXTS)
        contexts = [features.encode(json.loads(row.context or "{}"), row.at, seen) for row in rows]
        gain = measure_gain(beliefs, contexts, slots, names, unit)
        return Effects(arms, found, map_best_arms(beliefs, features, seen, slots), gain)

    def outcome(self, id: str | Decision) -> Outcome:
        id = check_id(id)
        found = self._journal.standing(self._number, [id]).get(id)
        if found is None:
            raise NotFound(f"There is no decision {id!r:.140}.")
        return self._outcome(found)

    def recent(self, limit: int = 20) -> list[Outcome]:
        check_whole(limit, "limit", 1, 1000)
        rows = self._journal.recent(self._number, limit)
        found = self._journal.standing(self._number, [row.id for row in rows])
        return [self._outcome(found[row.id]) for row in rows if row.id in found]

    def _outcome(self, found: Any) -> Outcome:
        row = found.row
        with report_damage():
            candidate, features = split_context(row.context)
            arm = reporting.names_up_to(self._replica, row.slot)[row.slot] if candidate is None else candidate
            made = Decision(row.id, arm, row.at, row.known, WAYS[row.how])
            unsettled = self._fold.config.holds and row.at > self._fold.settled
            waiting = unsettled if found.kind is not None else found.added is not None
            came = None if found.came is None else as_datetime(found.came)
            context = None if row.context is None else features
            kind = KINDS.get(found.kind or 0)
            return Outcome(made, kind, found.value, found.late, came, waiting, context, found.added)

    def changes(self) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        before = None
        for _, event in self._journal.changes(self._number):
            change = Change.read(event.body)
            what = reporting.describe_change(change, before)
            out.append({"at": as_datetime(event.at), "what": what, "who": change.who})
            before = change.config
        return out

    def history(self, since: Any = None, until: Any = None, points: int = 200) -> History:
        check_whole(points, "points", 1, 10_000)
        now, first, wait = self._replica.now(), self._journal.first_at(self._number), self._fold.config.wait
        end = now + 1 if until is None else moment(until, now, "until")
        begin = moment(since, now, "since") if since is not None else end if first is None else first
        if begin > end:
            raise ValueError("history needs since <= until.")
        width = max(1, -(-(end - begin) // points))
        due = None if wait is None else (wait, self._fold.settled)
        found = list(self._journal.tally(self._number, begin, end, width, due))
        names = reporting.names_up_to(self._replica, max((slot for _, slot, *_ in found), default=0))
        count = max(1, -(-(end - begin) // width))
        decisions, outcomes, rewards = ([[zero] * len(names) for _ in range(count)] for zero in (0, 0, 0.0))
        with report_damage():
            for stretch, slot, _, made, came, total in found:
                decisions[stretch][slot] += made
                outcomes[stretch][slot] += came
                rewards[stretch][slot] += total
        starts = [as_datetime(begin + width * n) for n in range(count)]
        return History(starts, timedelta(microseconds=width), names, decisions, outcomes, rewards)  # type: ignore[arg-type]

    def uplift(self, since: Any = None, confidence: float = 0.95) -> Uplift:
        start = 0 if since is None else moment(since, self._replica.now(), "since")
        old_enough = 1 << 62 if self._fold.config.wait is None else self._fold.settled + 1
        return measure_uplift(self._journal, self._number, start, confidence, old_enough)

    def refresh(self) -> None:
        self._replica.catch_up()

    def health(self) -> dict[str, Any]:
        decisions, fold = self._journal.count_decisions(self._number), self._fold
        with self._lock:
            policy, state = fold.player.policy, fold.player.state
            out = {
                "decisions": decisions,
                "rewards": fold.reported.rewards,
                "defaults": fold.reported.defaults,
                "late": fold.reported.late,
                "waiting": len(fold.waiting),
                "events": fold.n,
                "plays": reporting.policy_played(fold),
                "cut": int(policy.cut_rewards(state)) if hasattr(policy, "cut_rewards") else 0,
                "delays": fold.reported.delays or None,
                "warnings": reporting.warnings(fold, decisions),
                "missing": fold.seen.missing,
                "undeclared": fold.seen.undeclared,
            }
        if self._replica.writer is None:  # only looking: the process that writes has the rest
            return out
        return out | {
            "queued": self._replica.writer.waiting,
            "commits": self._replica.writer.commits,
            "failed": self._replica.writer.failed,
            "lag": timedelta(seconds=self._replica.lag),
            "clock_set_back": timedelta(microseconds=self._replica.clock.set_back),
            "clock_ahead": timedelta(microseconds=self._fold.config.ahead),
            "arithmetic": self._fold.config.arithmetic,
            "note": self._replica.note,
        }
