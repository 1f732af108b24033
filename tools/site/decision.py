"""The life of a decision as one drawing: decide, journal, reward, fold, audit."""

from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from tools.site import colours
from tools.site.colours import FAINT, GRID, INK

WIDTH, LEFT, BOX = 420, 58, 300
FONT = "font-family='Verdana, DejaVu Sans, sans-serif'"
BLUE, ORANGE, GREEN, YELLOW = colours.ARMS


class Step(NamedTuple):
    """A box."""

    name: str
    colour: str
    lines: tuple[str, ...]
    after: str = ""  # text next to the arrow to the next


STEPS = (
    Step("decide", BLUE, ("The policy draws an arm from its state,", "faded to this moment."),
         "before the call returns"),
    Step("journal", INK, ("A decision: id, arm, time, and how many", "events were known. It is never changed."),
         "seconds or days later, or never"),
    Step("reward", ORANGE, ("One outcome for each id. The same again", "counts once; none in time: the default."),
         "in one transaction"),
    Step("journal", INK, ("An event: the outcome, with all that", "learning needs. It is never changed."),
         "in one order, the same for all"),
    Step("fold", GREEN, ("Every process lets the policy learn the", "events one by one: the same state.")),
)  # fmt: skip
AUDIT = Step("audit", YELLOW, ("From the journal only, at any time:", "the state each decision knew, its time and",
                               "its id give its arm again, or a difference."))  # fmt: skip


def save(into: Path) -> list[str]:
    """Write the drawing."""
    return colours.save(drawing(), into, "decision")


def drawing() -> str:
    """The SVG."""
    parts, y = [], 8
    places: dict[str, list[int]] = {}
    for step in STEPS:
        places.setdefault(step.name, []).append(y)
        parts.append(_box(step, y))
        y += _height(step)
        if step.after:
            parts.append(_down(y, step.after))
        y += 38
    fold, decide = places["fold"][0] + 34, places["decide"][0] + 34
    right = LEFT + BOX
    parts.append(_line(f"M {right} {fold} H {right + 32} V {decide} H {right + 4}", GREEN))
    parts.append(_turned(right + 46, (fold + decide) // 2, "the next decision"))
    audit = y
    for number, place in enumerate(places["journal"]):
        x = LEFT - 14 - 16 * number
        end = f"V {audit + 34} H {LEFT - 4}" if number else f"V {audit + 34}"
        parts.append(_line(f"M {LEFT} {place + 34} H {x} {end}", YELLOW, arrow=bool(number), dashes="5 4"))
    parts.append(_box(AUDIT, audit))
    height = audit + _height(AUDIT) + 8
    title = "The life of a decision: decide, journal, reward, fold, audit"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}' "
        f"role='img' aria-label='{title}'><title>{title}</title>{_heads()}{''.join(parts)}</svg>\n"
    )


def _height(step: Step) -> int:
    return 34 + 17 * len(step.lines)


def _box(step: Step, y: int) -> str:
    frame = (
        f"<rect x='{LEFT}' y='{y}' width='{BOX}' height='{_height(step)}' rx='7' fill='{step.colour}' "
        f"fill-opacity='0.1' stroke='{step.colour}' stroke-width='1.6'/>"
    )
    name = (
        f"<text x='{LEFT + 12}' y='{y + 21}' {FONT} font-size='14' font-weight='bold' fill='{INK}'>{step.name}</text>"
    )
    lines = (
        f"<text x='{LEFT + 12}' y='{y + 40 + 17 * number}' {FONT} font-size='12' fill='{INK}'>{escape(line)}</text>"
        for number, line in enumerate(step.lines)
    )
    return frame + name + "".join(lines)


def _down(y: int, words: str) -> str:
    x = LEFT + 26
    return _line(f"M {x} {y} V {y + 33}", FAINT) + (
        f"<text x='{x + 12}' y='{y + 23}' {FONT} font-size='11' font-style='italic' fill='{INK}'>{escape(words)}</text>"
    )


def _turned(x: int, y: int, words: str) -> str:
    return (
        f"<text transform='translate({x} {y}) rotate(-90)' text-anchor='middle' {FONT} font-size='11' "
        f"font-style='italic' fill='{INK}'>{escape(words)}</text>"
    )


def _line(path: str, colour: str, arrow: bool = True, dashes: str = "") -> str:
    head = f" marker-end='url(#head-{colour[1:]})'" if arrow else ""
    broken = f" stroke-dasharray='{dashes}'" if dashes else ""
    return f"<path d='{path}' fill='none' stroke='{colour}' stroke-width='1.6'{broken}{head}/>"


def _heads() -> str:
    marks = (
        f"<marker id='head-{colour[1:]}' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' "
        f"orient='auto'><path d='M 0 0 L 8 4 L 0 8 z' fill='{colour}'/></marker>"
        for colour in (FAINT, GREEN, YELLOW, GRID)
    )
    return f"<defs>{''.join(marks)}</defs>"
