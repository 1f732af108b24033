"""The commands of `driftbandit`, one module each.

A command's module has `add_parser(subparsers)`, which describes it to argparse, and `run(args)`, which returns an exit
code or None. Heavy imports are inside `run`, because all modules are loaded to print the help; a command loads only its
own. Modules whose name begins with an underscore are not commands."""

import importlib
import pkgutil
from typing import Any


def modules(command: str | None = None) -> list[Any]:
    """The module named like this command, or without such a module every command's, in alphabetical order."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    return [importlib.import_module(f"{__name__}.{name}") for name in ([command] if command in names else names)]
