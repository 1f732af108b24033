"""From runs to a verdict: statements with one number per run, and how several of them make a claim.

Run r of every policy has the same environment and the same random numbers, so statements are about differences within
runs. Student's t-interval of the mean difference decides: wholly above 0 the statement holds, wholly below it fails,
else it is undecided. A claim of m statements takes each interval at the level 1 - 0.05 / m (Bonferroni). So the
probability of a wrong verdict on the claim is at most 0.05 however many figures it is about."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.lab.summaries import Interval, interval
from driftbandit.paper.theory import diagnose

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "fails", "undecided", "not run"
RISK = 0.05  # probability of a wrong verdict on one claim

# What vague words mean, in all claims.
ALMOST = 0.10  # "almost the same": by less than a tenth, about the difference between two runs of SW-TS
SIMILAR = 0.25  # "similar": by less than a quarter
COMPETITIVE = 2.0  # "competitive": at most twice the regret of any other policy of the figure


class MeasuredStatement(NamedTuple):
    """A statement about runs: the mean of `values` (one number per run) is above 0."""

    where: str  # "fig3a"
    numbers: str  # for the reader: "ds-ts 2047, sw-ts 1742 (ratio 1.18)"
    values: np.ndarray


class ComputedStatement(NamedTuple):
    """A statement that needs no runs, computed from environments or parameters."""

    where: str
    numbers: str
    true: bool


class AtLeast(NamedTuple):
    """A statement made of others: at least `needed` of them hold."""

    needed: int
    parts: Sequence["Node"]


Node = MeasuredStatement | ComputedStatement | AtLeast


class DecidedStatement(NamedTuple):
    """A statement's verdict, with the interval of the difference that had to be above 0 if it was measured."""

    where: str
    numbers: str
    verdict: str
    interval: Interval | None = None


class ClaimDecision(NamedTuple):
    """A claim's verdict with all its statements."""

    verdict: str
    parts: tuple[DecidedStatement, ...]
    note: str = ""  # why the claim was not decided


def every(parts: Sequence[Node]) -> AtLeast:
    """All of them hold."""
    return AtLeast(len(parts), parts)


def some(parts: Sequence[Node]) -> AtLeast:
    """At least one holds."""
    return AtLeast(1, parts)


def most(parts: Sequence[Node]) -> AtLeast:
    """More than half of them hold."""
    return AtLeast(len(parts) // 2 + 1, parts)


def decide(node: Node) -> ClaimDecision:
    """The verdict on a claim.

    >>> above, unclear = np.array([1.0, 1.1, 0.9]), np.array([1.0, -1.0, 0.1])
    >>> decide(every([MeasuredStatement("a", "", above), MeasuredStatement("b", "", unclear)])).verdict
    'undecided'
    """
    parts: list[DecidedStatement] = []
    verdict = _verdict(node, RISK / max(1, _count_measured(node)), parts)
    return ClaimDecision(verdict, tuple(parts))


def _count_measured(node: Node) -> int:
    if isinstance(node, AtLeast):
        return sum(map(_count_measured, node.parts))
    return int(isinstance(node, MeasuredStatement))


def _verdict(node: Node, risk: float, parts: list[DecidedStatement]) -> str:
    if isinstance(node, AtLeast):
        verdicts = [_verdict(part, risk, parts) for part in node.parts]
        if verdicts.count(HOLDS) >= node.needed:
            return HOLDS
        return FAILS if len(verdicts) - verdicts.count(FAILS) < node.needed else UNDECIDED
    if isinstance(node, ComputedStatement):
        parts.append(DecidedStatement(node.where, node.numbers, HOLDS if node.true else FAILS))
        return parts[-1].verdict
    found = interval(node.values, 1.0 - risk)
    below = found.high < 0.0 or found.low == found.high == 0.0  # no difference at all is not a smaller regret
    verdict = HOLDS if found.low > 0.0 else FAILS if below else UNDECIDED
    parts.append(DecidedStatement(node.where, node.numbers, verdict, found))
    return verdict


def jackknife(function: Callable[..., float], *samples: np.ndarray) -> np.ndarray:
    """Pseudo-values of a smooth function of means over runs: one number per run, whose mean estimates the function and
    whose spread gives its interval. For a difference of means they are the differences.

    >>> jackknife(lambda a, b: float(a - b), np.array([3.0, 5.0, 7.0]), np.array([1.0, 1.0, 4.0])).tolist()
    [2.0, 4.0, 3.0]
    """
    n = len(samples[0])
    if n < 2:
        return np.full(n, np.nan)
    totals = [sample.sum(axis=0) for sample in samples]
    whole = function(*(total / n for total in totals))
    left = [
        function(*((total - sample[r]) / (n - 1) for total, sample in zip(totals, samples, strict=True)))
        for r in range(n)
    ]
    return n * whole - (n - 1) * np.array(left)


class Evidence:
    """A run's numbers under one set of parameters, and the statements that claims are usually made of."""

    def __init__(self, run: Any, parameters: str) -> None:
        self.run, self.parameters = run, parameters

    def final(self, item: str, label: str, gap: float | None = None) -> np.ndarray:
        """Final regrets, one per run."""
        return np.asarray(self.run.final(item, label, self.parameters, gap=gap))

    def outcome(self, item: str, label: str) -> Any:
        """Regret at all checkpoints."""
        return self.run.outcome(item, label, self.parameters)

    def realised(self, item: str, run: int = 0) -> Any:
        """The environment of one run."""
        options = self.run.options
        environment = self.run.items[item].make_environment(options.environment)
        return environment.realise(stream_key(options.seed, run, ENVIRONMENT))

    def all_realised(self, item: str) -> list[Any]:
        """The environments of all runs, or a single one if they are the same in all runs."""
        fresh = self.run.options.environment == "fresh" and hasattr(self.run.items[item].environment, "instance")
        return [self.realised(item, run) for run in range(self.run.options.runs if fresh else 1)]

    def above_half_of_uniform(self, item: str, label: str, sign: float = 1.0) -> MeasuredStatement:
        """The policy's regret is above half of that of choosing arms uniformly; below it if `sign` is -1."""
        uniform = np.array([diagnose(realised).uniform_regret for realised in self.all_realised(item)])
        regret = self.final(item, label)
        numbers = f"{label} {regret.mean():.0f}, uniform play {uniform.mean():.0f}"
        return MeasuredStatement(item, numbers, sign * (regret - 0.5 * uniform))

    def below(self, item: str, a: str, b: str, factor: float = 1.0) -> MeasuredStatement:
        """Policy a's regret is below `factor` times policy b's."""
        return compare(item, self.final(item, a), a, self.final(item, b), b, factor)

    def alike(self, item: str, a: str, b: str, share: float) -> AtLeast:
        """The two regrets differ by less than `share` of the smaller."""
        return every([self.below(item, a, b, 1.0 + share), self.below(item, b, a, 1.0 + share)])

    def below_all(self, item: str, label: str, factor: float = 1.0, without: str = "") -> AtLeast:
        """The policy's regret is below `factor` times that of every other one in the item."""
        rivals = [other for other in self.run.items[item].labels if other not in (label, without)]
        return every([self.below(item, label, other, factor) for other in rivals])


def compare(
    where: str, a: np.ndarray, name_a: str, b: np.ndarray, name_b: str, factor: float = 1.0
) -> MeasuredStatement:
    """The first regret is below `factor` times the second."""
    ratio = f" (ratio {a.mean() / b.mean():.2f})" if b.mean() > 0 else ""
    return MeasuredStatement(where, f"{name_a} {a.mean():.0f}, {name_b} {b.mean():.0f}{ratio}", factor * b - a)


class Claim(NamedTuple):
    """A sentence of the paper, as claims.toml has it."""

    id: str
    place: str  # where the sentence is
    says: str  # the claim, in our words
    criterion: str  # the statement that is decided
    reason: str  # why this one
    items: tuple[str, ...]  # the items it is about
    parameters: bool = True  # False: about environments only, the same under every parameter set


class ClaimVerdict(NamedTuple):
    """A claim with its decision under each parameter set."""

    claim: Claim
    decisions: dict[str, ClaimDecision]  # by "text", "code"; by "any" for a claim about environments only

    def verdicts(self, parameters: tuple[str, ...]) -> list[str]:
        """The verdict under each of these parameter sets."""
        return [self.decisions[name if self.claim.parameters else "any"].verdict for name in parameters]
