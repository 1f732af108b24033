"""Bandits as river policies, for `river.bandit.evaluate`, `evaluate_offline` and programs that use river."""

import copy
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from driftbandit.bandit import Bandit, Decision

try:
    from river import bandit as river_bandit
except ImportError as error:
    raise ImportError("This adapter needs river: pip install '.[river]'.", name=error.name) from None


class _Pull(NamedTuple):
    """A pull whose reward has not come."""

    decision: Decision
    context: Any


class RiverPolicy(river_bandit.base.Policy):
    """A `Bandit` in memory as a river policy.

    It is made at the first pull, with the arms of that pull; arms that come later are added, and those that a pull
    does not list are not chosen. `policy`, `seed` and `options` are those of `Bandit`. river's rewards have no
    decision: a reward belongs to the last pull of its arm, or to a new decision for that arm if it was never pulled."""

    def __init__(self, policy: Any = None, seed: int | None = None, **options: Any) -> None:
        super().__init__()
        self.policy, self.seed, self.options = policy, seed, options
        self.bandit: Bandit | None = None
        self._open: dict[Hashable, _Pull] = {}

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Any:
        """A new policy with the same parameters, or with everything that this one has learned. river's own cannot copy
        a parameter that is an empty tuple, which a policy without parameters is."""
        if include_attributes and not new_params:
            return copy.deepcopy(self)
        return type(self)(**copy.deepcopy({**self._get_params(), **(new_params or {})}))

    def _pull(self, arm_ids: Iterable[Hashable]) -> Any:
        return self._decide(list(arm_ids), None)

    def update(self, arm_id: Hashable, *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn the reward of an arm."""
        super().update(arm_id, *reward_args, **reward_kwargs)
        self._reward(arm_id, None, *reward_args, **reward_kwargs)

    def _decide(self, arms: list[Hashable], context: Any) -> Any:
        if self.bandit is None:
            self.bandit = self._make(arms, context)
        known = self.bandit.arms
        for arm in arms:
            if arm not in known:
                self.bandit.add_arm(arm)
        few = arms if len(set(arms)) < len(self.bandit.arms) else None
        decision = self.bandit.decide(context=context, available=few)
        self._open[decision.arm] = _Pull(decision, context)
        return decision.arm

    def _make(self, arms: list[Hashable], context: Any) -> Bandit:
        return Bandit(arms, self.policy, seed=self.seed, **self.options)

    def _reward(self, arm: Hashable, context: Any, reward: float) -> None:
        pull = self._open.get(arm)
        if pull is None or pull.context != context:
            self._decide([arm], context)
            pull = self._open[arm]
        del self._open[arm]
        assert self.bandit is not None  # made by the pull
        self.bandit.reward(pull.decision, float(reward))


class RiverContextualPolicy(river_bandit.base.ContextualPolicy, RiverPolicy):
    """A `Bandit` with features as a contextual river policy.

    `features` declares what a context may hold, as in `Bandit`. Without it every value of the first context is a number
    or, if it is True or False, a flag. A reward belongs to the last pull of its arm if that had the same context, and
    otherwise to a new decision for that arm and context."""

    def __init__(
        self, policy: Any = None, seed: int | None = None, features: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        RiverPolicy.__init__(self, policy, seed, **options)
        self.features = features

    def _pull(self, arm_ids: Iterable[Hashable], context: Mapping[str, Any]) -> Any:  # type: ignore[override]
        return self._decide(list(arm_ids), dict(context))

    def update(self, arm_id: Hashable, context: Mapping[str, Any], *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn the reward of an arm in a context."""
        river_bandit.base.ContextualPolicy.update(self, arm_id, context, *reward_args, **reward_kwargs)
        self._reward(arm_id, dict(context), *reward_args, **reward_kwargs)

    def _make(self, arms: list[Hashable], context: Any) -> Bandit:
        features = self.features or {name: _kind(name, value) for name, value in context.items()}
        return Bandit(arms, self.policy, seed=self.seed, features=features, **self.options)


def _kind(name: str, value: Any) -> str:
    if isinstance(value, str):
        raise ValueError(f"Feature {name!r} is a text; declare its levels, as in features={{{name!r}: [{value!r}]}}.")
    return "flag" if isinstance(value, bool) else "number"
