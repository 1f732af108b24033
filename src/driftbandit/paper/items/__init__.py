"""The items of the paper: figures, Table 1, and the experiments that it announces and does not show."""

from collections.abc import Iterable
from functools import cache

from driftbandit.core.checks import nearest
from driftbandit.paper.items import curves, means
from driftbandit.paper.items.item import Item


@cache
def items() -> dict[str, Item]:
    """Every item by its id, in the order of the paper; announced experiments come last."""
    shown = (
        *means.FIGURE_1,
        *means.FIGURE_2,
        *curves.FIGURE_3,
        *curves.FIGURE_4,
        *curves.TABLE_1,
        *means.FIGURE_5,
        *curves.FIGURE_6,
        *curves.FIGURE_7,
        *curves.ANNOUNCED,
    )
    return {item.id: item for item in shown}


def choose(names: Iterable[str]) -> dict[str, Item]:
    """The items of these names, in the order of the paper; all of them if no name is given.

    A family stands for its members: "fig3" for fig3a to fig3d, "abrupt" for all ids that begin with "abrupt-".

    >>> list(choose(["fig3", "fig1"]))
    ['fig1', 'fig3a', 'fig3b', 'fig3c', 'fig3d']
    """
    known, wanted = items(), set()
    for name in names:
        members = [name] if name in known else [i for i in known if i[:-1] == name or i.startswith(f"{name}-")]
        if not members:
            raise ValueError(
                f"There is no item {name!r}{nearest(name, known) or '.'} The items are: {', '.join(known)}."
            )
        wanted.update(members)
    return {name: item for name, item in known.items() if name in wanted or not wanted}
