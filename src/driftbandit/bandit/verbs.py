"""The verbs of a bandit with a store: decide, reward and change; `AnyBandit` documents them."""

import contextlib
from collections.abc import Callable, Hashable, Iterable
from datetime import timedelta
from typing import Any

from driftbandit.bandit import settings
from driftbandit.bandit.asks import AddChange, AddReward, check_part, hash_part, hide_id, judge, upkeep_notes
from driftbandit.bandit.candidates import copy_contexts, split_context
from driftbandit.bandit.ids import check_id
from driftbandit.bandit.inputs import as_float, writable
from driftbandit.bandit.interface import AnyBandit, Arms, Candidates, Context, Pairs
from driftbandit.bandit.opening import policy_classes
from driftbandit.bandit.options import FIXED_OPTIONS, check_names
from driftbandit.bandit.records import WAYS, Change, Decision, DecisionRow, StoredConfig, log
from driftbandit.bandit.reports import Reports
from driftbandit.bandit.writer import Chooser, StoreCall, Writer
from driftbandit.core.parameters import LARGEST
from driftbandit.core.state import can_know_arms
from driftbandit.errors import Archived, RecordConflict, StoreError
from driftbandit.spec.half_life import SECOND

_REMEMBERED = 10_000  # decisions, to spare the store a look when their reward comes
_YOUNG = 3600 * SECOND  # an older decision may have been dropped meanwhile, and is looked for
_BEHIND = 10_000  # requests that may wait for the disk before calls that need not wait do


class Verbs(Reports, AnyBandit):
    """Deciding, rewarding and changing; `Bandit` adds how one is made, opened and closed."""

    durability: str
    _writer: Writer
    _memory: Any = None  # the store of a bandit in memory
    _opened: Any = None  # of one with a journal: shared with other bandits of that journal
    _chooser: Chooser
    _failed: int
    _recent: dict[str, DecisionRow]  # decisions of ours that are likely to be rewarded soon

    # ---- deciding ----------------------------------------------------------------------------------------------------

    def decide(
        self,
        id: str | None = None,
        *,
        context: Context = None,
        candidates: Candidates = None,
        available: Arms = None,
        probability: bool = False,
    ) -> Decision:
        if self._memory is not None and id is None and available is None and candidates is None and not probability:
            with self._lock:
                replica, fold, chooser = self._replica, self._fold, self._chooser
                if replica.stopped:
                    replica.open_or_raise()
                if fold.config is not chooser.known:
                    chooser.config()
                if chooser.waits:
                    replica.settle_first(self._memory.commit)
                return self._memory.decide(fold, chooser, replica.clock, context)  # type: ignore[no-any-return]
        return self._decide([id], context, available, probability, candidates)[0]

    def _request(
        self, ids: list[str | None], context: Any, available: Any, probability: bool, candidates: Any
    ) -> StoreCall:
        self._replica.open_or_raise()
        if self.durability == "none" and self._writer.failed > self._failed:
            lost, self._failed = self._writer.failed - self._failed, self._writer.failed
            raise StoreError(f"{lost} earlier records could not be written, and no call waited for them.")
        if available is not None and not isinstance(available, str) and isinstance(available, Iterable):
            available = list(available)  # the caller's own, and not to be walked through by another thread
        if self._fold.config.archived is not None:
            raise Archived(f"Bandit {self.name} was archived and decides no more; unarchive() undoes it within a day.")
        named = [None if id is None else check_id(id) for id in ids]
        return StoreCall([], named, available, bool(probability), copy_contexts(context, len(ids), candidates))

    def _decide(
        self, ids: list[str | None], context: Any, available: Any, probability: bool, candidates: Any
    ) -> list[Decision]:
        call = self._request(ids, context, available, probability, candidates)
        if not self._waits(call):
            return self._at_once(call)
        self._writer.request(self._chooser, call)
        return self._decisions(call, call.wait())

    async def _adecide(
        self, ids: list[str | None], context: Any, available: Any, probability: bool, candidates: Any
    ) -> list[Decision]:
        call = self._request(ids, context, available, probability, candidates)
        if not self._waits(call):
            return self._at_once(call)
        self._writer.request(self._chooser, call, here=False)
        return self._decisions(call, await call.arrive())

    def _waits(self, call: StoreCall) -> bool:
        """Whether to wait for the disk: a given id may have been used before, and the store must not fall behind."""
        return self.durability == "disk" or self._writer.waiting > _BEHIND or any(id is not None for id in call.ids)

    def _at_once(self, call: StoreCall) -> list[Decision]:
        """Choose, and leave the rest to the writer."""
        self._replica.settle_first(lambda asks: self._writer.submit(asks).wait())
        with self._lock:
            self._replica.open_or_raise()
            self._chooser.choose(call, self._replica.now())
            self._writer.submit_call(call)
        return self._decisions(call, call.asks)

    def _decisions(self, call: StoreCall, answers: list[Any]) -> list[Decision]:
        names, out = self._chooser.names, []
        for place, stands in enumerate(answers):
            if isinstance(stands, BaseException):
                raise stands
            probability = None
            if call.probabilities and stands == call.asks[place]:
                probability = call.probabilities[place]
            id: Any = call.given[place] if stands.id[0] == "=" else stands.id
            arm = names[stands.slot] if not self._fold.config.candidates else split_context(stands.context)[0]
            out.append(Decision(id, arm, stands.at, stands.known, WAYS[stands.how], probability))
        if self._journal.live and self.durability == "disk":
            self._remember(answers)
        return out

    def _remember(self, rows: list[DecisionRow]) -> None:
        """Their rewards are likely to come soon, and by this process. Their candidates, which can be large, are not
        needed for that."""
        self._recent.update((row.id, row if row.available is None else row._replace(available=None)) for row in rows)
        while len(self._recent) > _REMEMBERED:
            with contextlib.suppress(KeyError, StopIteration, RuntimeError):  # another thread may be doing the same
                del self._recent[next(iter(self._recent))]

    # ---- rewards -----------------------------------------------------------------------------------------------------

    def reward(self, id: str | Decision, value: float, *, add: bool = False, part: str | None = None) -> str:
        memory, fold = self._memory, self._fold
        whole = add is False and part is None
        if memory is not None and whole and type(value) is float and fold.low <= value <= fold.high:
            with self._lock:
                known, replica = id.id if type(id) is Decision else id, self._replica
                try:
                    if type(known) is str and not replica.stopped and memory.learn(fold, known, value, replica.clock):
                        if fold.n >= replica.next_check:
                            replica.check_reporting()
                        return "learned"
                except Exception as error:
                    raise replica.stop(error) from error
        part = check_part(add, part)
        return _verdict(self._reward([(check_id(id), self._check_reward(value, part), part)])[0])

    async def areward(self, id: str | Decision, value: float, *, add: bool = False, part: str | None = None) -> str:
        part = check_part(add, part)
        return _verdict((await self._areward([(check_id(id), self._check_reward(value, part), part)]))[0])

    def _reward(self, pairs: Pairs) -> list[Any]:
        return self._submit_rewards(pairs).wait()

    async def _areward(self, pairs: Pairs) -> list[Any]:
        return await self._submit_rewards(pairs).arrive()

    def _submit_rewards(self, pairs: Pairs) -> StoreCall:
        self._allow_parts(pairs)
        with self._lock:
            asks = self._rewards(pairs)
            self._replica.sweep()
            return self._writer.submit(asks)

    def _rewards(self, pairs: Pairs) -> list[AddReward]:
        self._replica.open_or_raise()
        config, at = self._fold.config, self._replica.now()
        number, wait, default, holds = self._number, config.wait, config.default, config.holds
        adds, low, high = bool(config.adds), self._fold.low, self._fold.high
        asks = []
        for id, value, part in pairs:
            row, hidden = self._recent.pop(id, None), hide_id(config, id) if config.erased else None
            if row is not None and (hidden or adds or at - row.at >= _YOUNG):
                row = None
            part = hash_part(id, part)
            asks.append(AddReward(number, id, value, at, wait, default, row, holds, adds, part, low, high, hidden))
        return asks

    def _allow_parts(self, pairs: Pairs) -> None:
        """Before the first part of a reward: note that this bandit adds rewards up, if one of these can be written."""
        config = self._fold.config
        parts = [pair for pair in pairs if pair[2] is not None]
        if parts and config.wait is None:
            raise ValueError(
                "add=True needs wait, the age of a decision at which the sum of its parts is learned; set it by "
                'change(wait="1 h").'
            )
        if not parts or config.adds:
            return
        with self._lock:
            asks = self._rewards(parts)
            found = self._journal.standing(self._number, [id for ask in asks for id in (ask.id, ask.hidden) if id])
        states = [found.get(ask.hidden or "", found.get(ask.id)) for ask in asks]
        if any(not isinstance(judge(*pair)[1], Exception) for pair in zip(asks, states, strict=True)):
            self._change("add rewards up", lambda config: config._replace(adds=True), "")

    def _check_reward(self, reward: Any, part: str | None = None) -> float:
        value = as_float(reward)
        low, high = self._fold.low, self._fold.high
        if not abs(value) <= LARGEST:
            raise ValueError(f"A reward is a finite number up to {LARGEST:g}; got {value}. Nothing was written.")
        if part is None and not low <= value <= high:
            raise ValueError(f"Reward {value:g} lies outside reward_range=({low:g}, {high:g}); nothing was written.")
        return value + 0.0  # -0.0 becomes 0.0

    def settle(self) -> int:
        return int(self._replica.settle_all())

    # ---- changing: each change is an event, with who and when --------------------------------------------------------

    def add_arm(
        self,
        arm: Hashable,
        *,
        like: Hashable = None,
        mean: float | None = None,
        worth: float | None = None,
        who: str = "",
    ) -> None:
        def read_past(config: StoredConfig) -> dict[str, Any] | None:
            return settings.read_past(config, self._fold.player, like, mean, worth)

        self._change("add_arm", lambda config: settings.with_arm(config, arm), who, past=read_past)

    def retire_arm(self, arm: Hashable, *, who: str = "") -> None:
        self._change("retire_arm", lambda config: settings.without_arm(config, arm), who)

    def fix(self, arm: Hashable, *, who: str = "") -> None:
        self._change(
            "fix", lambda config: config._replace(fixed=settings.slot_of(config, settings.names_of(config), arm)), who
        )

    def release(self, *, who: str = "") -> bool:
        self._replica.catch_up()  # another process may have fixed one
        if self._fold.config.fixed is None:
            return False
        self._change("release", lambda config: config._replace(fixed=None), who)
        return True

    def change(self, *, from_now: bool = False, who: str = "", **options: Any) -> None:
        check_names(options, ("policy", "add_arm", "retire_arm"), FIXED_OPTIONS)
        if not options:
            raise ValueError("change() needs at least one option, such as floor=0.02; got none.")
        if "policy" in options:
            options["policy"] = settings.checked_policy(options["policy"], self._replica.classes)
            self._replica.classes |= policy_classes(options["policy"])
        if self._memory is not None and not from_now and options.keys() & {"policy", "half_life", "features"}:
            raise ValueError(
                "A bandit in memory keeps no history to learn again; change(..., from_now=True) starts a new policy "
                "with nothing learned, a new half-life with the current beliefs, new features with those about the "
                "others."
            )

        policy = options.get("policy")
        if policy is not None and not from_now and not can_know_arms(policy, bool(self._fold.features)):
            if any(Change.read(event.body).past for _, event in self._journal.changes(self._number)):
                raise ValueError(
                    f"{type(policy).__name__} cannot take an arm with a past, and this journal has one to be learned "
                    "again; change(..., from_now=True) starts the policy with nothing learned."
                )

        def edit(config: StoredConfig) -> StoredConfig:
            rest = dict(options)
            if "add_arm" in options:
                config = settings.with_arm(config, rest.pop("add_arm"))
            rest.pop("retire_arm", None)
            config = settings.change_config(config, self._fold.player.policy, rest)
            return settings.without_arm(config, options["retire_arm"]) if "retire_arm" in options else config

        self._change("change " + ", ".join(options), edit, who, from_now)

    def resume_clock(self, *, who: str = "") -> timedelta:
        self._replica.catch_up()
        clock = self._replica.clock
        if clock.behind() <= clock.REPORTED:
            return timedelta(0)
        self._change("clock", lambda config: config._replace(ahead=config.ahead + clock.behind()), who)
        return timedelta(microseconds=self._fold.config.ahead)

    def _mark_arithmetic(self) -> None:
        """Write down that this version computes other bits than the one that wrote the journal so far. Everything is
        learned again with the present arithmetic, so a snapshot of the former is of no use."""
        replica = self._replica
        while self._fold.config.arithmetic != replica.arithmetic():
            was, now = self._fold.config.arithmetic, replica.arithmetic()
            try:
                self._configure(f"arithmetic {was} -> {now}", self._fold.config)
            except RecordConflict:
                replica.catch_up()
                continue
            replica.note = (
                f"Events up to {self._fold.n - 1} of this journal were written with other arithmetic ({was}); from "
                f"event {self._fold.n} on, {now} decides, and the audit cannot prove earlier decisions."
            )
            log.warning("Bandit %s: %s", self.name, replica.note)
        replica.arithmetic_checked = True

    def _change(
        self,
        what: str,
        edit: Callable[[StoredConfig], StoredConfig],
        who: str,
        from_now: bool = False,
        past: Callable[[StoredConfig], dict[str, Any] | None] = lambda config: None,
    ) -> None:
        for _ in range(20):  # another process may change the configuration at the same moment: then once more on top
            try:
                config = self._fold.config
                self._configure(what, edit(config), who, from_now, past(config))
                return
            except RecordConflict:
                self._replica.catch_up()
        raise RecordConflict("The configuration is being changed elsewhere all the time; try again.")

    def _configure(
        self, what: str, config: StoredConfig, who: str = "", from_now: bool = False, past: dict[str, Any] | None = None
    ) -> None:
        who = who or self.who
        if not isinstance(who, str) or len(who) > 200 or not writable(who):
            raise ValueError(f"who is a text of at most 200 letters; got {who!a:.60}.")
        with self._lock:
            self._replica.open_or_raise()
            config = config._replace(arithmetic=self._replica.arithmetic(config.policy))
            before, body = self._fold.config, Change(what, who, from_now, config, past).text()
            relearns = before is not None and not from_now and before.learns_otherwise(config)
            labels = None if config.labels == (before and before.labels) else config.labels or {}
            ask = AddChange(self._number, self._fold.changes + 1, self._replica.now(), body, relearns, labels)
            call = self._writer.submit([ask, *upkeep_notes(self.name, before, config)])
        answer = call.wait()[0]
        if isinstance(answer, BaseException):
            raise answer
        self._replica.catch_up(changes=ask.serial)


def _verdict(answer: Any) -> str:
    if isinstance(answer, BaseException):
        raise answer
    return str(answer)
