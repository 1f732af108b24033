"""The tables and the figure of a contest: CSV, Markdown, JSON and SVG."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from driftbandit.field.standings import TARGET_HEAD, BestTuned, Contestant, KeptLine, RatioSummary, summaries
from driftbandit.field.suite import SuiteEnvironment
from driftbandit.lab.files import markdown_table, replace_file, save_rows
from driftbandit.lab.plots import find_styles, save_chart

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


def save_csv(found: Sequence[Contestant], best: Mapping[str, BestTuned], path: Path) -> Path:
    """Write every policy in every environment, and the best tuned policies with their parameters."""
    head = ["environment", "role", "kind", "policy", "runs", "regret", "error", "ratio", "ratio_error", "setting"]
    rows: list[list[Any]] = []
    for name, environment in {one.environment.name: one.environment for one in found}.items():
        mine = best[name]
        numbers = [f"{mine.line.mean:.5g}", f"{mine.line.error:.3g}", "1", ""]
        rows.append([name, environment.role, environment.kind, "best tuned", mine.line.runs, *numbers, mine.policy])
    for one in found:
        numbers = [f"{v:.5g}" for v in (one.line.mean, one.line.error, one.ratio, one.error)]
        here = [one.environment.name, one.environment.role, one.environment.kind, one.name, one.line.runs]
        rows.append([*here, *numbers, one.line.label])
    return save_rows(head, rows, path)


def save_markdown(title: str, how: str, parts: Mapping[str, str], path: Path) -> Path:
    """Write the page with all tables."""
    page = [f"# {title}\n\n{how}\n", *(f"## {name}\n\n{text}" for name, text in parts.items())]
    with replace_file(path) as draft:
        draft.write_text("\n".join(page), encoding="utf-8")
    return path


def markdown_parts(
    environments: Sequence[SuiteEnvironment],
    best: Mapping[str, BestTuned],
    found: Sequence[Contestant],
    totals: Sequence[RatioSummary],
    shown: Sequence[str],
    targets: Mapping[str, Sequence[Sequence[str]]],
    aside_note: tuple[str, str] = ("", ""),
) -> dict[str, str]:
    """The tables by their titles: by environment for the policies `shown`, the summary of all policies, the targets of
    those that have some and played, and the environments."""
    parts = {
        "Environment by environment": _environments_part(environments, best, found, shown),
        "All policies": _summary_part(totals, aside_note),
    }
    for policy, rows in targets.items():
        parts[f"{policy} and its targets"] = markdown_table(TARGET_HEAD, rows)
    listed = [
        [environment.name, environment.kind, environment.role, f"`{environment.environment!r}`"]
        for environment in environments
    ]
    return parts | {"The environments": markdown_table(["environment", "kind", "role", "`--env`"], listed)}


def _environments_part(
    environments: Sequence[SuiteEnvironment],
    best: Mapping[str, BestTuned],
    found: Sequence[Contestant],
    shown: Sequence[str],
) -> str:
    at = {(one.environment.name, one.name): one for one in found}
    rows = []
    for environment in environments:
        mine = best[environment.name]
        row = [
            environment.name,
            environment.role,
            f"`{mine.line.label}`",
            f"{number(mine.line.mean)} ± {number(mine.line.error)}",
        ]
        for one in (at.get((environment.name, name)) for name in shown):
            row.append("-" if one is None else f"{ratio(one.ratio)} ± {one.error:.2f}")
        rows.append(row)
    fair = [math.log(one.fair / one.line.mean) for one in best.values() if one.line.mean > 0 and one.fair > 0]
    above = 100 * (math.exp(sum(fair) / max(1, len(fair))) - 1)
    note = (
        "Regret and ratios, each ± one standard error. Best tuned is the minimum over the grid, on the runs it is "
        "reported from. Choosing the setting on one half of the runs and measuring it on the other gives "
        f"{above:.1f}% more regret in geometric mean: by so much the ratios are too large.\n\n"
    )
    head = ["environment", "role", "best tuned policy", "its regret", *(f"{name}, ratio" for name in shown)]
    return note + markdown_table(head, rows)


def _summary_part(totals: Sequence[RatioSummary], aside_note: tuple[str, str]) -> str:
    left_out = any(one.aside > one.mean for one in totals)
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
            *([ratio(one.aside)] if left_out else []),
        ]
        for one in totals
    ]
    note = (
        "Geometric means of the ratio to the best tuned policy: over the averaged environments for design, those for "
        "checks, and both; the worst of them; over every environment, including those that are not averaged; and the "
        "environments within 10% of the best tuned. "
    )
    if left_out:
        head.append(aside_note[0])
        note += f"{aside_note[1]}; the last column has the mean if they counted. "
    return note.rstrip() + "\n\n" + markdown_table(head, rows)


def as_json(
    best: Mapping[str, BestTuned],
    found: Sequence[Contestant],
    totals: Sequence[RatioSummary],
    environments: Sequence[SuiteEnvironment],
) -> dict[str, Any]:
    """Everything as plain values."""
    listed = []
    for environment in environments:
        one = best[environment.name]
        about = {**environment._asdict(), "environment": repr(environment.environment)}
        mine = {**_line_as_json(one.line), "policy": one.policy, "fair": one.fair, "aside": one.aside}
        listed.append({**about, "best": mine})
    rows = [
        {**_line_as_json(one.line), "policy": one.name, "ratio": one.ratio, "ratio_error": one.error} for one in found
    ]
    return {"environments": listed, "standings": rows, "summary": [one._asdict() for one in totals]}


def _line_as_json(line: KeptLine) -> dict[str, Any]:
    return {
        "environment": line.environment,
        "setting": line.label,
        "runs": line.runs,
        "regret": line.mean,
        "error": line.error,
    }


# ---- the figure: a dot per environment; geometric mean and worst at the right ----------------------------------------


def save_figure(found: Sequence[Contestant], names: Sequence[str], path: str | Path, main: int = 1) -> Path:
    """Draw the ratios of the policies named, the first `main` of them large."""
    environments = sorted(
        dict.fromkeys(one.environment for one in found), key=lambda environment: not environment.changing
    )
    size = (4.0 + 0.17 * len(environments), 4.9)
    return save_chart(lambda figure: _draw(figure, found, environments, names, main), path, size, dpi=130)


def _draw(
    figure: Any,
    found: Sequence[Contestant],
    environments: Sequence[SuiteEnvironment],
    names: Sequence[str],
    main: int,
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
