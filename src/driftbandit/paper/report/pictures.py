"""Figures inside the page: each an image of its own, the same drawing in a third of the space.

matplotlib writes for editors: six digits a coordinate, a name for every group, every letter placed by a transformation.
A page of sixty figures needs none of it. An <img> in place of the drawing itself shares no names with the page and runs
no script, whatever is in the file."""

import urllib.parse
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

_POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3}  # how many a command of matplotlib's paths has
_KEPT = " =/:;,()-_.!*~@+$?[]"  # what can stand in a data: address inside an attribute as it is
_NEAR = 1.0  # tenths of a point: so far may a curve be from the one in the file

Point = tuple[int, int]


class Picture(NamedTuple):
    """What an <img> needs; with its size nothing moves when it appears."""

    source: str
    width: int
    height: int


def picture(path: Path) -> Picture:
    """An SVG file as an address that holds the whole drawing."""
    root = ElementTree.fromstring(path.read_bytes())
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    svg = smaller(root)
    # matplotlib measures in points, browsers in pixels: 96 to the inch in place of 72.
    size = round(width * 4 / 3), round(height * 4 / 3)
    return Picture("data:image/svg+xml," + urllib.parse.quote(svg, safe=_KEPT), *size)


def smaller(root: ElementTree.Element) -> str:
    """The drawing without what only editors read, its curves as steps of tenths of a point, finer than a screen's
    pixels. Changes the tree it is given."""
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag.endswith("}metadata")]:
            parent.remove(child)
    nodes = list(root.iter())
    for node in nodes:
        node.tag = _local(node.tag)
        named = {_local(key): value for key, value in node.attrib.items()}
        node.attrib.clear()
        node.attrib.update(named)
        node.text, node.tail = ((text or "").strip() or None for text in (node.text, node.tail))
    _rename(nodes)
    for node in nodes:
        if "style" in node.attrib:
            node.set("style", node.attrib["style"].replace(": ", ":").replace("; ", ";"))
        if "d" in node.attrib:
            # Letters come in units far below a point, with the scale beside them.
            node.set("d", steps(node.attrib["d"], 1 if "transform" in node.attrib else 10))
        if node.tag == "use":
            _place(node)
    for node in reversed(nodes):  # the innermost groups first
        _share_style(node)
        node[:] = chain.from_iterable(child if child.tag == "g" and not child.attrib else [child] for child in node)
    root.set("xmlns", "http://www.w3.org/2000/svg")
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def _local(name: str) -> str:
    """A name without its namespace: browsers read `href` as they read `xlink:href`."""
    return name.rpartition("}")[2]


def _rename(nodes: list[ElementTree.Element]) -> None:
    """Short names for what is referred to, none for the rest."""
    short: dict[str, str] = {}

    def known(name: str) -> str:
        return short.setdefault(name, f"a{len(short)}")

    for node in nodes:
        for key, value in node.attrib.items():
            if key == "href" and value.startswith("#"):
                node.set(key, f"#{known(value[1:])}")
            elif "url(#" in value:  # alone, or somewhere in a style
                first, *rest = value.split("url(#")
                named = (part.partition(")") for part in rest)
                node.set(key, first + "".join(f"url(#{known(name)}){after}" for name, _, after in named))
    for node in nodes:
        name = node.attrib.pop("id", None)
        if name in short:
            node.set("id", short[name])


def _place(node: ElementTree.Element) -> None:
    """Where a letter or a marker stands. A letter's line is in hundredths of its size, so whole numbers do."""
    kind, _, inside = node.attrib.get("transform", "").partition("(")
    if kind == "translate" and inside.count(")") == 1:
        del node.attrib["transform"]
        places = [(key, f"{float(word):.0f}") for key, word in zip("xy", inside[:-1].split(), strict=False)]
    else:
        places = [(key, f"{float(node.attrib[key]):.1f}") for key in "xy" if key in node.attrib]
    for key, text in places:
        node.set(key, text)
        if float(text) == 0.0:
            del node.attrib[key]


def _share_style(group: ElementTree.Element) -> None:
    """What all markers of a curve have in common is said once."""
    styles = {child.get("style") for child in group}
    if group.tag == "g" and len(group) > 1 and len(styles) == 1 and "style" not in group.attrib:
        (style,) = styles
        if style is not None:
            group.set("style", style)
            for child in group:
                del child.attrib["style"]


def steps(path: str, parts: int = 10) -> str:
    """A path of matplotlib's in relative coordinates, to tenths (`parts` = 10) or whole numbers (1). Rounding is done
    on places, not on steps, so errors do not add up; of straight lines that go on in the same direction one is drawn.

    >>> steps("M 10.04 20 L 11.06 20.01 L 12.08 19 z ")
    'M10 20l1.1 0 1-1z'
    >>> steps("M 0 0 L 1 1 L 2 2.04 L 3 3 L 3 0")
    'M0 0l3 3 0-3'
    """
    words = iter(path.split())
    parsed: list[tuple[str, list[Point]]] = []
    for letter in words:
        numbers = [round(parts * float(next(words))) for _ in range(2 * _POINTS.get(letter, 0))]
        parsed.append((letter, list(zip(numbers[::2], numbers[1::2], strict=True))))
    out, here, last = [], (0, 0), ""
    for letter, points in _straightened(parsed) if parts > 1 else parsed:
        if letter in "zM":
            text = "".join(f"M{_number(x, parts)} {_number(y, parts)}" for x, y in points) or letter
            last = letter
        else:
            ways = chain.from_iterable((x - here[0], y - here[1]) for x, y in points)
            text = " ".join(_number(way, parts) for way in ways).replace(" -", "-")
            text = (" " if last == letter and text[0] != "-" else "" if last == letter else letter.lower()) + text
            last = letter
        out.append(text)
        here = points[-1] if points else here
    return "".join(out)


def _number(value: int, parts: int) -> str:
    text = f"{value / parts:g}"
    return text.replace("0.", ".", 1) if abs(value) < parts and value else text


def _straightened(parsed: list[tuple[str, list[Point]]]) -> list[tuple[str, list[Point]]]:
    """Without the points of straight lines that lie, to a tenth of a point, on the way from one kept to the next."""
    out: list[tuple[str, list[Point]]] = []
    skipped: list[Point] = []
    for place, (letter, points) in enumerate(parsed):
        following = parsed[place + 1] if place + 1 < len(parsed) else ("", [])
        if letter == following[0] == "L" and out[-1][1]:
            skipped.append(points[0])
            if _near(out[-1][1][-1], following[1][0], skipped):
                continue
        skipped = []
        out.append((letter, points))
    return out


def _near(start: Point, end: Point, between: list[Point]) -> bool:
    """Do these points lie on the way from start to end, in order?"""
    (ax, ay), (bx, by) = start, end
    dx, dy = bx - ax, by - ay
    square = dx * dx + dy * dy
    along = [(x - ax) * dx + (y - ay) * dy for x, y in between]
    aside = [abs((x - ax) * dy - (y - ay) * dx) for x, y in between]
    on_the_way = all(0 <= way <= square for way in along) and along == sorted(along)
    return on_the_way and max(aside) <= _NEAR * square**0.5
