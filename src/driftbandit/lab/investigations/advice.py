"""Which gamma to take: what the corollaries say, what the paper used, and what simulation finds best.

A corollary fixes how regret grows with the horizon and leaves the factor open, so its gamma can be far from the best at
any horizon one will meet. The only way to know by how much is to play, which here takes seconds."""

import html
import math
import textwrap
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from driftbandit.environments import Abrupt, Smooth
from driftbandit.environments.scaled import scaled
from driftbandit.lab.investigations import search
from driftbandit.lab.jobs.sizes import refuse_impossible
from driftbandit.lab.stats import selection
from driftbandit.lab.stats.intervals import Interval
from driftbandit.lab.stats.selection import Rival
from driftbandit.lab.support.html import table as html_table
from driftbandit.lab.theory import beta_interval, corollary1, corollary2
from driftbandit.policies.discounted_ts import DiscountedTS

TAU_SHARES = (1 / 20, 1 / 10, 1 / 5, 1 / 3)  # tau_max as a share of the largest mean; the paper says 1/5 to 1/3


class Choice(NamedTuple):
    """One way to choose the parameters, and what it costs."""

    source: str
    policy: DiscountedTS | None  # None when the formula gives no gamma here; `note` says why
    regret: Interval | None
    excess: Interval | None  # regret above that of the best found at the same tau_max, paired run by run
    note: str = ""

    @property
    def memory(self) -> float | None:
        """1 / (1 - gamma): for how many rounds evidence counts."""
        if self.policy is None:
            return None
        return math.inf if self.policy.gamma == 1.0 else 1.0 / (1.0 - self.policy.gamma)

    @property
    def half_life(self) -> float | None:
        """For how many rounds evidence keeps more than half its weight: what `DiscountedTS.half_life` takes."""
        if self.policy is None:
            return None
        return math.inf if self.policy.gamma == 1.0 else math.log(0.5) / math.log(self.policy.gamma)


class Advice(NamedTuple):
    """What `advise` found. The rows are: theory, paper, best gamma, best gamma with best tau_max."""

    environment: Any
    runs: int
    seed: int
    rows: tuple[Choice, ...]
    as_good: tuple[float, ...]  # gammas of the grid that are as good as the best within the noise; it is one of them
    grid: tuple[tuple[float, Interval], ...]  # (gamma, regret) for every gamma tried at the paper's tau_max
    tau_maxes: tuple[float, ...]  # every tau_max tried

    def row(self, source: str) -> Choice:
        """The first row whose source begins with this text."""
        for row in self.rows:
            if row.source.startswith(source):
                return row
        raise ValueError(f"No row begins with {source!r}; there are: {'; '.join(row.source for row in self.rows)}.")

    @property
    def best(self) -> Choice:
        """The best gamma at the paper's tau_max."""
        return self.row("best gamma")

    @property
    def recommended(self) -> Choice:
        """What to take: the best gamma, or gamma and tau_max together where that is clearly better and lies within
        what was tried."""
        overall = self.rows[-1]
        better = overall.excess is not None and overall.excess.high < 0.0
        return overall if better and not self.edges(overall) else self.best

    @property
    def at_edge(self) -> bool:
        """Is the best gamma, or the best gamma and tau_max, at an end of what was tried?"""
        return bool(self.edges(self.best) or self.edges(self.rows[-1]))

    def edges(self, row: Choice) -> list[str]:
        """Which parameters of a row are at an end of what was tried, in words. The tau_max of the other rows was given,
        not found."""
        if row.policy is None:
            return []
        gammas = [gamma for gamma, _ in self.grid]
        ends = {min(gammas): "gamma is the shortest memory tried", max(gammas): "gamma = 1 forgets nothing at all"}
        out = [ends[row.policy.gamma]] if row.policy.gamma in ends else []
        if row is self.rows[-1]:
            ends = {min(self.tau_maxes): "the smallest", max(self.tau_maxes): "the largest"}
            out += [f"tau_max is {ends[row.policy.tau_max]} tried"] if row.policy.tau_max in ends else []
        return out

    def line(self) -> str:
        """The recommended policy as a line to paste, with its half-life, and whether it is at an end of what was
        tried."""
        row = self.recommended
        policy = f"DiscountedTS(gamma={row.policy.gamma:.6g}, tau_max={row.policy.tau_max:.4g})" if row.policy else ""
        edges = self.edges(row)
        warning = f"; {' and '.join(edges)}: a better one may lie beyond" if edges else ""
        return f"policy = {policy}  # half-life: {_rounds(row.half_life)}{warning}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows as text."""
        head = [
            "chosen by",
            "gamma",
            "half-life",
            "tau_max",
            "regret",
            "95 % interval",
            "above the best",
            "95 % interval",
        ]
        return head, [_line(row) for row in self.rows]

    def paragraph(self) -> str:
        """What to do, in words."""
        return in_words(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        words = f"<p>{html.escape(self.paragraph())}</p><pre>{html.escape(self.line())}</pre>"
        return html_table(f"{self.runs} runs in {self.environment}", *self.table()) + words

    def __str__(self) -> str:
        head, rows = self.table()
        widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in [head, *rows]
        ]
        return "\n".join([*lines, "", textwrap.fill(self.paragraph(), 110), "", self.line()])


def advise(
    horizon: int,
    phases: int | None = None,
    drift: float | None = None,
    n_arms: int = 5,
    mu_max: float = 1.0,
    runs: int = 200,
    seed: int = 0,
    *,
    a_decade: int = 4,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = False,
) -> Advice:
    """Compare the ways to tune DS-TS on worlds of the paper's kind.

    Give `phases` for worlds that change at once (means redrawn in each phase, uniform up to `mu_max`), or `drift` for
    the paper's smooth world, whose means move by less than `drift` a round and reach mu_max (K-1)/K. tau_max is mu_max
    / 5, the paper's rule, except in the last row. The best is chosen on half of the runs and all regrets are estimated
    from the other half.

    >>> advise(2_000, phases=4, runs=8, a_decade=1).row("Corollary 1").policy.gamma
    0.9552786404500042
    """
    world = _world(horizon, phases, drift, n_arms, mu_max)
    refuse_impossible(DiscountedTS(), world, runs, checkpoints=1)
    tau = mu_max / 5.0
    fixed = _published(horizon, phases, drift, tau)
    coarse = search.gammas(horizon, max(1, a_decade // 2))
    wide = [DiscountedTS(gamma, share * mu_max) for share in TAU_SHARES for gamma in coarse]
    grid = search.discount_grid(world, tau, a_decade)
    wanted = [policy for _, policy, _ in fixed if policy is not None]
    played = search.play([*wanted, *grid, *wide], world, runs, seed, workers, progress, "advise")
    paper, line, plane = played[: len(wanted)], played[len(wanted) : -len(wide)], played[-len(wide) :]
    chosen, overall = selection.best(line), selection.best([*line, *plane])
    cells = iter(paper)
    rows = [_row(source, None if policy is None else next(cells), chosen, note) for source, policy, note in fixed]
    rows.append(_row("best gamma by simulation", chosen, chosen))
    rows.append(_row("best gamma and tau_max by simulation", overall, chosen))
    return Advice(
        world,
        runs,
        seed,
        tuple(rows),
        tuple(cell.policy.gamma for cell in selection.as_good(line, chosen)),
        tuple((cell.policy.gamma, cell.estimate()) for cell in line),
        tuple(share * mu_max for share in TAU_SHARES),
    )


def _world(horizon: int, phases: int | None, drift: float | None, n_arms: int, mu_max: float) -> Any:
    if (phases is None) == (drift is None):
        raise ValueError("Advice needs either phases (sudden changes) or drift (slow ones), and not both.")
    if not 0.0 < mu_max <= 1.0:
        raise ValueError(f"mu_max is the largest mean reward, in (0, 1]; got {mu_max!r}.")
    if n_arms < 2:
        raise ValueError(f"Advice needs 2 arms or more; got {n_arms!r}.")
    if phases is not None:
        return scaled(Abrupt(n_arms=n_arms, horizon=horizon, phases=phases), mu_max)
    # Scaling the means scales their speed, so the base world must move faster by the same factor.
    return scaled(Smooth(n_arms=n_arms, horizon=horizon, sigma=float(drift or 0.0) / mu_max), mu_max)


def _published(
    horizon: int, phases: int | None, drift: float | None, tau: float
) -> list[tuple[str, DiscountedTS | None, str]]:
    """(source, policy, note) for what theory and paper advise; formulas outside their domain are kept at its edge."""
    out: list[tuple[str, DiscountedTS | None, str]] = []

    def add(source: str, make: Callable[[], DiscountedTS], note: str = "") -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            policy = make()
        out.append((source, policy, "; ".join([*([note] if note else []), *(str(entry.message) for entry in caught)])))

    if phases is not None:
        failed = [condition for condition in corollary1(horizon, phases).conditions if not condition.holds]
        add(
            "Corollary 1 and the paper's text",
            lambda: DiscountedTS.tuned(horizon, phases, tau_max=tau),
            "; ".join(f"fails: {condition.text}" for condition in failed),
        )
        add("the authors' code", lambda: DiscountedTS.code(horizon, phases, tau_max=tau))
        return out
    low = beta_interval(horizon=horizon, gap=1.0, drift=float(drift or 0.0)).low
    half = "beta = 1/2 is not admissible here" if low is None or low > 0.5 else ""
    add("Corollary 2, beta = 1/2", lambda: DiscountedTS.tuned_smooth(horizon, 0.5, tau_max=tau), half)
    name = "Corollary 2, smallest admissible beta"
    tuning = None if low is None or low >= 1.0 else corollary2(horizon, max(low, 0.0))
    if tuning is None or low is None or not tuning.holds:
        out.append((name, None, "no beta is admissible: the drift is too fast for this horizon, even at a gap of 1"))
    else:
        beta = max(low, 0.0)
        note = f"beta = {beta:.3f}, for a gap of 1, counting the drift's condition only"
        add(name, lambda: DiscountedTS.tuned_smooth(horizon, beta, tau_max=tau), note)
    add("the paper's text", lambda: DiscountedTS.text(horizon, 1, smooth=True, tau_max=tau))
    add("the authors' code", lambda: DiscountedTS.code(horizon, 1, smooth=True, tau_max=tau))
    return out


def _row(source: str, cell: Rival | None, chosen: Rival, note: str = "") -> Choice:
    if cell is None:
        return Choice(source, None, None, None, note)
    return Choice(source, cell.policy, cell.estimate(), None if cell is chosen else cell.excess(chosen), note)


def _line(row: Choice) -> list[str]:
    if row.policy is None or row.regret is None:
        return [row.source, "-", "-", "-", "-", "-", "-", "-"]
    difference, between = "-", "-"
    if row.excess is not None:
        difference, between = f"{row.excess.mean:+.1f}", f"{row.excess.low:+.1f} to {row.excess.high:+.1f}"
    half_life = "for ever" if row.half_life == math.inf else f"{row.half_life:.4g}"
    spread = f"{row.regret.low:.1f} to {row.regret.high:.1f}"
    shown = f"{row.policy.gamma:.6g}", half_life, f"{row.policy.tau_max:.4g}"
    return [row.source, *shown, f"{row.regret.mean:.1f}", spread, difference, between]


def _rounds(half_life: float | None) -> str:
    if half_life is None or half_life == math.inf:
        return "for ever"
    return f"{half_life:.3g} rounds"


def times(ratio: float) -> str:
    """A ratio as a factor of at least 1, for "x times longer" and "x times shorter"."""
    return f"{max(ratio, 1.0 / ratio):.3g} times {'longer' if ratio > 1.0 else 'shorter'}"


def off_by(row: Choice, best: Choice) -> str:
    """How far one row's memory and regret are from the best's, as a clause."""
    if row.policy is None or row.regret is None or best.regret is None:
        return f"{row.source} gives no gamma here ({row.note})"
    clause = f"{row.source} takes gamma = {row.policy.gamma:.6g}"
    if row.memory is None or best.memory is None or row.memory == best.memory or best.memory == math.inf:
        return clause
    clause += f", a memory {times(row.memory / best.memory)} than the best,"
    if row.excess is None or math.isnan(row.excess.low) or row.excess.low <= 0.0 <= row.excess.high:
        return f"{clause} and the difference in regret is within the noise"
    share, *ends = (100.0 * abs(value) / best.regret.mean for value in row.excess)
    side = "more" if row.excess.mean > 0.0 else "less"
    clause += f" and regrets {share:.0f} % {side} ({min(ends):.0f} to {max(ends):.0f})"
    return clause + ("; unlike the others it forgets the means of idle arms" if row.policy.forget_below else "")


def in_words(advice: Advice) -> str:
    """One paragraph: what to take, how wide the valley is, and how far off the formulas are."""
    best, overall = advice.best, advice.rows[-1]
    if best.policy is None or overall.policy is None or overall.regret is None:  # pragma: no cover - never made so
        return ""
    good = ", ".join(f"{gamma:.4g}" for gamma in advice.as_good)
    sentences = [
        f"Played on {advice.runs} runs of {advice.environment!r}, seed {advice.seed}: half chose, half gave the"
        " numbers.",
        f"At tau_max = {best.policy.tau_max:.3g} the best gamma is {best.policy.gamma:.6g}, a half-life of"
        f" {_rounds(best.half_life)} (regret {best.regret}); not clearly worse on the grid: {good}.",
    ]
    sentences += [f"{_upper(off_by(row, best))}." for row in advice.rows[:-2]]
    if overall.excess is not None and overall.excess.high < 0.0:
        edges = advice.edges(overall)
        but = (
            f", but {' and '.join(edges)}: a better one may lie beyond, so look there before you use it"
            if edges
            else ""
        )
        sentences.append(
            f"With tau_max free as well, {overall.policy.tau_max:.3g} and gamma = {overall.policy.gamma:.6g} are better"
            f" still (regret {overall.regret}){but}."
        )
    else:
        sentences.append("Changing tau_max as well gains nothing that this many runs can show.")
    edges = advice.edges(best)
    if edges:
        sentences.append(f"Of the best gamma: {edges[0]}, an end of what was tried; a better one may lie beyond.")
    notes = [row.note for row in advice.rows if row.note and row.policy is not None]
    sentences += [f"{_upper(note).rstrip('.')}." for note in dict.fromkeys(notes)]
    return " ".join(sentences)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
