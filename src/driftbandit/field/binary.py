"""The suite `binary`: rewards of 0 and 1 in 57 environments of sixteen kinds, and the settings tried in each.

A label is a policy's text, the same in all environments: `sw-ts(window=1000)` is one setting, `sw-ts.tuned` what the
policy's own theory gives for the horizon, phases and arms."""

from typing import Any

from driftbandit.environments import named
from driftbandit.field.suite import REPOSITORY, KnownFacts, Suite, find_facts, find_short_name, shorten
from driftbandit.spec.parse import policies
from driftbandit.spec.user_code import load_policy

# Rounds. The last is tried only where the horizon is as long, the others in every environment.
MEMORIES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
HAZARDS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
# A third of the default, for a third of the time and no clear difference in regret where we looked:
# driftbandit run "global-cts(hazard=1e-4)" "global-cts(hazard=1e-4, max_runs=300)" --runs 32
FEWER = "max_runs=300"
BASE = "ts"  # the policy inside periodic-restart


# The settings of each policy: a form with a memory is tried with every one, the others are settings as they are.
GRID: dict[str, tuple[str, ...]] = {
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
    forms = [GRID[short][0] for short in COARSE] if coarse else [form for family in GRID.values() for form in family]
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
    families=tuple(GRID),
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
