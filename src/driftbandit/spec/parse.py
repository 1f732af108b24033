"""Policies, environments and reward laws by name, and by text: `parse` is the inverse of `repr`.

Nothing is registered: a class with a `short` name in `driftbandit/policies` is found by every command. Text may come
from anywhere. It is read as literals and as names of the library's classes, or of classes that the caller passes in; it
never loads, imports or calls anything else. `spec.user_code` reads texts in which users name their own files.

>>> parse("ds-ts(gamma=0.9)")
DiscountedTS(gamma=0.9, tau_max=0.2, forget_below=0.0, weight=1.0)
>>> parse("ds-ts.tuned(horizon=100_000, phases=10)").gamma
0.99
"""

import ast
import importlib
import inspect
import itertools
import math
import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from driftbandit.core.checks import nearest
from driftbandit.core.protocols import Environment, Policy
from driftbandit.errors import SpecError

_DASH, _DOT = "\u01c0", "\u01c1"  # letters for those of "ds-ts" and "gap.1-K2" while Python's grammar reads the text
_QUOTED = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_WORDS = re.compile(_QUOTED + r"|(?<![\w.])[A-Za-z_]\w*(?:(?:-|\.(?=\d))\w+)+")
_PLACE = re.compile(_QUOTED + r"""|([^\s()=,'"]+:[A-Za-z_]\w*)""")  # place:Name
_GRID = re.compile(r"=\s*\[([^\[\]]*)\]")
_LARGEST_GRID = 1000
_NUMBERS = {"inf": math.inf, "nan": math.nan}
_POLICY = ("init", "choose", "learn")
# What a named constructor may take from the environment:
_FROM_ENVIRONMENT = ("horizon", "phases", "n_arms", "sigma", "n_features", "joint", "variation")


# ---- names -----------------------------------------------------------------------------------------------------------


def policies() -> dict[str, type]:
    """Every policy class by its name."""
    return _classes("driftbandit.policies", "choose")


def environments() -> dict[str, type]:
    """Every environment class by its name."""
    return _classes("driftbandit.environments", "realise")


def laws() -> dict[str, type]:
    """Every reward law by its name."""
    module = importlib.import_module("driftbandit.environments.rewards")
    found = (value for value in vars(module).values() if isinstance(value, type) and hasattr(value, "draw"))
    return {cls.__name__: cls for cls in found}


@cache
def _classes(package: str, verb: str) -> dict[str, type]:
    """The classes of a package that have a `short` name and this method, in alphabetical order of their modules."""
    found = {}
    paths = importlib.import_module(package).__path__
    for info in sorted(pkgutil.iter_modules(paths), key=lambda info: info.name):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package}.{info.name}")
        for name, value in vars(module).items():
            own = isinstance(value, type) and f"{value.__module__}.".startswith(f"{module.__name__}.")
            if own and "short" in vars(value) and hasattr(value, verb):
                found[name] = value
    return found


def named_environments() -> dict[str, Any]:
    """Every environment with a name of its own, such as those of the suites."""
    return importlib.import_module("driftbandit.environments.named").NAMED  # type: ignore[no-any-return]


@cache
def _names(only_policies: bool) -> dict[str, tuple[str, Any]]:
    """As it is written and what it stands for, by each name in lower case. The alias of a class, such as `aliases =
    {"dots": {"optimistic": True}}`, and the name of an environment stand for (class, parameters)."""
    names: dict[str, Any] = {}
    others = [] if only_policies else [*environments().values(), *laws().values()]
    for cls in [*policies().values(), *others]:
        names |= {cls.__name__: cls, getattr(cls, "short", cls.__name__): cls}
        names |= {alias: (cls, values) for alias, values in getattr(cls, "aliases", {}).items()}
    if not only_policies:
        names |= {name: (type(made), made._asdict()) for name, made in named_environments().items()}
    return {name.casefold(): (name, stands_for) for name, stands_for in names.items()}


def find(name: str, extra: Mapping[str, Any] | None = None, only_policies: bool = False) -> Any:
    """The class of this name or short name in any case, (class, parameters) for an alias, or an entry of `extra`, the
    user's own. With `only_policies` no other class of the library is found."""
    if extra and name in extra:
        return extra[name]
    names = _names(only_policies)
    if name.casefold() in names:
        return names[name.casefold()][1]
    if only_policies and name.casefold() in _names(False):
        raise SpecError(f"Expected a policy, got {name!r:.60}; `driftbandit list policies` shows them.")
    kind = "policy" if only_policies else "policy, environment or reward law"
    hint = nearest(name, [*(written for written, _ in names.values()), *(extra or ())], most=3) or "."
    raise SpecError(f"There is no {kind} named {name!r:.60}{hint} `driftbandit list` shows all.")


def constructors(cls: type) -> list[str]:
    """The named constructors of a class: `tuned`, `half_life` and the like."""
    bases = [vars(base).items() for base in cls.__mro__ if base is not tuple]
    names = [name for base in bases for name, value in base if isinstance(value, classmethod)]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


# ---- texts -----------------------------------------------------------------------------------------------------------


def expand_grid(text: str) -> list[str]:
    """One text for each combination of the values in brackets.

    >>> expand_grid("ds-ts(gamma=[0.9, 0.99], tau_max=0.2)")
    ['ds-ts(gamma=0.9, tau_max=0.2)', 'ds-ts(gamma=0.99, tau_max=0.2)']
    """
    lists = [[value.strip() for value in match[1].split(",") if value.strip()] for match in _GRID.finditer(text)]
    if not all(lists):
        raise SpecError(f"{text!r:.80} has an empty list of values; write it as in gamma=[0.9, 0.99].")
    if math.prod(map(len, lists)) > _LARGEST_GRID:
        raise SpecError(f"{text!r:.80} stands for more than {_LARGEST_GRID} policies.")
    fixed = _GRID.split(text)[::2]
    return [
        "".join(part + (f"={value}" if value else "") for part, value in zip(fixed, [*chosen, ""], strict=True))
        for chosen in itertools.product(*lists)
    ]


def parse(text: str, extra: Mapping[str, Any] | None = None, environment: Any = None) -> Any:
    """The policy, environment or reward law that a text describes: `parse(repr(p)) == p`.

    Named constructors work too, as in `"ds-ts.half_life(70)"`; they take the horizon, the phases and the arms that are
    not given from `environment`, an environment. `extra` adds the user's own classes by name.

    >>> from driftbandit.environments import Abrupt
    >>> parse("ds-ts.tuned", environment=Abrupt(horizon=40_000, phases=4)).gamma
    0.99
    """
    return _Reader(text, extra, environment).read_text()


def parse_policy(text: str, extra: Mapping[str, Any] | None = None, environment: Any = None) -> Any:
    """Like `parse`, for a policy. It builds no environment and no reward law, which could read a file or fill the
    memory."""
    return _policy(_Reader(text, extra, environment, only_policies=True))


def parse_snapshot(text: str, extra: Mapping[str, Any] | None = None) -> Any:
    """The policy of a snapshot or journal, as `repr` wrote it. Short names and named constructors are refused."""
    return _policy(_SnapshotReader(text, extra))


def _policy(reader: "_Reader") -> Any:
    made = reader.read_text()
    if isinstance(made, type) or not isinstance(made, Policy):
        raise SpecError(f"Expected a policy, got {reader.text!r:.60}; `driftbandit list policies` shows them.")
    return made


def parse_environment(text: str, extra: Mapping[str, Any] | None = None) -> Any:
    """Like `parse`, for an environment."""
    made = parse(text, extra)
    if not isinstance(made, Environment):
        raise SpecError(f"Expected an environment, got {text!r:.60}; `driftbandit list environments` shows them.")
    return made


class _Reader:
    """Turns the syntax tree of a text into the object it describes."""

    def __init__(
        self, text: str, extra: Mapping[str, Any] | None, environment: Any = None, only_policies: bool = False
    ) -> None:
        self.text, self.extra, self.environment, self.only_policies = text, extra or {}, environment, only_policies

    def read_text(self) -> Any:
        text = self.text
        if not isinstance(text, str) or not text.strip():
            raise SpecError(
                f"A policy or environment is given by its text, such as 'ds-ts(gamma=0.9)'; got {text!r:.60}."
            )
        place = next((match[2] for match in _PLACE.finditer(text) if match[2]), None)
        if place is not None:
            raise SpecError(
                f"{place!r:.80} names a file or module, which is not loaded from here; name one of the library's "
                "policies, or in Python give the class itself."
            )
        plain = _WORDS.sub(lambda match: match[0] if match[1] else _as_identifier(match[0]), text.strip())
        try:
            made = self.read(ast.parse(plain, mode="eval").body)
        except (SyntaxError, RecursionError, MemoryError, OverflowError) as error:
            raise self._unreadable(str(getattr(error, "msg", "") or "it is nested too deeply or too large")) from None
        if not any(hasattr(made, name) for name in ("_fields", "choose", "realise")):
            raise self._unreadable("it is neither a policy nor an environment")
        return made

    def _unreadable(self, why: str) -> SpecError:
        right = "Write it as in ds-ts(gamma=0.9), Smooth(n_arms=5) or ds-ts.half_life(70)."
        return SpecError(f"Cannot read {self.text!r:.80}: {why}. {right}")

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
                    raise self._unreadable("it divides by zero")
                return above / below
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tuple(self.read(item) for item in items)
            case ast.Name(id=name) if name in _NUMBERS and name not in self.extra:
                return _NUMBERS[name]
            case ast.Name() | ast.Attribute():
                return self._build(node, [], {})
            case ast.Call(func=function, args=args, keywords=keywords) if all(k.arg for k in keywords):
                given = {str(keyword.arg): self.read(keyword.value) for keyword in keywords}
                if len(given) < len(keywords):
                    raise self._unreadable("a parameter is given twice")
                return self._build(function, [self.read(item) for item in args], given)
        raise self._unreadable("only numbers, texts, tuples and names with parameters are understood")

    def _number(self, node: ast.expr) -> Any:
        value = self.read(node)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._unreadable("signs and fractions are for numbers")
        return value

    def _find(self, name: str) -> tuple[Any, dict[str, Any]]:
        """The class or object of this name, with the parameters that an alias fixes."""
        found = find(_as_written(name), self.extra, self.only_policies)
        return found if isinstance(found, tuple) and not hasattr(found, "_fields") else (found, {})

    def _build(self, function: ast.expr, args: list[Any], given: dict[str, Any]) -> Any:
        match function:
            case ast.Name(id=name):
                target, preset = self._find(name)
                _check_kind(target, name)
                if isinstance(target, type):
                    return _call(target, target.__name__, args, {**preset, **given})
                if not args and not given:
                    return target  # an object of the user's
            case ast.Attribute(value=ast.Name(id=name), attr=verb):
                return self._build_by_constructor(name, verb, args, given)
        raise self._unreadable("expected a name before the bracket")

    def _build_by_constructor(self, name: str, verb: str, args: list[Any], given: dict[str, Any]) -> Any:
        cls, _ = self._find(name)
        _check_kind(cls, name)
        known = self._constructors(cls) if isinstance(cls, type) else []
        if verb not in known:
            title, hint = getattr(cls, "__name__", name), nearest(verb, known) or "."
            raise SpecError(f"{title} has no constructor {verb!r}{hint} It has: {', '.join(known) or 'none'}.")
        maker = getattr(cls, verb)
        wanted = list(inspect.signature(maker).parameters)[len(args) :]
        given = {**_facts_about(self.environment, wanted, given.get("smooth", True)), **given}
        if self.environment is not None and "phases" in wanted and "phases" not in given:
            raise SpecError(
                f"{cls.__name__}.{verb} needs phases, and {self.environment!r:.60} drifts and has none: give the "
                f"number of changes of its best arm, plus one, as in {getattr(cls, 'short', name)}.{verb}(phases=10)."
            )
        return _call(maker, f"{cls.__name__}.{verb}", args, given)

    def _constructors(self, cls: type) -> list[str]:
        return constructors(cls)


def _as_identifier(name: str) -> str:
    return name.replace("-", _DASH).replace(".", _DOT)


def _as_written(identifier: str) -> str:
    return identifier.replace(_DASH, "-").replace(_DOT, ".")


class _SnapshotReader(_Reader):
    """Reads what `repr` writes of a policy, and no more."""

    def _find(self, name: str) -> tuple[Any, dict[str, Any]]:
        found = self.extra.get(name) or policies().get(name)
        if not isinstance(found, type):
            raise SpecError(f"there is no policy {name!r:.60} here; pass your own classes as policies={{...}}.")
        return found, {}

    def _constructors(self, cls: type) -> list[str]:
        return []


def _check_kind(thing: Any, name: str) -> None:
    """Refuse anything but a policy, an environment or a reward law, or the class of one: nothing else is called."""
    if not any(all(hasattr(thing, verb) for verb in kind) for kind in (_POLICY, ("realise",), ("draw",))):
        title = getattr(thing, "__name__", _as_written(name))
        lacks = ", ".join(verb for verb in _POLICY if not hasattr(thing, verb))
        raise SpecError(
            f"{title:.60} is not a policy, an environment or a reward law. A policy has {', '.join(_POLICY)}; "
            f"{title:.60} does not have {lacks}."
        )


def _facts_about(environment: Any, wanted: list[str], drifting: Any = True) -> dict[str, Any]:
    """What a named constructor may take from the environment: its sizes, and whether it changes abruptly or drifts.

    An environment without phases or breakpoints drifts. Constructors with a parameter `smooth` treat these separately
    and ignore the number of phases, which is 1, as in the paper."""
    facts = {
        word: getattr(environment, word) for word in _FROM_ENVIRONMENT if word in wanted and hasattr(environment, word)
    }
    if environment is not None and "phases" in wanted and "phases" not in facts:
        breakpoints = getattr(environment.realise(0), "breakpoints", None)
        if breakpoints is not None:
            facts["phases"] = len(breakpoints)
        elif "smooth" in wanted and drifting:
            facts |= {"phases": 1, "smooth": True}
    return facts


def _call(maker: Any, name: str, args: list[Any], given: dict[str, Any]) -> Any:
    """The object; parameters that do not fit are refused in one sentence."""
    signature = inspect.signature(maker)
    if hasattr(maker, "_fields"):
        either, defaults = inspect.Parameter.POSITIONAL_OR_KEYWORD, maker._field_defaults
        parts = [inspect.Parameter(f, either, default=defaults.get(f, inspect.Parameter.empty)) for f in maker._fields]
        signature = inspect.Signature(parts)
    wanted = list(signature.parameters)
    has = f"It has: {', '.join(wanted)}." if wanted else "It has none."
    for word in given:
        if word not in wanted:
            raise SpecError(f"{name} has no parameter {word!r}{nearest(word, wanted) or '.'} {has}")
    try:
        signature.bind(*args, **given)
    except TypeError as error:
        raise SpecError(f"{name}: {error}. {has}") from None
    return maker(*args, **given)
