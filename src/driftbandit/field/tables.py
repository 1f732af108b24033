"""A contest, and its tables and figure: CSV, Markdown, JSON and SVG."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.field.standings import BestTuned, Contestant, RatioSummary, Results, summaries
from driftbandit.field.suite import Suite, SuiteEnvironment
from driftbandit.lab.files import markdown_table, replace_file, save_rows
from driftbandit.lab.plots import find_styles, save_chart

SHOWN = 5  # policies in the figure and in the table by environment, in addition to those given
_LEAST, _MOST = 0.2, 20.0  # ratios beyond are drawn at the edge
_TICKS = (0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)


def number(value: float) -> str:
    """A regret for people.

    >>> number(3912.4), number(98.64), number(4.25)
    ('3,912', '99', '4.2')
    """
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}"


def ratio(value: float) -> str:
    """A ratio for people.

    >>> ratio(1.049), ratio(12.34), ratio(math.nan)
    ('1.05', '12.3', '-')
    """
    return "-" if math.isnan(value) else (f"{value:.2f}" if value < 10 else f"{value:.1f}")


class Contest(NamedTuple):
    """The policies of a contest, compared with the best tuned policy of each environment."""

    suite: Suite
    environments: Sequence[SuiteEnvironment]
    best: dict[str, BestTuned]
    played: dict[str, Results]
    found: list[Contestant]
    totals: list[RatioSummary]
    how: str

    def shown(self) -> list[str]:
        """The policies of the figure: those given, the best with one setting for all environments, and TS."""
        others = [one.name for one in self.totals if one.name not in self.played]
        last = ["ts"] if "ts" in others else []
        return [*self.played, *[name for name in others if "(" in name][: SHOWN - len(last)], *last]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        listed = [
            {**one._asdict(), "environment": repr(one.environment), "best": self.best[one.name].to_dict()}
            for one in self.environments
        ]
        standings = [one.to_dict() for one in self.found]
        totals = [one._asdict() for one in self.totals]
        about = {"suite": self.suite.name, "how": self.how}
        return {**about, "environments": listed, "standings": standings, "summary": totals}

    def save(self, folder: Path) -> list[Path]:
        """Write tables and figures."""
        folder.mkdir(parents=True, exist_ok=True)
        figure = save_figure(self.found, self.shown(), folder / "ratios.svg", len(self.played))
        return [self.save_csv(folder / "ratios.csv"), self.save_markdown(folder / "table.md"), figure]

    def save_csv(self, path: Path) -> Path:
        """Write every policy in every environment, and the best tuned policies with their parameters."""
        head = ["environment", "role", "kind", "policy", "runs", "regret", "error", "ratio", "ratio_error", "setting"]
        rows: list[list[Any]] = []
        for name, environment in {one.environment.name: one.environment for one in self.found}.items():
            line, policy = self.best[name][:2]
            numbers = [f"{line.mean:.5g}", f"{line.error:.3g}", "1", ""]
            rows.append([name, environment.role, environment.kind, "best tuned", line.runs, *numbers, policy])
        for one in self.found:
            numbers = [f"{v:.5g}" for v in (one.line.mean, one.line.error, one.ratio, one.error)]
            here = [one.environment.name, one.environment.role, one.environment.kind, one.name, one.line.runs]
            rows.append([*here, *numbers, one.line.label])
        return save_rows(head, rows, path)

    def save_markdown(self, path: Path) -> Path:
        """Write the page: environment by environment for the policies shown, all policies, and the environments."""
        listed = [[one.name, one.kind, one.role, f"`{one.environment!r}`"] for one in self.environments]
        page = [
            f"# The suite `{self.suite.name}`, measured\n\n{self.how}\n",
            f"## Environment by environment\n\n{self._environments_part()}",
            f"## All policies\n\n{self._summary_part()}",
            f"## The environments\n\n{markdown_table(['environment', 'kind', 'role', '`--env`'], listed)}",
        ]
        with replace_file(path) as draft:
            draft.write_text("\n".join(page), encoding="utf-8")
        return path

    def _environments_part(self) -> str:
        at = {(one.environment.name, one.name): one for one in self.found}
        rows = []
        for environment in self.environments:
            line = self.best[environment.name].line
            row = [environment.name, environment.role, f"`{line.label}`", f"{number(line.mean)} ± {number(line.error)}"]
            here = [at.get((environment.name, name)) for name in self.shown()]
            rows.append([*row, *("-" if one is None else f"{ratio(one.ratio)} ± {one.error:.2f}" for one in here)])
        fair = [math.log(one.fair / one.line.mean) for one in self.best.values() if one.line.mean > 0 and one.fair > 0]
        above = 100 * (math.exp(sum(fair) / max(1, len(fair))) - 1)
        note = (
            "Regret and ratios, each ± one standard error. Best tuned is the minimum over the grid, on the runs it is "
            "reported from. Choosing the setting on one half of the runs and measuring it on the other gives "
            f"{above:.1f}% more regret in geometric mean: by so much the ratios are too large.\n\n"
        )
        head = ["environment", "role", "best tuned policy", "its regret"]
        return note + markdown_table([*head, *(f"{name}, ratio" for name in self.shown())], rows)

    def _summary_part(self) -> str:
        head = ["policy", "design", "check", "all that change", "worst", "where", "every environment", "within 10%"]
        rows = [
            [
                f"`{one.name}`" if "," not in one.name or "(" in one.name else one.name,
                ratio(one.design),
                ratio(one.check),
                f"{ratio(one.mean)} ± {one.mean * one.error:.2f}" if one.mean == one.mean else "-",
                ratio(one.worst),
                one.worst_environment,
                ratio(one.every),
                f"{one.near} of {one.environments}",
            ]
            for one in self.totals
        ]
        note = (
            "Geometric means of the ratio to the best tuned policy: over the averaged environments for design, those "
            "for checks, and both; the worst of them; over every environment, including those that are not averaged; "
            "and the environments within 10% of the best tuned."
        )
        if any(one.aside > one.mean for one in self.totals):
            column, why = self.suite.aside_note
            head.append(column)
            rows = [[*row, ratio(one.aside)] for row, one in zip(rows, self.totals, strict=True)]
            note += f" {why}; the last column has the mean if they counted."
        return f"{note}\n\n{markdown_table(head, rows)}"


# ---- the figure: a dot per environment; geometric mean and worst at the right ----------------------------------------


def save_figure(found: Sequence[Contestant], names: Sequence[str], path: str | Path, main: int = 1) -> Path:
    """Draw the ratios of the policies named, the first `main` of them large."""
    environments = sorted(
        dict.fromkeys(one.environment for one in found), key=lambda environment: not environment.changing
    )
    size = (4.0 + 0.17 * len(environments), 4.9)
    return save_chart(lambda figure: _draw(figure, found, environments, names, main), path, size, dpi=130)


def _draw(
    figure: Any, found: Sequence[Contestant], environments: Sequence[SuiteEnvironment], names: Sequence[str], main: int
) -> None:
    from matplotlib.lines import Line2D

    at = {(one.name, one.environment.name): one for one in found}
    totals = {one.name: one for one in summaries(found)}
    axes = figure.add_subplot()
    mean_at, worst_at = len(environments) + 0.8, len(environments) + 2.0
    changing = sum(environment.changing for environment in environments)
    keys = []
    for order, (name, look) in enumerate(zip(names, find_styles(names), strict=True)):
        large = order < main
        style = {"color": look["color"], "marker": look["marker"], "markersize": 6.5 if large else 4.5,
                 "markerfacecolor": look["color"] if large else "white", "alpha": 1.0 if large else 0.8,
                 "zorder": 5 if large else 3, "linestyle": "none"}  # fmt: skip
        keys.append(Line2D([], [], label=name, **style))
        shift = 0.0 if large else 0.12 * (order % 3 - 1)
        for place, environment in enumerate(environments):
            one = at.get((name, environment.name))
            if one is not None:
                _draw_dot(axes, place + shift, one.ratio, one.error, style)
        if name in totals and changing:
            _draw_dot(axes, mean_at + shift, totals[name].mean, 0.0, style)
            _draw_dot(axes, worst_at + shift, totals[name].worst, 0.0, style)
    labels = [
        environment.name if environment.role == "design" else f"{environment.name} *" for environment in environments
    ]
    _set_axes(axes, [*range(len(environments)), mean_at, worst_at], [*labels, "geometric mean", "worst"])
    for edge in {changing - 0.5, len(environments) - 0.1} if changing else {len(environments) - 0.1}:
        axes.axvline(edge, color="#777777", linewidth=0.9)
    axes.set_title("Regret as a multiple of the best tuned policy's", loc="left")
    apart = ", ".join(dict.fromkeys(environment.kind for environment in environments if not environment.changing))
    note = "* for checks only" + (f"; right of the first line, not averaged: {apart}" if apart else "")
    columns = int(figure.get_figwidth() / (0.5 + 0.075 * max(map(len, names))))  # the letters' width in inches
    text = {"title": note, "title_fontsize": 7.5, "fontsize": 8}
    figure.legend(handles=keys, loc="outside lower center", ncols=max(1, min(3, columns)), **text)


def _draw_dot(axes: Any, place: float, ratio: float, error: float, style: dict[str, Any]) -> None:
    inside = min(max(ratio, _LEAST), _MOST)
    low, high = max(ratio - error, _LEAST), min(ratio + error, _MOST)
    bar = {"color": style["color"], "linewidth": 1.1, "alpha": 0.6, "zorder": style["zorder"] - 1}
    if low < high:
        axes.plot([place, place], [low, high], **bar)
    marker = style["marker"] if ratio == inside else "^"
    axes.plot(place, inside, clip_on=False, **{**style, "marker": marker})


def _set_axes(axes: Any, ticks: list[float], labels: list[str]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(_TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(_LEAST, _MOST)
    axes.set_xticks(ticks, labels, rotation=90, fontsize=8)
    axes.set_xlim(-0.7, ticks[-1] + 0.7)
    axes.axhline(1.0, color="#333333", linewidth=1.1)
