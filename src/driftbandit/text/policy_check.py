"""A user's policy, looked at before it is played: what is wrong is said in the words of its author, not the compiler's.

The text of the class is read for what would compile and yet be wrong (random numbers from outside the seed) or fail far
from its cause (a parameter too few, an import inside a method). Then the policy plays some rounds in the interpreter on
lists that watch what is written into them. Interpreter and machine code agree on what passes; the differences that only
show later, a number with a fraction written into a field of whole numbers, the compiler refuses by itself
(`numba_methods.whole_stores`).

Every message names file, method and line, says what is right and what to do. The package's own policies are held to
the same by its tests, and are not looked at here."""

import ast
import inspect
import os
import random
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from driftbandit.draws import Stream
from driftbandit.primitives import teach
from driftbandit.text import user_code
from driftbandit.text.watched_state import UnsafeStore, watched

SHAPES = {  # parameters of each method, and how to write it
    "init": ((2,), "init(self, n_arms)"),
    "choose": ((4,), "choose(self, state, t, rng)"),
    "learn": ((5, 6), "learn(self, state, t, arm, reward), or with rng at its end if learning needs chance"),
}
_WORK = 20_000  # arms × rounds of a rehearsal, at most
_ROUNDS = 60
_KINDS = {"f8": "np.float64", "i8": "np.int64", "b1": "np.bool_"}


class PolicyError(TypeError):
    """What is wrong with a user's policy, where, and what to do."""


def check(policy: Any, n_arms: int, compiled: bool = True) -> None:
    """Refuse a user's policy that cannot be played, or would play differently interpreted and compiled."""
    if compiled and not isinstance(policy, tuple):
        raise PolicyError(
            f"{_where(type(policy))}: {type(policy).__name__} is not a NamedTuple, as machine code needs; write `class "
            f"{type(policy).__name__}(NamedTuple)` with its parameters as fields, or play it with compiled=False "
            "(--interpreted)."
        )
    own = [cls for cls in user_code.classes_in(policy) if not cls.__module__.startswith("driftbandit.")]
    players = [cls for cls in own if hasattr(cls, "choose") or cls is type(policy)]
    for cls in players:
        read(cls)
    if players:
        try:
            _rehearsed(policy, n_arms)
        except TypeError as error:
            if isinstance(error, PolicyError) or "unhashable" not in str(error):
                raise
            _rehearsed.__wrapped__(policy, n_arms)


# ---- reading ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def read(cls: type) -> None:
    """Methods, their parameters, and what their text must not contain."""
    for name, (counts, right) in SHAPES.items():
        method = getattr(cls, name, None)
        if method is None:
            raise PolicyError(f"{_where(cls)}: {cls.__name__} has no method {name}; a policy needs {right}.")
        if not isinstance(inspect.getattr_static(cls, name), FunctionType):
            raise PolicyError(f"{_where(cls)}: {name} of {cls.__name__} must be a plain method, {right}.")
        given = list(inspect.signature(method).parameters.values())
        plain = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in given)
        if not plain or len(given) not in counts:
            written = ", ".join(str(p) for p in given)
            raise PolicyError(f"{_where(method)}: {name}({written}) has other parameters than {right}.")
    seen: set[FunctionType] = set()
    for method in [value for value in vars(cls).values() if isinstance(value, FunctionType)]:
        _read_function(method, method.__name__, seen)


def _read_function(function: FunctionType, method: str, seen: set[FunctionType]) -> None:
    """Refuse imports and foreign random numbers in a function and in the user's functions that it calls."""
    if function in seen or not user_code.is_own_file(function.__code__.co_filename):
        return
    seen.add(function)
    for node, line in _nodes(function):
        place = f"{os.path.basename(function.__code__.co_filename)}, line {line}, in {method}"
        if isinstance(node, ast.Import | ast.ImportFrom):
            raise PolicyError(f"{place}: an import inside a method does not compile; move it to the top of the file.")
        if isinstance(node, ast.Name | ast.Attribute):
            value = _value(node, function)
            if _is_foreign_chance(value):
                raise PolicyError(f"{place}: `{ast.unparse(node)}` {_foreign(method)}")
            if isinstance(value, FunctionType):
                _read_function(value, method, seen)


def _foreign(method: str) -> str:
    cure = "use the numbers of the round: rng.uniform(slot), rng.normal(slot), rng.normals(out) or rng.betas(a, b, out)"
    if method == "init":
        cure = "let init be the same each time, and draw in choose"
    elif method == "learn":
        cure = f"declare learn(self, state, t, arm, reward, rng) and {cure}"
    return f"draws from outside the seed, so that no run could be repeated; {cure}."


def _nodes(function: FunctionType) -> Iterator[tuple[ast.AST, int]]:
    """The parts of a function's text with their lines in its file; none if there is no text."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        yield node, first + getattr(node, "lineno", 1) - 1


def _value(node: ast.AST, function: FunctionType) -> Any:
    """What a name or a dotted name stands for in a function, None if that is not known before it runs."""
    if isinstance(node, ast.Attribute):
        base = _value(node.value, function)
        return getattr(base, node.attr, None) if isinstance(base, ModuleType) else None
    if isinstance(node, ast.Name) and node.id not in function.__code__.co_varnames:
        return function.__globals__.get(node.id)
    return None


def _is_foreign_chance(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return value is random or value is np.random
    holder = getattr(value, "__self__", None)  # random.random is a method of a hidden generator
    kinds = (random.Random, np.random.Generator, np.random.RandomState)
    return isinstance(value, kinds) or isinstance(holder, kinds) or value in (random.Random, np.random.default_rng)


# ---- playing ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256, typed=True)  # tuples of two classes with the same fields are equal
def _rehearsed(policy: Any, n_arms: int) -> None:
    """Some rounds in the interpreter, with rewards 0, 1 and what lies between."""
    cls, stream = type(policy), Stream(0)
    state = _called(policy, "init", lambda: policy.init(n_arms))
    _check_state(cls, state, cls.__name__)
    held = watched(state)
    for t in range(max(3, min(_ROUNDS, _WORK // n_arms))):
        arm = _called(policy, "choose", lambda t=t: policy.choose(held, t, stream.at(t)))
        whole = isinstance(arm, int | np.integer) and not isinstance(arm, bool | np.bool_)
        if not whole or not 0 <= arm < n_arms:
            line = _line_of_return(policy, held, t, stream)
            what = f"{arm!r:.40}" if whole else f"{arm!r:.40} ({type(arm).__name__})"
            cure = (
                "return the number of an arm"
                if arm is None or isinstance(arm, str)
                else f"return int(...), from 0 to {n_arms - 1}"
            )
            raise PolicyError(
                f"{line}: choose returned {what}; an arm is a whole number from 0 to {n_arms - 1} here, so {cure}."
            )
        reward = (0.0, 1.0, 0.3125)[t % 3]
        _called(policy, "learn", lambda t=t, arm=int(arm), r=reward: teach(policy, held, t, arm, r, stream.at(t)))


def _called(policy: Any, method: str, call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        cls = type(policy)
        place = user_code.where(error, "")
        place = f"{place}, in {method}" if place else _where(getattr(cls, method))
        if isinstance(error, UnsafeStore):
            raise PolicyError(f"{place}: {error}") from None
        if isinstance(error, ArithmeticError) or (isinstance(error, ValueError) and "math domain" in str(error)):
            more = " Compiled code would go on with inf or nan here; guard the case."
        elif isinstance(error, AttributeError) and "has no attribute" in str(error):
            more = f" {_fields_of(error)}"
        else:
            more = ""
        raise PolicyError(f"{place}: {type(error).__name__}: {str(error).rstrip('.')}.{more}") from error


def _fields_of(error: AttributeError) -> str:
    fields = getattr(error.obj, "_fields", None)
    return f"{type(error.obj).__name__} has the fields {', '.join(fields)}." if fields else ""


def _check_state(cls: type, state: Any, path: str) -> None:
    """The state is a `NamedTuple` of arrays with one dimension, of numbers that interpreter and machine code share."""
    place = f"{_where(cls.init)}"  # type: ignore[attr-defined]
    if not isinstance(state, tuple) or not hasattr(state, "_fields"):
        hint = ". Its `return` may be missing." if state is None else "."
        raise PolicyError(
            f"{place}: init returned {type(state).__name__ if state is not None else None}; "
            f"a state is a NamedTuple of one-dimensional NumPy arrays{hint}"
        )
    for name, field in zip(state._fields, state, strict=True):
        what = f"field {name!r} of {type(state).__name__}"
        if isinstance(field, tuple) and hasattr(field, "_fields"):
            _check_state(cls, field, f"{path}.{name}")
        elif not isinstance(field, np.ndarray):
            number = isinstance(field, int | float | np.number)
            cure = "make it an array of length 1, np.zeros(1)" if number else "make it an array, as np.array(...) does"
            raise PolicyError(f"{place}: {what} is a {type(field).__name__}, not an array; {cure}.")
        elif field.ndim != 1:
            raise PolicyError(
                f"{place}: {what} has {field.ndim} dimensions; keep it flat, entry [i, j] at i * columns + j."
            )
        elif field.dtype.str[1:] not in _KINDS or not field.dtype.isnative:
            kinds = " or ".join(_KINDS.values())
            raise PolicyError(
                f"{place}: {what} has dtype {field.dtype}, which interpreter and machine code round differently; "
                f"use {kinds}."
            )


def _line_of_return(policy: Any, state: Any, t: int, stream: Stream) -> str:
    """File and line of the `return` that a choice ends with, seen by asking once more."""
    import sys

    code, last = type(policy).choose.__code__, type(policy).choose.__code__.co_firstlineno

    def look(frame: Any, event: str, value: Any) -> Any:
        nonlocal last
        if frame.f_code is not code:
            return None
        last = frame.f_lineno
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        policy.choose(state, t, stream.at(t))
    finally:
        sys.settrace(before)
    return f"{os.path.basename(code.co_filename)}, line {last}, in choose"


def _where(thing: Any) -> str:
    """File and line of a class or function."""
    try:
        lines, first = inspect.getsourcelines(thing)
        file = os.path.basename(inspect.getsourcefile(thing) or "")
    except (OSError, TypeError):
        return str(getattr(thing, "__qualname__", thing))
    if isinstance(thing, FunctionType):
        first += next((n for n, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
        return f"{file}, line {first}, in {thing.__name__}"
    first += next((n for n, line in enumerate(lines) if line.lstrip().startswith("class ")), 0)
    return f"{file}, line {first}"
