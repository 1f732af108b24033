"""The state of a bandit as a fold over its events: the same events give the same state, bit for bit, in every process.

With `wait`, outcomes are held back until a SETTLED event marks their decisions as old enough; they are then
learned in the order of the decisions. The order follows from the events, so it needs no clock.

A fold also has the rules a bandit decides by: a fixed arm, a share held back for a baseline, untried arms first, a
floor of uniform play, the policy. A published policy may leave an arm unplayed forever ("An arm never tried" in
docs/reference/errata.md), which `first` and `floor` prevent. The floor is additive: an arm's probability is
floor / K + (1 - floor) * (the policy's). Clipping small probabilities and dividing by their sum would be biased. Every
rule takes its numbers from slots that no policy uses: switching it on changes no other draw."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from driftbandit.bandit import records
from driftbandit.bandit.asks import Within
from driftbandit.bandit.candidates import Candidates, parse_candidates, read_candidates, split_context
from driftbandit.bandit.carrying import Seen, Waiting, carry
from driftbandit.bandit.features import Features
from driftbandit.bandit.inputs import MOST_NUMBERS, check_whole, count_state
from driftbandit.bandit.probabilities import mix_rules, prepare
from driftbandit.bandit.records import Change, DecisionRow, Event, StoredConfig
from driftbandit.bandit.reporting import Reported
from driftbandit.bandit.settings import names_of
from driftbandit.core.checks import LARGEST_REWARD
from driftbandit.core.state import count_numbers
from driftbandit.errors import DamagedJournal, report_damage
from driftbandit.player import JOINT, Player

FORMAT = 6  # of snapshots
HOLD_SLOT, FLOOR_SLOT, UNIFORM_SLOT = (1 << 38), (1 << 38) + 1, (1 << 38) + 2  # slots of the rules' own numbers

Maker = Callable[[str], Any]  # a policy from its text
Probabilities = Callable[[], tuple[np.ndarray, float]]
Reread = Callable[[int], Iterable[Event]]  # so many events, from the first on


class Fold:
    """What is known after n events."""

    def __init__(
        self, make: Maker, reread: Reread | None = None, compiled: bool = False, instead: dict[str, Any] | None = None
    ) -> None:
        self.n = 0
        self.last_at = 0  # of the latest event
        self.changes = 0
        self.settled = 0  # every decision made until then has its outcome
        self.waiting = Waiting()  # outcomes of later decisions
        self.reported = Reported()
        self.config: StoredConfig = None  # type: ignore[assignment]  # until the first change, which makes the bandit
        self.player: Player = None  # type: ignore[assignment]
        self.compiled = compiled
        self.active: list[int] | None = None
        self.untried: dict[int, int] = {}  # arms without an outcome, and after how many learned they count as tried
        self._holds = False
        self.low, self.high = -LARGEST_REWARD, LARGEST_REWARD  # of rewards
        self._origin, self._unit = 0.0, 1.0
        self._make, self._reread = make, reread
        self._instead = instead or {}  # of the configuration, used instead of those in the events
        self.features = Features()
        self.seen = Seen(self.features)

    def apply(self, events: Iterable[Event]) -> None:
        """Fold some more events."""
        batch: list[Event] = []  # machine code learns many outcomes in one call
        with report_damage():
            for event in events:
                batch += self._due(event)
                if batch and (event.kind == records.CHANGE or not self.compiled):
                    self._learn(batch)
                    batch = []
                if event.kind == records.CHANGE:
                    self._change(event)
            self._learn(batch)

    def _due(self, event: Event) -> list[Event]:
        """Count an event; the outcomes to learn now, in order. One that is written after its time was settled belongs
        to a decision that was stored late: it is learned at once."""
        self.n += 1
        if event.at > self.last_at:
            self.last_at = event.at
        if event.kind <= records.LATE:
            self.reported.add(event.kind, event.value, event.at, event.decided)
        if event.kind < records.LATE:
            if not self._holds or event.decided <= self.settled:
                return [event]
            self.waiting.add(event, self._tie(event.decision))
        elif event.kind == records.SETTLED and event.decided > self.settled:
            self.settled = event.decided
            return self.waiting.release(self.settled)
        return []

    def _learn(self, outcomes: Iterable[Event]) -> None:
        """Learn outcomes in this order."""
        config, rows, contextual = self.config, [], bool(self.features)
        for event in outcomes:
            if config is None:
                raise DamagedJournal("The journal is damaged: an outcome comes before the event that makes the bandit.")
            if event.how == records.HOLDBACK and not config.learn_holdback:
                continue
            if event.slot < 0:
                raise IndexError("an outcome has no arm")
            value = (event.value - self._origin) / self._unit
            row: tuple[Any, ...] = (event.slot, value, event.decided, event.probability)
            if contextual:
                row = *row, self.seen.learn(json.loads(event.body or "{}"), event.decided)
            rows.append(row)
        if rows:
            self.player.learn_many(rows)
            if self.untried:
                self._try([row[0] for row in rows])

    def learn_reward(
        self, at: int, slot: int, how: int, value: float, decided: int, probability: float | None, context: Any
    ) -> None:
        """What `apply` does with a reward that is learned at once, for a bandit in memory."""
        self.n += 1
        if at > self.last_at:
            self.last_at = at
        self.reported.add(records.REWARD, value, at, decided)
        if how != records.HOLDBACK or self.config.learn_holdback:
            features = self.seen.learn(context or {}, decided) if self.features else None
            self.player.learn(slot, (value - self._origin) / self._unit, decided, probability, features)
            if self.untried:
                self._try([slot])

    def _try(self, slots: list[int]) -> None:
        """Outcomes of these arms have been learned."""
        learned = self.player.learned
        self.untried = {slot: end for slot, end in self.untried.items() if slot not in slots and end > learned}

    def _change(self, event: Event) -> None:
        change = Change.read(event.body)
        before: StoredConfig | None = self.config
        after = change.config._replace(**self._instead)
        self.changes += 1
        learner = {name: getattr(after, name) for name in records.LEARNER}
        forgetting = before is not None and before.learns_otherwise(after)
        if before is None:
            self._begin(after, event.at)
        elif forgetting and not change.from_now:
            anew = Fold(self._make, None, self.compiled, learner)
            if self._reread is None:
                raise DamagedJournal("The journal is damaged: a change needs events that cannot be read.")
            anew.apply(self._reread(self.n - 1))
            self.player, self.untried, self.seen = anew.player, anew.untried, anew.seen
        elif forgetting and (before.policy, before.features) != (after.policy, after.features):
            old, untried = (self.player, self.seen), self.untried
            self._begin(after._replace(arms=before.arms), event.at)
            if before.policy == after.policy and carry(*old, self.player, self.seen, event.at):
                self.untried = untried
        elif forgetting:  # the same policy at another pace
            self.player.change_half_life(after.half_life, event.at)
        self._use(after, change.past, event.at)
        self.settled = min(self.settled, event.at)  # less only where a clock that was ahead has been put right
        if not self._holds:
            self._learn(self.waiting.release())

    def _begin(self, config: StoredConfig, at: int) -> None:
        policy, features, joint = self._make(config.policy), Features.stored(config.features), config.candidates
        n_arms, self.seen = JOINT if joint else len(config.arms), Seen(features)
        self.player = make_player(
            policy, n_arms, int(config.key), config.half_life, at, self.compiled, MOST_NUMBERS, len(features.columns),
            joint,
        )  # fmt: skip
        if any(features.variances) and hasattr(policy, "know_variances"):
            policy.know_variances(self.player.state, features.variances)
        self.untried = {} if joint else dict.fromkeys(range(n_arms), _tries(config))

    def _use(self, config: StoredConfig, past: dict[str, Any] | None = None, at: int = 0) -> None:
        """Go on with this configuration, of the player's policy and half-life, and perhaps an arm with a past."""
        before, self.config, self.features = self.config, config, Features.stored(config.features)
        if past is not None and "mean" in past:
            past = past | {"mean": (past["mean"] - config.scale[0]) / config.scale[1]}
        while (slot := self.player.n_arms) < len(config.arms):
            new = past if before is not None and slot >= len(before.arms) else None
            known = self.player.add_arm(new, at, self.seen.means if self.features else None)
            if not known or (new or {}).get("like") in self.untried:
                self.untried[slot] = self.player.learned + _tries(config)
        self.low, self.high = config.bounds
        self._origin, self._unit = config.scale
        self._holds, self._tie = config.holds, records.ROUNDS[config.rounds]
        self.active = None if not config.retired else config.active  # the slots that can be chosen; None for all

    # ---- contexts ----------------------------------------------------------------------------------------------------

    def read_context(self, given: Any, at: int) -> tuple[Any, list[float] | None]:
        """The context of a new decision to be kept, and its numbers; or its candidates, and the numbers of all. Those
        that do not fit the features are refused."""
        if isinstance(given, Candidates) and not self.config.candidates:
            raise ValueError("This bandit has arms; one that chooses among candidates is made with candidates=True.")
        if self.config.candidates:
            if not isinstance(given, Candidates):
                raise ValueError(
                    "This bandit chooses among candidates: give candidates={name: {feature: value}}, and no context."
                )
            found = read_candidates(self.features, given.given)
            return found, found.numbers(self.features, at, self.seen)
        if self.features:
            kept = self.features.read(given)
            return kept, self.features.encode(kept, at, self.seen)
        if given is not None:
            raise ValueError(
                "This bandit has no features, so it takes no context; declare some, features={...}, when it is made or "
                "with change()."
            )
        return None, None

    def encode(self, row: DecisionRow) -> list[float] | None:
        """The numbers of the context of a decision, or of its candidates, if it is made from the events folded so
        far."""
        if self.config.candidates:
            return parse_candidates(row.available).numbers(self.features, row.at, self.seen)
        return self.features.encode(json.loads(row.context or "{}"), row.at, self.seen) if self.features else None

    def choices(self, row: DecisionRow) -> tuple[list[Any], int]:
        """The names of all arms that a decision could have, or of its candidates, and the place of the chosen one."""
        if not self.config.candidates:
            return names_of(self.config), row.slot
        names, (name, _) = parse_candidates(row.available).names, split_context(row.context)
        return list(names), names.index(name) if name in names else -1

    def _everyone(self, features: Any) -> range:
        """The places of all arms, or of all candidates with these features."""
        return range(len(features) // self.player.n_features if self.config.candidates else len(self.config.arms))

    # ---- the rules of deciding ---------------------------------------------------------------------------------------

    def choose(self, rng: Any, allowed: list[int] | None, at: int, features: Any = None) -> tuple[int, int]:
        """The arm's slot and the rule that chose it, a pure function of the folded events, the time, the random numbers
        and the numbers of the context. `allowed` is None where every slot may be chosen."""
        config = self.config
        if config.fixed is not None and (allowed is None or config.fixed in allowed):
            return config.fixed, records.FIXED
        if config.holdback > 0.0 and rng.uniform(HOLD_SLOT) < config.holdback:
            if config.baseline is not None and (allowed is None or config.baseline in allowed):
                return config.baseline, records.HOLDBACK
            return _draw_uniformly(rng, allowed or self._everyone(features)), records.HOLDBACK
        if self.untried and (first := self.first_arms(allowed)):
            return _draw_uniformly(rng, first), records.FIRST
        if config.floor > 0.0 and rng.uniform(FLOOR_SLOT) < config.floor:
            return _draw_uniformly(rng, allowed or self._everyone(features)), records.FLOOR
        if config.candidates:
            if len(self._everyone(features)) == 1:
                return 0, records.POLICY
            self.player.resize(len(self._everyone(features)))
        return self.player.choose(rng, allowed, at, features), records.POLICY

    def first_arms(self, allowed: list[int] | None) -> list[int]:
        """The allowed arms that are drawn before the policy chooses: those of which no outcome has been learned, until
        `_tries` outcomes have been learned since they were added."""
        untried = sorted(self.untried) if self.config.first else []
        return [slot for slot in untried if allowed is None or slot in allowed]

    def probabilities(
        self, allowed: list[int] | None, at: int, draws: int = 2000, features: Any = None
    ) -> tuple[np.ndarray, float]:
        """The probability of every slot under all rules together, and how far it may be off."""
        return self.ask_probabilities(allowed, at, draws, features)()

    def ask_probabilities(self, allowed: list[int] | None, at: int, draws: int, features: Any) -> Probabilities:
        """The same as a function, which may be called when the bandit is no longer locked."""
        config = self.config
        slots = list(self._everyone(features)) if allowed is None else allowed
        if config.candidates and len(slots) > 1:
            self.player.resize(len(slots))
        if config.fixed is not None and config.fixed in slots:
            out = np.zeros(len(config.arms))
            out[config.fixed] = 1.0
            return lambda: (out, 0.0)
        first = self.first_arms(slots)
        if first:
            own = np.array([(slot in first) / len(first) for slot in slots])
            return lambda: mix_rules(config._replace(floor=0.0), slots, own, 0.0)
        compute = prepare(self.player, at, features, slots, draws)
        return lambda: mix_rules(config, slots, *compute())

    # ---- snapshots ---------------------------------------------------------------------------------------------------

    def dump(self) -> str:
        """Everything, as text."""
        return json.dumps(self.plain(), allow_nan=False, sort_keys=True)

    def plain(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return {
            "format": FORMAT, "n": self.n, "last_at": self.last_at, "changes": self.changes,
            "settled": self.settled, "waiting": self.waiting.plain(), "reported": self.reported.plain(),
            "seen": self.seen.plain(), "untried": sorted(self.untried.items()), "config": self.config._asdict(),
            "player": self.player.dump(),
        }  # fmt: skip

    def snapshot(self, bandit: int, cursor: Any) -> Within:
        """The request to keep the fold as it is; the last event folded has this cursor."""
        return Within(bandit, "add_snapshot", (self.n, self.last_at, self.write(cursor), cursor))

    def write(self, cursor: Any) -> str:
        """The text of a snapshot."""
        return json.dumps({"cursor": cursor, "fold": self.plain()}, allow_nan=False, sort_keys=True)

    @classmethod
    def read(cls, data: Any, make: Maker, reread: Reread | None = None, compiled: bool = False) -> "Fold":
        """The inverse of `plain`."""
        try:
            if data["format"] != FORMAT:
                raise ValueError
            fold = cls(make, reread, compiled)
            config = StoredConfig.read(data["config"])
            held, policy = count_numbers(data["player"]["state"]), make(config.policy)
            columns, arms = len(Features.stored(config.features).columns), len(config.arms)
            if count_state(policy, arms, columns, config.candidates) > 8 * held + 1000:  # before a state is made
                raise ValueError
            fold._begin(config, 0)
            fold.player.load(data["player"])
            fold._use(config)
            fold.waiting = Waiting.read(data["waiting"], len(config.arms))
            fold.reported = Reported.read(data["reported"])
            fold.seen = Seen.read(data["seen"], fold.features)
            fold.untried = {int(slot): int(end) for slot, end in data["untried"]}
            if not all(0 <= slot < len(config.arms) for slot in fold.untried):
                raise ValueError
            for name in ("n", "last_at", "changes", "settled"):
                setattr(fold, name, check_whole(data[name], name, 0, records.LATEST))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise DamagedJournal("A snapshot cannot be read.") from None
        return fold


def _draw_uniformly(rng: Any, slots: Sequence[int]) -> int:
    return slots[int(rng.uniform(UNIFORM_SLOT) * len(slots))]


def _tries(config: StoredConfig) -> int:
    """After how many outcomes an arm no longer counts as untried: it ends even if the outcomes of the arm are never
    reported."""
    return 2 * len(config.active)


def make_player(
    policy: Any, n_arms: int, key: int = 0, half_life: int | None = None, time: int = 0, compiled: bool = False,
    most: int | None = None, columns: int = 0, joint: bool = False,
) -> Player:  # fmt: skip
    """A player in the interpreter, or as machine code, which needs the `lab` extra; both choose the same arms. A state
    of more than `most` numbers is refused. With `columns`, the policy is given so many features, of each arm if
    `joint`."""
    if not compiled:
        return Player(policy, n_arms, key, half_life, time, most, columns, joint)
    try:
        from driftbandit.lab.engine.compiled_player import CompiledPlayer
    except ImportError as error:
        raise ValueError(f"compiled=True needs {error.name}: pip install '.[lab]' brings it.") from None
    return CompiledPlayer(policy, n_arms, key, half_life, time, most, columns, joint)
