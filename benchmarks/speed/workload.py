"""The workload every figure is about, and every policy ready for it.

W: Bernoulli arms, ten phases of uniform means, a new environment for each run; choose, pull, learn and regret in every
round. Our own policies play the paper's 100,000 rounds, libraries that need seconds for a run play 20,000, and ours the
same next to them."""

from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.environments import Abrupt
from driftbandit.environments.rewards import Bernoulli, Constant
from driftbandit.spec.parse import policies

PHASES = 10


class Scale(NamedTuple):
    """How much to do: `FULL` for figures, `QUICK` to see that all is well, `TINY` for tests."""

    horizon: int  # rounds of our own policies
    peer_horizon: int  # rounds of the libraries
    arms: tuple[int, ...]
    repeats: int
    seconds: float  # CPU time one repeat of a cell should at least take
    policies: tuple[str, ...]  # short names; none: all
    peer_seconds: float  # for each library and number of arms
    far: int  # the longest horizon of the memory check
    many_arms: tuple[int, ...]  # over which growth with the arms is measured
    worker_seconds: float  # that one worker should at least take where workers are compared


FULL = Scale(100_000, 20_000, (5, 10, 30, 100), 3, 0.1, (), 4.0, 1_000_000, (10, 30, 100, 300, 1000), 1.2)
SHOWN = ("ds-ts", "ts", "sw-ts", "d-ucb", "cusum-ucb", "m-ucb", "exp3s", "sw-lb-sda")
QUICK = Scale(20_000, 4_000, (5, 10, 30), 2, 0.02, SHOWN, 1.0, 1_000_000, (10, 100, 1000), 1.0)
TINY = Scale(400, 200, (3,), 1, 0.0, ("ds-ts", "d-ucb"), 0.1, 2_000, (3, 6), 0.0)


def environment(n_arms: int, horizon: int, fractional: bool = False) -> Abrupt:
    """The environment of W with so many arms and rounds; or one that pays the mean itself, a fraction, instead of 0 or
    1."""
    return Abrupt(n_arms=n_arms, horizon=horizon, phases=PHASES, law=Constant() if fractional else Bernoulli())


def tables(n_arms: int, horizon: int, runs: int) -> np.ndarray:
    """The means of the first runs' environments, runs × phases × arms: for loops that are not ours."""
    spec = environment(n_arms, horizon)
    environments = (spec.realise(stream_key(0, run, ENVIRONMENT)) for run in range(runs))
    return np.stack([np.asarray(realised.table).reshape(PHASES, n_arms) for realised in environments])


def tuned(name: str, horizon: int, n_arms: int) -> Any:
    """The policy of this short name with the parameters its theory asks for; wrappers wrap TS."""
    cls: Any = next(cls for cls in policies().values() if cls.short == name)  # type: ignore[attr-defined]
    if name in ("periodic-restart", "delayed"):
        return cls.tuned(horizon, PHASES, n_arms, base=tuned("ts", horizon, n_arms))
    return cls.tuned(horizon, PHASES, n_arms) if hasattr(cls, "tuned") else cls()


def names(scale: Scale) -> list[str]:
    """The short names of the policies to measure, those of the paper first."""
    every = [cls.short for cls in policies().values()]  # type: ignore[attr-defined]
    chosen = scale.policies or every
    return [name for name in SHOWN if name in chosen] + sorted(set(chosen) - set(SHOWN))
