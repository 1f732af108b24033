"""A bandit that decides for real: rules for real life around one policy, in memory or with a journal."""

import contextlib
import functools
import importlib
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Unpack

from driftbandit.bandit import inputs, opening, settings
from driftbandit.bandit.features import Features
from driftbandit.bandit.fold import Fold, make_player
from driftbandit.bandit.inputs import Config, OpenOptions, Options, StoreOptions
from driftbandit.bandit.interface import AnyBandit, Pairs
from driftbandit.bandit.memory import Memory
from driftbandit.bandit.records import DAY, Decision, DecisionRow, StoredConfig, check_id, check_name
from driftbandit.bandit.reporting import describe_options
from driftbandit.bandit.reports import View
from driftbandit.bandit.requests import Edit, Requests
from driftbandit.bandit.retention import Pruned, prune
from driftbandit.core.checks import whole
from driftbandit.core.draws import POLICY as POLICY_STREAM
from driftbandit.core.draws import stream_key
from driftbandit.errors import Archived, NotFound, RecordConflict, StoreError
from driftbandit.player import JOINT
from driftbandit.spec.half_life import describe_policy


class Bandit(View, AnyBandit):
    """A policy at work: it decides, and learns the rewards of its decisions, each once.

    >>> bandit = Bandit(["red", "green", "blue"], seed=7)
    >>> decision = bandit.decide()
    >>> bandit.reward(decision.id, 1.0)
    'learned'

    So made it lives in memory, and `snapshot` and `Bandit.restore` keep it. `Bandit.open` opens one with a journal: its
    decisions and rewards survive crashes, late rewards are matched to their decision, and every decision can be proved
    later.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "shop.db")
    >>> with Bandit.open(path, "button", arms=["red", "green", "blue"], wait="1 h", default=0.0) as bandit:
    ...     decision = bandit.decide()              # on disk before it returns
    ...     bandit.reward(decision.id, 1.0)         # later, also after a restart; twice counts once
    'waiting'

    Without a policy it plays `DriftAuto`, for any rewards and with nothing to tune. `arms` are distinct names (texts,
    numbers, tuples of them), or a number of arms; further keywords are described in `Options`. Threads may share a
    bandit, and so may coroutines: `adecide` and `areward` are `decide` and `reward` for asyncio."""

    _replica: Requests
    _memory: Memory | None = None  # the store of a bandit in memory
    _opened: Any = None  # of one with a journal: shared with other bandits of that journal

    # ---- making, opening and closing ---------------------------------------------------------------------------------

    def __init__(
        self, arms: int | Iterable[Hashable] | None = None, policy: Any = None, *, config: Config | None = None,
        seed: int | None = None, compiled: bool = False, clock: Callable[[], int] | None = None,
        policies: Mapping[str, type] | None = None, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        """A bandit in memory. It keeps at least its last 100,000 decisions; an older one can no longer be rewarded.

        A seed makes every decision repeatable: the same calls give the same arms, in every copy, in every process that
        restores the snapshot, in every forked worker. Without one, every copy and every forked worker draws its own
        random numbers. With `compiled` (needs the `lab` extra) the policy runs as machine code, with the same choices.
        `clock` gives microseconds, for simulations; `policies` names your own classes for a policy given as text."""
        policy, arms, given = inputs.join_options(config, policy, arms, options)
        made = settings.checked_policy(policy, policies, given.get("features"))
        first = settings.first_config(made, arms, _make_key(seed), "number", given)
        if compiled:
            columns, joint = len(Features.stored(first.features).columns), first.candidates
            n_arms = max(JOINT, len(first.arms)) if joint else len(first.arms)  # what does not compile is refused first
            make_player(made, n_arms, compiled=True, columns=columns, joint=joint)
        classes = {**opening.policy_classes(made), **(policies or {})}
        fold = Fold(opening.policy_maker(classes), None, compiled)
        self._in_memory(Memory(), fold, classes, clock, seed is not None)
        self._replica.configure("create", first, "")
        self._replica.arithmetic_checked = True

    def _in_memory(self, memory: Memory, fold: Fold, classes: dict[str, type], clock: Any, seeded: bool) -> None:
        replica = Requests("", "disk", memory, memory, 0, classes, 0, clock, fold.compiled, fold)
        self._memory, self._seeded, memory.lock = memory, seeded, replica.lock
        replica.next_look = memory.next_look
        self._attach(replica, "")
        opening.watch(self)

    @classmethod
    def open(
        cls, target: Any, name: str, policy: Any = None, arms: int | Iterable[Hashable] | None = None, *,
        config: Config | None = None, store: StoreOptions | None = None, seed: int | None = None, who: str = "",
        policies: Mapping[str, type] | None = None, compiled: bool = False, **options: Unpack[OpenOptions],
    ) -> "Bandit":  # fmt: skip
        """The bandit of this name in the journal at `target`, made if it does not exist and arms are given. The journal
        is a SQLite file (one writing process) or a PostgreSQL database, postgresql://... (many); several bandits may
        share it. `target` may also be a service, https://...

        The journal holds the configuration too, so `Bandit.open(path, "button")` is enough from the second time on:
        options that differ are reported, and can be changed with `change`. What configures the bandit is given as a
        `Config` or by keywords (`Options`), how it is stored by `store` or by keywords (`StoreOptions`).

        `policies` names your own classes, {"MyPolicy": MyPolicy}. `seed` makes decisions with given ids repeatable.
        compiled=True (needs the `lab` extra) reads a long journal with machine code. `who` is written down with
        changes."""
        check_name(name)
        if opening.is_service(target):
            return _import_client("remote").RemoteBandit.open(  # type: ignore[no-any-return]
                target, name, policy, arms, config=config, store=store, seed=seed, who=who, **options
            )
        how, rest = inputs.split_options(store, options)
        policy, arms, given = inputs.join_options(config, policy, arms, rest)
        made = None if policy is None else settings.checked_policy(policy, policies)
        first = None
        if arms is not None or given.get("candidates"):
            first = settings.first_config(made, arms, _make_key(seed), "hash", given)
        elif not opening.exists(target):
            raise NotFound(
                f"There is no journal {target!s:.200} yet; give arms=[...] (or `driftbandit live create`) to make one."
            )
        own = {**(opening.policy_classes(made) if made is not None else {}), **(policies or {})}
        opened = opening.writing(target)
        try:
            journal = opened.journal
            if first is not None and journal.number(name) is None:
                journal.create(name, journal.now())
            number, every = opening.bandit_number(journal, name), how.get("snapshot_every", 10_000)
            bandit = cls.__new__(cls)
            kept = journal, opened.writer, number, own, every, how.get("clock"), compiled
            replica = Requests(name, how.get("durability", "disk"), *kept)
            bandit._attach(replica, who)
            bandit._opened = opened
            opened.bandits.add(bandit)
            if bandit._fold.config is None:
                if first is None:
                    raise NotFound(f"Bandit {name!r:.60} has no configuration yet; give arms=[...].")
                with contextlib.suppress(RecordConflict):  # another process was quicker: its configuration is used
                    bandit._replica.configure("create", first, who)
                replica.catch_up(changes=1)
            player = replica.fold.player
            inputs.check_own(player.policy, player.n_arms, player.n_features, player.joint)
            bandit._replica.mark_arithmetic(who)
            replica.settle_all()
            if differ := settings.differences(replica.fold.config, given, made, arms):
                warnings.warn(
                    f"Bandit {name} already exists with {'; '.join(differ)}; its stored settings are used. Call "
                    "change() to update them.", RuntimeWarning, stacklevel=2,
                )  # fmt: skip
        except BaseException:
            opened.release()
            raise
        return bandit

    @staticmethod
    def names(
        target: Any, *, search: str = "", labels: Mapping[str, str] | None = None, archived: bool = False,
        key: str | None = None,
    ) -> Iterator[str]:  # fmt: skip
        """The names of the bandits in a journal, a database or a service, in order and read page by page: those that
        contain a text and have all of these labels; those that decide, or those that are `archived`. `key` is for a
        service, which lists what the key may read."""
        if opening.is_service(target):
            yield from _import_client("sending").bandit_names(target, key, search, labels, archived)
            return
        if key is not None:
            raise ValueError("key is for a service, http://... or https://...")
        with contextlib.closing(opening.reading(target)) as journal:
            page = [""]
            while page := journal.names(search, page[-1], 1000, labels=labels, archived=archived):
                yield from page

    def _attach(self, replica: Requests, who: str) -> None:
        self.name, self.durability, self.who = replica.name, replica.durability, who
        self._replica, self._fold, self._lock, self._number = replica, replica.fold, replica.lock, replica.number
        self._journal, self._writer = replica.journal, replica.writer
        self._closed = False
        replica.start(self)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._replica.close()
        if self._opened is not None:
            self._opened.release()

    # ---- snapshots, copies and forks ---------------------------------------------------------------------------------

    def snapshot(self) -> str:
        """A bandit in memory as JSON text: its configuration, what it has learned, and its decisions without a reward.
        The checksum protects against accidents, not against people."""
        if self._memory is None:
            raise ValueError("snapshot() is for a bandit in memory; this one has a journal, which holds everything.")
        with self._lock:
            self._replica.open_or_raise()
            return opening.write_snapshot(self._memory, self._fold, self._seeded, self._replica.next_look)

    @classmethod
    def restore(
        cls, text: str, policies: Mapping[str, type] | None = None, compiled: bool = False, *, fresh: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> "Bandit":  # fmt: skip
        """A bandit that continues exactly where the snapshot was taken; with `fresh` it draws its own random numbers,
        as each of several workers should. `policies` names classes of your own, {"MyPolicy": MyPolicy}; nothing else is
        ever loaded, imported or called. A snapshot that no sequence of calls could produce is refused."""
        classes = dict(policies or {})
        memory, fold, seeded = opening.read_snapshot(text, opening.policy_maker(classes), compiled)
        bandit = cls.__new__(cls)
        bandit._in_memory(memory, fold, classes, clock, seeded and not fresh)
        if fresh:
            bandit._rekey()
        bandit._replica.arithmetic_checked = True
        return bandit

    def __reduce__(self) -> Any:
        """Copies and pickles are independent bandits: a seeded one continues as this one does, one without a seed draws
        its own random numbers."""
        text = self.snapshot()
        clock = None if self._replica._real_time else self._replica.clock.source
        restore = functools.partial(type(self).restore, fresh=not self._seeded, clock=clock)
        return restore, (text, self._replica.classes, self._fold.compiled)

    def _rekey(self) -> None:
        key = _make_key(None)
        self._fold.config = self._fold.config._replace(key=str(key))
        self._fold.player.rekey(key)

    def _after_fork(self) -> None:
        """In a child process: new locks, and without a seed its own random numbers."""
        self._lock = self._replica.lock = self._memory.lock = threading.RLock()  # type: ignore[union-attr]
        self._replica._reading = threading.Lock()
        if not self._seeded:
            self._rekey()

    # ---- deciding and rewards ----------------------------------------------------------------------------------------

    def _decide(
        self, ids: list[str | None], context: Any, candidates: Any, available: Any, probability: bool
    ) -> list[Decision]:
        memory = self._memory
        limited = available is not None or candidates is not None or probability
        if memory is not None and not limited and ids == [None]:
            with self._lock:
                replica, fold = self._replica, self._fold
                if replica.stopped:
                    replica.open_or_raise()
                if fold.config is not replica.known:
                    replica.config()
                if replica.waits:
                    replica.settle_first(memory.commit)
                return [memory.decide(replica, context)]
        call, rows = self._replica.decide(True, ids, context, candidates, available, probability)
        return self._replica.read(call, rows or call.wait())

    async def _adecide(self, *request: Any) -> list[Decision]:
        replica = self._replica
        call, rows = replica.decide(False, *request)
        found = rows or await call.arrive()
        if any(isinstance(row, DecisionRow) and row.slot >= len(replica.names) for row in found):
            import asyncio  # not before it is used: it is a large part of all that is loaded

            return await asyncio.to_thread(replica.read, call, found)
        return replica.read(call, found)

    def reward(self, id: str | Decision, value: float, *, add: bool = False, part: str | None = None) -> str:
        memory, fold = self._memory, self._fold
        complete = add is False and part is None
        if memory is not None and complete and type(value) is float and fold.low <= value <= fold.high:
            with self._lock:
                known, replica = id.id if type(id) is Decision else id, self._replica
                try:
                    if type(known) is str and not replica.stopped and memory.learn(fold, known, value, replica.clock):
                        if fold.n >= replica.next_check:
                            replica.check_reporting()
                        return "learned"
                except Exception as error:
                    raise replica.stop(error) from error
        return super().reward(id, value, add=add, part=part)

    def _check_reward(self, reward: Any, part: str | None = None) -> float:
        return self._replica.check_reward(reward, part)

    def _reward(self, pairs: Pairs) -> list[Any]:
        return self._replica.reward(pairs).wait()

    async def _areward(self, pairs: Pairs) -> list[Any]:
        return await self._replica.reward(pairs).arrive()

    def settle(self) -> int:
        return int(self._replica.settle_all())

    # ---- changing ----------------------------------------------------------------------------------------------------

    def _change(self, what: str, who: str, edit: Edit, **more: Any) -> None:
        self._replica.change(what, edit, who or self.who, **more)

    def add_arm(
        self, arm: Hashable, *, like: Hashable = None, mean: float | None = None, worth: float | None = None,
        who: str = "",
    ) -> None:  # fmt: skip
        def read_past(config: StoredConfig) -> dict[str, Any] | None:
            return settings.read_past(config, self._fold.player, like, mean, worth)

        self._change("add_arm", who, lambda config: settings.with_arm(config, arm), past=read_past)

    def retire_arm(self, arm: Hashable, *, who: str = "") -> None:
        self._change("retire_arm", who, lambda config: settings.without_arm(config, arm))

    def fix(self, arm: Hashable, *, who: str = "") -> None:
        def edit(config: StoredConfig) -> StoredConfig:
            return config._replace(fixed=settings.slot_of(config, settings.names_of(config), arm))

        self._change("fix", who, edit)

    def release(self, *, who: str = "") -> bool:
        self._replica.catch_up()  # another process may have fixed one
        if self._fold.config.fixed is None:
            return False
        self._change("release", who, lambda config: config._replace(fixed=None))
        return True

    def change(self, *, from_now: bool = False, who: str = "", **options: Any) -> None:
        edit = self._replica.plan_change(options, from_now)
        self._change("change " + ", ".join(options), who, edit, from_now=from_now)

    def resume_clock(self, *, who: str = "") -> timedelta:
        self._replica.catch_up()
        clock = self._replica.clock
        if clock.behind() <= clock.REPORTED:
            return timedelta(0)
        self._change("clock", who, lambda config: config._replace(ahead=config.ahead + clock.behind()))
        return timedelta(microseconds=self._fold.config.ahead)

    # ---- records -----------------------------------------------------------------------------------------------------

    def prune(self, exports: Any = None) -> Pruned:
        """Drop decisions and events older than `retention`, after proving them and, if `exports` is a folder, writing
        them to one Parquet file per day in it. Daily counts stay, and so does all that was learned. Without the option
        `retention`, nothing is dropped. A bandit that was archived more than a day ago is deleted, if `exports` is
        given, and all of it is written to a file there before."""
        self._need_journal("prune")
        return prune(self._replica, self.name, exports)

    def erase(self, id: str | Decision, *, who: str = "") -> bool:
        self._need_journal("erase")
        return self._replica.erase(check_id(id), who or self.who)

    def archive(self, *, who: str = "") -> None:
        self._need_journal("archive")
        if self._fold.config.archived is None:
            self._change("archive", who, lambda config: config._replace(archived=config.archived or self.now()))

    def unarchive(self, *, who: str = "") -> None:
        self._need_journal("unarchive")
        self._replica.catch_up()
        at = self._fold.config.archived
        if at is not None and self._replica.now() - at >= DAY:
            raise Archived(f"Bandit {self.name} was archived more than a day ago, and is being deleted.")
        if at is not None:
            self._change("unarchive", who, lambda config: config._replace(archived=None))

    def _need_journal(self, verb: str) -> None:
        if self._memory is not None:
            raise ValueError(f"{verb}() is for a bandit with a journal; this one is in memory.")
        self._replica.open_or_raise()

    def __repr__(self) -> str:
        config = self.config
        options = "".join(f", {name}={value!r}" for name, value in describe_options(config).items())
        name, policy = f"{self.name!r}, " if self.name else "", describe_policy(config.policy, self.stored.half_life)
        arms = "" if config.candidates else f", arms={inputs.list_arms(self.arms)}"
        return f"Bandit({name}{policy}{arms}{options}, events={self.events})"


def _make_key(seed: Any) -> int:
    """The key of a bandit's random numbers; without a seed a new one."""
    return opening.draw_key() if seed is None else stream_key(whole("seed", seed, 0), 0, POLICY_STREAM)


def _import_client(module: str) -> Any:
    """A module for services, which need the `client` extra."""
    try:
        return importlib.import_module(f"driftbandit.bandit.{module}")
    except ImportError as error:
        raise StoreError(f"A service needs {error.name}: pip install '.[client]' brings it.") from None
