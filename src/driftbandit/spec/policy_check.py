"""Checks a user's policy before it is played; errors name the file, line and method.

Methods and parameters are inspected, and a few rounds are played in the interpreter, twice with the same seed. Tests
hold the package's own policies to the same, so they are skipped here."""

import inspect
import os
import time
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np

from driftbandit.core.draws import Stream
from driftbandit.core.primitives import learn_reward
from driftbandit.core.protocols import Environment
from driftbandit.core.state import init_state, to_arrays, to_lists
from driftbandit.errors import PolicyError
from driftbandit.spec import user_code

_METHODS = {  # numbers of parameters, and how to write it
    "init": ((2,), "init(self, n_arms)"),
    "choose": ((4,), "choose(self, state, t, rng)"),
    "learn": ((5, 6), "learn(self, state, t, arm, reward), or with rng at its end if learning is random"),
}
_CONTEXTUAL = {
    **_METHODS,
    "init": ((3, 4), "init(self, n_arms, n_features=0), or with joint=False at its end"),
    "choose_in": ((5,), "choose_in(self, state, t, rng, features)"),
    "learn_in": ((6,), "learn_in(self, state, t, arm, reward, features)"),
}
_TYPES = {"f8": "np.float64", "i8": "np.int64", "b1": "np.bool_"}


def find_own_classes(*values: Any) -> list[type]:
    """The classes in these policies and environments that are not the package's."""
    return [cls for cls in user_code.classes_in(values) if not cls.__module__.startswith("driftbandit.")]


def check(policy: object, n_arms: int, compiled: bool = True, n_features: int = 0, joint: bool = False) -> None:
    """Refuse a user's policy that cannot be played live, where its state must fit into journals and machine code."""
    if find_own_classes(policy):
        read_methods(policy)
        state = _call(policy, "init", init_state, policy, n_arms, n_features, joint)
        reason = find_obstacle(policy, state) if compiled else _state_obstacle(type(policy), state)
        if reason:
            raise PolicyError(f"{reason}.")
        _play_twice(policy, n_arms, Stream(0), n_features, joint, state)


def rehearse(policy: object, environment: Environment, stream: Any) -> float:
    """Refuse a user's policy that fails in its first rounds; otherwise return the seconds that a round takes."""
    if not find_own_classes(policy):
        return 0.0
    read_methods(policy)
    return _play_twice(
        policy, environment.n_arms, stream, getattr(environment, "n_features", 0), getattr(environment, "joint", False)
    )


def find_obstacle(policy: object, state: object) -> str:
    """Why a policy with this state cannot be compiled, judged by types; empty if it can."""
    cls = type(policy)
    if not isinstance(policy, tuple):
        return f"{where(cls)}: {cls.__name__} is not a NamedTuple with its parameters as fields"
    return _state_obstacle(cls, state)


def _state_obstacle(cls: Any, state: Any) -> str:
    if not isinstance(state, tuple) or not hasattr(state, "_fields"):
        return f"{where(cls.init)}: init returned {type(state).__name__}, not a NamedTuple of one-dimensional arrays"
    for name, field in zip(state._fields, state, strict=True):
        if isinstance(field, tuple) and hasattr(field, "_fields"):
            if inner := _state_obstacle(cls, field):
                return inner
        elif not isinstance(field, np.ndarray) or field.ndim != 1 or field.dtype.str[1:] not in _TYPES:
            what = f"{field.dtype}, {field.ndim} dimensions" if isinstance(field, np.ndarray) else type(field).__name__
            return (
                f"{where(cls.init)}: field {name!r} of {type(state).__name__} ({what}) is not a one-dimensional array "
                f"of {' or '.join(_TYPES.values())}; a single number is np.zeros(1)"
            )
    return ""


def read_methods(policy: object) -> None:
    """Refuse a user's policy with missing methods or other parameters."""
    for cls in find_own_classes(policy):
        if hasattr(cls, "choose") or cls is type(policy):
            _read_class(cls)


@lru_cache(maxsize=256)
def _read_class(cls: type) -> None:
    contextual = hasattr(cls, "choose_in") or hasattr(cls, "learn_in")
    for name, (counts, right) in (_CONTEXTUAL if contextual else _METHODS).items():
        method = getattr(cls, name, None)
        if method is None:
            raise PolicyError(f"{where(cls)}: {cls.__name__} has no method {name}; a policy needs {right}.")
        if not isinstance(inspect.getattr_static(cls, name), FunctionType):
            raise PolicyError(f"{where(cls)}: {name} of {cls.__name__} must be a plain method, {right}.")
        given = list(inspect.signature(method).parameters.values())
        if len(given) not in counts or any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in given):
            written = ", ".join(map(str, given))
            raise PolicyError(f"{where(method)}: {name}({written}) has other parameters than {right}.")


def _play_twice(
    policy: Any, n_arms: int, stream: Any, n_features: int = 0, joint: bool = False, like: Any = None
) -> float:
    """Play some rounds twice with the same random numbers, and refuse a policy that differs; return the seconds that a
    round takes."""
    (seconds, *first), (_, *again) = (_play(policy, n_arms, stream, n_features, joint, like) for _ in range(2))
    if first != again:
        cls = next(cls for cls in find_own_classes(policy) if hasattr(cls, "choose"))
        raise PolicyError(
            f"{where(cls)}: {cls.__name__} differs between two runs with the same seed. Take random numbers from rng, "
            "as in rng.random() or rng.normal(mean, sd); learn may have rng as its last parameter, and init draws none."
        )
    return seconds


def _play(
    policy: Any, n_arms: int, stream: Any, n_features: int, joint: bool, like: Any
) -> tuple[float, list[int], str]:
    """Play some rounds, with features if the policy uses them: the seconds that one of the later rounds takes, the arms
    and the state. With `like`, a state of arrays, play on lists and refuse values that do not fit into these arrays."""
    contextual = n_features > 0 and hasattr(policy, "choose_in")
    choose, learn = ("choose_in", "learn_in") if contextual else ("choose", "learn")
    state = _call(policy, "init", init_state, policy, n_arms, n_features, joint)
    state = state if like is None else to_lists(state)
    rounds, arms = max(3, min(60, 20_000 // n_arms)), []
    for t in range(rounds):
        if t == rounds // 2:
            started = time.thread_time()
        features = np.sin(np.arange(n_features * n_arms if joint else n_features) + t)
        x: Any = features if like is None else features.tolist()
        given = (state, t, stream.at(t), x) if contextual else (state, t, stream.at(t))
        arm = _call(policy, choose, getattr(policy, choose), *given)
        whole = isinstance(arm, int | np.integer) and not isinstance(arm, bool | np.bool_)
        if not whole or not 0 <= arm < n_arms:
            raise PolicyError(
                f"{where(getattr(type(policy), choose))}: {choose} returned {arm!r:.40} ({type(arm).__name__}); return "
                f"the number of an arm, an int from 0 to {n_arms - 1} here."
            )
        arms.append(int(arm))
        reward = (0.0, 1.0, 0.3125)[t % 3]
        if contextual:
            first = int(arm) * n_features if joint else 0
            _call(policy, learn, policy.learn_in, state, t, int(arm), reward, x[first : first + n_features])
        else:
            _call(policy, learn, learn_reward, policy, state, t, int(arm), reward, stream.at(t))
        if like is not None:
            _call(policy, learn, _refuse_lossy, state, like)
    return (time.thread_time() - started) / (rounds - rounds // 2), arms, str(_numbers(state))


def _numbers(state: Any) -> list[Any]:
    """All arrays and lists of a state, as lists."""
    if isinstance(state, np.ndarray):
        return state.tolist()  # type: ignore[no-any-return]
    return [_numbers(field) for field in state] if isinstance(state, tuple) else state if type(state) is list else []


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


def _call(policy: object, method: str, function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        place = user_code.where(error, "")
        raise _at(error, f"{place}, in {method}" if place else where(getattr(type(policy), method))) from error


def _at(error: Exception, place: str) -> PolicyError:
    fields = getattr(getattr(error, "obj", None), "_fields", None)
    more = f" Its fields are {', '.join(fields)}." if fields else ""
    return PolicyError(f"{place}: {type(error).__name__}: {str(error).rstrip('.')}.{more}")


def locate_error(error: Exception, policy: object) -> PolicyError | None:
    """An error in a later round with the line of the user's code; None if the user's code is not involved."""
    place = user_code.where(error, "")
    if not place:
        place = next((where(cls.choose) for cls in find_own_classes(policy) if hasattr(cls, "choose")), "")
    return _at(error, place) if place and not isinstance(error, MemoryError) else None


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
