"""How a policy or world is written: `parse`, the inverse of `repr`.

The text of a policy is its `repr`, so what a result file, a legend or a log says can be given back to the program. Text
may come from anywhere: it is read as literals and known names only and never run.

>>> parse("ds-ts(gamma=0.9)")
DiscountedTS(gamma=0.9, tau_max=0.2, forget_below=0.0, weight=1.0)
>>> parse("ds-ts.tuned(horizon=100_000, phases=10)").gamma
0.99
"""

import ast
import inspect
import os
import re
from collections.abc import Mapping
from typing import Any

from driftbandit.protocols import Environment, Policy
from driftbandit.text import user_code
from driftbandit.text.registry import SpecError, environments, experiments, find, laws, nearest, policies

__all__ = [
    "SpecError",
    "constructors",
    "environments",
    "experiments",
    "find",
    "laws",
    "nearest",
    "parse",
    "parse_environment",
    "parse_policy",
    "policies",
    "rooted",
]

# A letter to Python that nobody types: it stands for the dash of "ds-ts" while Python's grammar reads the text.
_DASH = "\u01c0"
_WORDS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<![\w.])[A-Za-z_]\w*(?:-\w+)+""")
# A user's own class, "place:Name": a path ending in .py or a module's name, a colon, a name. Texts in quotes are left.
_OWN = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|((?:[A-Za-z]:[\\/])?[^\s()=,:'"]+\.py|[A-Za-z_][\w.]*):([A-Za-z_]\w*)"""
)
_OWN_WITH_SPACES = re.compile(r"^([^()='\"]+\.py):([A-Za-z_]\w*)")
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}
_FROM_WORLD = ("horizon", "phases", "n_arms")  # what a named constructor may take from the world it is to play in


def parse(text: str, extra: Mapping[str, Any] | None = None, world: Any = None) -> Any:
    """The policy, environment or reward law that a text describes: `parse(repr(p)) == p`.

    A name alone takes all defaults. Named constructors work too, `"ds-ts.half_life(70)"`; those that want to know the
    horizon, the number of phases or of arms take what is not given from `world`, if there is one. `extra` adds the
    user's own classes by name; `"my_policy.py:MyPolicy(gamma=0.9)"` and `"package.module:MyPolicy"` load them, which
    runs that code.

    >>> from driftbandit.environments import Abrupt
    >>> parse("ds-ts.tuned", world=Abrupt(horizon=40_000, phases=4)).gamma
    0.99
    """
    if not isinstance(text, str) or not text.strip():
        raise SpecError(f"A policy or environment is given by its text, such as 'ds-ts(gamma=0.9)'; got {text!r:.60}.")
    extra = dict(extra or {})
    plain = _with_own(text.strip(), extra)
    plain = _WORDS.sub(lambda match: match[0] if match[1] else match[0].replace("-", _DASH), plain)
    try:
        tree = ast.parse(plain, mode="eval").body
        made = _Reader(text, extra, world).read(tree)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise SpecError(_unreadable(text, str(getattr(error, "msg", "") or "nested too deeply"))) from None
    if not hasattr(made, "_fields") and not hasattr(made, "choose") and not hasattr(made, "realise"):
        raise SpecError(
            f"{text!r:.60} is no policy or environment; write one as in ds-ts(gamma=0.9) or Abrupt(n_arms=5)."
        )
    return made


def _with_own(text: str, extra: dict[str, Any]) -> str:
    """The text with each `place:Name` replaced by a name of its own, under which `extra` then holds the class."""

    def loaded(place: str, name: str) -> str:
        alias = f"own_{len(extra)}_{name}"
        extra[alias] = user_code.load(f"{place}:{name}")
        return alias

    whole = _OWN_WITH_SPACES.match(text)
    if whole:
        text = loaded(whole[1], whole[2]) + text[whole.end() :]
    return _OWN.sub(lambda match: match[0] if match[1] else loaded(match[2], match[3]), text)


def rooted(text: str, folder: Any) -> str:
    """The text with the paths of users' files beginning in `folder`, unless they begin at the root.

    >>> rooted("mine.py:Mine(gamma=0.9)", "/home/me")
    '/home/me/mine.py:Mine(gamma=0.9)'
    """

    def placed(match: re.Match[str], place: int) -> str:
        if not match[place].endswith(".py"):
            return match[0]
        return match[0].replace(match[place], os.path.join(folder, os.path.expanduser(match[place])), 1)

    if _OWN_WITH_SPACES.match(text):
        return _OWN_WITH_SPACES.sub(lambda match: placed(match, 1), text)
    return _OWN.sub(lambda match: match[0] if match[1] else placed(match, 2), text)


def parse_policy(text: str, extra: Mapping[str, Any] | None = None, world: Any = None) -> Any:
    """Like `parse`, and it must be a policy."""
    made = parse(text, extra, world)
    if not isinstance(made, Policy):
        raise SpecError(f"A policy is wanted here, and {text!r:.60} is none; `driftbandit list policies` shows them.")
    return made


def parse_environment(text: str, extra: Mapping[str, Any] | None = None) -> Any:
    """Like `parse`, and it must be an environment."""
    made = parse(text, extra)
    if not isinstance(made, Environment):
        raise SpecError(
            f"An environment is wanted here, and {text!r:.60} is none; `driftbandit list environments` shows them."
        )
    return made


def _unreadable(text: str, why: str) -> str:
    return f"Cannot read {text!r:.80}: {why}. Write it as in ds-ts(gamma=0.9), Smooth(n_arms=5) or ds-ts.half_life(70)."


class _Reader:
    """Turns the syntax tree of a text into the object it describes."""

    def __init__(self, text: str, extra: Mapping[str, Any] | None, world: Any) -> None:
        self.text, self.extra, self.world = text, extra, world

    def read(self, node: ast.expr) -> Any:
        """A value: a literal, a tuple of values, or an object made of them."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                number = self._number(operand)
                return -number if isinstance(node.op, ast.USub) else number
            case ast.BinOp(op=ast.Div(), left=left, right=right):  # fractions, as papers write them: tau_max=1/5
                above, below = self._number(left), self._number(right)
                if below == 0:
                    raise SpecError(_unreadable(self.text, "it divides by zero"))
                return above / below
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self.read(item) for item in items)
            case ast.Name(id=name) if name in _NUMBERS and name not in (self.extra or ()):
                return _NUMBERS[name]
            case ast.Name() | ast.Attribute():
                return self._made(node, [], {})
            case ast.Call(func=function, args=args, keywords=keywords) if all(k.arg for k in keywords):
                given: dict[str, Any] = {}
                for keyword in keywords:
                    if keyword.arg in given:
                        raise SpecError(_unreadable(self.text, f"{keyword.arg} is given twice"))
                    given[str(keyword.arg)] = self.read(keyword.value)
                return self._made(function, [self.read(item) for item in args], given)
        raise SpecError(_unreadable(self.text, "only numbers, texts, tuples and names with parameters are understood"))

    def _number(self, node: ast.expr) -> Any:
        value = self.read(node)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SpecError(_unreadable(self.text, "signs and fractions are for numbers"))
        return value

    def _target(self, name: str) -> tuple[Any, dict[str, Any]]:
        """What a name stands for, with the parameters that an alias fixes."""
        found = find(name.replace(_DASH, "-"), self.extra)
        if isinstance(found, tuple) and not hasattr(found, "_fields"):
            return found[0], dict(found[1])
        return found, {}

    def _made(self, function: ast.expr, args: list[Any], given: dict[str, Any]) -> Any:
        match function:
            case ast.Name(id=name):
                target, preset = self._target(name)
                if not callable(target) and not args and not given:
                    return target  # the user's own, ready made
                return _called(target, getattr(target, "__name__", name), args, {**preset, **given})
            case ast.Attribute(value=ast.Name(id=name), attr=verb):
                cls, _ = self._target(name)
                known = constructors(cls) if isinstance(cls, type) else []
                if verb not in known:
                    title, hint = getattr(cls, "__name__", name), nearest(verb, known) or "."
                    raise SpecError(f"{title} has no constructor {verb!r}{hint} It has: {', '.join(known) or 'none'}.")
                maker = getattr(cls, verb)
                wanted = list(inspect.signature(maker).parameters)
                for word in wanted[len(args) :]:
                    if word in _FROM_WORLD and word not in given and hasattr(self.world, word):
                        given = {**given, word: getattr(self.world, word)}
                return _called(maker, f"{cls.__name__}.{verb}", args, given)
        raise SpecError(_unreadable(self.text, "a name is wanted before the bracket"))


def constructors(cls: type) -> list[str]:
    """The named constructors of a class: `tuned`, `half_life` and the like."""
    mine = [
        name
        for base in cls.__mro__
        if base is not tuple
        for name, value in vars(base).items()
        if isinstance(value, classmethod)
    ]
    return [name for name in dict.fromkeys(mine) if not name.startswith("_")]


def _called(maker: Any, name: str, args: list[Any], given: dict[str, Any]) -> Any:
    """The object, with a sentence in place of Python's own complaint when the parameters do not fit."""
    if hasattr(maker, "_fields"):
        wanted, needed = list(maker._fields), [field for field in maker._fields if field not in maker._field_defaults]
    else:
        declared = inspect.signature(maker).parameters
        wanted, needed = list(declared), [word for word, p in declared.items() if p.default is p.empty]
    has = f"It has: {', '.join(wanted)}." if wanted else "It has none."
    for word in given:
        if word not in wanted:
            raise SpecError(f"{name} has no parameter {word!r}{nearest(word, wanted) or '.'} {has}")
    if len(args) > len(wanted):
        raise SpecError(f"{name} was given {len(args)} values and has {len(wanted)} parameters. {has}")
    twice = [word for word in wanted[: len(args)] if word in given]
    missing = [word for word in needed if word not in wanted[: len(args)] and word not in given]
    if twice or missing:
        raise SpecError(
            f"{name} needs {' and '.join(missing)}. {has}" if missing else f"{name} was given {twice[0]} twice."
        )
    return maker(*args, **given)
