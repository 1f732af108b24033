"""The pictures that explain: `python -m tools.site.pictures --out build/pictures`.

Next to a picture (`map-light.svg`, `map-dark.svg`) a page `map.md` has the lines that show it: both files, each for its
kind of page, and a caption. They name the files from the top of the site's sources, `/_made/map-light.svg`. The page
with sliders is also a complete page: `forgetting.html`."""

import argparse
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from driftbandit.lab.files import code_digest, replace_file
from tools.site import change, decision, field_map, sliders, standing
from tools.site.colours import image
from tools.site.made import Made, digest, own_sources


class Picture(NamedTuple):
    """A picture: its name, who writes it, what it depends on besides this package, and the lines that show it."""

    name: str
    save: Callable[[Path], list[str]]
    depends: Callable[[], str]
    lines: Callable[[Path], str]


def _played() -> str:
    return code_digest(change.SHOWN, change.ENVIRONMENT)


def _field() -> str:
    return digest(*(path.read_bytes() for path in standing.SOURCES if path.exists()))


CAPTIONS = {
    "change": "DS-TS around a change. Means of rewards, each weighing less the older it is; the band is the spread of "
    "the samples that compete in the next round. When A fails its mean falls; B wins a round, pays, and takes over. "
    "While A is not played, it keeps its mean and its spread grows to `tau_max`, until a sample of it wins again. One "
    "run of the simulator, chosen because all of this happens in it within 400 rounds.",
    "map": "Every policy by its regret in stationary environments and in environments that change, "
    "divided by that of the "
    "best policy tuned for each environment: down and to the left is better. A policy stands with one setting for all "
    "environments, or as its theory sets it for each, whichever has least regret where things "
    "change. The thin "
    "lines are the same policies with longer and shorter memories: who forgets more quickly pays for it where nothing "
    "changes.",
    "decision": "The life of a decision. Both records in the journal are written before the call returns, and neither "
    "is ever changed.",
}


def pictures(quick: bool) -> list[Picture]:
    """All of them."""
    return [
        Picture("change", change.save, _played, _image("change", "What DS-TS believes of two arms around a change")),
        Picture(
            "map", field_map.save, _field, _image("map", "Policies by regret in still and in changing environments")
        ),
        Picture("decision", decision.save, str, _image("decision", "Decide, journal, reward, journal, fold, audit")),
        Picture(
            "forgetting",
            lambda into: sliders.save(into, quick),
            lambda: f"{quick} {_played()}",
            lambda into: f"````{{raw}} html\n{sliders.fragment(quick)}````",
        ),
    ]


def _image(name: str, alt: str) -> Callable[[Path], str]:
    return lambda into: f"{image(f'/{into.name}/{name}', alt)}\n\n{CAPTIONS[name]}"


def write(into: Path, quick: bool) -> None:
    """Write every picture that has changed."""
    into = Path(into)
    made, own = Made(into), digest(own_sources("pictures"), metadata.version("matplotlib"))
    for picture in pictures(quick):

        def save(picture: Picture = picture) -> list[str]:
            page = f"{picture.name}.md"
            with replace_file(into / page) as draft:
                draft.write_text(picture.lines(into) + "\n", encoding="utf-8")
            return [*picture.save(into), page]

        made.unless_it_stands(picture.name, digest(own, picture.depends()), save)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write the pictures of the documentation.")
    parser.add_argument("--out", type=Path, default=Path("build/pictures"), help="the folder (default: build/pictures)")
    parser.add_argument("--quick", action="store_true", help="few positions of the sliders")
    args = parser.parse_args()
    began = time.perf_counter()
    write(args.out, args.quick)
    print(f"Pictures in {args.out} after {time.perf_counter() - began:.1f} s.")


if __name__ == "__main__":
    main()
