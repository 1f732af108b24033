"""A suite as data: environments with their roles, and the settings tried in each.

Environments for design may be used to choose constants of a policy; those for checks only to report. An environment for
checks becomes one for design if a policy is changed after looking at it."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.checks import nearest
from driftbandit.environments.named import SuiteEnvironment

REPOSITORY = Path(__file__).parents[3]  # results of tuning lie there and not in the package


class Suite(NamedTuple):
    """Everything a contest needs. A label names a setting and is the same in all environments."""

    name: str
    environments: tuple[SuiteEnvironment, ...]
    quick: tuple[SuiteEnvironment, ...]  # a small form, to see that everything works
    entrants: tuple[str, ...]  # policies that play if none is given
    labels: Callable[[SuiteEnvironment, bool], list[str]]  # the settings to try; a few only if the flag is set
    make_policy: Callable[[str, SuiteEnvironment], Any]  # the policy of a label, or of any policy's text
    families: tuple[str, ...]  # short names of the rivals that are tuned
    kept: Path  # the regret of every setting
    runs: int
    display_name: Callable[[str], str] = str  # a label for a reader
    no_rivals: tuple[str, ...] = ()  # policies that are never the best tuned
    aside: tuple[str, ...] = ()  # nor are these, and a column shows the means with them
    aside_note: tuple[str, str] = ("", "")  # the head of that column, and why
    expensive: tuple[str, ...] = ()  # policies that play a few runs before they are judged
    all_runs: tuple[str, ...] = ()  # environments in which every setting plays all runs


class KnownFacts(NamedTuple):
    """What the `tuned` constructors are given about an environment."""

    horizon: int
    phases: int
    n_arms: int
    variation: float  # sum over rounds of the largest change of a mean; with contexts, of the coefficients' changes
    n_features: int = 0
    joint: bool = False


def find_short_name(label: str) -> str:
    """The short name of a label's policy.

    >>> find_short_name("sw-ts(window=1000)"), find_short_name("sw-ts.tuned"), find_short_name("ts")
    ('sw-ts', 'sw-ts', 'ts')
    """
    return label.split("(")[0].split(".")[0]


def shorten(environments: Sequence[SuiteEnvironment], horizon: int, *names: str) -> tuple[SuiteEnvironment, ...]:
    """The environments of these names with fewer rounds."""
    short = []
    for one in environments:
        if one.name in names:
            fields = {**one.environment._asdict(), "horizon": horizon}
            fields |= {"days": horizon // 100} if "days" in fields else {}
            short.append(one._replace(environment=type(one.environment)(**fields)))
    return tuple(short)


def choose_environments(words: Sequence[str], environments: Sequence[SuiteEnvironment]) -> list[SuiteEnvironment]:
    """Choose environments by name, kind ("smooth") or role ("design", "check"); all, if no word is given."""
    known = {word for one in environments for word in (one.name, one.kind, one.role)}
    for word in words:
        if word not in known:
            raise ValueError(
                f"The suite has no environment, kind or role {word!r}{nearest(word, known, most=3) or '.'} "
                f"Kinds: {', '.join(dict.fromkeys(one.kind for one in environments))}; roles: design, check."
            )
    return [one for one in environments if not words or {one.name, one.kind, one.role} & set(words)]


@lru_cache(maxsize=256)
def find_facts(environment: Any) -> KnownFacts:
    """Find the facts for the `tuned` constructors. The phases of a drift are the changes of the best arm plus one, with
    contexts those of the coefficients."""
    if hasattr(environment, "n_features"):
        realised, sizes = environment.realise(0), (environment.n_features, environment.joint)
        phases = len(realised.breakpoints)
        return KnownFacts(environment.horizon, phases, environment.n_arms, realised.variation, *sizes)
    means = np.asarray(environment.realise(0).means(0, environment.horizon))
    phases = getattr(environment, "phases", None) or _count_phases(means)
    variation = float(np.abs(np.diff(means, axis=0)).max(axis=1, initial=0.0).sum())
    return KnownFacts(environment.horizon, phases, environment.n_arms, variation)


def _count_phases(means: np.ndarray) -> int:
    """The number of times the best arm changes, plus one; an arm stays the best until another is better."""
    best, count, arm = means.max(axis=1), 1, int(means[0].argmax())
    at = 0
    while True:
        beaten = np.flatnonzero(means[at:, arm] < best[at:])
        if not len(beaten):
            return count
        at += int(beaten[0])
        arm, count = int(means[at].argmax()), count + 1
