"""An OpenFeature provider: a flag is a bandit, its variants are the arms, and tracking events are rewards."""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from driftbandit.errors import DriftbanditError, NotFound

try:
    from openfeature import exception
    from openfeature.evaluation_context import EvaluationContext
    from openfeature.flag_evaluation import FlagResolutionDetails, Reason
    from openfeature.provider import AbstractProvider, Metadata
except ImportError as error:
    raise ImportError("This adapter needs openfeature-sdk: pip install '.[openfeature]'.", name=error.name) from None

log = logging.getLogger("driftbandit.adapters")
_ACCEPTED = {float: (float, int), list: (tuple,)}  # arms that are values of a type; other types accept themselves


def _details(kind: Any, decision: Any) -> FlagResolutionDetails[Any]:
    if type(decision.arm) not in _ACCEPTED.get(kind, (kind,)):
        raise exception.TypeMismatchError(f"The arm {decision.arm!r:.60} is not of type {kind.__name__}.")
    arm, about = decision.arm, {"decision": decision.id, "how": decision.how}
    return FlagResolutionDetails(kind(arm), reason=Reason.SPLIT, variant=str(arm), flag_metadata=about)


@contextlib.contextmanager
def _translating_errors() -> Iterator[None]:
    """An id or a context that the bandit refuses is the caller's mistake; other errors are not."""
    try:
        yield
    except DriftbanditError as error:
        raise exception.GeneralError(str(error)) from error
    except ValueError as error:
        raise exception.InvalidContextError(str(error)) from error


def _now(kind: Any) -> Any:
    def resolve(self: Any, flag_key: str, default_value: Any, evaluation_context: Any = None) -> Any:
        bandit, request = self._request(flag_key, evaluation_context)
        with _translating_errors():
            return _details(kind, bandit.decide(**request))

    return resolve


def _later(kind: Any) -> Any:
    async def resolve(self: Any, flag_key: str, default_value: Any, evaluation_context: Any = None) -> Any:
        bandit, request = self._request(flag_key, evaluation_context)
        with _translating_errors():
            return _details(kind, await bandit.adecide(**request))

    return resolve


class BanditProvider(AbstractProvider):
    """Flags whose values are chosen by bandits, in this process or in a service.

    `bandits` maps the key of a flag to its bandit. The targeting key is the id of the decision, so a user keeps the
    value that was chosen first. The attributes that are features of the bandit are the context, and others are left
    out. A flag that cannot be decided has the caller's default value, as OpenFeature requires.

    `events` maps a tracking event to the flag, or flags, whose decision for the same targeting key it rewards: with the
    value of the event, or with 1. Other events are ignored, and so are those of users without a decision. Errors of
    tracking are logged."""

    def __init__(self, bandits: Mapping[str, Any], events: Mapping[str, str | Iterable[str]] | None = None) -> None:
        super().__init__()
        self._bandits = dict(bandits)
        self._events = {
            name: (flags,) if isinstance(flags, str) else tuple(flags) for name, flags in (events or {}).items()
        }
        for flag in (flag for flags in self._events.values() for flag in flags):
            if flag not in self._bandits:
                raise ValueError(f"{flag!r:.60} is not a flag; flags are {', '.join(self._bandits)}.")
        self._features = {flag: frozenset(bandit.config.features or ()) for flag, bandit in self._bandits.items()}

    def get_metadata(self) -> Metadata:
        """The provider's name."""
        return Metadata("driftbandit")

    resolve_boolean_details, resolve_boolean_details_async = _now(bool), _later(bool)
    resolve_string_details, resolve_string_details_async = _now(str), _later(str)
    resolve_integer_details, resolve_integer_details_async = _now(int), _later(int)
    resolve_float_details, resolve_float_details_async = _now(float), _later(float)
    resolve_object_details, resolve_object_details_async = _now(list), _later(list)

    def _request(self, flag: str, context: EvaluationContext | None) -> tuple[Any, dict[str, Any]]:
        """The bandit and the arguments of `decide`."""
        if flag not in self._bandits:
            raise exception.FlagNotFoundError(f"{flag!r:.60} is not a flag; flags are {', '.join(self._bandits)}.")
        if context is None or not context.targeting_key:
            raise exception.TargetingKeyMissingError("A targeting key is needed: it is the id of the decision.")
        features = self._features[flag]
        known = {name: value for name, value in context.attributes.items() if name in features}
        return self._bandits[flag], {"id": context.targeting_key, "context": known if features else None}

    def track(
        self, tracking_event_name: str, evaluation_context: Any = None, tracking_event_details: Any = None
    ) -> None:
        """Reward the decisions of the targeting key."""
        id = None if evaluation_context is None else evaluation_context.targeting_key
        value = None if tracking_event_details is None else tracking_event_details.value
        for flag in self._events.get(tracking_event_name, ()) if id else ():
            try:
                self._bandits[flag].reward(id, 1.0 if value is None else value)
            except NotFound:
                log.debug("Event %s: flag %s has no decision %s.", tracking_event_name, flag, id)
            except (DriftbanditError, ValueError) as error:
                log.warning("Event %s did not reward flag %s: %s", tracking_event_name, flag, error)
