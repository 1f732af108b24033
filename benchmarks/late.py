"""The cost of late, one-sided and reordered outcomes: policies learn the same outcomes in other ways (`Delayed`).

python benchmarks/late.py --out docs/field       (writes late.md; some minutes. Policies can be given as texts)
"""

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.environments import PhaseTable, Rare
from driftbandit.field.suite import find_facts
from driftbandit.field.suites import make_policy
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.files import replace_file, writable
from driftbandit.policies.wrappers import Delayed

RUNS = 32
# The default policy, TS, and the five best families of docs/field/table.md with one setting everywhere.
POLICIES = (
    "drift-ts",
    "ts",
    "global-cts(hazard=0.0001, max_runs=300)",
    "pa-cts(hazard=1e-06, max_runs=300)",
    "sw-ucb(window=1000, xi=0.05)",
    "eps-greedy(gamma=0.9966667, explore=0.01)",
    "sw-lb-sda(window=3000)",
)
STILL = PhaseTable(means=((0.10, 0.07, 0.16, 0.08),), starts=(0,), horizon=12_000)
ENVIRONMENTS: Mapping[str, Any] = {
    "Nothing changes, four arms (rates 0.10, 0.07, 0.16, 0.08), 12,000 decisions": STILL,
    "Nothing changes, three arms (rates 0.05, 0.08, 0.12), 20 days of 500 decisions": PhaseTable(
        means=((0.05, 0.08, 0.12),), starts=(0,), horizon=10_000
    ),
    "New rates every 10,000 decisions, four arms (rates uniform on 0 to 0.2), 40,000 decisions": Rare(
        n_arms=4, horizon=40_000, phases=4, highest=0.2
    ),
}
MEAN, WAIT, BATCH, BLOCK = 400, 2_000, 500, 2_000
AT_ONCE = {"rounds": 0}


def one_sided(mean: int, wait: int, order: str) -> dict[str, Any]:
    """The parameters of `Delayed` for successes that arrive after an exponential delay and failures that never do."""
    return {"rounds": mean, "random": True, "wait": wait, "order": order}


def _batched(order: str) -> dict[str, Any]:
    return {"rounds": 0, "batch": BATCH, "order": order}


CONDITIONS: Mapping[str, dict[str, Any]] = {
    "at once": AT_ONCE,
    "one-sided, on arrival": one_sided(MEAN, WAIT, "arrival"),
    "one-sided, after wait": one_sided(MEAN, WAIT, "decision"),
    "batches, decision order": _batched("decision"),
    "batches, shuffled": _batched("shuffled"),
    "batches, successes first": _batched("successes-first"),
}
QUANTILES = (0.50, 0.80, 0.95, 0.99)
WAITS: Mapping[str, dict[str, Any]] = {
    "at once": AT_ONCE,
    **{
        f"{quantile:.0%} ({wait:,})": one_sided(MEAN, wait, "decision")
        for quantile, wait in ((q, round(-MEAN * math.log1p(-q))) for q in QUANTILES)
    },
}
BLOCKS: Mapping[str, dict[str, Any]] = {
    "outcomes known at once": AT_ONCE,
    **{
        f"`wait` = {wait:,}, mean delay {mean}, {words}": one_sided(mean, wait, order)
        for words, order in (("learned on arrival", "arrival"), ("learned after `wait`", "decision"))
        for wait, mean in ((2_000, 400), (200, 40))
    },
}


_HEAD = """\
# Late, one-sided and reordered outcomes, measured

Written by `python benchmarks/late.py`: {runs} runs, seed {seed}. Every policy is wrapped in `delayed(...)`.
Outcomes are 0 or 1.

- **At once**: every outcome is learned before the next decision.
- **One-sided**: only successes are reported, after an exponential delay of mean {mean} decisions. A decision without a
  report counts as a failure when it is `wait` = {wait:,} decisions old. *On arrival* learns each success when it is
  reported. *After wait* learns every outcome when its decision is `wait` old, in the order of the decisions.
- **Batches**: the outcomes of {batch} decisions are learned together after the last of them.

## What each way of learning costs
"""
_WAIT = """
## How long to wait

One-sided outcomes as above, learned when the decision is `wait` old. The columns are `wait` as a quantile of the
delays, and in decisions. Successes that arrive later are lost: they are learned as failures.
"""


class Played(NamedTuple):
    """A policy that learns in one way in one environment: means over the runs, and standard errors of two of them."""

    environment: str
    policy: str  # with `delayed(...)`
    share: float  # of the decisions that went to the best arm
    share_error: float
    regret: float
    regret_error: float
    blocks: tuple[float, ...]  # the share in every 2,000 decisions


class LateSuite:
    """The suite of late outcomes for some policies. Nothing is played twice."""

    def __init__(
        self, policies: Sequence[str] = POLICIES, runs: int = RUNS, seed: int = 0, workers: int | None = None
    ) -> None:
        self.policies, self.runs, self.seed, self.workers = policies, runs, seed, workers
        for text in policies:  # refuse before any work a text that cannot be read
            Delayed(make_policy(text, find_facts(STILL)))
        self.played: dict[tuple[Any, Any], Played] = {}
        self._best: dict[Any, np.ndarray] = {}

    def play(self, text: str, environment: Any, parameters: Mapping[str, Any]) -> Played:
        """One policy that learns in one way in one environment."""
        policy = Delayed(make_policy(text, find_facts(environment)), **parameters)
        if (policy, environment) not in self.played:
            self.played[policy, environment] = self._play(policy, environment)
        return self.played[policy, environment]

    def _play(self, policy: Any, environment: Any) -> Played:
        options: dict[str, Any] = {"checkpoints": 1, "trajectories": True, "workers": self.workers, "progress": False}
        found = simulate(policy, environment, self.runs, self.seed, **options)
        right = np.equal(found.arms, self._best_arms(environment))  # type: ignore[arg-type]
        shares, regret, root = right.mean(axis=1), found.regret[:, -1], math.sqrt(self.runs)
        edges = [*range(0, environment.horizon, BLOCK), environment.horizon]
        blocks = tuple(float(right[:, start:stop].mean()) for start, stop in itertools.pairwise(edges))
        means, errors = ([float(of(values)) for values in (shares, regret)] for of in (np.mean, _deviation))
        return Played(repr(environment), repr(policy), means[0], errors[0] / root, means[1], errors[1] / root, blocks)

    def _best_arms(self, environment: Any) -> np.ndarray:
        """The best arm of every run and round."""
        if environment not in self._best:
            environments = (environment.realise(stream_key(self.seed, run, ENVIRONMENT)) for run in range(self.runs))
            means = (np.asarray(realised.means(0, environment.horizon)) for realised in environments)
            self._best[environment] = np.stack([table.argmax(axis=1) for table in means])
        return self._best[environment]

    def lines(self) -> Iterator[str]:
        """The page, line by line as it is measured."""
        yield from _HEAD.format(runs=self.runs, seed=self.seed, mean=MEAN, wait=WAIT, batch=BATCH).splitlines()
        for name, environment in ENVIRONMENTS.items():
            yield from self._tables(name, environment, CONDITIONS)
        yield from _WAIT.splitlines()
        for name, environment in list(ENVIRONMENTS.items())[::2]:
            yield from self._tables(name, environment, WAITS)
        yield ""
        yield f"## `{self.policies[0]}` over time"
        yield ""
        yield f"Share of the best arm in every {BLOCK:,} decisions. {next(iter(ENVIRONMENTS))}."
        yield ""
        ends = range(BLOCK, STILL.horizon + 1, BLOCK)
        shares = {name: self.play(self.policies[0], STILL, condition).blocks for name, condition in BLOCKS.items()}
        head = ["outcomes", *(f"to {end:,}" for end in ends)]
        yield from _table(head, shares, lambda row: [f"{share:.2f}" for share in row])

    def _tables(self, name: str, environment: Any, conditions: Mapping[str, dict[str, Any]]) -> Iterator[str]:
        found = {
            f"`{text}`": [self.play(text, environment, condition) for condition in conditions.values()]
            for text in self.policies
        }
        yield ""
        yield f"### {name}"
        yield ""
        yield "Share of the decisions that went to the best arm:"
        yield ""
        yield from _table(["policy", *conditions], found, lambda row: [f"{one.share:.2f}" for one in row])
        yield ""
        yield "Regret, ± one standard error:"
        yield ""
        yield from _table(
            ["policy", *conditions], found, lambda row: [f"{one.regret:,.0f} ± {one.regret_error:,.0f}" for one in row]
        )


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1))


def _table(head: Sequence[str], rows: Mapping[str, Any], cells: Callable[[Any], list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'--:|' * (len(head) - 1)}"
    for name, row in rows.items():
        yield f"| {' | '.join([name, *cells(row)])} |"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policies", nargs="*", default=POLICIES, metavar="POLICY", help="a policy's text")
    parser.add_argument("--out", type=Path, default=Path("build/field/late"), metavar="DIR")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int)
    args = parser.parse_args(argv)
    suite = LateSuite(tuple(args.policies), args.runs, args.seed, args.workers)
    page = []
    for line in suite.lines():
        page.append(line)
        print(line, flush=True)
    with replace_file(writable(args.out / "late.md")) as draft:
        draft.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
