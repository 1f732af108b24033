"""A card for every policy, and the index over them: `python -m tools.site.cards --out build/cards`.

A policy gets its card by existing: classes are found as every command finds them. What a card says comes from the
class, from play in three small environments, and from what the field and the benchmark measured. A card is made again
when something that went into it has changed; play is kept apart, so that a new word on the page costs no new play."""

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.lab.files import code_digest, replace_file
from driftbandit.policies import BetaTS, Delayed
from driftbandit.spec import parse as registry
from tools.site import card_figure, facts, index, standing, store
from tools.site.behaviour import Behaviour, behaviour
from tools.site.environments import as_its_theory_says, small_environments
from tools.site.made import HERE, Made, digest, own_sources
from tools.site.page import page

STYLE = "```{raw} html\n<style>\n" + (HERE / "cards.css").read_text(encoding="utf-8") + "</style>\n```\n"


class Task(NamedTuple):
    """A card to be made."""

    cls: Any
    into: Path
    quick: bool


class Card(NamedTuple):
    """A card that was made: its files, and what the index says of it."""

    short: str
    files: list[str]
    row: dict[str, Any]


def write(
    into: Path,
    quick: bool,
    classes: Iterable[Any] | None = None,
    workers: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Write `into/index.md` and a card for every policy, or for `classes`; only what has changed is made again."""
    into = Path(into)
    found = {facts.find_short_name(cls): cls for cls in (registry.policies().values() if classes is None else classes)}
    made, common = Made(into), _common(quick)
    wanted = {short: digest(common, numbers(cls, quick), _around(cls)) for short, cls in found.items()}
    todo = [Task(cls, into, quick) for short, cls in found.items() if not made.stands(short, wanted[short])]
    if todo:
        played(Task(BetaTS, into, quick))  # every card shows it; the workers find it
    for count, card in enumerate(_made(todo, workers), start=1):
        made.note(card.short, wanted[card.short], card.files, card.row)
        say(f"{count} of {len(todo)}: {card.short}")
    made.forget_all_but([*found, "index"])
    rows = [made.row(short) for short in found]
    made.unless_it_stands("index", digest(common, rows), lambda: index.write(rows, into))
    _sweep(into, {f"{numbers(cls, quick)}.npz" for cls in [*found.values(), BetaTS]})


def numbers(cls: Any, quick: bool) -> str:
    """A digest of all that the played numbers of a policy depend on."""
    environments = [environment.environment for environment in small_environments(quick)]
    policies = [as_its_theory_says(cls, environment) for environment in environments]
    sources = code_digest(policies, environments, Delayed(BetaTS()))
    return digest(sources, (HERE / "behaviour.py").read_bytes(), policies, environments)


def _common(quick: bool) -> str:
    """A digest of what all cards depend on: these files, the field, the benchmark, the library that draws."""
    texts = [path.read_bytes() for path in (*standing.SOURCES, facts.SPEED) if path.exists()]
    return digest(own_sources("cards"), quick, metadata.version("matplotlib"), *texts)


def _around(cls: Any) -> str:
    """What of a card comes from other files than the policy's: where its twin and tests are."""
    return str((facts.source(cls), facts.twin(cls), facts.tests(cls), getattr(cls, "__doc__", "")))


def _made(todo: Sequence[Task], workers: int | None) -> Iterator[Card]:
    workers = min(workers or os.cpu_count() or 1, len(todo))
    if workers <= 1:
        yield from map(make, todo)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(make, task) for task in todo]):
            yield future.result()


def make(task: Task) -> Card:
    """Make one card; if that fails, say whose."""
    try:
        return _card(task)
    except Exception as error:
        raise RuntimeError(f"The card of {facts.find_short_name(task.cls)} cannot be made: {error}") from error


def _card(task: Task) -> Card:
    """Play, draw and write one card."""
    cls, into, short = task.cls, task.into, facts.find_short_name(task.cls)
    environments = small_environments(task.quick)
    mine, ts = played(task), played(task._replace(cls=BetaTS))
    policy = as_its_theory_says(cls, environments[0].environment)
    files = [f"{short}.md", *card_figure.save(short, mine, ts, environments, into)]
    with replace_file(into / files[0]) as draft:
        draft.write_text(page(cls, policy, mine, ts, environments, into) + "\n" + STYLE, encoding="utf-8")
    return Card(short, files, index.row(cls, policy, mine, ts, environments))


def played(task: Task) -> Behaviour:
    """The policy's behaviour, from the store if nothing it depends on has changed."""
    path = task.into / ".store" / f"{numbers(task.cls, task.quick)}.npz"
    kept = store.load(path)
    if kept is None:
        kept = behaviour(task.cls, task.quick)
        store.save(kept, path)
    return kept


def _sweep(into: Path, wanted: set[str]) -> None:
    """Remove play that belongs to no card any more."""
    for path in (into / ".store").glob("*.npz"):
        if path.name not in wanted:
            path.unlink(missing_ok=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write a card for every policy, and an index.")
    parser.add_argument("--out", type=Path, default=Path("build/cards"), help="the folder (default: build/cards)")
    parser.add_argument(
        "--quick", action="store_true", help="short environments and few runs, to see that everything works"
    )
    parser.add_argument("--workers", type=int, help="processes (default: one per core)")
    args = parser.parse_args()
    began = time.perf_counter()
    write(args.out, args.quick, workers=args.workers, say=print)
    print(f"Cards in {args.out} after {time.perf_counter() - began:.1f} s.")


if __name__ == "__main__":
    main()
