"""The statement of each claim in claims.toml as code: a function of the evidence and of the claim's items."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from driftbandit.lab.work import Cell
from driftbandit.paper.claims.evidence import (
    ALMOST,
    COMPETITIVE,
    SIMILAR,
    AtLeast,
    ComputedStatement,
    Evidence,
    MeasuredStatement,
    Node,
    compare,
    every,
    jackknife,
    most,
    some,
)
from driftbandit.paper.items.item import KNOWN, Item, PaperOptions
from driftbandit.paper.theory import blocks, close_rounds, diagnose, separations
from driftbandit.paper.theory.theorem import D, smallest_beta
from driftbandit.policies.detecting_ucb import MonitoredUCB

_EXPONENT = 0.9  # of regret within phases, from which growth is near-linear
_DRIFT = 0.05  # epsilon of CUSUM in the paper
_WRONG = 0.8  # share of uniform play's wrong choices from which arms are not distinguished
_GAP0 = 1.0 / 3.0  # the paper's Delta_0
_NEAR_ONE = 0.9
_GUARANTEED = "claim/m-ucb-guaranteed"
_FREQUENTIST = ("exp3s", "sw-lb-sda", "cusum-ucb", "d-ucb", "m-ucb")
_GAP_PAIRS = tuple((one, other) for one in ("cusum-ucb", "sw-ts") for other in ("d-ucb", "ds-ts"))
_ORDER_PAIRS = (("cusum-ucb", "sw-ts"), ("sw-ts", "d-ucb"), ("sw-ts", "ds-ts"))


# ---- abrupt changes (section 7.1) ------------------------------------------------------------------------------------


def _make_guaranteed_cells(options: PaperOptions, items: Mapping[str, Item]) -> dict[str, Cell]:
    """M-UCB of the text with the exploration that its guarantee needs."""
    item = items["fig3a"]
    environment = item.make_environment(options.environment)
    horizon, phases, arms = environment.horizon, environment.phases, environment.n_arms
    text = MonitoredUCB.text(horizon, phases, arms)
    rate = (phases - 1) * arms * (2.0 * text.threshold + 3.0 * math.sqrt(text.window))
    policy = text._replace(explore=min(1.0, math.sqrt(rate / (2.0 * horizon))))
    return {_GUARANTEED: Cell(policy, environment, options.runs, options.seed, item.checkpoints)}


def _less_exploration(evidence: Evidence, item: str) -> MeasuredStatement:
    guaranteed = evidence.run.extra(_GUARANTEED).regret[:, -1]
    return compare(item, evidence.final(item, "m-ucb"), "as in the paper", guaranteed, "as guaranteed")


def _alike_as_drawn(evidence: Evidence, item: str) -> MeasuredStatement:
    ds, sw = evidence.final(item, "ds-ts"), evidence.final(item, "sw-ts")
    finals = (evidence.final(item, label) for label in evidence.run.items[item].labels)
    top = max(finals, key=lambda regret: float(regret.mean()))
    share = abs(ds.mean() - sw.mean()) / top.mean()
    sign = 1.0 if ds.mean() >= sw.mean() else -1.0
    return MeasuredStatement(item, f"{share:.1%} of the height {top.mean():.0f}", 0.05 * top - sign * (ds - sw))


def regret_at(outcome: Any, rounds: np.ndarray) -> np.ndarray:
    """Regret after these many rounds, runs × rounds, on straight lines between the checkpoints."""
    marks = np.append(0, outcome.rounds)
    curves = np.column_stack([np.zeros(len(outcome.regret)), outcome.regret])
    return np.array([np.interp(rounds, marks, curve) for curve in curves])


def _kinks(evidence: Evidence, item: str, label: str) -> np.ndarray:
    """How much the slope of regret changes at a breakpoint, mean over breakpoints, one number per run."""
    starts = np.asarray(evidence.realised(item).breakpoints)
    width = (starts[1] - starts[0]) / 10.0
    edges = np.concatenate([starts[1:] - width, starts[1:], starts[1:] + width])
    before, at, after = np.split(regret_at(evidence.outcome(item, label), edges), 3, axis=1)
    return np.asarray(np.abs((after - at) - (at - before)).mean(axis=1) / width)


def _larger_kinks(evidence: Evidence, item: str, label: str) -> MeasuredStatement:
    ts, kink = _kinks(evidence, item, "ts"), _kinks(evidence, item, label)
    numbers = f"change of slope: ts {ts.mean():.3f}, {label} {kink.mean():.3f} a round"
    return MeasuredStatement(item, numbers, ts - 2.0 * kink)


def _undetectable(evidence: Evidence, item: str) -> ComputedStatement:
    least = 1.0
    for realised in evidence.all_realised(item):
        rows = np.array([realised.means(start, start + 1)[0] for start in realised.breakpoints])
        least = min(least, float(np.abs(np.diff(rows, axis=0)).min()))
    return ComputedStatement(item, f"smallest change of a mean {least:.2g}", least < 3 * _DRIFT)


def _near_linear(evidence: Evidence, item: str, label: str) -> MeasuredStatement:
    outcome = evidence.outcome(item, label)
    starts = np.append(np.asarray(evidence.realised(item).breakpoints), outcome.rounds[-1])
    at = regret_at(outcome, np.sort(np.concatenate([starts, (starts[1:] + starts[:-1]) / 2.0])))
    pieces = np.diff(at, axis=1)
    first, second = pieces[:, 0::2].sum(axis=1), pieces[:, 1::2].sum(axis=1)
    power = math.log2(1.0 + second.mean() / first.mean()) if first.mean() > 0 else 0.0
    return MeasuredStatement(item, f"{label}: exponent {power:.2f}", second - (2.0**_EXPONENT - 1.0) * first)


def _below_half(evidence: Evidence, item: str, *labels: str) -> AtLeast:
    return every([evidence.below(item, label, slow, 0.5) for label in labels for slow in ("exp3s", "d-ucb")])


def _over_gaps(evidence: Evidence, item: str, label: str) -> np.ndarray:
    """Final regret, runs × gaps."""
    return np.column_stack([evidence.final(item, label, gap) for gap in evidence.run.items[item].gaps])


def _steadier(evidence: Evidence, item: str, *pairs: tuple[str, str]) -> AtLeast:
    """The mean regret of the first varies less over the gaps than that of the second, for each pair."""
    parts = []
    for one, other in pairs:
        a, b = _over_gaps(evidence, item, one), _over_gaps(evidence, item, other)
        values = jackknife(lambda a, b: float(b.std() - a.std()), a, b)
        numbers = f"sd over gaps: {one} {a.mean(0).std():.0f}, {other} {b.mean(0).std():.0f}"
        parts.append(MeasuredStatement(item, numbers, values))
    return every(parts)


def _rises_then_not(evidence: Evidence, item: str, label: str) -> AtLeast:
    regret, gaps = _over_gaps(evidence, item, label), np.array(evidence.run.items[item].gaps)
    third = max(2, len(gaps) // 3)

    def slope(part: slice) -> np.ndarray:
        x = gaps[part] - gaps[part].mean()
        return np.asarray(regret[:, part] @ x / (x @ x))

    first, last, small = slope(slice(0, third)), slope(slice(len(gaps) - third, len(gaps))), regret[:, 0]
    ends = f"{label}: {small.mean():.0f} at the smallest gap, {regret.mean():.0f} on average"
    return every(
        [
            MeasuredStatement(item, ends, regret.mean(axis=1) - small),
            MeasuredStatement(item, f"{label}: slope {first.mean():.0f} over the first third", first),
            MeasuredStatement(item, f"{label}: slope {last.mean():.0f} over the last third", 0.1 * first - last),
        ]
    )


def _often_wrong(evidence: Evidence, item: str, label: str) -> MeasuredStatement:
    environment, gap = evidence.run.items[item].environment, evidence.run.items[item].gaps[0]
    wrong = evidence.final(item, label, gap) / (gap * environment.horizon)
    uniform = (environment.n_arms - 1) / environment.n_arms
    numbers = f"{label}: {wrong.mean():.0%} of rounds wrong, uniform play {uniform:.0%}"
    return MeasuredStatement(item, numbers, wrong - _WRONG * uniform)


# ---- smooth changes and the largest mean (sections 7.2 and 7.3) ------------------------------------------------------


def _lipschitz(evidence: Evidence, item: str) -> ComputedStatement:
    step, sigma = diagnose(evidence.realised(item)).drift, evidence.run.items[item].environment.sigma
    return ComputedStatement(item, f"largest step {step:.3g}, sigma {sigma:g}", step <= sigma)


def _constant(realised: Any) -> float:
    """The paper's F = 4K / (sigma (K - 1))."""
    return float(4 * realised.n_arms / (realised.sigma * (realised.n_arms - 1)))


def _few_close_rounds(evidence: Evidence, item: str) -> AtLeast:
    realised = evidence.realised(item)
    distances, parts = separations(realised), []
    gaps = [0.01 * step for step in range(1, 34) if 0.01 * step < _GAP0]
    worst = max(gaps, key=lambda gap: close_rounds(distances, gap) / gap)
    count = close_rounds(distances, worst)
    for beta in (0.0, 0.5, 1.0):
        allowed = _constant(realised) * worst * realised.horizon**beta
        numbers = f"beta {beta:g}: {count} rounds with arms closer than {worst:.2f}, allowed {allowed:.0f}"
        parts.append(ComputedStatement(item, numbers, count <= allowed))
    return every(parts)


def _beta_half(evidence: Evidence, item: str) -> ComputedStatement:
    realised = evidence.realised(item)
    crossings = diagnose(realised).crossings
    low = smallest_beta(realised.horizon, 1.0, realised.sigma, _constant(realised), crossings)
    return ComputedStatement(item, f"smallest admissible beta {low:.3f}", low <= 0.5)


def _condition(evidence: Evidence, item: str, tenfold: bool) -> ComputedStatement:
    realised = evidence.realised(item)
    eps = (10.0 if tenfold else 1.0) / math.sqrt(realised.horizon)
    drift = 2.0 * realised.sigma * D(eps) if eps < 1.0 / math.e else math.inf
    name = "1 - 10 / sqrt(T)" if tenfold else "1 - 1 / sqrt(T)"
    numbers = f"gamma = {name}: 2 sigma D = {drift:.3f}, limit {_GAP0:.3f}"
    return ComputedStatement(item, numbers, (drift < _GAP0) == tenfold)


def _two_switches(evidence: Evidence, item: str) -> ComputedStatement:
    count = diagnose(evidence.realised(item)).switches
    return ComputedStatement(item, f"{count} switches", count == 2)


def _close_second(evidence: Evidence, item: str) -> ComputedStatement:
    total, realised = 0.0, evidence.realised(item)
    for _, rows in blocks(realised):
        top = np.sort(rows, axis=1)[:, -2:]
        total += float((top[:, 1] - top[:, 0]).sum())
    mean = total / realised.horizon
    return ComputedStatement(item, f"mean distance {mean:.3f}", mean < 0.1)


def _near_one(evidence: Evidence, item: str) -> ComputedStatement:
    best = [float(realised.best(int(t))) for realised in evidence.all_realised(item) for t in realised.breakpoints]
    mean = sum(best) / len(best)
    return ComputedStatement(item, f"best mean {mean:.3f} on average, {min(best):.3f} at least", mean > _NEAR_ONE)


def _all_means_below(evidence: Evidence, item: str, limit: float) -> ComputedStatement:
    largest = max(diagnose(realised).mu_max for realised in evidence.all_realised(item))
    return ComputedStatement(item, f"largest mean {largest:.6g}", largest < limit)


def _slower(evidence: Evidence) -> ComputedStatement:
    before, after = (diagnose(evidence.realised(item)).drift for item in ("fig6a", "fig7b"))
    return ComputedStatement("fig7b", f"largest step {after:.3g}, in fig6a {before:.3g}", after < before)


def _between(evidence: Evidence, label: str, low: str, high: str) -> MeasuredStatement:
    """The policy's regret in `low` is below that in `high`."""
    a, b = evidence.final(low, label), evidence.final(high, label)
    return compare(f"{low}, {high}", a, f"{label} in {low}", b, f"in {high}")


def _all_fall_but_ds_ts(evidence: Evidence) -> AtLeast:
    others = [label for label in evidence.run.items["fig6a"].labels if label != "ds-ts"]
    falling = [_between(evidence, label, "fig7b", "fig6a") for label in others]
    return every([*falling, _between(evidence, "ds-ts", "fig6a", "fig7b")])


def _more_influenced(evidence: Evidence, label: str) -> MeasuredStatement:
    samples = [evidence.final(item, name) for name in ("ds-ts", label) for item in ("fig7b", "fig6a")]
    a, b, c, d = (sample.mean() for sample in samples)
    values = jackknife(lambda a, b, c, d: math.log(a / b) - math.log(c / d), *samples)
    return MeasuredStatement("fig7b, fig6a", f"ds-ts × {a / b:.2f}, {label} × {c / d:.2f}", values)


# ---- the other sections ----------------------------------------------------------------------------------------------


def _bayesian(evidence: Evidence, item: str) -> AtLeast:
    rivals = [label for label in evidence.run.items[item].labels if label in _FREQUENTIST]
    return some(
        [every([evidence.below(item, own, rival, 1.0 + ALMOST) for rival in rivals]) for own in ("ds-ts", "sw-ts")]
    )


def _can_shrink(evidence: Evidence, item: str) -> ComputedStatement:
    policy = evidence.run.items[item].policies(evidence.parameters)["ds-ts"]
    count, limit = 1.0 / (1.0 - policy.gamma) if policy.gamma < 1.0 else float("inf"), policy.tau_max**-2
    return ComputedStatement(item, f"count at most {count:.3g}, needed {limit:.3g}", count > limit)


def _usually_similar(evidence: Evidence, items: tuple[str, ...]) -> AtLeast:
    run = evidence.run
    announced = [name for name in run.items if name.startswith("abrupt-") and name not in run.failures]
    return most([evidence.alike(item, "ds-ts", "sw-ts", SIMILAR) for item in (*items, *announced)])


# ---- the statements --------------------------------------------------------------------------------------------------

Check = Callable[[Evidence, tuple[str, ...]], Node]


def _each(check: Callable[[Evidence, str], Node]) -> Check:
    """A statement that must hold in every item."""
    return lambda evidence, items: every([check(evidence, item) for item in items])


def _alike(share: float, a: str = "ds-ts", b: str = "sw-ts") -> Callable[[Evidence, str], Node]:
    return lambda evidence, item: evidence.alike(item, a, b, share)


def _below(a: str, b: str, factor: float = 1.0) -> Callable[[Evidence, str], Node]:
    return lambda evidence, item: evidence.below(item, a, b, factor)


def _below_all(label: str, factor: float = 1.0, without: str = "") -> Callable[[Evidence, str], Node]:
    return lambda evidence, item: evidence.below_all(item, label, factor, without)


def _for_all(check: Callable[..., Node], *labels: str) -> Callable[[Evidence, str], Node]:
    """The statement about each of these policies."""
    return lambda evidence, item: every([check(evidence, item, label) for label in labels])


CHECKS: Mapping[str, Check] = {
    "abstract-competitive": _each(_below_all("ds-ts", COMPETITIVE)),
    "abstract-outperforms": lambda e, items: some([e.below_all(item, KNOWN, without="ds-ts") for item in items]),
    "introduction-bayesian": lambda e, items: most([_bayesian(e, item) for item in items]),
    "method-variance": _each(_can_shrink),
    "method-advantage": _each(_below("ds-ts", "d-ucb")),
    "experiments-discount-helps": _each(_below("ds-ts", "ts")),
    # section 7.1
    "m-ucb-exploration": _each(_less_exploration),
    "abrupt-almost-equal": _each(_alike(ALMOST)),
    "abrupt-almost-equal-as-drawn": _each(_alike_as_drawn),
    "ts-oscillates": _each(_for_all(_larger_kinks, "ds-ts", "sw-ts")),
    "ts-fails": _each(lambda e, item: every([e.below(item, label, "ts", 0.5) for label in ("ds-ts", "sw-ts")])),
    "cusum-competitive": _each(_below_all("cusum-ucb", COMPETITIVE)),
    "cusum-assumption": _each(_undetectable),
    "many-arms-near-linear": _each(_for_all(_near_linear, "exp3s", "d-ucb")),
    "many-arms-near-linear-size": _each(_for_all(Evidence.above_half_of_uniform, "exp3s", "d-ucb")),
    "many-arms-ds-ts-well": _each(lambda e, item: _below_half(e, item, "ds-ts")),
    "many-arms-both-well": _each(lambda e, item: _below_half(e, item, "ds-ts", "sw-ts")),
    "many-arms-thompson": lambda e, items: most(
        [
            e.below(item, thompson, bound)
            for item in items
            for thompson in ("ds-ts", "sw-ts")
            for bound in ("d-ucb", "cusum-ucb", "m-ucb")
        ]
    ),
    "gap-less-affected": _each(lambda e, item: _steadier(e, item, *_GAP_PAIRS)),
    "gap-order-of-bounds": _each(lambda e, item: _steadier(e, item, *_ORDER_PAIRS)),
    "gap-rises-then-falls-d-ucb": _each(lambda e, item: _rises_then_not(e, item, "d-ucb")),
    "gap-rises-then-falls-ds-ts": _each(lambda e, item: _rises_then_not(e, item, "ds-ts")),
    "gap-blind": _each(_for_all(_often_wrong, "d-ucb", "ds-ts")),
    # section 7.2
    "smooth-lipschitz": _each(_lipschitz),
    "smooth-constant": _each(_few_close_rounds),
    "smooth-beta": _each(_beta_half),
    "smooth-theorem": _each(lambda e, item: every([_condition(e, item, True), _condition(e, item, False)])),
    "smooth-similar": lambda e, items: AtLeast(3, [e.alike(item, "sw-ts", "sw-lb-sda", SIMILAR) for item in items]),
    "smooth-ds-ts-behind": _each(
        lambda e, item: every([e.below(item, other, "ds-ts") for other in ("sw-ts", "sw-lb-sda")])
    ),
    "smooth-ts-excellent": _each(_below_all("ts", 1.0 + ALMOST)),
    "smooth-two-switches": _each(_two_switches),
    "smooth-close-second": _each(_close_second),
    # section 7.3
    "prior-near-one": _each(_near_one),
    "prior-most-perform-well": lambda e, items: most(
        [
            e.above_half_of_uniform(item, label, -1.0)
            for item in items
            for label in ("d-ucb", "cusum-ucb", "m-ucb", "ts", "sw-ts", "ds-ts")
        ]
    ),
    "prior-limit-abrupt": _each(lambda e, item: _all_means_below(e, item, 0.7)),
    "prior-limit-smooth": _each(lambda e, item: _all_means_below(e, item, 0.5)),
    "prior-all-worse": lambda e, items: every([_between(e, label, *items) for label in e.run.items[items[0]].labels]),
    "prior-slower": lambda e, items: _slower(e),
    "prior-all-fall-but-ds-ts": lambda e, items: _all_fall_but_ds_ts(e),
    "prior-ds-ts-influenced": lambda e, items: every(
        [_more_influenced(e, label) for label in e.run.items["fig6a"].labels if label != "ds-ts"]
    ),
    "prior-improves": _each(_below(KNOWN, "ds-ts", 1.0 - ALMOST)),
    # section 8
    "discussion-reduction": _each(_below_all(KNOWN, 1.0 - ALMOST, "ds-ts")),
    "discussion-usually-similar": _usually_similar,
}
# Simulations beyond the items', which some claims need.
CELLS: Mapping[str, Callable[[PaperOptions, Mapping[str, Item]], dict[str, Cell]]] = {
    "m-ucb-exploration": _make_guaranteed_cells
}
