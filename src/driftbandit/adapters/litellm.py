"""A bandit that chooses among the healthy deployments of a model group in LiteLLM's router."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from driftbandit.errors import DriftbanditError

try:
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise ImportError("This adapter needs litellm: pip install '.[litellm]'.", name=error.name) from None

log = logging.getLogger("driftbandit.adapters")
KEY, OWNER = "driftbandit", "driftbandit_owner"  # in the `model_info` of an attempt: the decision's id, its chooser
Measure = Callable[[dict[str, Any], Any, float], float | None]  # of LiteLLM's record of the call, response and seconds


def _seconds(record: dict[str, Any], response: Any, seconds: float) -> float:
    return seconds


def _cost(record: dict[str, Any], response: Any, seconds: float) -> float | None:
    return record.get("response_cost")


class DeploymentChooser(CustomLogger):
    """One bandit for each model group, in this process or in a service: `litellm.callbacks = [DeploymentChooser(...)]`.

    The arms are the ids of the deployments, `model_info={"id": ...}` in the router's list. Every attempt of a request
    is a decision among those that are healthy at that moment and arms of the bandit. This works for the router's
    asynchronous calls; its synchronous calls have no such hook.

    `measure` is the reward of an answer: "seconds" or "cost", for bandits with goal="minimise", or a function of
    LiteLLM's record of the call, the response and the seconds it took. If it returns None nothing is rewarded, and the
    program rewards the decision itself later: its id is `metadata["model_info"]["driftbandit"]` in the
    metadata given with the request. `failure` is the reward of an attempt that failed, on the same scale. `context`
    makes the context of a decision from the messages and the arguments of a request."""

    def __init__(
        self,
        bandits: Mapping[str, Any],
        measure: str | Measure = "seconds",
        *,
        failure: float,
        context: Callable[[Any, dict[str, Any]], Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__()
        named: dict[str, Measure] = {"seconds": _seconds, "cost": _cost}
        if isinstance(measure, str) and measure not in named:
            raise ValueError(f"measure is {', '.join(named)} or a function; got {measure!r:.60}.")
        for model, bandit in bandits.items():
            if isinstance(measure, str) and bandit.config.goal != "minimise":
                raise ValueError(f"Less {measure} is better: make the bandit of {model!r:.60} with goal='minimise'.")
        self.bandits, self.failure, self.context = dict(bandits), failure, context
        # LiteLLM takes two loggers of one class for the same unless a public attribute, a text, differs. It sends the
        # events of all choosers to each of them, and ids of bandits in memory repeat.
        self.owner = str(id(self))
        self.measure: Measure = named[measure] if isinstance(measure, str) else measure
        self.refresh()

    def refresh(self) -> None:
        """Read the arms of the bandits again: call it when arms were added or retired."""
        self._arms = {model: set(bandit.arms) for model, bandit in self.bandits.items()}

    async def async_filter_deployments(
        self,
        model: str,
        healthy_deployments: list[Any],
        messages: Any,
        request_kwargs: dict[str, Any] | None = None,
        parent_otel_span: Any = None,
    ) -> list[Any]:
        """The deployment to use, as a list of one; all of them if the bandit cannot decide."""
        by_id = {one["model_info"]["id"]: one for one in healthy_deployments}
        arms = self._arms.get(model, set())
        known = None if arms <= by_id.keys() else sorted(arms & by_id.keys())
        if not arms or known == []:
            return healthy_deployments
        try:
            context = None if self.context is None else self.context(messages, request_kwargs or {})
            decision = await self.bandits[model].adecide(context=context, available=known)
        except (DriftbanditError, ValueError) as error:
            log.warning("No decision for %s, so the router chooses: %s", model, error)
            return healthy_deployments
        chosen = by_id[decision.arm]
        # A copy: the router gives it to this attempt only, and its events return it even when the next has begun.
        return [{**chosen, "model_info": {**chosen["model_info"], KEY: decision.id, OWNER: [self.owner, model]}}]

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Reward the decision by the measure."""
        await self._reward(kwargs, self.measure(kwargs, response_obj, (end_time - start_time).total_seconds()))

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Reward the decision as a failure."""
        await self._reward(kwargs, self.failure)

    async def _reward(self, record: dict[str, Any], value: float | None) -> None:
        about = (record.get("litellm_params") or {}).get("model_info") or {}
        owner, model = about.get(OWNER, ("", ""))
        if owner != self.owner or value is None:
            return
        try:
            await self.bandits[model].areward(about[KEY], value)
        except (DriftbanditError, ValueError) as error:
            log.warning("Decision %s was not rewarded: %s", about[KEY], error)
