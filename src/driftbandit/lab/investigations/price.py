"""The price of forgetting: what a policy loses by being ready for change when nothing changes."""

from typing import Any, NamedTuple

from driftbandit.environments.frozen import Still
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.jobs import phases
from driftbandit.lab.jobs.work import Chunk
from driftbandit.lab.stats.intervals import Difference, Interval, difference, interval
from driftbandit.policies.beta_ts import BetaTS


class Price(NamedTuple):
    """What a policy pays for being ready to forget."""

    regret: Interval  # in the world with the clock stopped
    extra: Difference  # above a policy that never forgets, in the same stopped world
    false_alarms: Interval | None  # per run: nothing changes, so every alarm is false; None for policies without alarms


def price_of_forgetting(
    policy: Any, environment: Any, runs: int = 100, seed: int = 0, reference: Any = None, workers: int | None = None
) -> Price:
    """Regret lost when nothing changes: the policy plays the world as it is in round 0, for ever, against a policy that
    never forgets (`BetaTS()` unless told otherwise).

    >>> from driftbandit.environments import Abrupt
    >>> from driftbandit.policies import BetaTS
    >>> price_of_forgetting(BetaTS(), Abrupt(n_arms=2, horizon=200, phases=2), runs=2).extra.mean
    0.0
    """
    still = Still(environment)
    mine = simulate(policy, still, runs, seed, checkpoints=1, workers=workers)
    base = simulate(BetaTS() if reference is None else reference, still, runs, seed, checkpoints=1, workers=workers)
    return Price(
        interval(mine.regret[:, -1]),
        difference(mine.regret[:, -1], base.regret[:, -1]),
        _alarms(policy, still, runs, seed),
    )


def _alarms(policy: Any, still: Still, runs: int, seed: int) -> Interval | None:
    if not phases.detects(policy, still):
        return None
    rows = phases.measured(Chunk(policy, still, runs, seed, checkpoints=1)).drift or {}
    return interval(rows["alarms"].astype(float))
