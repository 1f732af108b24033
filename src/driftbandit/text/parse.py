"""How a policy or world is written: `parse`, the inverse of `repr`.

The text of a policy is its `repr`, so what a result file, a legend or a log says can be given back to the program. Text
may come from anywhere: it is read as literals and as names of the library's own classes, or of classes handed over by
the caller, and it never loads, imports or calls anything else. Texts in which users name their own files are read by
`text.load`, which is a module apart so that nothing here can load code.

>>> parse("ds-ts(gamma=0.9)")
DiscountedTS(gamma=0.9, tau_max=0.2, forget_below=0.0, weight=1.0)
>>> parse("ds-ts.tuned(horizon=100_000, phases=10)").gamma
0.99
"""

import ast
import inspect
import re
from collections.abc import Mapping
from typing import Any

from driftbandit.checks import nearest
from driftbandit.protocols import Environment, Policy
from driftbandit.text.registry import SpecError, environments, find, laws, policies

__all__ = [
    "SpecError",
    "constructors",
    "environments",
    "find",
    "laws",
    "nearest",
    "parse",
    "parse_environment",
    "parse_policy",
    "parse_snapshot",
    "policies",
]

# A letter to Python that nobody types: it stands for the dash of "ds-ts" while Python's grammar reads the text.
_DASH = "\u01c0"
_WORDS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<![\w.])[A-Za-z_]\w*(?:-\w+)+""")
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}
_PLACE = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([^\s()=,'"]+:[A-Za-z_]\w*)""")  # place:Name
_POLICY = ("init", "choose", "learn")
_FROM_WORLD = ("horizon", "phases", "n_arms", "sigma")  # what a named constructor may take from its world


def parse(text: str, extra: Mapping[str, Any] | None = None, world: Any = None) -> Any:
    """The policy, environment or reward law that a text describes: `parse(repr(p)) == p`.

    A name alone takes all defaults. Named constructors work too, `"ds-ts.half_life(70)"`; those that want to know the
    horizon, the number of phases or of arms take what is not given from `world`, if there is one. `extra` adds the
    user's own classes by name.

    >>> from driftbandit.environments import Abrupt
    >>> parse("ds-ts.tuned", world=Abrupt(horizon=40_000, phases=4)).gamma
    0.99
    """
    return _parsed(text, _Reader(text, extra, world))


def parse_snapshot(text: str, extra: Mapping[str, Any] | None = None) -> Any:
    """The policy of a snapshot or a journal, which may come from anybody, as `repr` wrote it: a class of
    `driftbandit.policies` or of `extra` with parameters, and nothing else. Short names and named constructors, which
    `repr` does not write, are refused as well."""
    made = _parsed(text, _SnapshotReader(text, extra, None))
    if isinstance(made, type) or not isinstance(made, Policy):
        raise SpecError(f"{text!r:.60} is not a policy.")
    return made


def _parsed(text: str, reader: "_Reader") -> Any:
    if not isinstance(text, str) or not text.strip():
        raise SpecError(f"A policy or environment is given by its text, such as 'ds-ts(gamma=0.9)'; got {text!r:.60}.")
    place = next((match[2] for match in _PLACE.finditer(text) if match[2]), None)
    if place is not None:
        raise SpecError(
            f"{place!r:.80} names a file or module, which is not loaded from here; name one of the library's policies, "
            "or in Python give the class itself."
        )
    plain = _WORDS.sub(lambda match: match[0] if match[1] else match[0].replace("-", _DASH), text.strip())
    try:
        made = reader.read(ast.parse(plain, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise SpecError(_unreadable(text, str(getattr(error, "msg", "") or "nested too deeply"))) from None
    except OverflowError:
        raise SpecError(_unreadable(text, "a number in it is too large")) from None
    if not hasattr(made, "_fields") and not hasattr(made, "choose") and not hasattr(made, "realise"):
        raise SpecError(
            f"{text!r:.60} is neither a policy nor an environment; write it as ds-ts(gamma=0.9) or Abrupt(n_arms=5)."
        )
    return made


def parse_policy(text: str, extra: Mapping[str, Any] | None = None, world: Any = None) -> Any:
    """Like `parse`, for a policy: no environment and no reward law is made on the way, which could read a file or fill
    the memory."""
    made = _parsed(text, _PolicyReader(text, extra, world))
    if isinstance(made, type) or not isinstance(made, Policy):
        raise SpecError(f"Expected a policy, got {text!r:.60}; `driftbandit list policies` shows them.")
    return made


def parse_environment(text: str, extra: Mapping[str, Any] | None = None) -> Any:
    """Like `parse`, and it must be an environment."""
    made = parse(text, extra)
    if not isinstance(made, Environment):
        raise SpecError(f"Expected an environment, got {text!r:.60}; `driftbandit list environments` shows them.")
    return made


def _unreadable(text: str, why: str) -> str:
    return f"Cannot read {text!r:.80}: {why}. Write it as in ds-ts(gamma=0.9), Smooth(n_arms=5) or ds-ts.half_life(70)."


class _Reader:
    """Turns the syntax tree of a text into the object it describes."""

    only_policies = False

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
        found = find(name.replace(_DASH, "-"), self.extra, self.only_policies)
        if isinstance(found, tuple) and not hasattr(found, "_fields"):
            return found[0], dict(found[1])
        return found, {}

    def _made(self, function: ast.expr, args: list[Any], given: dict[str, Any]) -> Any:
        match function:
            case ast.Name(id=name):
                target, preset = self._target(name)
                if not isinstance(target, type):
                    if args or given or not _is_known_kind(target):
                        raise SpecError(
                            f"{name.replace(_DASH, '-')!r:.60} is not a policy, an environment or a reward law."
                        )
                    return target  # the user's own, ready made
                if not _is_known_kind(target):
                    lacks = [verb for verb in _POLICY if not hasattr(target, verb)]
                    raise SpecError(
                        f"{target.__name__} is not a policy, an environment or a reward law. A policy has the methods "
                        f"{', '.join(_POLICY)}; {target.__name__} does not have {', '.join(lacks)}."
                    )
                return _called(target, getattr(target, "__name__", name), args, {**preset, **given})
            case ast.Attribute(value=ast.Name(id=name), attr=verb):
                cls, _ = self._target(name)
                known = self._constructors(cls) if isinstance(cls, type) and _is_known_kind(cls) else []
                if verb not in known:
                    title, hint = getattr(cls, "__name__", name), nearest(verb, known) or "."
                    raise SpecError(f"{title} has no constructor {verb!r}{hint} It has: {', '.join(known) or 'none'}.")
                maker = getattr(cls, verb)
                wanted = list(inspect.signature(maker).parameters)[len(args) :]
                given = {**_told_by(self.world, wanted, given.get("smooth", True)), **given}
                if self.world is not None and "phases" in wanted and "phases" not in given:
                    raise SpecError(
                        f"{cls.__name__}.{verb} needs phases, and {self.world!r:.60} drifts and has none: say how many "
                        f"times its best arm changes, plus one, as in {getattr(cls, 'short', name)}.{verb}(phases=10)."
                    )
                return _called(maker, f"{cls.__name__}.{verb}", args, given)
        raise SpecError(_unreadable(self.text, "a name is wanted before the bracket"))

    def _constructors(self, cls: type) -> list[str]:
        return constructors(cls)


class _PolicyReader(_Reader):
    """Makes policies, and policies within policies."""

    only_policies = True


class _SnapshotReader(_PolicyReader):
    """Reads what `repr` writes of a policy, and no more."""

    def _target(self, name: str) -> tuple[Any, dict[str, Any]]:
        found = (self.extra or {}).get(name) or policies().get(name)
        if not isinstance(found, type):
            raise SpecError(f"there is no policy {name!r:.60} here; your own classes are given by policies={{...}}.")
        return found, {}

    def _constructors(self, cls: type) -> list[str]:
        return []


def _is_known_kind(thing: Any) -> bool:
    """Is this a policy, a world or a reward law, or the class of one? Nothing else is ever called."""
    verbs = (_POLICY, ("realise",), ("draw",))
    return any(all(hasattr(thing, verb) for verb in kind) for kind in verbs)


def _told_by(world: Any, wanted: list[str], drifting: Any = True) -> dict[str, Any]:
    """What a named constructor may take from the world: its sizes, and whether it changes at once or drifts.

    A world without phases or breakpoints drifts. Constructors that treat such worlds apart (those with a parameter
    `smooth`) are told so; they look at no number of phases, which is 1, as the paper has it."""
    told = {word: getattr(world, word) for word in _FROM_WORLD if word in wanted and hasattr(world, word)}
    if world is not None and "phases" in wanted and "phases" not in told:
        breakpoints = getattr(world.realise(0), "breakpoints", None)
        if breakpoints is not None:
            told["phases"] = len(breakpoints)
        elif "smooth" in wanted and drifting:
            told |= {"phases": 1, "smooth": True}
    return told


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
