"""How every figure looks: one colour, one dash and one marker for each policy wherever it is drawn.

A figure is read on paper as often as on a screen: each policy has its own colour (from Okabe and Ito's palette, which
colour-blind readers tell apart, and grey), its own dashes and its own marker, so that any one of the three is enough.
The style goes by which policy it is, not by its place in a list: D-UCB is the same green diamond in a report, a sweep
and a figure of your own. Several curves of one policy share its colour, in tints, and differ in dashes and marker."""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from driftbandit.lab.support.files import replacing, writable
from driftbandit.text import registry

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
# Our own policy is in no figure of the paper; where it is added it must be told from all of theirs.
_OWN = {"drift-ts": {"color": "#882255", "linestyle": "-", "marker": "*"}}
# A policy of the user's is the one the figure is made for: a strong colour, a broad line, a marker no other has.
_USERS = tuple(
    {"color": colour, "linestyle": "-", "marker": marker, "linewidth": 2.4}
    for colour, marker in (("#e3002b", "h"), ("#1f3bff", "p"), ("#007a1f", "8"), ("#b000c8", "d"))
)
_TINTS = (0.0, 0.35, 0.55, 0.2, 0.45)  # how much white is mixed in, from one curve of a policy to the next


def look(number: int) -> dict[str, Any]:
    """Colour, dashes and marker number so and so."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
    }


def identity(what: Any) -> str:
    """Which policy this is: the short name behind a policy, its text or a label made from it.

    >>> {identity(text) for text in ("ds-ts(gamma=0.9)", "DiscountedTS(gamma=0.9)", "ds-ts.tuned", "ds-ts (text)")}
    {'ds-ts'}
    >>> identity("mine.py:Mine(gamma=0.9)")
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
        except registry.SpecError:
            return name or what
        if isinstance(found, tuple):
            return name.casefold()
        changes = {key: value in ("True", "1") for key, value in re.findall(r"(\w+)=(\w+)", what)}
    for alias, preset in getattr(found, "aliases", {}).items():
        if all(changes.get(key) == value for key, value in preset.items()):
            return str(alias)
    return str(getattr(found, "short", found.__name__))


def look_of(what: Any) -> dict[str, Any]:
    """Colour, dashes and marker of a policy, the same in every figure."""
    name = identity(what)
    if name in _OWN:
        return dict(_OWN[name])
    if name in _ORDER:
        return look(_ORDER.index(name))
    if _users(name):
        return dict(_USERS[0])
    free = len(COLOURS) * len(DASHES) * len(MARKERS) - len(_ORDER)
    return look(len(_ORDER) + int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % free)


def _users(name: str) -> bool:
    """Is this a policy that the package does not have?"""
    if name in _OWN or name in _ORDER:
        return False
    try:
        registry.find(name)
    except registry.SpecError:
        return True
    return False


def looks(policies: Sequence[Any]) -> list[dict[str, Any]]:
    """The styles of all curves of one figure: the policies' own; a second curve of the same policy has its colour in a
    tint, with dashes and a marker that no other curve here has. Several policies of the user's differ in colour.

    >>> first, other, second = looks(["ds-ts(gamma=0.9)", "ts", "ds-ts(gamma=0.5)"])
    >>> first["color"], second["color"], second["marker"] in (first["marker"], other["marker"])
    ('#000000', '#595959', False)
    """
    own = [look_of(policy) for policy in policies]
    names = [identity(policy) for policy in policies]
    users = list(dict.fromkeys(name for name in names if _users(name)))
    for number, name in enumerate(users):
        given = dict(_USERS[number]) if number < len(_USERS) else look(len(_ORDER) + number)
        own = [given if other == name else style for other, style in zip(names, own, strict=True)]
    taken = {(str(style["linestyle"]), style["marker"]) for style in own}
    out = []
    for place, (name, style) in enumerate(zip(names, own, strict=True)):
        before = names[:place].count(name)
        if before:
            fresh = (look(number) for number in range(len(DASHES) * len(MARKERS)))
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


def narrow(figure: Any) -> bool:
    """Is this a figure for a narrow page, with panels and legend below each other?"""
    return float(figure.get_size_inches()[0]) < NARROW


def legend(figure: Any, handles: Sequence[Any], names: Sequence[str], **more: Any) -> None:
    """Outside the axes, where it hides nothing: beside them, or below them in a narrow figure."""
    if narrow(figure):
        columns = 2 if max(map(len, names), default=0) <= 22 else 1
        # Filled row by row, as one reads, not column by column.
        order = [place for column in range(columns) for place in range(column, len(names), columns)]
        figure.legend([handles[i] for i in order], [names[i] for i in order], loc="outside lower left", ncols=columns,
                      **{"handlelength": 3.4, **more})  # fmt: skip
    else:
        figure.legend(handles, names, loc="outside right upper", **{"handlelength": 4.2, **more})


def thousands(value: float, position: int = 0) -> str:
    """100 000 with thin spaces: a comma is a decimal point to half the world."""
    text = f"{value:,.10g}" if abs(value) < 1e15 else f"{value:.3g}"
    return text.replace(",", "\u2009").replace("-", "\u2212")


def save_chart(draw: Callable[[Any], None], path: str | Path, size: tuple[float, float], dpi: int = 110) -> Path:
    """Make an empty figure of `size` inches, let `draw` fill it, and write it."""
    import matplotlib.style
    from matplotlib.figure import Figure

    path = writable(path, ENDINGS)
    with matplotlib.style.context(["default", RC]):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        return save_figure(figure, path, dpi)


def save_figure(figure: Any, path: str | Path, dpi: int = 200) -> Path:
    """Write a figure as SVG, PNG or PDF by the ending of its name; the same numbers give the same bytes."""
    import matplotlib.style

    path = writable(path, ENDINGS)
    form = path.suffix.lower()[1:]
    blank = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}[form]
    with matplotlib.style.context(["default", RC]), replacing(path) as draft:
        figure.savefig(draft, format=form, metadata=blank, dpi=dpi)
    return path
