"""What every bandit answers, whether it lives in memory, has a journal or is behind a service.

`Bandit` and `RemoteBandit` inherit from `AnyBandit`, which documents the methods and has the shared code."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from driftbandit.bandit.asks import check_part
from driftbandit.bandit.effects import Effects
from driftbandit.bandit.inputs import Config
from driftbandit.bandit.records import Decision, check_id
from driftbandit.bandit.reporting import Uplift
from driftbandit.player import Probabilities
from driftbandit.policies.drift.belief import Expected

MOST = 1000  # decisions or rewards in one call

Context = Mapping[str, Any] | None
Contexts = Mapping[str, Any] | list[Mapping[str, Any]] | None  # of all decisions of a call, or of each
Candidates = Mapping[str, Mapping[str, Any]] | None  # names, and the features of each
CandidateSets = Mapping[str, Mapping[str, Any]] | list[Mapping[str, Mapping[str, Any]]] | None  # likewise
Arms = Iterable[Hashable] | None
# By the ids of decisions; with the id of the part, where rewards are added up.
Rewards = Iterable[tuple[str | Decision, float] | tuple[str | Decision, float, str]] | Mapping[str, float]
Pairs = list[tuple[str, float, str | None]]  # checked


class History(NamedTuple):
    """Counts over time, one row per interval and one column per arm."""

    starts: list[datetime]  # of the intervals
    width: timedelta
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
    came: datetime | None = None  # when the outcome was written
    waiting: bool = False  # whether it is still to be learned
    context: dict[str, Any] | None = None  # of the decision, as it was given
    added: float | None = None  # the sum of the parts of its reward so far, if it has any


@runtime_checkable
class ReadableBandit(Protocol):
    """A bandit that reports, and perhaps no more: `View` and every other."""

    name: str

    @property
    def arms(self) -> list[Hashable]:
        """The arms that can be chosen, in the order they were added; none, if every request has candidates."""

    @property
    def policy(self) -> Any:
        """The policy that decides now."""

    @property
    def config(self) -> Config:
        """Everything that was chosen about this bandit."""

    def probabilities(
        self, context: Context = None, *, candidates: Candidates = None, available: Arms = None, draws: int = 2000
    ) -> Probabilities:
        """Each arm's probability of being chosen now, all rules included, or that of each candidate. It is that in a
        context if the bandit has features; a feature left out counts as its mean so far. `error` bounds how far they
        may be off."""

    def greedy(self, context: Context = None, *, candidates: Candidates = None, available: Arms = None) -> Hashable:
        """The arm or candidate with the best believed mean reward, for previews and crawlers: nothing is recorded or
        learned. A fixed arm is returned as `decide` does. With features, the best arm in the context, or without one in
        the mean context. While no arm has a belief, the arm that is most likely to be chosen."""

    def expected(self, context: Context = None, *, candidates: Candidates = None) -> dict[Hashable, Expected]:
        """The reward that the policy expects of every arm or candidate now and how uncertain it is (`mean`, `sd`), in a
        context if the bandit has features; a feature left out counts as its mean so far. Before the first reward,
        the mean is NaN and the sd infinite."""

    def explain(self) -> Any:
        """What the policy believes about the environment and every arm, printable; `DriftAuto` has such beliefs, and
        not every policy does. With features, also which of them matter."""

    def effects(self) -> Effects:
        """What each feature does for every arm, the best arm by level and hour, and how much more the best arm of a
        context earns than the best single one. All are numbers, for a page or a notebook."""

    def outcome(self, id: str | Decision) -> Outcome:
        """A decision and its outcome."""

    def recent(self, limit: int = 20) -> list[Outcome]:
        """The last decisions, newest first, with their outcomes."""

    def changes(self) -> list[dict[str, Any]]:
        """Every change of configuration: when (`at`, a datetime), what (with arms and values), who."""

    def history(self, since: Any = None, until: Any = None, points: int = 200) -> History:
        """Decisions, outcomes and rewards over time, counted by the store in at most `points` intervals. Times are
        datetimes, or how long ago: "7 days", a timedelta or seconds. With `wait`, an outcome counts at the time when
        its decision is that old."""

    def uplift(self, since: Any = None, confidence: float = 0.95) -> Uplift:
        """What the policy gains over the baseline: mean rewards of the two groups of decisions, compared within each
        period of one configuration, and an interval for the difference. `since` limits it to recent decisions, as in
        "7 days" (or a timedelta, seconds, a datetime)."""

    def health(self) -> dict[str, Any]:
        """Counts and, in a process that writes, lags: for a page or a monitor. `waiting` counts outcomes that are
        learned when their decision is old enough, `late` rewards that came after `wait`. `plays` is the policy that
        decides now, where that depends on the rewards, and `cut` counts absurdly large rewards that it cut. `delays` is
        a sentence about how long rewards take, and `warnings` has one if only successes seem to be reported. Of the
        contexts whose outcomes were learned, `missing` counts those without a value of a feature, and `undeclared`
        those with a level that was not declared. Outcomes are counted when this process has folded
        them. `lag`, `clock_set_back` and `clock_ahead` are timedeltas."""

    def refresh(self) -> None:
        """Fold what other processes have written so far; this also happens without a call, usually within 0.1 s."""

    def close(self) -> None:
        """Write everything that was requested, and release the journal or the connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


@runtime_checkable
class AnyBandit(ReadableBandit, Protocol):
    """A bandit: it decides, learns rewards, can be changed, and reports."""

    who: str

    # ---- deciding ----------------------------------------------------------------------------------------------------

    def decide(
        self, id: str | None = None, *, context: Context = None, candidates: Candidates = None,
        available: Arms = None, probability: bool = False,
    ) -> Decision:  # fmt: skip
        """The arm to play now, written down before it is returned. The same id again gives the same decision; without
        an id, one is made. A bandit with `features` needs a `context`, the values of its features: one that is left out
        counts as their mean so far. A bandit made with candidates=True chooses among the `candidates` of the call,
        names with the features of each. `probability=True` also computes how likely the arm was."""
        return self._decide([id], context, candidates, available, probability)[0]

    def decide_many(
        self, what: int | Iterable[str], *, context: Contexts = None, candidates: CandidateSets = None,
        available: Arms = None, probability: bool = False,
    ) -> list[Decision]:  # fmt: skip
        """Up to 1,000 decisions in one commit: this many, or one for each of these ids. `context` is that of all of
        them, or a list with one for each; so are `candidates`."""
        return self._decide(list_ids(what), context, candidates, available, probability)

    async def adecide(
        self, id: str | None = None, *, context: Context = None, candidates: Candidates = None,
        available: Arms = None, probability: bool = False,
    ) -> Decision:  # fmt: skip
        """`decide` for asyncio."""
        return (await self._adecide([id], context, candidates, available, probability))[0]

    async def adecide_many(
        self, what: int | Iterable[str], *, context: Contexts = None, candidates: CandidateSets = None,
        available: Arms = None, probability: bool = False,
    ) -> list[Decision]:  # fmt: skip
        """`decide_many` for asyncio."""
        return await self._adecide(list_ids(what), context, candidates, available, probability)

    # The ids (None: to be made), context, candidates, available and probability.
    def _decide(self, ids: list[str | None], *how: Any) -> list[Decision]: ...

    async def _adecide(self, ids: list[str | None], *how: Any) -> list[Decision]: ...

    # ---- rewards -----------------------------------------------------------------------------------------------------

    def reward(self, id: str | Decision, value: float, *, add: bool = False, part: str | None = None) -> str:
        """Report the outcome of a decision, given by its id or whole. Returns "learned", "waiting" if it is learned
        when its decision is `wait` old, "again" if this reward was already there, or "late" if it came after `wait`
        (it is stored, not learned). A different reward for the same decision is a RecordConflict.

        With `add`, the value is a part of the reward: parts are added up until the decision is `wait` old, and the sum
        is learned as one reward. `part` is an id of this part: the same part again counts once, and with another value
        it is a RecordConflict. Without one, every call is a new part. A decision has parts or a whole reward; where one
        is there, the other is a RecordConflict. The sum must lie in `reward_range` after every part.

        Without `wait`, rewards are learned in the order of these calls. Report failures as soon as successes: a policy
        that looks for changes takes a day's successes, reported before its failures, for a change."""
        return raise_error(self._reward([self._check_pair(id, value, add, part)])[0])

    async def areward(self, id: str | Decision, value: float, *, add: bool = False, part: str | None = None) -> str:
        """`reward` for asyncio."""
        return raise_error((await self._areward([self._check_pair(id, value, add, part)]))[0])

    def _check_pair(self, id: Any, value: Any, add: bool, part: str | None) -> tuple[str, float, str | None]:
        part = check_part(add, part)
        return check_id(id), self._check_reward(value, part), part

    def reward_many(self, pairs: Rewards, *, add: bool = False) -> list[str | Exception]:
        """Up to 1,000 rewards in one commit: for each its verdict, or the error it met, which does not affect the
        others. They are learned in the order of their decisions, whatever their order in the call. Without `wait`,
        several calls are learned one after the other: give each a stretch of time, with successes and failures. With
        `add`, they are parts, as in `reward`: pairs of id and value, or triples with the id of the part."""
        good, out = check_pairs(pairs, self._check_reward, add)
        return place_answers(out, self._reward(good) if good else [])

    async def areward_many(self, pairs: Rewards, *, add: bool = False) -> list[str | Exception]:
        """`reward_many` for asyncio."""
        good, out = check_pairs(pairs, self._check_reward, add)
        return place_answers(out, await self._areward(good) if good else [])

    def _check_reward(self, reward: Any, part: str | None = None) -> float: ...

    def _reward(self, pairs: Pairs) -> list[Any]: ...

    async def _areward(self, pairs: Pairs) -> list[Any]: ...

    def settle(self) -> int:
        """Settle every decision that is `wait` old: write the default where no reward came, and learn all outcomes. The
        number of defaults. This happens automatically, before decisions and while nothing happens."""

    # ---- changing ----------------------------------------------------------------------------------------------------

    def add_arm(
        self, arm: Hashable, *, like: Hashable = None, mean: float | None = None, worth: float | None = None,
        who: str = "",
    ) -> None:  # fmt: skip
        """One more arm. Nothing is known about it, and so it is tried first. Or it begins with a past: the beliefs
        about the arm that it is `like`, or a `mean` reward that is `worth` so many observations. Then it is chosen by
        what is known. With features, the mean is that in the mean context. Policies that keep a window of rewards or
        wrap another policy cannot take a past."""

    def retire_arm(self, arm: Hashable, *, who: str = "") -> None:
        """Never choose this arm again; rewards still to come are learned. Its name may be used again for a new arm."""

    def fix(self, arm: Hashable, *, who: str = "") -> None:
        """Play this arm from now on, whatever the policy computes, until `release`."""

    def release(self, *, who: str = "") -> bool:
        """End `fix`. Whether there was an arm to release: if not, nothing is written."""

    def change(self, *, from_now: bool = False, who: str = "", **options: Any) -> None:
        """Change the policy or any of the options but reward_range, goal and candidates; None removes half_life, wait,
        features, retention and labels. With add_arm and retire_arm among the options, all of it is one change: it is
        made whole or, if any part is refused, not at all.

        A new policy or half-life, or new features, learn the whole journal again, as if they had been there from the
        start: contexts are kept as they were given, so whatever is known of a feature that stays is learned again, and
        so are levels that were not declared before. With `from_now` nothing is read again: a new policy begins with
        nothing, a new half-life with what is known now, and new features with what is known of the columns that stay,
        if the policy is DriftLinTS or another of the library's linear ones."""

    def resume_clock(self, *, who: str = "") -> timedelta:
        """Let time advance again after a clock that was far ahead for a moment: from the latest time in the journal,
        instead of stopping until the clock gets there. Returns by how much the bandit's times are ahead of the clock
        from then on; 0 if the clock is not behind, and then nothing is written."""

    # ---- records: for a bandit with a journal ------------------------------------------------------------------------

    def erase(self, id: str | Decision, *, who: str = "") -> bool:
        """Erase a decision's id: a keyed hash takes its place, and its context is removed. The decision, its outcome
        and learned rewards stay, and the same id sent again is still the same decision. Returns whether it had not
        been erased before. The journal keeps when and by whom, not which."""

    def archive(self, *, who: str = "") -> None:
        """Decide no more, and leave all lists. After a day, `prune` exports and deletes the bandit; `unarchive` undoes
        it until then. Rewards of earlier decisions are still learned."""

    def unarchive(self, *, who: str = "") -> None:
        """Decide again; within a day after `archive`."""


def list_ids(what: Any) -> list[str | None]:
    """The ids requested of `decide_many`: for each decision an id, or None for one to be made."""
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


def check_pairs(pairs: Any, check: Callable[[Any, str | None], float], add: bool = False) -> tuple[Pairs, list[Any]]:
    """What can be sent of pairs of id and reward, or triples with the id of a part, and for each an error or None."""
    check_part(add, None)
    try:
        given = [tuple(one) for one in (pairs.items() if isinstance(pairs, Mapping) else pairs)]
        every = [(id, value, *(part or (None,))) for id, value, *part in given]
        if not all(len(one) == 3 and (add or one[2] is None) for one in every):
            raise ValueError
    except (TypeError, ValueError):
        more = ", or triples with the id of the part" if add else ""
        raise ValueError(f"reward_many needs pairs of id and reward{more}; got {pairs!r:.60}.") from None
    if len(every) > MOST:
        raise ValueError(f"At most {MOST} rewards go into one call; got {len(every)}.")
    good: Pairs = []
    out: list[Any] = []
    for id, value, part in every:
        try:
            part = check_part(add, part)
            good.append((check_id(id), check(value, part), part))
            out.append(None)
        except ValueError as error:
            out.append(error)
    return good, out


def raise_error(answer: Any) -> str:
    """The verdict on a reward; an error is raised."""
    if isinstance(answer, BaseException):
        raise answer
    return str(answer)


def place_answers(out: list[Any], answers: list[Any]) -> list[Any]:
    """The answers in the places that have no error."""
    left = iter(answers)
    return [next(left) if error is None else error for error in out]
