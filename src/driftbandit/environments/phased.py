"""Environments in phases, ready to play: means from a table that changes row at known times."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from driftbandit.core.parameters import checked, described
from driftbandit.core.primitives import index
from driftbandit.environments.rewards import check_law

T = TypeVar("T")

_COARSE = 8  # the phase is looked up for every 256 rounds and searched from there


@described(lockstep=True)
class Phased(NamedTuple):
    """A piecewise-constant environment, as `phased`, `from_means` and the `realise` of others make it."""

    n_arms: int
    horizon: int
    law: Any
    table: Any  # mean of arm i in phase p at p * n_arms + i
    bests: Any  # largest mean of each phase
    starts: Any  # first round of each phase, and the horizon at the end
    coarse: Any  # phase of round 256 * j

    def phase(self, t: int) -> int:
        p: int = index(self.coarse[index(t >> _COARSE)])
        while self.starts[p + 1] <= t:
            p += 1
        return p

    def mean(self, t: int, arm: Any) -> Any:
        return self.table[index(arm + self.phase(t) * self.n_arms)]

    def best(self, t: int) -> Any:
        return self.bests[index(self.phase(t))]

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        return self.law.draw(self.mean(t, arm), rng)

    def best_arm(self, t: int) -> int:
        p = self.phase(t)
        arm = 0
        for i in range(1, self.n_arms):
            if self.table[p * self.n_arms + i] > self.table[p * self.n_arms + arm]:
                arm = i
        return arm

    @property
    def breakpoints(self) -> np.ndarray:
        return np.asarray(self.starts)[:-1]

    def means(self, start: int, stop: int) -> np.ndarray:
        starts = np.asarray(self.starts)
        phases = np.searchsorted(starts, np.arange(start, stop), side="right") - 1
        return np.asarray(self.table).reshape(-1, self.n_arms)[phases]

    def realise(self, key: int) -> "Phased":
        return self

    def __repr__(self) -> str:
        return f"<{len(self.starts) - 1} phases, {self.n_arms} arms, {self.horizon} rounds, {self.law!r}>"


class Repaid(NamedTuple):
    """A realised environment with the means of `base` whose rewards are paid by `payer.pay(base, t, arm, rng)`."""

    n_arms: int
    horizon: int
    base: Any
    payer: Any

    @property
    def pays(self) -> str | None:
        return getattr(self.payer, "pays", None)

    @property
    def breakpoints(self) -> np.ndarray:
        return self.base.breakpoints  # type: ignore[no-any-return]

    def mean(self, t: int, arm: Any) -> Any:
        return self.base.mean(t, arm)

    def best(self, t: int) -> Any:
        return self.base.best(t)

    def pull(self, t: int, arm: Any, rng: Any) -> Any:
        return self.payer.pay(self.base, t, arm, rng)

    def best_arm(self, t: int) -> int:
        return self.base.best_arm(t)  # type: ignore[no-any-return]

    def means(self, start: int, stop: int) -> Any:
        return self.base.means(start, stop)

    def realise(self, key: int) -> "Repaid":
        return self


def phased(means: Any, starts: Any, horizon: int, law: Any = None) -> Phased:
    """An environment from a table of means (phases × arms) and the first round of each phase, the first being 0.

    >>> environment = phased([[0.2, 0.8], [0.9, 0.8]], starts=[0, 50], horizon=100)
    >>> [float(mean) for mean in (environment.mean(49, 0), environment.mean(50, 0), environment.best(50))]
    [0.2, 0.9, 0.9]
    """
    table = _read_means(means, "phase")
    try:
        first = np.array(starts, np.int64)
    except (TypeError, ValueError):
        first = np.zeros(0, np.int64)
    if first.shape != (len(table),) or first[0] != 0 or (np.diff(first) <= 0).any() or first[-1] >= horizon:
        raise ValueError(
            f"Breakpoints need one first round per phase ({len(table)} here), beginning with 0, increasing, "
            f"below the horizon {horizon}; got {starts!r:.80}."
        )
    law = check_law(law, float(table.min()), float(table.max()))
    coarse = _coarse(tuple(first.tolist()), int(horizon))
    ends = np.append(first, horizon)
    return Phased(table.shape[1], int(horizon), law, table.ravel(), table.max(axis=1), ends, coarse)


def _read_means(values: Any, row: str) -> np.ndarray:
    """A table of means; refused if a number is missing or not finite."""
    try:
        table = np.array(values, np.float64)
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 2 or 0 in table.shape or not np.isfinite(table).all():
        raise ValueError(
            f"A table of means needs finite numbers: one row per {row}, one column per arm; got "
            f"{' '.join(repr(values).split()):.80}."
        )
    return table


@lru_cache(maxsize=256)
def _realise(spec: Any, seed: int | None) -> Phased:
    table, starts = spec.draw_phases(seed)
    return phased(table, starts, spec.horizon, spec.law)


def drawn(short: str, authors: bool = False, **facts: Any) -> Callable[[type[T]], type[T]]:
    """Class decorator of an environment whose `draw_phases(seed)` returns a table of means and the first round of each
    row: `described` and `checked`, with `realise`, and with checks of `instance` and `phases` before those of the
    class. `authors` is for environments of the authors' code."""

    def attach(cls: type[T]) -> type[T]:
        own = vars(cls).get("validate")

        def realise(self: Any, key: int) -> Phased:
            return _realise(self, instance_seed(self, key))

        def validate(self: Any) -> None:
            instance_seed(self, 0)
            if "phases" in self._fields:
                need_rounds(self, "phases")
            if own is not None:
                own(self)

        cls.validate = validate  # type: ignore[attr-defined]
        if not hasattr(cls, "realise"):
            cls.realise = realise  # type: ignore[attr-defined]
        return described(short=short, in_authors_code=authors, **facts)(checked(cls))

    return attach


def instance_seed(spec: Any, key: int) -> int | None:
    """The seed behind `instance`: the run's own key, a fixed number, or None for the authors' generator. Without an
    `instance` nothing is drawn."""
    instance = getattr(spec, "instance", "0")
    if instance == "authors" and spec.in_authors_code:
        return None
    if instance == "fresh":
        return key
    if instance.isdigit():
        return int(instance)
    if instance == "authors":
        raise ValueError(
            f'The authors\' code has no {type(spec).__name__}; give "fresh" or a number in quotes such as "7".'
        )
    raise ValueError(f'Unknown instance {instance!r}; it is "fresh", "authors" or a number in quotes such as "7".')


def equal_starts(horizon: int, phases: int) -> list[int]:
    """The first round of each of `phases` equal phases."""
    return [p * horizon // phases for p in range(phases)]


def equal_steps(horizon: int, steps: int) -> tuple[list[int], np.ndarray]:
    """First round and middle of each of `steps` equal steps (one per round, if there are fewer rounds)."""
    starts = equal_starts(horizon, min(steps, horizon))
    return starts, (np.array(starts) + np.append(starts[1:], horizon) - 1) / 2.0


def need_rounds(spec: Any, name: str) -> None:
    """Refuse more phases than rounds."""
    if getattr(spec, name) > spec.horizon:
        number = getattr(spec, name)
        raise ValueError(
            f"{type(spec).__name__} needs {name} <= horizon; got {number} {name} in {spec.horizon} rounds."
        )


@lru_cache(maxsize=8)
def _coarse(starts: tuple[int, ...], horizon: int) -> np.ndarray:
    """The phase of every 256th round. All runs change at the same times and share it, so the memory of a run does not
    grow with the horizon."""
    return np.searchsorted(starts, np.arange(0, horizon + 1, 1 << _COARSE), side="right") - 1


def from_means(array: Any, law: Any = None) -> Phased:
    """An environment from any array of means, one row per round and one column per arm.

    >>> from_means([[0.1, 0.9], [0.9, 0.1]]).best_arm(1)
    0
    """
    rows = _read_means(array, "round")
    changed = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))
    starts = np.flatnonzero(changed)
    return phased(rows[starts], starts, len(rows), law)
