"""Candidates: arms that come with a request, each with its own features, and one model for all of them.

A bandit with candidates has one arm in its configuration, under which everything is learned. The row of a decision has
all candidates in `available`, as JSON, so that the audit can choose again. In `context` it has the features of the one
that was chosen, and its name: that is all that a reward needs."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from driftbandit.bandit.carrying import Seen
from driftbandit.bandit.features import CHOSEN, Features, as_mapping
from driftbandit.bandit.inputs import writable
from driftbandit.errors import ContextError, DamagedJournal

ARM = "candidates"  # the arm of a configuration
MOST_CANDIDATES = 100
MOST_SET_BYTES = 65_536  # of all candidates as JSON
_NAME_LENGTH = 200


class Candidates(NamedTuple):
    """The candidates of a caller, which a type distinguishes from a context."""

    given: Any


class CandidateSet(NamedTuple):
    """Candidates as they are kept: their names, and the features of each."""

    names: list[str]
    contexts: list[dict[str, Any]]
    text: str  # as JSON

    def numbers(self, features: Features, at: int, seen: Seen) -> list[float]:
        """The numbers of all candidates, one after the other."""
        return [number for context in self.contexts for number in features.encode(context, at, seen)]

    def context(self, place: int) -> str:
        """What is kept of the candidate that was chosen, as JSON."""
        return json.dumps({CHOSEN: self.names[place], **self.contexts[place]})


def check_has_arms(config: Any) -> None:
    """Refuse what needs arms, of a bandit that has none."""
    if config.candidates:
        raise ValueError(
            "This bandit chooses among the candidates of each request, so it has no arms to add, retire, fix, limit a "
            'call to or take as a baseline; the baseline of a holdback is "uniform".'
        )


def copy_candidates(given: Any) -> Candidates:
    """Candidates apart from the caller's own."""
    if isinstance(given, Mapping):
        given = {name: copy_context(values) for name, values in given.items()}
    return Candidates(given)


def copy_context(context: Any) -> Any:
    """A copy of the caller's context; a value of another type is returned as it is, to be refused later."""
    return dict(as_mapping(context)) if isinstance(context, Mapping) or hasattr(context, "to_dict") else context


def copy_contexts(context: Any, count: int, candidates: Any = None) -> Any:
    """The context of all decisions of a call, or of each, apart from the caller's own; or their candidates."""
    if context is not None and candidates is not None:
        raise ValueError("Give a context or candidates, not both: a value of the request can be a feature of all.")
    given, copy = (context, copy_context) if candidates is None else (candidates, copy_candidates)
    if not isinstance(given, list | tuple):
        return copy(given)
    if len(given) != count:
        what = "contexts has one" if candidates is None else "candidates has those"
        raise ValueError(f"A list of {what} for each decision; got {len(given)} for {count}.")
    return [copy(one) for one in given]


def read_candidates(features: Features, given: Any) -> CandidateSet:
    """The candidates of a request, checked."""
    if not isinstance(given, Mapping):
        allowed = "candidates maps names to features, such as {'a': {'price': 9.9}}"
        raise ContextError(allowed, f"; got {given!r:.60}")
    if not 1 <= len(given) <= MOST_CANDIDATES:
        raise ContextError(f"A decision has 1 to {MOST_CANDIDATES} candidates", f"; got {len(given)}")
    contexts: dict[str, dict[str, Any]] = {}
    for name, values in given.items():
        if not isinstance(name, str) or not 1 <= len(name) <= _NAME_LENGTH or not writable(name):
            allowed = f"A candidate's name is a text of 1 to {_NAME_LENGTH} characters"
            raise ContextError(allowed, f"; got {name!a:.60}")
        try:
            contexts[name] = features.read({} if values is None else values)
        except ContextError as error:
            raise ContextError(error.public, sentence=f"Candidate {name!r:.60}: {error}") from None
    text = json.dumps(contexts)
    if len(text) > MOST_SET_BYTES:
        raise ValueError(f"All candidates together take at most {MOST_SET_BYTES:,} bytes as JSON; got {len(text):,}.")
    return CandidateSet(list(contexts), list(contexts.values()), text)


def parse_candidates(text: str | None) -> CandidateSet:
    """The candidates of a decision in the journal."""
    try:
        found = json.loads(text or "")
        return CandidateSet(list(found), [dict(values) for values in found.values()], text or "")
    except (ValueError, TypeError, AttributeError):
        raise DamagedJournal(f"The journal is damaged: expected candidates, found {text!r:.40}.") from None


def split_context(text: str | None) -> tuple[Any, dict[str, Any]]:
    """The name of the candidate in a stored context, or None, and the features."""
    context = {} if text is None else json.loads(text)
    return context.pop(CHOSEN, None), context


def forget_features(available: str | None, context: str | None) -> tuple[str | None, str | None]:
    """What a decision keeps in `available` and `context` once it was erased: of candidates the names."""
    if available is None or not available.startswith("{"):
        return available, None
    names: dict[str, Any] = {name: {} for name in parse_candidates(available).names}
    return json.dumps(names), json.dumps({CHOSEN: split_context(context)[0]})


def digest(text: str | None) -> str | None:
    """The part of `available` that a bandit in memory keeps: of candidates, enough to distinguish them."""
    if text is None or not text.startswith("{"):
        return text
    return "{" + hashlib.sha256(text.encode()).hexdigest()[:32]
