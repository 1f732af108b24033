"""The commands of `driftbandit`, one module each, found by being here.

A command's module has `add_parser(subparsers)`, which describes it to argparse, and `run(args)`, which does it in a few
lines over the library and returns an exit code or None. It imports what is heavy inside `run`: all modules are loaded
to print the help. Modules whose name begins with an underscore are not commands."""

import importlib
import pkgutil
from typing import Any


def modules() -> list[Any]:
    """Every command's module, in alphabetical order."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]
