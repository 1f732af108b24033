"""A bandit that decides for real: an identity, a journal, and rules for real life around one policy."""

import contextlib
import importlib
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from driftbandit.agent.inputs import as_float, check_own, checked_seed, listed
from driftbandit.draws import POLICY as POLICY_STREAM
from driftbandit.draws import stream_key
from driftbandit.half_life import policy_told
from driftbandit.live import settings, words
from driftbandit.live.changing import Changing
from driftbandit.live.deciding import ANY, Chooser, Wish
from driftbandit.live.errors import Conflict, StoreError, Unknown
from driftbandit.live.ids import ROUNDS, checked_id, checked_name
from driftbandit.live.journal import Pay
from driftbandit.live.opening import exists, policy_classes, policy_maker, warn, writing
from driftbandit.live.records import WAYS, Decision, DecisionRow
from driftbandit.live.replica import Replica
from driftbandit.live.ticket import Ticket

MOST = 1000  # decisions or rewards in one call
_REMEMBERED = 10_000  # decisions, to spare the store a look when their reward comes
_BEHIND = 10_000  # asks that may wait for the disk before even those wait that need not

Rewards = Iterable[tuple[str | Decision, float]] | Mapping[str, float]  # by the ids of decisions


class Bandit(Changing):
    """A policy with a journal: decisions and rewards survive crashes, late rewards are matched to their decision, a
    reward counts once, and every decision can be proved later.

    >>> import tempfile, os
    >>> from driftbandit import DiscountedTS
    >>> path = os.path.join(tempfile.mkdtemp(), "shop.db")
    >>> with Bandit.open(path, "button", DiscountedTS(), arms=["red", "green", "blue"], half_life="6 h") as bandit:
    ...     decision = bandit.decide()              # on disk before it returns
    ...     bandit.reward(decision.id, 1.0)         # later, in another process if you like; twice counts once
    'learnt'

    The journal is a SQLite file (one writing process) or a PostgreSQL database (many); several bandits may share it. It
    holds the configuration too: `Bandit.open(path, "button")` is enough from the second time on.

    Threads may share a bandit, and so may coroutines: `adecide` and `areward` are `decide` and `reward` for asyncio."""

    @classmethod
    def open(
        cls,
        target: Any,
        name: str,
        policy: Any = None,
        arms: int | Iterable[Hashable] | None = None,
        *,
        half_life: Any = None,
        floor: float | None = None,
        holdback: float | None = None,
        baseline: Any = None,
        learn_holdback: bool | None = None,
        wait: Any = None,
        default: float | None = None,
        learn: str | None = None,
        reward_range: tuple[float, float] | None = None,
        outside: str | None = None,
        seed: int | None = None,
        durability: str = "disk",
        snapshot_every: int = 10_000,
        who: str = "",
        policies: Mapping[str, type] | None = None,
        clock: Callable[[], int] | None = None,
        rounds: str = "hash",
        compiled: bool = False,
    ) -> "Bandit":
        """The bandit of this name in the journal at `target` (a path, or postgresql://...), made if there is none.

        `half_life` makes it forget by the clock; without it, forgetting counts rewards. With probability `floor` (0.01)
        the arm is drawn evenly. A share `holdback` of decisions follows the `baseline` (an arm, or "uniform") and is
        not learnt from; `uplift` compares the two.

        With `wait`, a decision's outcome is learned when the decision is that old, in the order of the decisions: its
        reward, or `default` if none came. This is for programs that report successes only. learn="arrival" learns
        rewards when they come, for programs that report failures just as soon. A reward after `wait` is stored, not
        learned. Without `wait`, rewards are learned when they come, and every decision needs one.
        Rewards lie in `reward_range`; a reward outside it is refused, or with outside="clip" clipped when it is learnt.

        With durability="none" `decide` returns before its record is on disk. `policies` names classes of your own,
        {"MyPolicy": MyPolicy}. `clock` gives microseconds, for simulations; `seed` makes decisions with given ids
        repeatable, and rounds="number" lets ids "0", "1", ... draw the numbers of a simulation's rounds. compiled=True
        (needs the `lab` extra) reads a long journal with machine code.

        If the bandit exists, its journal decides: options that differ are reported, and can be changed with
        `change`."""
        checked_name(name)
        options = {
            "half_life": half_life, "floor": floor, "holdback": holdback, "baseline": baseline,
            "learn_holdback": learn_holdback, "wait": wait, "default": default, "learn": learn,
            "reward_range": reward_range, "outside": outside,
        }  # fmt: skip
        if isinstance(target, str) and target.startswith(("http://", "https://")):
            return _served(target, name, policy, arms, **options, seed=seed, who=who)  # type: ignore[no-any-return]
        if durability not in ("disk", "none"):
            raise ValueError(f'durability is "disk" or "none"; got {durability!r:.60}.')
        if rounds not in ROUNDS:
            raise ValueError(f'rounds is "hash" or "number"; got {rounds!r:.60}.')
        if isinstance(snapshot_every, bool) or not isinstance(snapshot_every, int) or snapshot_every < 1:
            raise ValueError(f"snapshot_every is a whole number of 1 or more; got {snapshot_every!r:.60}.")
        config = None
        if arms is not None:
            key = int.from_bytes(os.urandom(8), "little")
            key = key if seed is None else stream_key(checked_seed(seed), 0, POLICY_STREAM)
            config = settings.first_config(policy, arms, key, rounds, options)
        own = {**(policy_classes(settings.checked_policy(policy)) if policy is not None else {}), **(policies or {})}
        if config is None and not exists(target):
            raise Unknown(
                f"There is no journal {target!s:.200} yet; give arms=[...] (or `driftbandit live create`) to make one."
            )
        opened = writing(target)
        try:
            number = opened.journal.number(name)
            if number is None:
                if config is None:
                    have = ", ".join(list(opened.journal.bandits())[:8]) or "none yet"
                    raise Unknown(
                        f"There is no bandit {name!r:.60} in this journal (it has: {have}); give arms=[...] to "
                        "make one."
                    )
                number = opened.journal.create(name, opened.journal.now())
            bandit = cls(
                Replica(opened, number, policy_maker(own), snapshot_every, clock, compiled), name, durability, who
            )
            if bandit._fold.config is None:
                if config is None:
                    raise Unknown(f"Bandit {name!r:.60} has no configuration yet; give arms=[...].")
                with contextlib.suppress(Conflict):  # another process was quicker: what it wrote stands
                    bandit._configure("create", config)
                bandit._replica.catch_up(changes=1)
            check_own(bandit._fold.player.policy, len(bandit._fold.config.arms))
            bandit._mark_arithmetic()
            bandit._replica.settle_all()
            differ = settings.differences(bandit._fold.config, options, policy, arms)
            if differ:
                warn(f"Bandit {name} has {'; '.join(differ)} in its journal, and that stands; change() changes it.")
        except BaseException:
            opened.release()
            raise
        return bandit

    def __init__(self, replica: Replica, name: str, durability: str, who: str) -> None:
        self.name, self.durability, self.who = name, durability, who
        self._replica = replica
        self._fold = replica.fold
        self._number = replica.number
        self._journal, self._writer = replica.journal, replica.writer
        self._lock = replica.lock
        self._closed = False
        self._failed = self._writer.failed
        self._recent: dict[str, DecisionRow] = {}  # decisions of ours that are likely to be rewarded soon
        self._chooser = Chooser(replica)
        replica.start(self)

    # ---- deciding ----------------------------------------------------------------------------------------------------

    def decide(
        self, id: str | None = None, *, available: Iterable[Hashable] | None = None, probability: bool = False
    ) -> Decision:
        """The arm to play now, written down before it is returned. The same id again gives the same decision; without
        an id, one is made. `probability=True` also computes how likely the arm was."""
        return self._decide(self._wish([id], available, probability))[0]

    def decide_many(
        self, what: int | Iterable[str], *, available: Iterable[Hashable] | None = None, probability: bool = False
    ) -> list[Decision]:
        """Up to 1,000 decisions in one commit: this many, or one for each of these ids."""
        return self._decide(self._wish(_wanted(what), available, probability))

    async def adecide(
        self, id: str | None = None, *, available: Iterable[Hashable] | None = None, probability: bool = False
    ) -> Decision:
        """`decide` for asyncio."""
        return (await self._adecide(self._wish([id], available, probability)))[0]

    async def adecide_many(
        self, what: int | Iterable[str], *, available: Iterable[Hashable] | None = None, probability: bool = False
    ) -> list[Decision]:
        """`decide_many` for asyncio."""
        return await self._adecide(self._wish(_wanted(what), available, probability))

    def _wish(self, ids: list[str | None], available: Any, probability: bool) -> Wish:
        self._replica.open_or_raise()
        if self.durability == "none" and self._writer.failed > self._failed:
            lost, self._failed = self._writer.failed - self._failed, self._writer.failed
            raise StoreError(f"{lost} earlier records could not be written, and nobody waited for them.")
        if ids == [None] and available is None and not probability:
            return ANY
        if available is not None and not isinstance(available, str) and isinstance(available, Iterable):
            available = list(available)  # the caller's own, and not to be walked through by another thread
        return Wish([None if id is None else checked_id(id) for id in ids], available, bool(probability))

    def _decide(self, wish: Wish) -> list[Decision]:
        if not self._waits(wish):
            return self._at_once(wish)
        ticket = self._writer.wish(self._chooser, wish)
        return self._decisions(ticket, ticket.wait())

    async def _adecide(self, wish: Wish) -> list[Decision]:
        if not self._waits(wish):
            return self._at_once(wish)
        ticket = self._writer.wish(self._chooser, wish, here=False)
        return self._decisions(ticket, await ticket.arrive())

    def _waits(self, wish: Wish) -> bool:
        """Whether to wait for the disk: a given id may have been used before, and the store must not fall behind."""
        return self.durability == "disk" or self._writer.waiting > _BEHIND or any(id is not None for id in wish.ids)

    def _at_once(self, wish: Wish) -> list[Decision]:
        """Choose, and leave the rest to the writer."""
        self._replica.settle_first(lambda asks: self._writer.submit(asks).wait())
        with self._lock:
            self._replica.open_or_raise()
            asks, chance = self._chooser.choose(wish)
            ticket = self._writer.submit(list(asks))
            ticket.chance = chance
        return self._decisions(ticket, [ask.row for ask in asks])

    def _decisions(self, ticket: Ticket, answers: list[Any]) -> list[Decision]:
        names, out = self._chooser.names, []
        for place, stands in enumerate(answers):
            if isinstance(stands, BaseException):
                raise stands
            chance = None
            if ticket.chance is not None and stands == ticket.asks[place].row:
                chance = float(ticket.chance[stands.slot])
            out.append(Decision(stands.id, names[stands.slot], stands.at, stands.known, WAYS[stands.how], chance))
        if self._journal.live and self.durability == "disk":
            self._remember(answers)
        return out

    def _remember(self, rows: list[DecisionRow]) -> None:
        """Their rewards are likely to come soon, and by this process."""
        self._recent.update((row.id, row) for row in rows)
        while len(self._recent) > _REMEMBERED:
            with contextlib.suppress(KeyError, StopIteration, RuntimeError):  # another thread may be doing the same
                del self._recent[next(iter(self._recent))]

    # ---- rewards -----------------------------------------------------------------------------------------------------

    def reward(self, id: str | Decision, value: float) -> str:
        """Report the outcome of a decision, given by its id or whole. Returns "learnt", "waiting" if it is learned when
        its decision is `wait` old, "again" if this reward was already there, or "late" if it came after `wait` (it is
        stored, not learned). A different reward for the same decision is a Conflict.

        Without `wait`, rewards are learned in the order of these calls. Report failures as soon as successes: a policy
        that looks for changes takes a day's successes, reported before its failures, for a change."""
        return _verdict(self._pay([(id, value)]).wait()[0])

    async def areward(self, id: str | Decision, value: float) -> str:
        """`reward` for asyncio."""
        return _verdict((await self._pay([(id, value)]).arrive())[0])

    def reward_many(self, pairs: Rewards) -> list[str | Exception]:
        """Up to 1,000 rewards in one commit: for each its verdict, or the error it met, which does not affect the
        others. They are learned in the order of their decisions, whatever their order in the call. Without `wait`,
        several calls are learned one after the other: give each a stretch of time, with successes and failures."""
        good, out = self._sorted(pairs)
        return _placed(out, self._pay(good).wait() if good else [])

    async def areward_many(self, pairs: Rewards) -> list[str | Exception]:
        """`reward_many` for asyncio."""
        good, out = self._sorted(pairs)
        return _placed(out, await self._pay(good).arrive() if good else [])

    def _sorted(self, pairs: Any) -> tuple[list[tuple[str, float]], list[Any]]:
        """The pairs that can be sent, and for all of them an error or None."""
        try:
            listed_pairs = [(id, value) for id, value in (pairs.items() if isinstance(pairs, Mapping) else pairs)]
        except (TypeError, ValueError):
            raise ValueError(f"reward_many needs pairs of id and reward; got {pairs!r:.60}.") from None
        if len(listed_pairs) > MOST:
            raise ValueError(f"At most {MOST} rewards go into one call; got {len(listed_pairs)}.")
        good: list[tuple[str, float]] = []
        out: list[Any] = []
        for id, value in listed_pairs:
            try:
                good.append((checked_id(id), self._checked(value)))
                out.append(None)
            except ValueError as error:
                out.append(error)
        return good, out

    def _pay(self, pairs: Sequence[tuple[str | Decision, float]]) -> Ticket:
        checked = [(checked_id(id), self._checked(value)) for id, value in pairs]
        with self._lock:
            self._replica.open_or_raise()
            config, at = self._fold.config, self._replica.now()
            wait, default, holds, known = config.wait, config.default, config.holds, self._recent.pop
            asks = [Pay(self._number, id, value, at, wait, default, known(id, None), holds) for id, value in checked]
            self._replica.sweep(at)
            return self._writer.submit(list(asks))

    def _checked(self, reward: Any) -> float:
        value = as_float(reward)
        config = self._fold.config
        low, high = config.reward_range
        if not math.isfinite(value):
            raise ValueError(f"A reward is a finite number; got {value}. Nothing was written.")
        if not low <= value <= high and config.outside == "refuse":
            raise ValueError(f"Reward {value:g} lies outside reward_range=({low:g}, {high:g}); nothing was written.")
        return value + 0.0  # -0.0 becomes 0.0

    # ---- inside ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write everything that was asked for, and release the journal."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._replica.close()

    def __enter__(self) -> "Bandit":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        config, told = self._fold.config, policy_told(self._fold.player.policy, self._fold.config.half_life)
        options = "".join(f", {name}={value!r}" for name, value in words.options_told(config).items())
        return f"Bandit({self.name!r}, {told}, arms={listed(self.arms)}{options}, events={self._fold.n})"


def _served(target: str, name: str, policy: Any, arms: Any, **options: Any) -> Any:
    """A bandit that lives in a service has the same names. The client is an extra built on this room, so it is found by
    name, as a plug-in would be."""
    try:
        served = importlib.import_module("driftbandit.client").Bandit
    except ImportError as error:
        raise StoreError(f"A service needs {error.name}: pip install 'driftbandit[client]' brings it.") from None
    return served.open(target, name, policy, arms, **options)


def _wanted(what: Any) -> list[str | None]:
    if isinstance(what, int) and not isinstance(what, bool):
        ids: list[Any] = [None] * max(0, min(what, MOST + 1))
    elif isinstance(what, str | bytes) or not isinstance(what, Iterable):
        raise ValueError(f"decide_many needs a number of decisions or a list of ids; got {what!r:.60}.")
    else:
        ids = list(what)
        if any(id is None for id in ids):
            raise ValueError("decide_many needs an id for each decision; got None.")
    if not 1 <= len(ids) <= MOST:
        raise ValueError(f"One call makes 1 to {MOST} decisions; got {what if isinstance(what, int) else len(ids)}.")
    return ids


def _verdict(answer: Any) -> str:
    if isinstance(answer, BaseException):
        raise answer
    return str(answer)


def _placed(out: list[Any], answers: list[Any]) -> list[Any]:
    left = iter(answers)
    return [next(left) if error is None else error for error in out]


__all__ = ["Bandit", "Decision", "StoreError"]
