"""The requests of a bandit to its store: decisions, rewards and changes of the configuration."""

import contextlib
import json
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from driftbandit.bandit import records, settings
from driftbandit.bandit.asks import AddChange, AddReward, NamedDecision, Within, hash_part, hide_id, judge, upkeep_notes
from driftbandit.bandit.candidates import CandidateSet, copy_contexts, split_context
from driftbandit.bandit.fold import Fold
from driftbandit.bandit.inputs import FIXED_OPTIONS, as_float, check_names, writable
from driftbandit.bandit.interface import Pairs
from driftbandit.bandit.opening import policy_classes
from driftbandit.bandit.records import Change, Decision, DecisionRow, Event, StoredConfig, Supply
from driftbandit.bandit.replica import Replica
from driftbandit.bandit.reporting import names_up_to
from driftbandit.bandit.writer import StoreCall
from driftbandit.core.checks import LARGEST_REWARD
from driftbandit.core.draws import Stream
from driftbandit.core.parameters import LARGEST
from driftbandit.core.state import can_know_arms
from driftbandit.errors import Archived, DamagedJournal, NotFound, RecordConflict, StoreError
from driftbandit.spec.half_life import SECOND

_REMEMBERED = 10_000  # decisions, to spare the store a look when their reward comes
_YOUNG = 3600 * SECOND  # an older decision may have been dropped meanwhile, and is looked for
_new = tuple.__new__  # of a row: faster than its constructor
_BEHIND = 10_000  # requests that may wait for the disk before calls that need not wait do

Edit = Callable[[StoredConfig], StoredConfig]


class Requests(Replica):
    """A bandit that decides and learns in this process: its fold, and what it has written. The thread that begins a
    commit has it choose (`choose_all`)."""

    def __init__(self, name: str, durability: str, *replica: Any) -> None:
        super().__init__(*replica)
        self.name, self.durability = name, durability
        self.known: StoredConfig | None = None
        self.waits = False
        self._make_ids = getattr(self.journal, "make_ids", records.make_ids)
        self._failed = self.writer.failed
        self._recent: dict[str, DecisionRow] = {}  # decisions of ours that are likely to be rewarded soon

    def decide(
        self, here: bool, ids: list[str | None], context: Any, candidates: Any, available: Any, probability: bool
    ) -> tuple[StoreCall, list[Any]]:
        """Request decisions. The rows are those of decisions that need not wait for the disk, otherwise none."""
        writer = self.writer
        self.open_or_raise()
        if self.durability == "none" and writer.failed > self._failed:
            lost, self._failed = writer.failed - self._failed, writer.failed
            raise StoreError(f"{lost} earlier records could not be written, and no call waited for them.")
        if available is not None and not isinstance(available, str) and isinstance(available, Iterable):
            available = list(available)  # the caller's own, and not to be walked through by another thread
        if self.fold.config.archived is not None:
            raise Archived(f"Bandit {self.name} was archived and decides no more; unarchive() undoes it within a day.")
        named = [None if id is None else records.check_id(id) for id in ids]
        call = StoreCall([], named, available, bool(probability))
        if context is not None or candidates is not None:
            call.contexts = copy_contexts(context, len(ids), candidates)
        # A given id may have been used before, and the store must not fall behind.
        if self.durability == "disk" or writer.waiting > _BEHIND or any(id is not None for id in named):
            writer.request(self, call, here)
            return call, []
        self.settle_first(lambda asks: writer.submit(asks).wait())
        with self.lock:
            self.open_or_raise()
            self.choose(call, self.now())
            writer.submit_call(call)
        return call, call.asks

    def config(self) -> StoredConfig:
        """The configuration now; what follows from it is recomputed when it has changed."""
        config: StoredConfig = self.fold.config
        if config is not self.known:
            self.names = settings.names_of(config)
            self._round = records.ROUNDS[config.rounds]
            if self.known is None or self.known.key != config.key:
                self._supply, self.stream = Supply(int(config.key)), Stream(int(config.key))
            self.known, self.waits = config, config.wait is not None
        return config

    def choose_all(self, calls: list[StoreCall], settle: bool = True) -> None:
        """Settle decisions that are old enough, choose for every call, and queue the decisions for the next commit. A
        call that cannot be met does not affect the others."""
        ready = []
        if settle:
            self.settle_first(self.writer.commit)
        try:
            if self.fold.config.erased and not self.journal.live:
                self._recognise(calls)
            with self.lock:
                self.whole_or_raise()
                at = self.now()
                for call in calls:
                    try:
                        self.choose(call, at)
                        ready.append(call)
                    except Exception as error:
                        call.answer(error)
                self.writer.enqueue(ready)
        except Exception as error:
            for call in calls:
                call.answer(error)

    def _recognise(self, calls: list[StoreCall]) -> None:
        """Put what stands for the ids that were erased into their places. The bandit's lock is not held."""
        hidden = {id: hide_id(self.fold.config, id) for call in calls for id in call.ids if id is not None}
        there = self.journal.standing(self.number, list(hidden.values())) if hidden else {}
        for call in calls:
            call.ids = [hidden[id] if id is not None and hidden[id] in there else id for id in call.given]

    def choose(self, call: StoreCall, at: int) -> None:
        """Make the decisions of a call and the probabilities that it requests. The caller holds the lock."""
        config, fold = self.config(), self.fold
        slots = None if call.available is None else settings.slots_of(config, call.available)
        numbered: Iterable[tuple[str, Stream]]
        if len(call.ids) == 1 and call.ids[0] is None and config.rounds == "hash":
            if call.contexts is None and slots is None and not (call.wants_probability or fold.features):
                id, rng = self._supply.take()
                slot, how = fold.choose(rng, fold.active, at)
                chance = fold.player.probability_of(slot, rng, at) if fold.player.uses_probability else None
                call.asks.append(_new(DecisionRow, (id, at, slot, how, fold.n, None, chance, None, self.number)))
                return
            numbered = [self._supply.take()]
        else:
            fresh = iter(self._make_ids(call.ids.count(None)))
            named = [next(fresh) if id is None else id for id in call.ids]
            stream = records.decision_stream(int(config.key), [self._round(name) for name in named])
            numbered = ((name, stream.at(column)) for column, name in enumerate(named))
        player, probability = fold.player, None
        allowed, text = (fold.active, None) if slots is None else (slots, records.format_slots(slots))
        each = isinstance(call.contexts, list)
        read = [fold.read_context(one, at) for one in (call.contexts if each else [call.contexts])]
        contexts = [(json.dumps(kept) if isinstance(kept, dict) else kept, numbers) for kept, numbers in read]
        asks, chosen = [], []
        every = zip(call.ids, numbered, contexts if each else repeat(contexts[0]), strict=False)
        for given, (id, rng), (context, features) in every:
            slot, how = fold.choose(rng, allowed, at, features)
            chosen.append(slot)
            if player.uses_probability:
                probability = player.probability_of(slot, rng, at)
            if isinstance(context, CandidateSet):
                slot, text, context = 0, context.text, context.context(slot)
            row = DecisionRow(id, at, slot, how, fold.n, text, probability, context, self.number)
            asks.append(self._named(row) if self.journal.live and given is not None else row)
        if call.wants_probability:
            found = [fold.probabilities(allowed, at, features=features)[0] for _, features in contexts]
            found *= 1 if each else len(asks)
            call.probabilities = [float(values[slot]) for values, slot in zip(found, chosen, strict=True)]
        call.asks += asks

    def _named(self, row: DecisionRow) -> NamedDecision:
        """A decision under an id that was given, which another process may have erased since this one has last read."""
        out = NamedDecision(*row)
        out.hidden = hide_id(self.fold.config, row.id)
        return out

    def read(self, call: StoreCall, rows: list[Any]) -> list[Decision]:
        """The decisions of a call as its caller sees them, given their rows, or errors."""
        names, out, config = self.names, [], self.fold.config
        for place, row in enumerate(rows):
            if isinstance(row, BaseException):
                raise row
            probability = call.probabilities[place] if call.probabilities and row == call.asks[place] else None
            id: Any = call.given[place] if row.id[0] == "=" else row.id
            if row.slot >= len(names):
                names = names_up_to(self, row.slot)
            arm = split_context(row.context)[0] if config.candidates else names[row.slot]
            out.append(Decision(id, arm, row.at, row.known, records.WAYS[row.how], probability))
        if self.number and self.durability == "disk":  # not in memory
            # Their rewards are likely to come soon. Their candidates, which can be large, are not needed for that.
            recent = self._recent
            recent.update((row.id, row if row.available is None else row._replace(available=None)) for row in rows)
            while len(recent) > _REMEMBERED:
                with contextlib.suppress(KeyError, StopIteration, RuntimeError):  # another thread may do the same
                    del recent[next(iter(recent))]
        return out

    def check_reward(self, reward: Any, part: str | None = None) -> float:
        """A reward that can be written; the sum of parts is checked when it is known."""
        value, fold = as_float(reward), self.fold
        most = LARGEST_REWARD if fold.config.reward_range is None else LARGEST
        if not abs(value) <= most:
            raise ValueError(f"A reward is a finite number up to {most:g}; got {value}. Nothing was written.")
        if part is None and not fold.low <= value <= fold.high:
            raise ValueError(
                f"Reward {value:g} lies outside reward_range=({fold.low:g}, {fold.high:g}); nothing was written."
            )
        return value + 0.0  # -0.0 becomes 0.0

    def reward(self, pairs: Pairs) -> StoreCall:
        """Request that these rewards are written."""
        self._allow_parts([pair for pair in pairs if pair[2] is not None])
        with self.lock:
            asks = self._rewards(pairs)
            self.sweep()
            call: StoreCall = self.writer.submit(asks)
            return call

    def _rewards(self, pairs: Pairs) -> list[AddReward]:
        self.open_or_raise()
        config, at, asks = self.fold.config, self.now(), []
        young = min(_YOUNG, config.wait or _YOUNG)
        for id, value, part in pairs:
            hidden = hide_id(config, id) if config.erased or self.journal.live else None
            row = self._recent.pop(id, None)
            if row is not None and (config.erased or config.adds or at - row.at >= young):
                row = None
            asks.append(AddReward(self.number, id, value, at, config, row, hash_part(id, part), hidden))
        return asks

    def _allow_parts(self, parts: Pairs) -> None:
        """Before the first part of a reward: note that this bandit adds rewards up, if one of these can be written."""
        config = self.fold.config
        if parts and config.wait is None:
            raise ValueError(
                "add=True needs wait, the age of a decision at which the sum of its parts is learned; set it by "
                'change(wait="1 h").'
            )
        if not parts or config.adds:
            return
        with self.lock:
            asks = self._rewards(parts)
            found = self.journal.standing(self.number, [id for ask in asks for id in (ask.id, ask.hidden) if id])
        states = [found.get(ask.hidden or "", found.get(ask.id)) for ask in asks]
        if any(not isinstance(judge(*pair)[1], Exception) for pair in zip(asks, states, strict=True)):
            self.change("add rewards up", lambda config: config._replace(adds=True), "")

    def erase(self, id: str, who: str) -> bool:
        """Put a hash in the place of an id; whether it was there."""
        hidden = hide_id(self.fold.config, id)
        found = self.journal.standing(self.number, [id, hidden])
        if hidden in found:
            return False
        if id not in found:
            raise NotFound(f"There is no decision {id!r:.140} to erase.")
        self.change("erase", lambda config: config._replace(erased=(config.erased or 0) + 1), who)
        with self.lock:
            self._recent.pop(id, None)
            call = self.writer.submit([Within(self.number, "erase", (id, hidden))])
        return bool(call.wait()[0])

    # ---- changes: each is an event, with who made it and when --------------------------------------------------------

    def change(
        self, what: str, edit: Edit, who: str, from_now: bool = False,
        past: Callable[[StoredConfig], dict[str, Any] | None] = lambda config: None,
    ) -> None:  # fmt: skip
        """Write what `edit` makes of the configuration, and `past` of the arm that it adds. Where another process has
        changed the configuration at the same moment, both are applied to the new one."""
        for _ in range(20):
            try:
                config = self.fold.config
                self.configure(what, edit(config), who, from_now, past(config))
                return
            except RecordConflict:
                self.catch_up()
        raise RecordConflict("The configuration is being changed elsewhere all the time; try again.")

    def configure(
        self, what: str, config: StoredConfig, who: str, from_now: bool = False, past: dict[str, Any] | None = None
    ) -> None:
        """Write a configuration as the next change, and fold it; a RecordConflict if another change has come before."""
        if not isinstance(who, str) or len(who) > 200 or not writable(who):
            raise ValueError(f"who is a text of at most 200 letters; got {who!a:.60}.")
        with self.lock:
            self.open_or_raise()
            config = config._replace(arithmetic=self.arithmetic(config.policy))
            before, body = self.fold.config, Change(what, who, from_now, config, past).text()
            relearns = before is not None and not from_now and before.learns_otherwise(config)
            labels = None if config.labels == (before and before.labels) else config.labels or {}
            ask = AddChange(self.number, self.fold.changes + 1, self.now(), body, relearns, labels)
            if before is not None and (before.arms != config.arms or before.learns_otherwise(config)):
                self._try_change(ask)
            call = self.writer.submit([ask, *upkeep_notes(self.name, before, config)])
        answer = call.wait()[0]
        if isinstance(answer, BaseException):
            raise answer
        self.catch_up(changes=ask.serial)

    def _try_change(self, ask: AddChange) -> None:
        """Refuse a change that cannot be folded, since once written it would stop the bandit for good. It is folded
        into a copy, which learns again from the changes only. A state that no snapshot can have is not copied."""

        def reread(count: int) -> list[Event]:
            return [event for _, event in self.journal.changes(self.number)][: self.fold.changes]

        try:
            copy = Fold.read(self.fold.plain(), self._make, reread)
        except DamagedJournal:
            return
        try:
            copy.apply([ask.event()])
        except Exception as error:
            text = " ".join(str(error).split()).rstrip(".")
            raise ValueError(f"The policy cannot go on with this change ({text:.300}); nothing was written.") from error

    def plan_change(self, options: dict[str, Any], from_now: bool) -> Edit:
        """What `Bandit.change` does to a configuration, if these options can be changed."""
        fold = self.fold
        check_names(options, ("policy", "add_arm", "retire_arm"), FIXED_OPTIONS)
        if not options:
            raise ValueError("change() needs at least one option, such as floor=0.02; got none.")
        if "policy" in options:
            options["policy"] = settings.checked_policy(options["policy"], self.classes)
            self.classes |= policy_classes(options["policy"])
        if not self.number and not from_now and options.keys() & {"policy", "half_life", "features"}:
            raise ValueError(
                "A bandit in memory keeps no history to learn again; change(..., from_now=True) starts a new policy "
                "with nothing learned, a new half-life with the current beliefs, new features with those about the "
                "others."
            )
        policy = options.get("policy")
        if policy is not None and not from_now and not can_know_arms(policy, bool(fold.features)):
            if any(Change.read(event.body).past for _, event in self.journal.changes(self.number)):
                raise ValueError(
                    f"{type(policy).__name__} cannot take an arm with a past, and this journal has one to be learned "
                    "again; change(..., from_now=True) starts the policy with nothing learned."
                )

        def edit(config: StoredConfig) -> StoredConfig:
            rest = {name: value for name, value in options.items() if name not in ("add_arm", "retire_arm")}
            if "add_arm" in options:
                config = settings.with_arm(config, options["add_arm"])
            config = settings.change_config(config, fold.player.policy, rest)
            return settings.without_arm(config, options["retire_arm"]) if "retire_arm" in options else config

        return edit

    def mark_arithmetic(self, who: str) -> None:
        """Write down that this version computes other bits than the one that wrote the journal so far. Everything is
        learned again with the present arithmetic, so a snapshot of the former is of no use."""
        fold = self.fold
        while fold.config.arithmetic != self.arithmetic():
            was, now = fold.config.arithmetic, self.arithmetic()
            try:
                self.configure(f"arithmetic {was} -> {now}", fold.config, who)
            except RecordConflict:
                self.catch_up()
                continue
            self.note = (
                f"Events up to {fold.n - 1} of this journal were written with other arithmetic ({was}); from event "
                f"{fold.n} on, {now} decides, and the audit cannot prove earlier decisions."
            )
            records.log.warning("Bandit %s: %s", self.name, self.note)
        self.arithmetic_checked = True
