"""What a policy's own class says of it, and what can be measured without playing: parameters with their domains, the
rule, the state and its size, where the code and its slow twin stand."""

import ast
import inspect
import io
import json
import os
import re
import tokenize
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.parameters import parameters
from driftbandit.spec.parse import constructors

ROOT = Path(__file__).parents[2]
SPEED = ROOT / "docs/speed/speed.json"
TWINS, TESTS = ROOT / "tests/naive", ROOT / "tests/policies"
FEW, MANY = 10, 20  # arms between which a state's growth is measured


class Given(NamedTuple):
    """A parameter as a reader needs it."""

    name: str
    kind: str
    default: str
    domain: str
    about: str


class Field(NamedTuple):
    """A field of a policy's state."""

    name: str
    per_arm: float  # numbers for each arm
    fixed: float  # numbers whatever the arms
    about: str


class Place(NamedTuple):
    """A class in a file."""

    path: Path
    name: str


def find_short_name(cls: Any) -> str:
    """The name of a policy's card."""
    return str(getattr(cls, "short", cls.__name__))


def paragraphs(cls: Any) -> list[str]:
    """The paragraphs of a class's docstring."""
    return [part for part in re.split(r"\n\s*\n", inspect.getdoc(cls) or "") if part.strip()]


def formula(cls: Any) -> list[str]:
    """The equations of a policy's rule, as LaTeX; none if its class states none."""
    return [line for line in inspect.cleandoc(getattr(cls, "formula", "")).splitlines() if line.strip()]


def given(cls: Any) -> list[Given]:
    """The parameters of a policy, each with the comment next to it."""
    said, defaults = comments(cls), getattr(cls, "_field_defaults", {})
    out = []
    for parameter in parameters(cls):
        advice = parameter.domain.advice if parameter.domain else ""
        out.append(
            Given(
                parameter.name,
                getattr(parameter.kind, "__name__", "any"),
                repr(defaults[parameter.name]) if parameter.name in defaults else "needed",
                parameter.domain.text if parameter.domain else _values(parameter.kind),
                "; ".join(filter(None, [said.get(parameter.name, ""), advice])),
            )
        )
    return out


def _values(kind: Any) -> str:
    return "True or False" if kind is bool else "a policy" if kind is Any else "any"


def makers(cls: Any) -> list[tuple[str, str]]:
    """The named constructors, as one writes them, each with the first sentence of its docstring."""
    out = []
    for name in constructors(cls):
        maker = getattr(cls, name)
        words = [
            p.name if p.default is p.empty else f"{p.name}={p.default!r}"
            for p in inspect.signature(maker).parameters.values()
        ]
        about = " ".join((inspect.getdoc(maker) or "").split("\n\n")[0].split())
        out.append((f"{find_short_name(cls)}.{name}({', '.join(words)})", about))
    return out


def comments(cls: Any) -> dict[str, str]:
    """The comment after `#` of each field of a class."""
    try:
        text = inspect.cleandoc("\n" + inspect.getsource(cls))
    except (OSError, TypeError):  # a class without a file
        return {}
    at = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    made = ast.parse(text).body[0]
    assert isinstance(made, ast.ClassDef)
    out = {}
    for node in made.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found = [at[line] for line in range(node.lineno, (node.end_lineno or node.lineno) + 1) if line in at]
            if found:
                out[node.target.id] = " ".join(found)
    return out


def fields(policy: Any) -> list[Field]:
    """The fields of a policy's state, the numbers of each counted at two numbers of arms."""
    return _fields(policy.init(FEW), policy.init(MANY), "")


def _fields(few: Any, many: Any, before: str) -> list[Field]:
    said, out = comments(type(few)), []
    for name, small, large in zip(few._fields, few, many, strict=True):
        if isinstance(small, tuple):
            out += _fields(small, large, f"{before}{name}.")
            continue
        per_arm = (np.size(large) - np.size(small)) / (MANY - FEW)
        out.append(Field(before + name, per_arm, np.size(small) - FEW * per_arm, said.get(name, "")))
    return out


def bytes_of(state: Any) -> int:
    """The memory of a state's arrays."""
    return sum(bytes_of(field) if isinstance(field, tuple) else np.asarray(field).nbytes for field in state)


class Speed(NamedTuple):
    """Nanoseconds of one round by number of arms, as the benchmark measured them: one run, and in lockstep."""

    alone: dict[int, float]
    lockstep: dict[int, float]


@cache
def _speeds() -> Any:
    return json.loads(SPEED.read_text(encoding="utf-8")) if SPEED.exists() else {}


def speed(short: str) -> Speed:
    """What the last `make bench` measured of this policy; nothing if it was not there."""
    rows = [row for row in _speeds().get("policies", []) if row["policy"] == short]
    return Speed(*({row["n_arms"]: row["ns"] for row in rows if row["lockstep"] is both} for both in (False, True)))


def measured_on() -> str:
    """The machine of the speeds."""
    machine = _speeds().get("machine", {})
    return f"{machine.get('processor', 'an unknown processor')}, {machine.get('system', '')}".strip(", ")


def source(cls: Any) -> Place | None:
    """Where the policy is written."""
    try:
        found = inspect.getsourcefile(cls)
    except TypeError:
        found = None
    return Place(Path(found), cls.__name__) if found and os.path.exists(found) else None


def twin(cls: Any) -> Place | None:
    """The slow twin that the policy is held against, found by its name."""
    wanted = f"Naive{cls.__name__}"
    for path in sorted(TWINS.glob("*.py")):
        if re.search(rf"^class {wanted}\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            return Place(path, wanted)
    return None


def tests(cls: Any) -> list[Path]:
    """The files of tests that name this policy, its own first."""
    word, own = re.compile(rf"\b{cls.__name__}\b"), f"test_{Path(inspect.getfile(cls)).stem}.py"
    found = [path for path in sorted(TESTS.glob("test_*.py")) if word.search(path.read_text(encoding="utf-8"))]
    return [path for path in found if path.name == own] or found[:3]
