"""Texts about a bandit: its configuration, its changes, and the way in which its rewards are reported."""

from typing import Any

import numpy as np

from driftbandit.bandit.options import TIMES, Config
from driftbandit.bandit.records import DEFAULT, LATE, Change, StoredConfig
from driftbandit.bandit.settings import describe_option, names_of
from driftbandit.core.validity import check_state
from driftbandit.spec.half_life import SECOND, duration, format_duration

_ENOUGH = 100  # rewards before their delays are described
_DECISIONS, _REWARDS = 300, 20  # at least so many before reporting is judged
_OTHERS = 0.02  # share of contexts with levels that were not declared, from which on they are reported
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
        if value > self.highest or self.rewards == 0:
            self.highest, self.at_highest = value, 0
        self.rewards += 1
        self.at_highest += value == self.highest

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


def count_cut_rewards(fold: Any) -> int:
    """How many rewards the policy has cut because they were absurdly large; 0 for a policy that cuts none."""
    policy = fold.player.policy
    return int(policy.cut_rewards(fold.player.state)) if hasattr(policy, "cut_rewards") else 0


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
