"""Figures: regret curves, and the style of every policy in all of them.

Each policy has its own colour (from Okabe and Ito's palette, which colour-blind readers can distinguish), dashes and
marker wherever it is drawn. Any one of the three is enough. Several curves of one policy share its colour, in
tints. The same result gives the same bytes: no date, no random identifiers, no setting of the user's matplotlib."""

import base64
import hashlib
import io
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.errors import SpecError
from driftbandit.lab.files import replace_file, writable
from driftbandit.lab.summaries import t_interval
from driftbandit.spec import parse as registry

ENDINGS = (".svg", ".png", ".pdf")
# 8 colours, 5 dashes and 9 markers: no two numbers below 360 share all three, and none below 45 dashes and marker.
# Yellow is left out, being too pale on paper.
COLOURS = ("#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (7, 1.5, 1.2, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
NARROW = 5.5  # inches; a figure below this has its panels below each other and its legend below them

RC = {
    "svg.hashsalt": "driftbandit",
    "svg.fonttype": "path",  # letters as shapes: the figure looks the same where our font is missing
    "pdf.fonttype": 42,
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "legend.frameon": False,
    "savefig.dpi": 200,
}

# The paper's policies first, then those one meets most often. A policy that is not listed has a style by its name.
_ORDER = (
    "ds-ts", "sw-ts", "ts", "d-ucb", "sw-lb-sda", "cusum-ucb", "m-ucb", "exp3s", "ds-ts-mu",
    "sw-ucb", "glr-klucb", "lb-sda", "global-cts", "rexp3", "oracle", "dts", "kl-ucb", "d-klucb",
    "uniform", "pa-cts", "eps-greedy", "adswitch", "dots", "sw-klucb", "meta",
    "sw-osub", "periodic-restart", "fixed",
)  # fmt: skip
# Our own policy is in no figure of the paper, and must differ from all policies there.
_OWN = {"drift-ts": {"color": "#882255", "linestyle": "-", "marker": "*"}}
# A user's policy has a strong colour, a broad line and a marker that no other has.
_USERS = tuple(
    {"color": colour, "linestyle": "-", "marker": marker, "linewidth": 2.4}
    for colour, marker in (("#e3002b", "h"), ("#1f3bff", "p"), ("#007a1f", "8"), ("#b000c8", "d"))
)
_TINTS = (0.0, 0.35, 0.55, 0.2, 0.45)  # how much white is mixed in, from one curve of a policy to the next


def choose_style(number: int) -> dict[str, Any]:
    """Colour, dashes and marker by number."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
    }


def identify(what: Any) -> str:
    """The short name of a policy, from the policy, its text or a label made from it.

    >>> {identify(text) for text in ("ds-ts(gamma=0.9)", "DiscountedTS(gamma=0.9)", "ds-ts.tuned", "ds-ts (text)")}
    {'ds-ts'}
    >>> identify("mine.py:Mine(gamma=0.9)")
    'Mine'
    """
    if not isinstance(what, str):
        found, changes = type(what), what._asdict() if hasattr(what, "_asdict") else {}
    else:
        name = re.split(r"[(\[\s,]", what.strip().rpartition(".py:")[2].rpartition(":")[2], maxsplit=1)[0]
        if name in _ORDER:
            return name
        try:
            found = registry.find(name.split(".")[0])
        except SpecError:
            return name or what
        if isinstance(found, tuple):
            return name.casefold()
        changes = {key: value in ("True", "1") for key, value in re.findall(r"(\w+)=(\w+)", what)}
    for alias, preset in getattr(found, "aliases", {}).items():
        if all(changes.get(key) == value for key, value in preset.items()):
            return str(alias)
    return str(getattr(found, "short", found.__name__))


def find_style(what: Any) -> dict[str, Any]:
    """Colour, dashes and marker of a policy, the same in every figure."""
    name = identify(what)
    if name in _OWN:
        return dict(_OWN[name])
    if name in _ORDER:
        return choose_style(_ORDER.index(name))
    if _is_users(name):
        return dict(_USERS[0])
    free = len(COLOURS) * len(DASHES) * len(MARKERS) - len(_ORDER)
    return choose_style(len(_ORDER) + int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % free)


def _is_users(name: str) -> bool:
    """Whether the package does not have this policy."""
    if name in _OWN or name in _ORDER:
        return False
    try:
        registry.find(name)
    except SpecError:
        return True
    return False


def find_styles(policies: Sequence[Any]) -> list[dict[str, Any]]:
    """The styles of all curves of one figure. A second curve of the same policy has a tint of its colour, with dashes
    and a marker that no other curve of the figure has. Several policies of the user differ in colour.

    >>> first, other, second = find_styles(["ds-ts(gamma=0.9)", "ts", "ds-ts(gamma=0.5)"])
    >>> first["color"], second["color"], second["marker"] in (first["marker"], other["marker"])
    ('#000000', '#595959', False)
    """
    own = [find_style(policy) for policy in policies]
    names = [identify(policy) for policy in policies]
    users = list(dict.fromkeys(name for name in names if _is_users(name)))
    for number, name in enumerate(users):
        given = dict(_USERS[number]) if number < len(_USERS) else choose_style(len(_ORDER) + number)
        own = [given if other == name else style for other, style in zip(names, own, strict=True)]
    taken = {(str(style["linestyle"]), style["marker"]) for style in own}
    out = []
    for place, (name, style) in enumerate(zip(names, own, strict=True)):
        before = names[:place].count(name)
        if before:
            fresh = (choose_style(number) for number in range(len(DASHES) * len(MARKERS)))
            shape = next((s for s in fresh if (str(s["linestyle"]), s["marker"]) not in taken), style)
            taken.add((str(shape["linestyle"]), shape["marker"]))
            style = {**shape, "color": tint(style["color"], _TINTS[before % len(_TINTS)])}
        out.append(style)
    return out


def tint(colour: str, white: float) -> str:
    """The colour mixed with this much white.

    >>> tint("#000000", 0.35)
    '#595959'
    """
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(part + (255 - part) * white):02x}" for part in parts)


def is_narrow(figure: Any) -> bool:
    """Whether the figure is for a narrow page, with panels and legend below each other."""
    return float(figure.get_size_inches()[0]) < NARROW


def order_legend(axes: Any, ends: Sequence[float]) -> tuple[list[Any], list[str]]:
    """Handles and names in the order in which the curves end, so that each is found without its colour."""
    handles, names = axes.get_legend_handles_labels()
    order = np.argsort([-float(end) for end in ends], kind="stable")
    return [handles[i] for i in order], [names[i] for i in order]


def add_legend(figure: Any, handles: Sequence[Any], names: Sequence[str], **more: Any) -> None:
    """Add a legend to the right of the axes, or below them in a narrow figure."""
    if is_narrow(figure):
        columns = 2 if max(map(len, names), default=0) <= 22 else 1
        # matplotlib fills column by column; this order fills row by row.
        order = [place for column in range(columns) for place in range(column, len(names), columns)]
        figure.legend([handles[i] for i in order], [names[i] for i in order], loc="outside lower left", ncols=columns,
                      **{"handlelength": 3.4, **more})  # fmt: skip
    else:
        figure.legend(handles, names, loc="outside right upper", **{"handlelength": 4.2, **more})


def thousands(value: float, position: int = 0) -> str:
    """A number with commas between thousands, for the axis of a figure."""
    return (f"{value:,.10g}" if abs(value) < 1e15 else f"{value:.3g}").replace("-", "\u2212")


def save_chart(draw: Callable[[Any], None], path: str | Path, size: tuple[float, float], dpi: int = 110) -> Path:
    """Make an empty figure of `size` inches, let `draw` fill it, and write it."""
    import matplotlib.style
    from matplotlib.figure import Figure

    path = writable(path, ENDINGS)
    with matplotlib.style.context(["default", RC]):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        return save_figure(figure, path, dpi)


def save_figure(figure: Any, path: str | Path, dpi: int = 200, **changes: Any) -> Path:
    """Write a figure as SVG, PNG or PDF by the ending of its name; the same numbers give the same bytes. `changes` are
    other settings of matplotlib."""
    import matplotlib.style

    path = writable(path, ENDINGS)
    form = path.suffix.lower()[1:]
    blank = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[form]
    with matplotlib.style.context(["default", RC, changes]), replace_file(path) as draft:
        figure.savefig(draft, format=form, metadata=blank, dpi=dpi)
        if form == "svg":
            draft.write_text(round_coordinates(draft.read_text(encoding="utf-8")), encoding="utf-8")
    return path


def round_coordinates(svg: str) -> str:
    """The same picture in three quarters of the bytes: hundredths of a point, and no indentation."""

    def rounded(number: re.Match[str]) -> str:
        value = float(number[0])
        return number[0] if abs(value) < 2.0 else f"{value:.2f}".rstrip("0").rstrip(".")  # small ones may be factors

    return re.sub(r"(?<![\w.])-?\d+\.\d{3,}(?![\w.])", rounded, re.sub(r"\n +", "\n", svg))


# ---- regret curves ---------------------------------------------------------------------------------------------------

_MARKS = 8  # markers on a curve
_LONG = 30  # labels longer than this are below the figure, not to its right
WIDTH = 7.6  # inches


def plot(results: Any, path: str | Path, title: str | None = None, width: float = WIDTH) -> Path:
    """Draw the regret curves of one result, or of several in one figure, and write them to `path`: SVG, PNG or PDF by
    its ending."""
    return save_figure(draw(results, title, width), path)


def draw(results: Any, title: str | None = None, width: float = WIDTH) -> Any:
    """The regret curves as a `matplotlib.figure.Figure`. `width` is in inches; a narrow figure has its legend below.

    >>> from driftbandit.lab import run
    >>> draw(run(["ts"], "smooth(horizon=50)", runs=2, compiled=False)).axes[0].get_xlabel()
    'round'
    """
    import matplotlib.style

    several = [results] if not isinstance(results, Sequence) else list(results)
    if not several:
        raise ValueError("A figure needs at least one result.")
    with matplotlib.style.context(["default", RC]):
        return _draw(several, title, width)


def _draw(several: list[Any], title: str | None, width: float) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    curves = _curves(several)
    if not 2.0 <= width <= 40.0:
        raise ValueError(f"A figure is between 2 and 40 inches wide; got {width:g}.")
    letters = max(16, int(10 * width) - 10)  # in a line of the legend
    names = ["\n".join(textwrap.wrap(label, letters, break_long_words=True)) for label, _ in curves]
    below = width < NARROW or max(len(name) for name in names) > _LONG
    lines = sum(name.count("\n") + 1 for name in names)
    height = 4.2 + (0.19 * lines if below else max(0.0, 0.19 * (lines - 18)))
    figure: Any = Figure(figsize=(min(width, 6.6) if below else width, height), layout="constrained")
    axes = figure.add_subplot()
    styles = find_styles([part.cell.policy for _, part in curves])
    for number, ((_, part), style, name) in enumerate(zip(curves, styles, names, strict=True)):
        x, regret = from_zero(part.rounds, part.regret)
        look = {"markevery": marker_places(len(x), number, len(curves), _MARKS), "zorder": 3 + number / len(curves)}
        # A marker at the edge is shown whole.
        draw_mean(axes, x, regret, style, **look, markeredgewidth=1.2, clip_on=False, label=name)
    axes.set_xlim(0, max(int(part.rounds[-1]) for _, part in curves))
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0] if _dips(several) else 0.0))
    axes.set_xlabel("round")
    axes.set_ylabel(regret_label(*(result.runs for result in several)))
    room = int(11.4 * (min(width, 6.6) - 0.6) if below else 7.6 * width)  # letters in a line of the title
    axes.set_title("\n".join(textwrap.wrap(_title(several) if title is None else title, room)), loc="left")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(thousands))
    axes.xaxis.set_major_locator(MaxNLocator(6 if width >= NARROW else 4))
    place = "outside lower left" if below else "outside right upper"
    legend = order_legend(axes, [part.final.mean() for _, part in curves])
    figure.legend(*legend, loc=place, handlelength=4.2, labelspacing=0.55)
    return figure


def _curves(results: list[Any]) -> list[tuple[str, Any]]:
    """Pairs of a legend's text and a part. A label that occurs several times gets its environment or result added."""
    every = [(number, result, part) for number, result in enumerate(results, 1) for part in result.parts]
    out = []
    for number, result, part in every:
        same = [(other, one) for _, other, one in every if one.policy == part.policy]
        name = part.policy
        if len(same) > 1:
            places, ids = [one.environment for _, one in same], [other.provenance.get("id") for other, _ in same]
            own = result.provenance.get("id")
            where = f"result {number}"
            if len(set(places)) == len(same):
                where = part.environment
            elif own and ids.count(own) == 1:
                where = own
            name = f"{name} ({where})"
        out.append((name, part))
    return out


def marker_places(count: int, number: int, total: int, most: int = 10) -> tuple[int, int]:
    """First and step of the markers on a curve of `count` points, shifted so that none hides another curve's."""
    step = max(1, count // most)
    return min(count - 1, step // 2 + number * step // total), step


def draw_mean(axes: Any, x: Any, values: np.ndarray, style: dict[str, Any], **look: Any) -> None:
    """Draw the mean of values (runs × points) as a line, and its 95% interval as a band."""
    axes.plot(x, values.mean(axis=0), **{"markerfacecolor": "white", **style, **look})
    if len(values) > 1:
        axes.fill_between(x, *t_interval(values), color=style["color"], alpha=0.16, linewidth=0, zorder=2)


def from_zero(rounds: np.ndarray, regret: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Curves of regret (runs × rounds) with their beginning: 0 before the first round."""
    return np.append(0, rounds), np.pad(regret, ((0, 0), (1, 0)))


def _dips(results: list[Any]) -> bool:
    """Whether any regret is below 0, as in a difference of two results."""
    return any((part.regret < 0).any() for result in results for part in result.parts)


def regret_label(*runs: int, what: str = "regret") -> str:
    """The label of an axis of regret, with the numbers of runs and what the bands are.

    >>> regret_label(1), regret_label(20, 10)
    ('regret (one run)', 'regret (mean of 10 to 20 runs, 95% interval)')
    """
    few, many = min(runs), max(runs)
    if many == 1:
        return f"{what} (one run)"
    return f"{what} (mean of {few if few == many else f'{few} to {many}'} runs, 95% interval)"


def _title(results: list[Any]) -> str:
    titles = dict.fromkeys(str(r.provenance.get("title") or ", ".join(r.environments)) for r in results)
    return "; ".join(title for title in titles if title)


# ---- notebooks -------------------------------------------------------------------------------------------------------


def html_image(figure: Any) -> str:
    """A matplotlib figure as an image inside a notebook."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=80, metadata={"Software": None})
    data = base64.b64encode(png.getvalue()).decode()
    return f'<img alt="regret curves" style="max-width:100%" src="data:image/png;base64,{data}">'
