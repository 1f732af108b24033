"""The requests of a bandit to its store: decisions, rewards and changes of the configuration."""

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from driftbandit.bandit import settings
from driftbandit.bandit.asks import AddChange, AddReward, Within, hash_part, hide_id, judge, upkeep_notes
from driftbandit.bandit.candidates import copy_contexts, split_context
from driftbandit.bandit.ids import check_id
from driftbandit.bandit.inputs import FIXED_OPTIONS, as_float, check_names, writable
from driftbandit.bandit.interface import Pairs
from driftbandit.bandit.opening import policy_classes
from driftbandit.bandit.records import WAYS, Change, Decision, DecisionRow, StoredConfig, log
from driftbandit.bandit.replica import Replica
from driftbandit.bandit.writer import Chooser, StoreCall
from driftbandit.core.parameters import LARGEST
from driftbandit.core.state import can_know_arms
from driftbandit.errors import Archived, NotFound, RecordConflict, StoreError
from driftbandit.spec.half_life import SECOND

_REMEMBERED = 10_000  # decisions, to spare the store a look when their reward comes
_YOUNG = 3600 * SECOND  # an older decision may have been dropped meanwhile, and is looked for
_BEHIND = 10_000  # requests that may wait for the disk before calls that need not wait do

Edit = Callable[[StoredConfig], StoredConfig]


class Requests:
    """Decisions and rewards of one bandit in one process."""

    def __init__(self, replica: Replica, name: str, durability: str) -> None:
        self.replica, self.name, self.durability = replica, name, durability
        self.chooser = Chooser(replica)
        self._failed = replica.writer.failed
        self._recent: dict[str, DecisionRow] = {}  # decisions of ours that are likely to be rewarded soon

    def decide(
        self, here: bool, ids: list[str | None], context: Any, candidates: Any, available: Any, probability: bool
    ) -> tuple[StoreCall, list[Any]]:
        """Request decisions. The rows are those of decisions that need not wait for the disk, otherwise none."""
        replica, writer = self.replica, self.replica.writer
        replica.open_or_raise()
        if self.durability == "none" and writer.failed > self._failed:
            lost, self._failed = writer.failed - self._failed, writer.failed
            raise StoreError(f"{lost} earlier records could not be written, and no call waited for them.")
        if available is not None and not isinstance(available, str) and isinstance(available, Iterable):
            available = list(available)  # the caller's own, and not to be walked through by another thread
        if replica.fold.config.archived is not None:
            raise Archived(f"Bandit {self.name} was archived and decides no more; unarchive() undoes it within a day.")
        named = [None if id is None else check_id(id) for id in ids]
        call = StoreCall([], named, available, bool(probability), copy_contexts(context, len(ids), candidates))
        # A given id may have been used before, and the store must not fall behind.
        if self.durability == "disk" or writer.waiting > _BEHIND or any(id is not None for id in named):
            writer.request(self.chooser, call, here)
            return call, []
        replica.settle_first(lambda asks: writer.submit(asks).wait())
        with replica.lock:
            replica.open_or_raise()
            self.chooser.choose(call, replica.now())
            writer.submit_call(call)
        return call, call.asks

    def read(self, call: StoreCall, rows: list[Any]) -> list[Decision]:
        """The decisions of a call as its caller sees them, given their rows, or errors."""
        names, out, config = self.chooser.names, [], self.replica.fold.config
        for place, row in enumerate(rows):
            if isinstance(row, BaseException):
                raise row
            probability = call.probabilities[place] if call.probabilities and row == call.asks[place] else None
            id: Any = call.given[place] if row.id[0] == "=" else row.id
            arm = split_context(row.context)[0] if config.candidates else names[row.slot]
            out.append(Decision(id, arm, row.at, row.known, WAYS[row.how], probability))
        if self.replica.number and self.durability == "disk":  # not in memory
            self._remember(rows)
        return out

    def _remember(self, rows: list[DecisionRow]) -> None:
        """Their rewards are likely to come soon, and by this process. Their candidates, which can be large, are not
        needed for that."""
        self._recent.update((row.id, row if row.available is None else row._replace(available=None)) for row in rows)
        while len(self._recent) > _REMEMBERED:
            with contextlib.suppress(KeyError, StopIteration, RuntimeError):  # another thread may be doing the same
                del self._recent[next(iter(self._recent))]

    def check_reward(self, reward: Any, part: str | None = None) -> float:
        """A reward that can be written; the sum of parts is checked when it is known."""
        value, fold = as_float(reward), self.replica.fold
        if not abs(value) <= LARGEST:
            raise ValueError(f"A reward is a finite number up to {LARGEST:g}; got {value}. Nothing was written.")
        if part is None and not fold.low <= value <= fold.high:
            raise ValueError(
                f"Reward {value:g} lies outside reward_range=({fold.low:g}, {fold.high:g}); nothing was written."
            )
        return value + 0.0  # -0.0 becomes 0.0

    def reward(self, pairs: Pairs) -> StoreCall:
        """Request that these rewards are written."""
        self._allow_parts([pair for pair in pairs if pair[2] is not None])
        with self.replica.lock:
            asks = self._rewards(pairs)
            self.replica.sweep()
            call: StoreCall = self.replica.writer.submit(asks)
            return call

    def _rewards(self, pairs: Pairs) -> list[AddReward]:
        self.replica.open_or_raise()
        fold, at, number = self.replica.fold, self.replica.now(), self.replica.number
        config, low, high = fold.config, fold.low, fold.high
        wait, default, holds, adds = config.wait, config.default, config.holds, bool(config.adds)
        asks = []
        for id, value, part in pairs:
            row, hidden = self._recent.pop(id, None), hide_id(config, id) if config.erased else None
            if row is not None and (hidden or adds or at - row.at >= min(_YOUNG, wait or _YOUNG)):
                row = None
            part = hash_part(id, part)
            asks.append(AddReward(number, id, value, at, wait, default, row, holds, adds, part, low, high, hidden))
        return asks

    def _allow_parts(self, parts: Pairs) -> None:
        """Before the first part of a reward: note that this bandit adds rewards up, if one of these can be written."""
        replica, config = self.replica, self.replica.fold.config
        if parts and config.wait is None:
            raise ValueError(
                "add=True needs wait, the age of a decision at which the sum of its parts is learned; set it by "
                'change(wait="1 h").'
            )
        if not parts or config.adds:
            return
        with replica.lock:
            asks = self._rewards(parts)
            found = replica.journal.standing(replica.number, [id for ask in asks for id in (ask.id, ask.hidden) if id])
        states = [found.get(ask.hidden or "", found.get(ask.id)) for ask in asks]
        if any(not isinstance(judge(*pair)[1], Exception) for pair in zip(asks, states, strict=True)):
            change_config(replica, self.name, "add rewards up", lambda config: config._replace(adds=True), "")

    def erase(self, id: str, who: str) -> bool:
        """Put a hash in the place of an id; whether it was there."""
        replica, hidden = self.replica, hide_id(self.replica.fold.config, id)
        found = replica.journal.standing(replica.number, [id, hidden])
        if hidden in found:
            return False
        if id not in found:
            raise NotFound(f"There is no decision {id!r:.140} to erase.")
        change_config(replica, self.name, "erase", lambda config: config._replace(erased=(config.erased or 0) + 1), who)
        with replica.lock:
            self._recent.pop(id, None)
            call = replica.writer.submit([Within(replica.number, "erase", (id, hidden))])
        return bool(call.wait()[0])


# ---- changes: each is an event, with who made it and when ------------------------------------------------------------


def change_config(
    replica: Replica,
    name: str,
    what: str,
    edit: Edit,
    who: str,
    from_now: bool = False,
    past: Callable[[StoredConfig], dict[str, Any] | None] = lambda config: None,
) -> None:
    """Write what `edit` makes of the configuration, and `past` of the arm that it adds. Where another process has
    changed the configuration at the same moment, both are applied to the new one."""
    for _ in range(20):
        try:
            config = replica.fold.config
            configure(replica, name, what, edit(config), who, from_now, past(config))
            return
        except RecordConflict:
            replica.catch_up()
    raise RecordConflict("The configuration is being changed elsewhere all the time; try again.")


def configure(
    replica: Replica,
    name: str,
    what: str,
    config: StoredConfig,
    who: str,
    from_now: bool = False,
    past: dict[str, Any] | None = None,
) -> None:
    """Write a configuration as the next change, and fold it; a RecordConflict if another change has come before."""
    if not isinstance(who, str) or len(who) > 200 or not writable(who):
        raise ValueError(f"who is a text of at most 200 letters; got {who!a:.60}.")
    with replica.lock:
        replica.open_or_raise()
        config = config._replace(arithmetic=replica.arithmetic(config.policy))
        before, body = replica.fold.config, Change(what, who, from_now, config, past).text()
        relearns = before is not None and not from_now and before.learns_otherwise(config)
        labels = None if config.labels == (before and before.labels) else config.labels or {}
        ask = AddChange(replica.number, replica.fold.changes + 1, replica.now(), body, relearns, labels)
        call = replica.writer.submit([ask, *upkeep_notes(name, before, config)])
    answer = call.wait()[0]
    if isinstance(answer, BaseException):
        raise answer
    replica.catch_up(changes=ask.serial)


def plan_change(replica: Replica, options: dict[str, Any], from_now: bool, in_memory: bool) -> Edit:
    """What `Bandit.change` does to a configuration, if these options can be changed."""
    check_names(options, ("policy", "add_arm", "retire_arm"), FIXED_OPTIONS)
    if not options:
        raise ValueError("change() needs at least one option, such as floor=0.02; got none.")
    if "policy" in options:
        options["policy"] = settings.checked_policy(options["policy"], replica.classes)
        replica.classes |= policy_classes(options["policy"])
    if in_memory and not from_now and options.keys() & {"policy", "half_life", "features"}:
        raise ValueError(
            "A bandit in memory keeps no history to learn again; change(..., from_now=True) starts a new policy with "
            "nothing learned, a new half-life with the current beliefs, new features with those about the others."
        )
    policy, fold = options.get("policy"), replica.fold
    if policy is not None and not from_now and not can_know_arms(policy, bool(fold.features)):
        if any(Change.read(event.body).past for _, event in replica.journal.changes(replica.number)):
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


def mark_arithmetic(replica: Replica, name: str, who: str) -> None:
    """Write down that this version computes other bits than the one that wrote the journal so far. Everything is
    learned again with the present arithmetic, so a snapshot of the former is of no use."""
    fold = replica.fold
    while fold.config.arithmetic != replica.arithmetic():
        was, now = fold.config.arithmetic, replica.arithmetic()
        try:
            configure(replica, name, f"arithmetic {was} -> {now}", fold.config, who)
        except RecordConflict:
            replica.catch_up()
            continue
        replica.note = (
            f"Events up to {fold.n - 1} of this journal were written with other arithmetic ({was}); from event "
            f"{fold.n} on, {now} decides, and the audit cannot prove earlier decisions."
        )
        log.warning("Bandit %s: %s", name, replica.note)
    replica.arithmetic_checked = True
