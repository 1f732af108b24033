"""What there is: policies, worlds and reward laws, by name.

A class is found because it exists: put a policy with a `short` name into `driftbandit/policies` and every command knows
it. Modules are imported when somebody first asks, so that a program which names its policy itself loads no other."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from driftbandit.checks import nearest


class SpecError(ValueError):
    """A text that names nothing we know, or is not written as a policy or world is; the message says what would be
    right."""


def policies() -> dict[str, type]:
    """Every policy class by its name: the classes in `driftbandit.policies` that have a `short` name."""
    return _classes("driftbandit.policies", "choose")


def environments() -> dict[str, type]:
    """Every world by its name: the classes in `driftbandit.environments` that have a `short` name."""
    return _classes("driftbandit.environments", "realise")


def laws() -> dict[str, type]:
    """Every reward law by its name."""
    module = importlib.import_module("driftbandit.environments.rewards")
    found = (value for value in vars(module).values() if isinstance(value, type) and hasattr(value, "draw"))
    return {cls.__name__: cls for cls in found}


def _modules(package: str) -> Iterable[Any]:
    """The modules of a package, imported, in alphabetical order; none if there is no such package."""
    if importlib.util.find_spec(package) is None:
        return
    paths = importlib.import_module(package).__path__
    for info in sorted(pkgutil.iter_modules(paths), key=lambda info: info.name):
        if not info.name.startswith("_"):
            yield importlib.import_module(f"{package}.{info.name}")


@cache
def _classes(package: str, verb: str) -> dict[str, type]:
    found = {}
    for module in _modules(package):
        for name, value in vars(module).items():
            if (
                isinstance(value, type)
                and value.__module__ == module.__name__
                and "short" in vars(value)
                and hasattr(value, verb)
            ):
                found[name] = value
    return found


def find(name: str, extra: Mapping[str, Any] | None = None, only_policies: bool = False) -> Any:
    """The class behind a name: its own name in any case, its short name, or one of its `aliases`; `extra` holds the
    user's own. With `only_policies` no other class of the library is found."""
    if extra and name in extra:
        return extra[name]
    names = _names(only_policies)
    folded = name.casefold()
    if folded in names:
        return names[folded]
    if only_policies and folded in _names(False):
        raise SpecError(f"Expected a policy, got {name!r:.60}; `driftbandit list policies` shows them.")
    known = [getattr(cls, "short", cls.__name__) for cls in names.values() if isinstance(cls, type)]
    full = [cls.__name__ for cls in names.values() if isinstance(cls, type)]
    hint = nearest(name, [*known, *full, *(extra or ())])
    kind = "policy" if only_policies else "policy, environment or reward law"
    raise SpecError(f"There is no {kind} named {name!r:.60}{hint or '.'} `driftbandit list` shows all.")


@cache
def _names(only_policies: bool) -> dict[str, Any]:
    """All names in lower case. An alias maps to (class, parameters): `aliases = {"dots": {"optimistic": True}}` in the
    class."""
    names: dict[str, Any] = {}
    others = [] if only_policies else [*environments().values(), *laws().values()]
    for cls in [*policies().values(), *others]:
        names[cls.__name__.casefold()] = cls
        if hasattr(cls, "short"):
            names[cls.short.casefold()] = cls
        for alias, values in getattr(cls, "aliases", {}).items():
            names[alias.casefold()] = (cls, values)
    return names
