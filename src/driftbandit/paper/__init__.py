"""The paper's experiments, each one entry of a table, and the job that runs them all.

`items` lists them in the order of the paper.
`job.PaperRun` computes the chosen ones and writes their data and figures."""

from collections.abc import Iterable
from functools import cache

from driftbandit.checks import nearest
from driftbandit.paper.items.item import Item


@cache
def items() -> dict[str, Item]:
    """Every item by its id, in the order of the paper; what the paper announces and does not show comes last."""
    from driftbandit.paper.items import fig1, fig4, figures, table1

    shown = (
        *fig1.ITEMS,
        *figures.FIGURE_2,
        *figures.FIGURE_3,
        *fig4.ITEMS,
        *table1.ITEMS,
        *figures.FIGURE_5,
        *figures.FIGURE_6,
        *figures.FIGURE_7,
        *figures.ANNOUNCED,
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
