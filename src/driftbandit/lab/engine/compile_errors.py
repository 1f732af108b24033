"""What a compiler's page of errors means, in one sentence."""

import inspect
import os
import re
from typing import Any

from driftbandit.text import user_code

_FILE = re.compile(r'File "([^"]+)", line (\d+)')


def explain(error: Exception, policy: Any, environment: Any = None) -> str:
    """One sentence from a compiler's page: which line failed to compile, and why.

    The page tells the story from the inside out, so the first place that is not in this package is the user's line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    files = [number for number, line in enumerate(lines) if _FILE.match(line)]
    users = [number for number in files if user_code.is_own_file(os.path.abspath(str(_FILE.match(lines[number])[1])))]  # type: ignore[index]
    at = (users or files or [len(lines)])[0]
    starts = (
        "No implementation",
        "Unknown",
        "Invalid",
        "Cannot",
        "Untyped",
        "Undefined",
        "Use of",
        "NameError",
        "No conversion",
    )
    causes = [
        number for number, line in enumerate(lines[:at]) if line.startswith(starts) and "<function typed" not in line
    ]
    cut = next((line for line in lines if "A number with a fraction" in line), None)
    if cut is not None:
        causes = []
        lines.insert(0, cut[cut.index("A number with a fraction") :])
        at += 1
    cause = lines[causes[-1]] if causes else next((line for line in lines if "Failed in" not in line), str(error))
    if causes and causes[-1] + 1 < len(lines) and lines[causes[-1] + 1].startswith(">>>"):
        cause += " " + lines[causes[-1] + 1].removeprefix(">>> ")
    place = type(policy).__name__ + (f" on {type(environment).__name__}" if environment is not None else "")
    if users:
        match = _FILE.match(lines[at])
        arrow = next((number for number in range(at, len(lines)) if set(lines[number]) == {"^"}), at + 1)
        code = f": `{lines[arrow - 1]}`" if arrow > at + 1 else ""
        place = f"{os.path.basename(match[1])}, line {match[2]}{code}" if match else place
    else:
        place = _line_of(re.search(r"name '(\w+)' is not defined", cause), policy, environment) or place
    return (
        f"{place} does not compile: {cause.rstrip('.:')}. Methods of a policy or world may use numbers, arrays, loops, "
        "`math` and functions marked `compilable`; simulate(..., compiled=False), or --interpreted, runs it meanwhile."
    )


def _line_of(missing: re.Match[str] | None, *tuples: Any) -> str:
    """Where a name stands that does not exist: the one mistake for which the compiler tells no line."""
    for cls in (type(value) for value in tuples if missing):
        try:
            lines, first = inspect.getsourcelines(cls)
        except (OSError, TypeError):
            continue
        for number, line in enumerate(lines, first):
            if missing and re.search(rf"\b{missing[1]}\b", line):
                return f"{os.path.basename(inspect.getsourcefile(cls) or '')}, line {number}: `{line.strip()}`"
    return ""
