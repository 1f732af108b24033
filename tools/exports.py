"""Write `policies/__init__.py`: one import per policy, so that an editor and mypy know every class.

A policy is added as one file and its test; this list is derived, and `make format` writes it anew. A test compares it
with what is in the folder."""

import textwrap
from pathlib import Path

from driftbandit.spec.parse import policies

TARGET = Path(__file__).parents[1] / "src" / "driftbandit" / "policies" / "__init__.py"
HEAD = '''"""Every policy in the paper, and related ones. `driftbandit list policies` shows them.

A class is loaded when it is first used, so that a program loads only the policies it names. Written by `make format`
from the modules of this folder.

>>> from driftbandit.policies import SlidingTS
>>> SlidingTS(window=678).window
678
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
'''
TAIL = """
if not TYPE_CHECKING:  # a type checker uses the imports above, so that it finds a misspelt name

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        if name.startswith("_"):
            raise AttributeError(name)
        from driftbandit.core.checks import nearest

        hint = nearest(name, _MODULES) or "."
        raise AttributeError(f"There is no policy {name!r}{hint} `driftbandit list policies` shows all.")


def __dir__() -> list[str]:
    return list(__all__)
"""


def wanted() -> str:
    """The text the file should have."""
    modules: dict[str, list[str]] = {}
    for name, cls in policies().items():
        modules.setdefault(cls.__module__, []).append(name)
    lines = [f"    from {module} import {', '.join(sorted(names))}" for module, names in sorted(modules.items())]
    lines += ["", "_NAMES = {"]
    for module, names in sorted(modules.items()):
        lines.append(f'    "{module.removeprefix("driftbandit.policies.")}": "{" ".join(sorted(names))}",')
    lines += ["}", "_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}"]
    every = ", ".join(f'"{name}"' for name in sorted(name for names in modules.values() for name in names))
    listed = textwrap.indent(textwrap.fill(every, 116), "    ")
    return "\n".join([HEAD + lines[0], *lines[1:], "__all__ = [  # noqa: RUF022", listed, "]  # fmt: skip"]) + TAIL


if __name__ == "__main__":
    TARGET.write_text(wanted())
