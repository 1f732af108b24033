"""Why a policy or environment does not compile, in one sentence from the compiler's page."""

import linecache
import os
import re
from typing import Any

from driftbandit.text import policy_check, user_code

_PLACE = re.compile(r'File "([^"]+)", line (\d+)|at (\S+\.py) \((\d+)\)')
_CAUSE = re.compile(r"^(Unknown|Invalid|Cannot|Untyped|Undefined|Use of|NameError|No implementation|No conversion)")


class NotCompiled(TypeError):
    """A user's policy or environment that can only be interpreted; the message says which line, and why."""


def explain(error: Exception, policy: Any) -> str:
    """The first of the user's lines that the page names, which tells its story from the inside out, and the cause."""
    text = str(error)
    place = next((found for found in _PLACE.finditer(text) if _is_own(found[1] or found[3])), None)
    lines = [line.strip() for line in text[: place.start() if place else None].splitlines() if line.strip()]
    causes = [line for line in lines if _CAUSE.match(line) and "<function typed" not in line]
    fraction = re.search(r"A number with a fraction.*", text)
    if fraction:
        cause = fraction[0]
    elif "NRT required" in text:
        cause = "it makes a new array or another object, which compiled code does not; use a loop over the arms"
    else:
        cause = (
            causes[-1] if causes else next((line for line in lines if "Failed in" not in line), type(error).__name__)
        )
    cause = re.sub(r" of type \w*Draws\(.*", " of rng; compiled code has rng.uniform(slot) and rng.normal(slot)", cause)
    if place is None:
        return f"{policy_check.where(type(policy))}: {cause.rstrip('.:')}"
    path, line = os.path.abspath(place[1] or place[3]), int(place[2] or place[4])
    return f"{os.path.basename(path)}, line {line}: `{linecache.getline(path, line).strip()}`: {cause.rstrip('.:')}"


def _is_own(path: str) -> bool:
    return user_code.is_own_file(os.path.abspath(path))
