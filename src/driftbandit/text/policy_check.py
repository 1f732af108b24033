"""A user's policy, checked before it is played: what is wrong is said by file, line and method.

Its methods and their parameters are read, and its text for random numbers that do not come from the seed. Then it plays
a few rounds in the interpreter. The package's own policies are held to the same by its tests, and not checked here."""

import ast
import inspect
import os
import random
import textwrap
import time
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from driftbandit.draws import Stream
from driftbandit.primitives import teach
from driftbandit.state import to_arrays, to_lists
from driftbandit.text import user_code

SHAPES = {  # parameters of each method, and how to write it
    "init": ((2,), "init(self, n_arms)"),
    "choose": ((4,), "choose(self, state, t, rng)"),
    "learn": ((5, 6), "learn(self, state, t, arm, reward), or with rng at its end if learning is random"),
}
_WORK = 20_000  # arms × rounds of a rehearsal, at most
_ROUNDS = 60
_KINDS = {"f8": "np.float64", "i8": "np.int64", "b1": "np.bool_"}


class PolicyError(TypeError):
    """What is wrong with a user's policy, where, and what to do."""


def own_classes(*values: Any) -> list[type]:
    """The classes in these policies and environments that are not the package's."""
    return [cls for cls in user_code.classes_in(values) if not cls.__module__.startswith("driftbandit.")]


def check(policy: Any, n_arms: int, compiled: bool = True) -> None:
    """Refuse a user's policy that cannot be played live, where its state has to fit into journals and machine code."""
    if own_classes(policy):
        read_methods(policy)
        state = _called(policy, "init", policy.init, n_arms)
        reason = obstacle(policy, state) if compiled else _state_obstacle(type(policy), state)
        if reason:
            raise PolicyError(f"{reason}.")
        _play(policy, to_lists(state), n_arms, Stream(0), like=state)


def rehearse(policy: Any, n_arms: int, stream: Any) -> float:
    """Refuse a user's policy that fails in its first rounds; else, the seconds that a round takes."""
    if not own_classes(policy):
        return 0.0
    read_methods(policy)
    return _play(policy, _called(policy, "init", policy.init, n_arms), n_arms, stream)


def obstacle(policy: Any, state: Any) -> str:
    """Why a policy with this state cannot be compiled, as far as their types show; empty if nothing is in the way."""
    cls = type(policy)
    if not isinstance(policy, tuple):
        return f"{where(cls)}: {cls.__name__} is not a NamedTuple with its parameters as fields"
    return _state_obstacle(cls, state)


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_methods(policy: Any) -> None:
    """Refuse a user's policy with missing methods, other parameters, or numbers that do not come from the seed."""
    for cls in own_classes(policy):
        if hasattr(cls, "choose") or cls is type(policy):
            _read(cls)


@lru_cache(maxsize=256)
def _read(cls: type) -> None:
    """Methods, their parameters, and random numbers that do not come from the seed."""
    for name, (counts, right) in SHAPES.items():
        method = getattr(cls, name, None)
        if method is None:
            raise PolicyError(f"{where(cls)}: {cls.__name__} has no method {name}; a policy needs {right}.")
        if not isinstance(inspect.getattr_static(cls, name), FunctionType):
            raise PolicyError(f"{where(cls)}: {name} of {cls.__name__} must be a plain method, {right}.")
        given = list(inspect.signature(method).parameters.values())
        if len(given) not in counts or any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in given):
            written = ", ".join(map(str, given))
            raise PolicyError(f"{where(method)}: {name}({written}) has other parameters than {right}.")
    seen: set[FunctionType] = set()
    for method in [value for value in vars(cls).values() if isinstance(value, FunctionType)]:
        _refuse_foreign_numbers(method, method.__name__, seen)


def _refuse_foreign_numbers(function: FunctionType, method: str, seen: set[FunctionType]) -> None:
    """In a function, and in the user's functions that it calls."""
    if function in seen or not user_code.is_own_file(function.__code__.co_filename):
        return
    seen.add(function)
    try:
        lines, first = inspect.getsourcelines(function)
        nodes = list(ast.walk(ast.parse(textwrap.dedent("".join(lines)))))
    except (OSError, TypeError, SyntaxError):
        return
    for node in nodes:
        value = _value(node, function)
        if _is_foreign(value):
            place = f"{os.path.basename(function.__code__.co_filename)}, line {first + node.lineno - 1}, in {method}"  # type: ignore[attr-defined]
            rng = {"init": "draw in choose", "learn": "add a parameter rng at the end of learn and use it"}
            raise PolicyError(
                f"{place}: `{ast.unparse(node)}` draws numbers that do not come from the seed, so the run could not be "
                f"repeated; {rng.get(method, 'use rng, as in rng.random(), rng.normal(mean, sd) or rng.integers(k)')}."
            )
        if isinstance(value, FunctionType):
            _refuse_foreign_numbers(value, method, seen)


def _value(node: ast.AST, function: FunctionType) -> Any:
    """What a name or a dotted name stands for in a function; None if that is not known before it runs."""
    if isinstance(node, ast.Attribute):
        base = _value(node.value, function)
        return getattr(base, node.attr, None) if isinstance(base, ModuleType) else None
    if isinstance(node, ast.Name) and node.id not in function.__code__.co_varnames:
        return function.__globals__.get(node.id)
    return None


def _is_foreign(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return value is random or value is np.random
    kinds = (random.Random, np.random.Generator, np.random.RandomState)
    holder = getattr(value, "__self__", None)  # random.random is a method of a hidden generator
    return isinstance(value, kinds) or isinstance(holder, kinds) or value in (random.Random, np.random.default_rng)


# ---- playing ---------------------------------------------------------------------------------------------------------


def _play(policy: Any, state: Any, n_arms: int, stream: Any, like: Any = None) -> float:
    """Play some rounds with rewards 0, 1 and 0.3125; the seconds that one of the later rounds takes. With `like`, a
    state of arrays, refuse what is written into the lists of `state` and does not fit into those arrays."""
    rounds = max(3, min(_ROUNDS, _WORK // n_arms))
    for t in range(rounds):
        if t == rounds // 2:
            started = time.thread_time()
        arm = _called(policy, "choose", policy.choose, state, t, stream.at(t))
        whole = isinstance(arm, int | np.integer) and not isinstance(arm, bool | np.bool_)
        if not whole or not 0 <= arm < n_arms:
            raise PolicyError(
                f"{where(type(policy).choose)}: choose returned {arm!r:.40} ({type(arm).__name__}); return the number "
                f"of an arm, an int from 0 to {n_arms - 1} here."
            )
        reward = (0.0, 1.0, 0.3125)[t % 3]
        _called(policy, "learn", teach, policy, state, t, int(arm), reward, stream.at(t))
        if like is not None:
            _called(policy, "learn", _refuse_lossy, state, like)
    return (time.thread_time() - started) / (rounds - rounds // 2)


def _refuse_lossy(state: Any, like: Any) -> None:
    for name, field, array in zip(like._fields, state, like, strict=True):
        if isinstance(array, tuple):
            _refuse_lossy(field, array)
        elif len(field) != len(array) or any(
            kept != given and kept == kept for kept, given in zip(to_arrays(field, array).tolist(), field, strict=True)
        ):
            raise TypeError(
                f"the values in field {name!r} do not fit into its {len(array)} numbers of {array.dtype}; make it "
                "np.zeros(...) without a dtype, or store int(...)"
            )


def _called(policy: Any, method: str, function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        place = user_code.where(error, "")
        raise _placed(error, f"{place}, in {method}" if place else where(getattr(type(policy), method))) from error


def _placed(error: Exception, place: str) -> PolicyError:
    fields = getattr(getattr(error, "obj", None), "_fields", None)
    more = f" Its fields are {', '.join(fields)}." if fields else ""
    return PolicyError(f"{place}: {type(error).__name__}: {str(error).rstrip('.')}.{more}")


def located(error: Exception, policy: Any) -> PolicyError | None:
    """An error in a later round with the line of the user's code; None if no code of the user's is at fault."""
    place = user_code.where(error, "")
    if not place:
        place = next((where(cls.choose) for cls in own_classes(policy) if hasattr(cls, "choose")), "")
    return _placed(error, place) if place and not isinstance(error, MemoryError) else None


def _state_obstacle(cls: Any, state: Any) -> str:
    """What keeps a state out of machine code: it must be a `NamedTuple` of one-dimensional arrays of plain numbers."""
    if not isinstance(state, tuple) or not hasattr(state, "_fields"):
        return f"{where(cls.init)}: init returned {type(state).__name__}, not a NamedTuple of one-dimensional arrays"
    for name, field in zip(state._fields, state, strict=True):
        if isinstance(field, tuple) and hasattr(field, "_fields"):
            if inner := _state_obstacle(cls, field):
                return inner
        elif not isinstance(field, np.ndarray) or field.ndim != 1 or field.dtype.str[1:] not in _KINDS:
            what = f"{field.dtype}, {field.ndim} dimensions" if isinstance(field, np.ndarray) else type(field).__name__
            return (
                f"{where(cls.init)}: field {name!r} of {type(state).__name__} ({what}) is not a one-dimensional array "
                f"of {' or '.join(_KINDS.values())}; a single number is np.zeros(1)"
            )
    return ""


def where(thing: Any) -> str:
    """File and line of a class or function."""
    try:
        lines, first = inspect.getsourcelines(thing)
        file = os.path.basename(inspect.getsourcefile(thing) or "")
    except (OSError, TypeError):
        return str(getattr(thing, "__qualname__", thing))
    word, method = ("def ", f", in {thing.__name__}") if isinstance(thing, FunctionType) else ("class ", "")
    first += next((n for n, line in enumerate(lines) if line.lstrip().startswith(word)), 0)
    return f"{file}, line {first}{method}"
