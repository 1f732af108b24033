"""The three suites: in which environments policies play, and which rivals are tuned there.

A label is a policy's text, the same in all environments: `sw-ts(window=1000)` is one setting, `sw-ts.tuned` what the
policy's own theory gives for the horizon, phases and arms. Rivals in `scale` and `linear` are given the noise, in
`scale` also the range: there `d-gts(0.99, 0.5)` is D-GTS with gamma = 0.99 and half of the true noise."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import CONTEXT, ENVIRONMENT, REWARD, Stream, stream_key
from driftbandit.environments import named
from driftbandit.environments.named import SuiteEnvironment
from driftbandit.field.suite import REPOSITORY, KnownFacts, Suite, find_facts, find_short_name, shorten
from driftbandit.spec.parse import policies
from driftbandit.spec.user_code import load_policy

# ---- rewards of 0 and 1 ----------------------------------------------------------------------------------------------

# Rounds. The last is tried only where the horizon is as long, the others in every environment.
MEMORIES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
HAZARDS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
# A third of the default, for a third of the time and no clear difference in regret where we looked:
# driftbandit run "global-cts(hazard=1e-4)" "global-cts(hazard=1e-4, max_runs=300)" --runs 32
FEWER = "max_runs=300"
BASE = "ts"  # the policy inside periodic-restart


# The settings of each policy: a form with a memory is tried with every one, the others are settings as they are.
BINARY_GRID: dict[str, tuple[str, ...]] = {
    "ds-ts": ("ds-ts(gamma={gamma})", "ds-ts(gamma={gamma}, tau_max=0.05)", "ds-ts(gamma={gamma}, tau_max=0.01)"),
    "dts": ("dts(gamma={gamma})",),
    "sw-ts": ("sw-ts(window={memory})",),
    "d-ucb": ("d-ucb(gamma={gamma})", "d-ucb(gamma={gamma}, xi=0.05)"),
    "sw-ucb": ("sw-ucb(window={memory})", "sw-ucb(window={memory}, xi=0.05)"),
    "d-klucb": ("d-klucb(gamma={gamma})",),
    "sw-lb-sda": ("sw-lb-sda(window={memory})",),
    "eps-greedy": ("eps-greedy(gamma={gamma}, explore=0.05)", "eps-greedy(gamma={gamma}, explore=0.01)"),
    "periodic-restart": (f"periodic-restart(base={BASE}, period={{memory}})",),
    "global-cts": tuple(f"global-cts(hazard={hazard:g}, {FEWER})" for hazard in HAZARDS),
    "pa-cts": tuple(f"pa-cts(hazard={hazard:g}, {FEWER})" for hazard in HAZARDS[:-1]),
    "cusum-ucb": tuple(
        f"cusum-ucb(threshold={threshold}, explore={explore}, xi=0.5)"
        for threshold in (10, 30)
        for explore in (0.001, 0.01)
    ),
}
COARSE = ("ds-ts", "sw-ts", "d-ucb", "sw-lb-sda")  # the families of the quick form
# Yardsticks, wrappers, and policies that are given the noise of rewards; they are in no table.
LEFT_OUT = ("delayed", "fixed", "oracle", "d-gts", "sw-gts")
UNTUNED = ("drift-ts", "drift-lin-ts", "drift-auto")  # nothing to tune: compared with the best tuned, not part of it


def display_name(label: str) -> str:
    """The label for a reader: the short name of a policy that has nothing to tune.

    >>> display_name("ts.tuned"), display_name("sw-ts.tuned")
    ('ts', 'sw-ts.tuned')
    """
    few, many = KnownFacts(1_000, 2, 3, 0.5), KnownFacts(90_000, 9, 7, 3.0)
    return (
        find_short_name(label)
        if label.endswith(".tuned") and make_policy(label, few) == make_policy(label, many)
        else label
    )


def list_entrants() -> list[str]:
    """The short names of all policies that can take part, aliases included. Linear policies are for contexts."""
    found = []
    for cls in policies().values():
        if ".linear." not in cls.__module__:
            found += [str(cls.short), *getattr(cls, "aliases", {})]  # type: ignore[attr-defined]
    return [short for short in found if short not in LEFT_OUT]


def fill_form(form: str, memory: int) -> str:
    """The setting of a form with this memory.

    >>> fill_form("dts(gamma={gamma})", 300), fill_form("sw-ts(window={memory})", 300)
    ('dts(gamma=0.9966667)', 'sw-ts(window=300)')
    """
    return form.format(memory=memory, gamma=f"{1 - 1 / memory:.7g}")


def labels(horizon: int, coarse: bool = False) -> list[str]:
    """Every setting to try for this many rounds; if `coarse`, a few of a few families."""
    memories = [memory for memory in MEMORIES if memory <= max(horizon, MEMORIES[-2])]
    forms = (
        [BINARY_GRID[short][0] for short in COARSE]
        if coarse
        else [form for family in BINARY_GRID.values() for form in family]
    )
    out = [label for form in forms for label in dict.fromkeys(fill_form(form, memory) for memory in memories)]
    theory = ["ts", "uniform"] if coarse else [short for short in list_entrants() if short not in UNTUNED]
    return [*out, *(f"{short}.tuned" for short in theory)]


def make_policy(label: str, facts: KnownFacts) -> Any:
    """Make the policy of a label for an environment with these facts."""
    if label.endswith(".tuned"):
        short = label.removesuffix(".tuned")
        for cls in policies().values():
            if (changes := getattr(cls, "aliases", {}).get(short)) is not None:
                return cls.tuned(facts.horizon, facts.phases, facts.n_arms)._replace(**changes)  # type: ignore[attr-defined]
        given = {"rexp3": f"(variation={max(facts.variation, 0.1)!r})", "periodic-restart": f"(base={BASE})"}
        label += given.get(short, "")
    return load_policy(label, environment=facts)


BINARY = Suite(
    name="binary",
    environments=named.BINARY,
    quick=shorten(named.BINARY, 5_000, "fresh-K5-p10", "gap.2-K5", "smooth-K5-short", "stat-K5", "trap-K5", "common.2"),
    entrants=("drift-ts",),
    labels=lambda environment, coarse: labels(environment.environment.horizon, coarse),
    make_policy=lambda label, environment: make_policy(label, find_facts(environment.environment)),
    families=tuple(BINARY_GRID),
    kept=REPOSITORY / "benchmarks" / "field" / "kept.csv",
    runs=32,
    display_name=display_name,
    no_rivals=("uniform", "sw-osub"),  # one plays at random, one uses the order of the arms
    # Changes in many environments are equally spaced, so a restart of the right period falls on them exactly; the
    # summary has a column with the mean if they counted.
    aside=("periodic-restart",),
    aside_note=(
        "restarts counted",
        "Periodic restarts, whose tuned period falls on the equally spaced changes of many environments, are never the "
        "best tuned",
    ),
    # Policies that cost hundreds of nanoseconds per round (docs/speed/table.md); they play a few runs first.
    expensive=("d-klucb", "sw-klucb", "kl-ucb", "glr-klucb", "global-cts", "pa-cts"),
    all_runs=("stat-K5", "trap-K5"),
)


# ---- rewards of any scale, with or without contexts ------------------------------------------------------------------


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
_SHARES = (0.125, 0.25, 0.5, 1.0, 2.0)  # of the true noise
SCALE_GRID = (
    # A long memory with little noise settles on a wrong arm once in ten runs or so, which a few runs do not show.
    *(f"d-gts({g:g}, {share:g})" for g in _GAMMAS for share in _SHARES if g < 0.9999 or share >= 0.5),
    *(f"sw-gts({window}, {share:g})" for window in (100, 300, 1_000) for share in _SHARES),
    *(f"d-ucb({g:g}, {xi:g})" for g in _GAMMAS for xi in (1e-5, 1e-4, 1e-3, 1e-2)),
)
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


def _make_rival(label: str, environment: SuiteEnvironment) -> Any:
    """The policy of any text; a setting of the grids is given what is true of the environment."""
    policy = load_policy(label, environment=find_facts(environment.environment))
    if label in SCALE_GRID or label in LINEAR_GRID:
        scale = measure_scale(environment.environment)
        given = {"sd": scale.noise, "reward_max": scale.width, "prior_mean": scale.mean, "prior_sd": scale.sd}
        given["noise"] = scale.noise * getattr(policy, "noise", 1.0)
        policy = policy._replace(**{name: value for name, value in given.items() if name in policy._fields})
    return policy


SCALE = Suite(
    name="scale",
    environments=named.SCALE,
    quick=shorten(named.SCALE, 2_000, "abrupt-K5-g.1", "smooth-K10-lat", "stat-K10-rev", "trap-K5-gbig"),
    entrants=("drift-lin-ts", "drift-auto"),
    labels=lambda environment, coarse: [
        label for label in SCALE_GRID if not coarse or label.endswith((", 0.5)", ", 0.001)"))
    ],
    make_policy=_make_rival,
    families=("d-gts", "sw-gts", "d-ucb"),
    kept=REPOSITORY / "docs" / "field" / "scale" / "kept.csv",
    runs=16,
)
LINEAR = Suite(
    name="linear",
    environments=named.LINEAR,
    quick=shorten(named.LINEAR, 2_000, "D02-abrupt", "D06-russac-abrupt", "N11-newcomer"),
    entrants=("drift-lin-ts",),
    labels=lambda environment, coarse: [
        label for label in LINEAR_GRID if not coarse or (label.startswith(("lin-", "d-lin-")) and "alpha=0.3" in label)
    ],
    make_policy=_make_rival,
    families=("lin-ucb", "lin-ts", "d-lin-ucb", "sw-lin-ucb", "restart-lin-ucb", "cusum-lin-ucb"),
    kept=REPOSITORY / "docs" / "field" / "linear" / "kept.csv",
    runs=8,
    aside=("cusum-lin-ucb",),
    aside_note=("detection counted", "Change detection, a family with more to tune, is never the best tuned"),
)

SUITES = {suite.name: suite for suite in (BINARY, SCALE, LINEAR)}


def load_suite(name: str) -> Suite:
    """The suite of this name."""
    if name not in SUITES:
        raise ValueError(f"There is no suite {name!r:.60}; suites are {', '.join(SUITES)}.")
    return SUITES[name]
