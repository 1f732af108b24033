"""The pages of the Python API: one per public package, with the names that its `__all__` promises and no others."""

import importlib
import inspect
from pathlib import Path

# Where to look, in the order of the page; what a name is for stands in its docstring.
PACKAGES = {
    "driftbandit": "Decide: a bandit in memory or with a journal",
    "driftbandit.policies": "What to play",
    "driftbandit.environments": "Environments to play in",
    "driftbandit.lab": "Simulate and compare",
    "driftbandit.bandit": "Live: decisions, verdicts and errors",
    "driftbandit.logs": "Learn from logs",
}
_MEMBERS = "   :members:\n   :inherited-members: tuple, object, ValueError, RuntimeError\n"
_ROLES = {"class": "class", "function": "func"}
_HEAD = """# The Python API

What is listed here is public: it is removed no sooner than two minor releases after a `DeprecationWarning`. Other names
may change at any time.

| package | what for |
|---|---|
"""
_LIST = """
```{toctree}
:hidden:

"""


def write(into: Path) -> None:
    """An index and a page per package."""
    into.mkdir(parents=True, exist_ok=True)
    index: list[str] = [_HEAD]
    described: dict[str, str] = {}
    for package, title in PACKAGES.items():
        module = importlib.import_module(package)
        parts = [f"# {package}\n\n{title}.\n\n```{{eval-rst}}\n.. module:: {package}\n\n"]
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                home = f"{value.__module__}.{value.__qualname__}"
                parts.append(_entry(f"{package}.{name}", value, described.get(home)))
                described.setdefault(home, f"{package}.{name}")
        (into / f"{package}.md").write_text("".join(parts) + "```\n", encoding="utf-8")
        index.append(f"| [`{package}`]({package}.md) | {title} |\n")
    listed = _LIST + "".join(f"{package}\n" for package in PACKAGES) + "```\n"
    (into / "index.md").write_text("".join(index) + listed, encoding="utf-8")


def _entry(name: str, value: object, elsewhere: str | None) -> str:
    """A class with its methods or a function; one that another page describes in full is only linked there."""
    kind = "class" if inspect.isclass(value) else "function"
    if elsewhere is not None:
        return f"`{name}` is :{_ROLES[kind]}:`{elsewhere}`.\n\n"
    return f".. auto{kind}:: {name}\n{_MEMBERS if kind == 'class' else ''}\n"
