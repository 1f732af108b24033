"""What is tried in every world to find the best tuned policy, as data.

A label is a policy's text, the same in all worlds: `sw-ts(window=1000)` is one setting, `sw-ts.tuned` what the policy's
own theory says, given horizon, phases and arms."""

from collections.abc import Callable
from typing import Any, NamedTuple

from driftbandit.field.suite import KnownFacts
from driftbandit.text.load import load_policy
from driftbandit.text.registry import policies

# Rounds. The last is tried only where the horizon is as long; all others in every world, so that each stands for one
# setting used everywhere.
MEMORIES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
HAZARDS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
# A third of the default, for a third of the time and no clear difference in regret where we looked:
# driftbandit run "global-cts(hazard=1e-4)" "global-cts(hazard=1e-4, max_runs=300)" --runs 32
FEWER = "max_runs=300"
BASE = "ts"  # what restarting policies restart


def _window(short: str, more: str = "") -> Callable[[int], str]:
    return lambda memory: f"{short}(window={memory}{more})"


def _gamma(short: str, more: str = "") -> Callable[[int], str]:
    return lambda memory: f"{short}(gamma={1 - 1 / memory:.7g}{more})"


class TriedSettings(NamedTuple):
    """A policy and the settings of it that are tried, each memory in each form, and those without a memory."""

    short: str
    forms: tuple[Callable[[int], str], ...] = ()
    fixed: tuple[str, ...] = ()


GRID: tuple[TriedSettings, ...] = (
    TriedSettings("ds-ts", (_gamma("ds-ts"), _gamma("ds-ts", ", tau_max=0.05"), _gamma("ds-ts", ", tau_max=0.01"))),
    TriedSettings("dts", (_gamma("dts"),)),
    TriedSettings("sw-ts", (_window("sw-ts"),)),
    TriedSettings("d-ucb", (_gamma("d-ucb"), _gamma("d-ucb", ", xi=0.05"))),
    TriedSettings("sw-ucb", (_window("sw-ucb"), _window("sw-ucb", ", xi=0.05"))),
    TriedSettings("d-klucb", (_gamma("d-klucb"),)),
    TriedSettings("sw-lb-sda", (_window("sw-lb-sda"),)),
    TriedSettings("eps-greedy", (_gamma("eps-greedy", ", explore=0.05"), _gamma("eps-greedy", ", explore=0.01"))),
    TriedSettings("periodic-restart", (lambda memory: f"periodic-restart(base={BASE}, period={memory})",)),
    TriedSettings("global-cts", (), tuple(f"global-cts(hazard={hazard:g}, {FEWER})" for hazard in HAZARDS)),
    TriedSettings("pa-cts", (), tuple(f"pa-cts(hazard={hazard:g}, {FEWER})" for hazard in HAZARDS[:-1])),
    TriedSettings(
        "cusum-ucb",
        (),
        tuple(
            f"cusum-ucb(threshold={threshold}, explore={explore}, xi=0.5)"
            for threshold in (10, 30)
            for explore in (0.001, 0.01)
        ),
    ),
)
COARSE = ("ds-ts", "sw-ts", "d-ucb", "sw-lb-sda")  # the families of the quick form
# Yardsticks, and what is the same as another by law; they stand in no table.
LEFT_OUT = ("delayed", "fixed", "oracle")
# In the tables, but never the best tuned: one plays at random, one knows that arms lie on a line.
NO_RIVALS = ("uniform", "sw-osub")
# Changes in many of these worlds are equally spaced, so a restart of the right period falls on them exactly. These are
# never the best tuned either; the summary has a column with the mean if they counted.
ON_TIME = ("periodic-restart",)
# Policies with nothing to tune are compared with the best tuned, and are not part of it.
UNTUNED = ("drift-ts",)
# Policies that cost hundreds of nanoseconds per round and more, and what they cost in docs/speed/table.md: at 5 arms,
# and for each arm more. The estimate is made of these, and in the race they first play a few runs only.
DEAR = {
    "d-klucb": (525, 122), "sw-klucb": (429, 78), "kl-ucb": (365, 96), "glr-klucb": (530, 100),
    "global-cts": (2713, 11), "pa-cts": (2351, 45),
}  # fmt: skip
CHEAP = (60, 7)  # all others, about


def short_of(label: str) -> str:
    """The policy a label is a setting of.

    >>> short_of("sw-ts(window=1000)"), short_of("sw-ts.tuned"), short_of("ts")
    ('sw-ts', 'sw-ts', 'ts')
    """
    return label.split("(")[0].split(".")[0]


def display_name(label: str) -> str:
    """The label for a reader: a policy that has nothing to tune stands under its short name alone.

    >>> display_name("ts.tuned"), display_name("sw-ts.tuned")
    ('ts', 'sw-ts.tuned')
    """
    few, many = KnownFacts(1_000, 2, 3, 0.5), KnownFacts(90_000, 9, 7, 3.0)
    return (
        short_of(label) if label.endswith(".tuned") and make_policy(label, few) == make_policy(label, many) else label
    )


def registered() -> list[str]:
    """The short names of all policies that can take part, aliases included."""
    found = []
    for cls in policies().values():
        found += [str(cls.short), *getattr(cls, "aliases", {})]  # type: ignore[attr-defined]
    return [short for short in found if short not in LEFT_OUT]


def labels(horizon: int, coarse: bool = False) -> list[str]:
    """Every setting to be tried in a world of this many rounds; if `coarse`, a few of a few families."""
    memories = [memory for memory in MEMORIES if memory <= max(horizon, MEMORIES[-2])]
    if coarse:
        families = [family for family in GRID if family.short in COARSE]
        return [*(family.forms[0](memory) for family in families for memory in memories), "ts.tuned", "uniform.tuned"]
    out = []
    for family in GRID:
        out += [*(form(memory) for form in family.forms for memory in memories), *family.fixed]
    return [*out, *(f"{short}.tuned" for short in registered() if short not in UNTUNED)]


def make_policy(label: str, facts: KnownFacts) -> Any:
    """The policy behind a label in a world about which this much is known."""
    if label.endswith(".tuned"):
        short = label.removesuffix(".tuned")
        given = {"rexp3": f"(variation={max(facts.variation, 0.1)!r})", "periodic-restart": f"(base={BASE})"}
        alias = _alias(short)
        if alias is not None:
            cls, changes = alias
            return cls.tuned(facts.horizon, facts.phases, facts.n_arms)._replace(**changes)
        label += given.get(short, "")
    return load_policy(label, world=facts)


def _alias(short: str) -> tuple[Any, dict[str, Any]] | None:
    for cls in policies().values():
        changes = getattr(cls, "aliases", {}).get(short)
        if changes is not None:
            return cls, changes
    return None


def nanoseconds(label: str, n_arms: int) -> float:
    """About what one round of one run costs on a quiet core, many runs at a time."""
    at_five, more = DEAR.get(short_of(label), CHEAP)
    return (at_five + more * (n_arms - 5)) * (0.36 if FEWER in label else 1.0)
