"""The suites `scale` and `linear`: rewards of every scale and law, and mean rewards that are linear in features.

DriftLinTS and DriftAuto are given nothing. Rivals are given the noise, in `scale` also the range: `d-gts(0.99, 0.5)` is
D-GTS with gamma = 0.99 and half of the true noise, and a linear policy has the true noise as its `sd` and the root of
the mean square of all means as its `coefficient_norm`."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import CONTEXT, ENVIRONMENT, REWARD, Stream, stream_key
from driftbandit.environments import named
from driftbandit.environments.named import SuiteEnvironment
from driftbandit.field.suite import REPOSITORY, Suite, find_facts, shorten
from driftbandit.policies.gaussian_ts import DiscountedGaussianTS, SlidingGaussianTS
from driftbandit.policies.ucb import DiscountedUCB
from driftbandit.spec.user_code import load_policy


class RewardScale(NamedTuple):
    """What the rivals are given about an environment."""

    noise: float  # standard deviation of a reward around its mean
    mean: float  # of all means
    sd: float  # of all means
    width: float  # from the smallest to the largest mean


@lru_cache(maxsize=256)
def measure_scale(environment: Any, runs: int = 8, rounds: int = 500) -> RewardScale:
    """The scale of an environment, from the true means of some rounds of some runs and one reward of each."""
    at = np.linspace(0, environment.horizon - 1, rounds).astype(int)
    table, noise = [], []
    for run in range(runs):
        realised, stream = environment.realise(stream_key(99, run, ENVIRONMENT)), Stream(stream_key(99, run, REWARD))
        contexts = Stream(stream_key(99, run, CONTEXT))
        for t in at.tolist():
            arm = t % environment.n_arms
            if hasattr(environment, "n_features"):
                x = np.zeros(environment.n_features * (environment.n_arms if environment.joint else 1))
                realised.features(t, contexts.at(t), x)
                table.append([realised.mean_in(t, i, x) for i in range(environment.n_arms)])
                reward = realised.pull_in(t, arm, x, stream.at(t))
            else:
                table.append([realised.mean(t, i) for i in range(environment.n_arms)])
                reward = realised.pull(t, arm, stream.at(t))
            noise.append(float(reward) - table[-1][arm])
    return RewardScale(*(float(number) for number in (np.std(noise), np.mean(table), np.std(table), np.ptp(table))))


_GAMMAS = (0.95, 0.97, 0.99, 0.997, 0.999, 0.9999, 1.0)
_WINDOWS = (100, 300, 1_000)
_SHARES = (0.125, 0.25, 0.5, 1.0, 2.0)  # of the true noise
_XIS = (1e-5, 1e-4, 1e-3, 1e-2)


def _normal(kind: Any, memory: float, share: float) -> Callable[[RewardScale], Any]:
    return lambda scale: kind(memory, share * scale.noise, scale.mean, scale.sd)


def _bounds(gamma: float, xi: float) -> Callable[[RewardScale], Any]:
    return lambda scale: DiscountedUCB(gamma, xi, scale.width)


GRID: dict[str, Callable[[RewardScale], Any]] = {
    # A long memory with little noise settles on a wrong arm once in ten runs or so, which a few runs do not show.
    **{
        f"d-gts({g:g}, {share:g})": _normal(DiscountedGaussianTS, g, share)
        for g in _GAMMAS
        for share in _SHARES
        if g < 0.9999 or share >= 0.5
    },
    **{f"sw-gts({w}, {share:g})": _normal(SlidingGaussianTS, w, share) for w in _WINDOWS for share in _SHARES},
    **{f"d-ucb({g:g}, {xi:g})": _bounds(g, xi) for g in _GAMMAS for xi in _XIS},
}


def _make_rival(label: str, environment: SuiteEnvironment) -> Any:
    """The policy of a setting of the grid, or of any policy's text."""
    if label in GRID:
        return GRID[label](measure_scale(environment.environment))
    return load_policy(label, environment=find_facts(environment.environment))


SCALE = Suite(
    name="scale",
    environments=named.SCALE,
    quick=shorten(named.SCALE, 2_000, "abrupt-K5-g.1", "smooth-K10-lat", "stat-K10-rev", "trap-K5-gbig"),
    entrants=("drift-lin-ts", "drift-auto"),
    labels=lambda environment, coarse: [
        label for label in GRID if not coarse or label.endswith((", 0.5)", ", 0.001)"))
    ],
    make_policy=_make_rival,
    families=("d-gts", "sw-gts", "d-ucb"),
    kept=REPOSITORY / "docs" / "field" / "scale" / "kept.csv",
    runs=16,
)


# ---- with contexts ---------------------------------------------------------------------------------------------------


_BOUND = "alpha={}, lam=0.2)"
LINEAR_GRID = (
    *(f"lin-ucb({_BOUND.format(alpha)}" for alpha in (0.3, 1.0)),
    "lin-ts(alpha=1.0, lam=0.2)",
    *(f"d-lin-ucb(gamma={g}, {_BOUND.format(alpha)}" for g in (0.97, 0.99, 0.997, 0.999) for alpha in (0.15, 0.3, 1.0)),
    *(f"sw-lin-ucb(window={w}, {_BOUND.format(0.3)}" for w in (300, 1_000)),
    *(f"restart-lin-ucb(period={w}, {_BOUND.format(0.3)}" for w in (1_000, 3_000)),
    *(
        f"cusum-lin-ucb(threshold={threshold}, explore=0, local={local}, {_BOUND.format(0.3)}"
        for threshold in (10, 20)
        for local in (False, True)
    ),
)


def _make_linear_rival(label: str, environment: SuiteEnvironment) -> Any:
    """The policy of a setting of the grid, or of any policy's text."""
    policy = load_policy(label, environment=find_facts(environment.environment))
    if label in LINEAR_GRID:
        scale = measure_scale(environment.environment)
        given = {"sd": scale.noise, "coefficient_norm": math.hypot(scale.mean, scale.sd)}
        policy = policy._replace(**{name: value for name, value in given.items() if name in policy._fields})
    return policy


LINEAR = Suite(
    name="linear",
    environments=named.LINEAR,
    quick=shorten(named.LINEAR, 2_000, "D02-abrupt", "D06-russac-abrupt", "N11-newcomer"),
    entrants=("drift-lin-ts",),
    labels=lambda environment, coarse: [
        label for label in LINEAR_GRID if not coarse or (label.startswith(("lin-", "d-lin-")) and "alpha=0.3" in label)
    ],
    make_policy=_make_linear_rival,
    families=("lin-ucb", "lin-ts", "d-lin-ucb", "sw-lin-ucb", "restart-lin-ucb", "cusum-lin-ucb"),
    kept=REPOSITORY / "docs" / "field" / "linear" / "kept.csv",
    runs=8,
    aside=("cusum-lin-ucb",),
    aside_note=("detection counted", "Change detection, a family with more to tune, is never the best tuned"),
)
