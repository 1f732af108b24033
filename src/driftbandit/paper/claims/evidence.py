"""From runs to a verdict: statements with one number per run, and how several of them make one claim.

Run r of every policy met the same world and the same luck, so statements are about differences within runs. Student's
t-interval of the mean difference decides: wholly above 0 the statement holds, wholly below it fails, else it is
undecided. A claim made of m statements takes each interval at the level 1 - 0.05 / m (Bonferroni), so that the chance
of a wrong verdict on the claim, true or false, is at most one in twenty however many figures it speaks of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.stats.intervals import t_interval

HOLDS, FAILS, UNDECIDED, NOT_RUN = "holds", "fails", "undecided", "not run"
RISK = 0.05  # chance of a wrong verdict on one claim


class MeasuredStatement(NamedTuple):
    """A statement about runs: the mean of `values` (one number per run) is above 0."""

    where: str  # "fig3a"
    numbers: str  # what a reader wants to see: "ds-ts 2047, sw-ts 1742 (ratio 1.18)"
    values: np.ndarray

    def decide(self, risk: float) -> "Decided":
        """The verdict with its interval."""
        low, high = (float(end) for end in t_interval(self.values, 1.0 - risk))
        if low > 0.0:
            verdict = HOLDS
        elif high < 0.0 or low == high == 0.0:  # no difference at all is no smaller and no larger
            verdict = FAILS
        else:
            verdict = UNDECIDED
        return Decided(self.where, self.numbers, verdict, float(self.values.mean()), low, high)


class ComputedStatement(NamedTuple):
    """A statement that needs no runs: something computed from the worlds or the parameters."""

    where: str
    numbers: str
    true: bool

    def decide(self, risk: float) -> "Decided":
        """True or false."""
        return Decided(self.where, self.numbers, HOLDS if self.true else FAILS, None, None, None)


class AtLeast(NamedTuple):
    """A statement made of others: at least `needed` of them hold."""

    needed: int
    parts: Sequence["Node"]


Node = MeasuredStatement | ComputedStatement | AtLeast


class Decided(NamedTuple):
    """A decided statement; the interval is of the mean difference that had to be above 0, None for a fact."""

    where: str
    numbers: str
    verdict: str
    mean: float | None
    low: float | None
    high: float | None


class ClaimDecision(NamedTuple):
    """A claim's verdict with all its statements."""

    verdict: str
    parts: tuple[Decided, ...]
    note: str = ""  # why there is no verdict, if there is none


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

    >>> sure, open_ = np.array([1.0, 1.1, 0.9]), np.array([1.0, -1.0, 0.1])
    >>> decide(every([MeasuredStatement("a", "", sure), MeasuredStatement("b", "", open_)])).verdict
    'undecided'
    >>> decide(some([MeasuredStatement("a", "", sure), MeasuredStatement("b", "", open_)])).verdict
    'holds'
    """
    tests = max(1, sum(isinstance(leaf, MeasuredStatement) for leaf in leaves(node)))
    parts: list[Decided] = []
    verdict = _verdict(node, RISK / tests, parts)
    return ClaimDecision(verdict, tuple(parts))


def _verdict(node: Node, risk: float, parts: list[Decided]) -> str:
    if not isinstance(node, AtLeast):
        parts.append(node.decide(risk))
        return parts[-1].verdict
    verdicts = [_verdict(part, risk, parts) for part in node.parts]
    if verdicts.count(HOLDS) >= node.needed:
        return HOLDS
    return FAILS if len(verdicts) - verdicts.count(FAILS) < node.needed else UNDECIDED


def leaves(node: Node) -> Iterator[MeasuredStatement | ComputedStatement]:
    """The statements a claim is made of."""
    if isinstance(node, AtLeast):
        for part in node.parts:
            yield from leaves(part)
    else:
        yield node


def jackknife(function: Callable[..., float], *samples: np.ndarray) -> np.ndarray:
    """Pseudo-values of a smooth function of means over runs: one number per run, whose mean estimates the function and
    whose spread gives its interval.

    For what is no difference of regrets, such as how much a curve of mean regrets varies; for a difference it gives
    the differences themselves. Also removes most of the bias that noise adds to a measure of variation.

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


class NotComputed(Exception):
    """A number was asked for that this run did not compute."""


def extra_final(run: Any, name: str) -> np.ndarray:
    """Final regrets of a simulation that belongs to no figure, one per run."""
    if name not in run.extra_cells:
        raise NotComputed(f"not run: {name}")
    try:
        return np.asarray(run.extra(name).regret[:, -1])
    except ValueError as error:  # it failed
        raise NotComputed(str(error)) from None


class Reader:
    """A run's numbers under one set of parameters, and the statements that claims are usually made of."""

    def __init__(self, run: Any, parameters: str) -> None:
        self.run, self.parameters = run, parameters

    def final(self, item: str, label: str, gap: float | None = None) -> np.ndarray:
        """Final regrets, one per run."""
        self._played(item, label)
        return np.asarray(self.run.final(item, label, self.parameters, gap=gap))

    def outcome(self, item: str, label: str) -> Any:
        """Regret at all checkpoints."""
        self._played(item, label)
        return self.run.outcome(item, label, self.parameters)

    def _played(self, item: str, label: str) -> None:
        if label not in self.run.labels(item):
            raise NotComputed(f"not run: {label} in {item}")

    def extra(self, name: str) -> np.ndarray:
        """Final regrets of a simulation that belongs to no figure."""
        return extra_final(self.run, name)

    def labels(self, item: str) -> list[str]:
        """The policies of an item."""
        return list(self.run.labels(item))

    def world(self, item: str, run: int = 0) -> Any:
        """The world of a run, ready to be asked for its means."""
        from driftbandit.draws import WORLD, stream_key

        options = self.run.options
        return self.run.items[item].environment(options.environment).realise(stream_key(options.seed, run, WORLD))

    def worlds(self, item: str) -> list[Any]:
        """The worlds of all runs: a single one unless each run has its own."""
        fixed = self.run.options.environment != "fresh" or "world" not in getattr(
            self.run.items[item].environment("fresh"), "_fields", ()
        )
        return [self.world(item, run) for run in range(1 if fixed else self.run.options.runs)]

    def below(self, item: str, a: str, b: str, factor: float = 1.0) -> MeasuredStatement:
        """Policy a's regret is below `factor` times policy b's."""
        return self.compare(item, self.final(item, a), a, self.final(item, b), b, factor)

    def compare(
        self, where: str, a: np.ndarray, name_a: str, b: np.ndarray, name_b: str, factor: float = 1.0
    ) -> MeasuredStatement:
        """The first regret is below `factor` times the second."""
        return MeasuredStatement(
            where, f"{name_a} {a.mean():.0f}, {name_b} {b.mean():.0f}{_ratio(a.mean(), b.mean())}", factor * b - a
        )

    def alike(self, item: str, a: str, b: str, share: float) -> AtLeast:
        """The two regrets differ by less than `share` of the smaller."""
        return every([self.below(item, a, b, 1.0 + share), self.below(item, b, a, 1.0 + share)])

    def beats_all(self, item: str, label: str, factor: float = 1.0, leave_out: Sequence[str] = ()) -> AtLeast:
        """The policy's regret is below `factor` times that of every other one in the item."""
        rivals = [other for other in self.labels(item) if other != label and other not in leave_out]
        return every([self.below(item, label, other, factor) for other in rivals])


def _ratio(a: float, b: float) -> str:
    return f" (ratio {a / b:.2f})" if b > 0 else ""


def regret_at(outcome: Any, rounds: Sequence[int] | np.ndarray) -> np.ndarray:
    """Regret after these many rounds, runs × rounds, on straight lines between the checkpoints."""
    marks = np.append(0, outcome.rounds)
    curves = np.column_stack([np.zeros(len(outcome.regret)), outcome.regret])
    return np.array([np.interp(rounds, marks, curve) for curve in curves])


# What vague words mean, for all claims alike.
ALMOST = 0.10  # "almost the same": by less than a tenth, about what one run differs from the next for SW-TS
SIMILAR = 0.25  # "similar": by less than a quarter
COMPETITIVE = 2.0  # "competitive": at most twice the regret of any other policy of the figure


class Claim(NamedTuple):
    """A sentence of the paper and the statement it was made into."""

    id: str
    place: str  # where the sentence stands
    says: str  # what it says, in our words
    criterion: str  # the statement that is decided
    reason: str  # why this one
    needs: tuple[str, ...]  # the items it speaks of
    statement: Callable[[Reader], Node]
    parameters: bool = True  # False: about the worlds alone, the same under every parameter set
    cells: Callable[[Any, Mapping[str, Any]], dict[str, Cell]] | None = None  # simulations beyond the items'


class ClaimVerdict(NamedTuple):
    """A claim with its decision under each parameter set."""

    claim: Claim
    decisions: dict[str, ClaimDecision]  # by "text", "code"; by "worlds" for a claim about the worlds alone


class Unsettled(NamedTuple):
    """A sentence that is no claim these runs could decide, and why."""

    place: str
    says: str
    reason: str
