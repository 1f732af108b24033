"""Counts and texts about a bandit: how its rewards are reported, its gain over the baseline, its configuration and its
changes."""

import math
import time
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.bandit.inputs import TIMES, Config
from driftbandit.bandit.records import DEFAULT, FIRST, FLOOR, HOLDBACK, LATE, POLICY, Change, StoredConfig
from driftbandit.bandit.settings import describe_option, names_of
from driftbandit.core.beliefs import t_quantile
from driftbandit.core.checks import counted
from driftbandit.core.validity import check_state
from driftbandit.errors import DamagedJournal, report_damage
from driftbandit.spec.half_life import SECOND, duration, format_duration

_ENOUGH = 100  # rewards before their delays are described
_DECISIONS, _REWARDS = 300, 20  # at least so many before reporting is judged
_OTHERS = 0.02  # share of contexts with levels that were not declared, from which on they are reported
_PATIENCE = 2.0  # seconds for which a change that another process has made may be on its way
_NEARLY_ALL, _MANY = 0.98, 0.5  # shares: of rewards that are the highest, of decisions without a reward


class Reported:
    """Counts over a bandit's rewards, made while events are folded: a report reads no rows, and every process counts
    the same."""

    def __init__(self) -> None:
        self.rewards = self.defaults = 0
        self.highest = 0.0
        self.at_highest = 0  # rewards of that value
        self._delays: dict[int, int] = {}  # rewards by their delay, in buckets of at most 1/8 of it

    def add(self, kind: int, value: float, at: int, decided: int) -> None:
        """Count a REWARD, DEFAULT or LATE."""
        if kind == DEFAULT:
            self.defaults += 1
            return
        delay = at - decided if at > decided else 0
        shift = delay.bit_length() - 4
        bucket = delay if shift <= 0 else 8 * shift + (delay >> shift)
        delays = self._delays
        delays[bucket] = delays.get(bucket, 0) + 1
        if kind == LATE:
            return
        if value == self.highest:
            self.at_highest += 1
        elif value > self.highest or self.rewards == 0:
            self.highest, self.at_highest = value, 1
        self.rewards += 1

    def delay(self, share: float) -> int | None:
        """The microseconds within which this share of rewards has arrived; None while there are few rewards."""
        left = share * sum(self._delays.values())
        if left < share * _ENOUGH:
            return None
        for bucket in sorted(self._delays):
            left -= self._delays[bucket]
            if left <= 0.0:
                break
        shift = max(0, bucket // 8 - 1)
        return ((bucket - 8 * shift + 1) << shift) - 1

    @property
    def late(self) -> int:
        """The number of rewards that came after `wait`."""
        return sum(self._delays.values()) - self.rewards

    @property
    def delays(self) -> str:
        """How long rewards take, in a sentence; empty while there are few."""
        p90, p99 = self.delay(0.9), self.delay(0.99)
        if p90 is None or p99 is None:
            return ""
        return f"90% of rewards arrive within {format_duration(p90, 2)}, 99% within {format_duration(p99, 2)}."

    def plain(self) -> list[Any]:
        """As a snapshot keeps it."""
        delays = [list(pair) for pair in sorted(self._delays.items())]
        return [self.rewards, self.defaults, self.highest, self.at_highest, delays]

    @classmethod
    def read(cls, data: Any) -> "Reported":
        """The inverse of `plain`."""
        out = cls()
        rewards, defaults, highest, at_highest, delays = data
        out.rewards, out.defaults = int(rewards), int(defaults)
        out.highest, out.at_highest = float(highest), int(at_highest)
        out._delays = {int(bucket): int(count) for bucket, count in delays}
        return out


def warnings(fold: Any, decisions: int) -> list[str]:
    """What the owner of a bandit should look at, a sentence each."""
    out = _warn_of_successes(fold.config, fold.reported, decisions) + _warn_of_levels(fold.seen)
    if not _is_sound(fold.player):
        out.append(
            "What the policy has learned holds numbers that are not finite or out of bounds, so its "
            "choices mean nothing; change(policy=...) learns the journal again."
        )
    return out


def _is_sound(player: Any) -> bool:
    """Whether the policy can be in its state, by its declarations; a policy without any has finite numbers,
    except where they were infinite in the beginning."""
    state, first = player.arrays(), player.first_state()
    if not hasattr(player.policy, "validate_state"):
        return _is_finite(state, first)
    try:
        check_state(player.policy, state, player.learned, first)
    except ValueError:
        return False
    return True


def _is_finite(state: Any, first: Any) -> bool:
    if isinstance(state, tuple):
        names = set(state._fields) - {"scores"}  # type: ignore[attr-defined]  # which each choice overwrites
        return all(_is_finite(getattr(state, name), getattr(first, name)) for name in names)
    return bool((np.isfinite(state) | (np.isinf(first) & ~np.isnan(state))).all())


def _warn_of_levels(seen: Any) -> list[str]:
    """A sentence for each feature with levels that were not declared, if they are frequent."""
    out = []
    for name, counts in seen.undeclared.items():
        total = sum(counts.values())
        if total >= _REWARDS and total >= _OTHERS * seen.learned:
            out.append(
                f"Feature {name!r} has levels that were not declared in {total:,} of {seen.learned:,} contexts; they "
                "count as one. health() lists them as undeclared, and change(features=...) declares them."
            )
    return out


def _warn_of_successes(config: StoredConfig, reported: Reported, decisions: int) -> list[str]:
    """A sentence if it looks as if only successes were reported, which misleads a policy: many decisions have no
    reward, and nearly all rewards are the highest seen."""
    few = decisions < _DECISIONS or reported.rewards < _REWARDS
    complete = reported.rewards > (1.0 - _MANY) * decisions or reported.at_highest < _NEARLY_ALL * reported.rewards
    if config.wait is not None or few or complete:
        return []
    wait = format_duration(max(SECOND, reported.delay(0.99) or 3600 * SECOND), 2)
    return [
        f"{reported.at_highest:,} of {reported.rewards:,} rewards are {reported.highest:g}, the highest seen, and "
        f"{decisions - reported.rewards:,} of {decisions:,} decisions have none. If only successes are reported, "
        f'set wait and default, for example change(wait="{wait}", default={config.default:g}).'
    ]


def policy_played(fold: Any) -> str:
    """The policy that decides now, where that depends on the rewards seen; otherwise the policy itself."""
    policy = fold.player.policy
    return str(policy.plays(fold.player.state) if hasattr(policy, "plays") else type(policy).__name__)


# ---- the gain of a policy over its baseline --------------------------------------------------------------------------
# Decisions are compared within each period of one configuration. All decisions of a period were held back with the same
# probability, so its two groups saw the same conditions. Groups pooled over periods of different shares did not: any
# other change between the periods would look like an effect of the policy.


class Uplift(NamedTuple):
    """Mean reward with the policy and without, and an interval for the difference; NaN where there are too few
    outcomes. Means and difference are averages over the periods compared, weighted by their outcomes. With `wait`, only
    decisions that are old enough count.

    The interval is Welch's. Where all outcomes of a group are equal, the variance is that of the group with one more
    outcome at either end of the range of rewards. So the width is never 0. If none is declared, it reaches from 0 to
    a typical outcome other than 0."""

    policy: float
    baseline: float
    difference: float
    low: float
    high: float
    n_policy: int  # outcomes compared
    n_baseline: int
    confidence: float
    periods: int  # of one configuration, compared each within itself
    left_out: int  # outcomes of periods that have fewer than two in one of the groups
    holdback: float  # the share held back by the latest configuration
    goal: str = "maximise"

    def __str__(self) -> str:
        if math.isnan(self.low) and self.holdback == 0.0:
            return (
                "Nothing to compare with: no decision is held back. "
                'Set a holdback and its baseline: change(holdback=0.05, baseline="uniform").'
            )
        if math.isnan(self.low):
            return (
                f"Too few outcomes to compare: {self.n_policy} with the policy, {self.n_baseline} held back; a period "
                "needs two of each."
            )
        return (
            f"{self.policy:.4g} with the policy ({counted(self.n_policy, 'outcome')}), {self.baseline:.4g} held back "
            f"({self.n_baseline}): {self.difference:+.4g}, {100 * self.confidence:g}% interval "
            f"{self.low:+.4g} to {self.high:+.4g}"
            + (" (smaller is better)" if self.goal == "minimise" else "")
            + (f"; compared within {self.periods} periods of one configuration each" if self.periods > 1 else "")
            + (f"; {counted(self.left_out, 'outcome')} had nothing to be compared with" if self.left_out else "")
        )


def measure_uplift(journal: Any, number: int, since: int, confidence: float, until: int) -> Uplift:
    """The uplift of decisions made since a time and before another, from sums that the store makes by period and way of
    deciding."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence lies between 0 and 1; got {confidence!r:.60}.")
    starts: list[int] = []
    configs: list[StoredConfig] = []
    for _, event in journal.changes(number):
        config = Change.read(event.body).config
        if configs and _relevant(config) == _relevant(configs[-1]):
            continue
        if starts and event.at == starts[-1]:  # several changes at once: the last one counts
            starts.pop(), configs.pop()
        starts.append(event.at)
        configs.append(config)
    first = sum(start <= since for start in starts[1:])  # the period that was under way
    starts, configs = [since, *starts[first + 1 :]], configs[first:]
    with report_damage():
        return compare(configs, journal.groups(number, starts, until), confidence)


def _relevant(config: StoredConfig) -> tuple[Any, ...]:
    """A change of any of these begins a period."""
    return (config.policy, config.half_life, config.floor, config.first, config.holdback, config.baseline,
            config.active, config.fixed, config.features)  # fmt: skip


def compare(configs: list[StoredConfig], groups: list[tuple[int, int, int, float, float]], confidence: float) -> Uplift:
    """From counts, sums and sums of squares by period and way of deciding. Decisions by the policy, its floor and first
    tries belong to the policy; those of a fixed arm belong to neither group.

    A period is weighted by its outcomes, so this estimates the average gain over all rounds compared."""
    sums = np.zeros((len(configs), 2, 3))  # by period and group: the number of outcomes, their sum and sum of squares
    for period, how, *three in groups:
        if how in (POLICY, FLOOR, FIRST, HOLDBACK):
            sums[period, int(how == HOLDBACK)] += three
    usable = sums[(sums[:, :, 0] > 1).all(axis=1)]
    n, m = (usable if len(usable) else sums)[:, :, 0].sum(axis=0)
    left_out = sums[:, :, 0].sum() - usable[:, :, 0].sum()
    policy = baseline = low = high = math.nan
    if len(usable):
        counts, means = usable[:, :, 0], usable[:, :, 1] / usable[:, :, 0]
        weights = counts.sum(axis=1) / (n + m)
        policy, baseline = (float(value) for value in weights @ means)
        ends = configs[-1].reward_range or _typical_ends(*usable.sum(axis=(0, 1)))
        parts = weights[:, None] ** 2 * _variances(usable, ends) / counts
        variance = parts.sum()
        freedom = 1.0 / ((parts / variance) ** 2 / (counts - 1)).sum()
        width = t_quantile(0.5 + 0.5 * confidence, float(freedom)) * math.sqrt(variance)
        low, high = policy - baseline - width, policy - baseline + width
    return Uplift(policy, baseline, policy - baseline, low, high, int(n), int(m), confidence, len(usable),
                  int(left_out), configs[-1].holdback, configs[-1].goal)  # fmt: skip


def _variances(sums: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
    """Of each group; where all outcomes of a group are equal, with one more at either end of their range."""
    low, high = ends
    more = sums + np.where(_spread(sums) > 1e-12 * sums[:, :, 2], 0.0, 1.0)[:, :, None] * np.array(
        [2.0, low + high, low * low + high * high]
    )
    return np.asarray(_spread(more) / (more[:, :, 0] - 1.0))


def _typical_ends(n: float, total: float, squares: float) -> tuple[float, float]:
    """0 and the mean of all outcomes weighted by their size: 0 and 1 if these are the outcomes."""
    if squares == 0.0:
        return 0.0, 1.0
    size = min(math.sqrt(squares), squares / abs(total)) if total else math.sqrt(squares)
    return (0.0, size) if total >= 0.0 else (-size, 0.0)


def _spread(sums: np.ndarray) -> np.ndarray:
    """The sum of squares of differences to the mean."""
    return np.asarray(sums[:, :, 2] - sums[:, :, 1] ** 2 / sums[:, :, 0])


# ---- configurations --------------------------------------------------------------------------------------------------


def describe_options(config: Config) -> dict[str, Any]:
    """The options that are in force, as `Bandit.open` takes them; and the arm that is fixed."""
    usual: dict[str, Any] = {"learn_holdback": False, "holdback": 0.0, "learn": "wait", "goal": "maximise",
                             "first": True, "retired": (), "candidates": False}  # fmt: skip
    out = config._asdict()
    for name in ("arms", "policy", *(() if config.wait is not None else ("default",))):
        del out[name]
    for name in TIMES:
        out[name] = None if out[name] is None else format_duration(duration(out[name], name))
    return {name: value for name, value in out.items() if value is not None and usual.get(name) != value}


def names_up_to(replica: Any, slot: int) -> list[Hashable]:
    """The arms' names by slot, up to that of a stored decision at least. Another process may have added the arm since
    this one has last read."""
    until = time.monotonic() + _PATIENCE
    while slot >= len(replica.fold.config.arms):
        follows = replica.journal.live or replica.writer is None
        if not follows or time.monotonic() > until:
            raise DamagedJournal(f"The journal is damaged: a decision has arm number {slot}, which was never added.")
        replica.catch_up()
        time.sleep(0.002)
    return names_of(replica.fold.config)


def describe_change(change: Change, before: StoredConfig | None) -> str:
    """What a change did, with arms and values: "fix red", "holdback 0.1 -> 0.2"."""
    after = change.config
    if before is None:
        return change.what
    names = names_of(after)
    parts = [f"add_arm {names[slot]}" for slot in range(len(before.arms), len(after.arms))]
    if change.past is not None and "like" in change.past:
        parts.append(f"like {names[change.past['like']]}")
    elif change.past is not None:
        parts.append(f"mean {change.past['mean']:g} worth {change.past['worth']:g}")
    parts += [f"retire_arm {names[slot]}" for slot in after.retired if slot not in before.retired]
    if after.fixed is not None and (after.fixed != before.fixed or change.what == "fix"):
        parts.append(f"fix {names[after.fixed]}")
    elif before.fixed is not None and after.fixed is None:
        parts.append(f"release {names[before.fixed]}")
    for field in StoredConfig._fields:
        if getattr(before, field) != getattr(after, field) and field not in ("arms", "retired", "fixed"):
            name = "clock ahead" if field == "ahead" else field
            parts.append(f"{name} {describe_option(before, field)} -> {describe_option(after, field)}")
    return (", ".join(parts) or f"{change.what} (no difference)") + (" from now on" if change.from_now else "")
