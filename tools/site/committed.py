"""The reference pages that are made from the code and kept in the repository, so that they can be read where no site is
built: `python -m tools.site.committed` writes them anew."""

from collections.abc import Callable
from pathlib import Path

from tools.site import command_line, http_api, troubleshooting

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES: dict[str, Callable[[Path], None]] = {
    "command-line.md": command_line.write,
    "http-api.md": http_api.write,
    "troubleshooting.md": troubleshooting.write,
}


def write(into: Path = FOLDER) -> None:
    """Write all of them into a folder."""
    for name, write_page in PAGES.items():
        write_page(into / name)


if __name__ == "__main__":
    write()
