"""How plain methods become machine code: what Numba is told.

Policies, environments and draws are `NamedTuple`s whose methods are ordinary Python. `register` tells Numba that
calling such a method means compiling the function found on the tuple's class, and that a `compilable` helper means its
own source. The policy's identity is then part of the argument's type, which pickles by name, so that compiled loops can
be kept on disk and found by the next process."""

import contextlib
import inspect
import linecache
import os
import re
import types as python_types
from collections.abc import Callable, Iterator
from typing import Any

from numba import types
from numba.core.errors import NumbaTypeError
from numba.core.typing import arraydecl
from numba.core.typing.templates import (
    AbstractTemplate,
    _OverloadMethodTemplate,
    infer_getattr,
    make_overload_attribute_template,
)
from numba.extending import overload

from driftbandit import primitives
from driftbandit.lab.engine import loop
from driftbandit.text import policy_check, user_code

# Nothing in the loop allocates, so reference counting (`_nrt`) is off: it would cost more than the arithmetic.
OPTIONS = {"error_model": "numpy", "boundscheck": False, "_nrt": False}
# A call that is not inlined passes a policy's whole state by value, seven words per array; many policies cost less.
INLINED = {**OPTIONS, "forceinline": True}


# ---- what Numba is told ----------------------------------------------------------------------------------------------

# Numba asks `if receiver_type:` where it means `is not None`, and the type of a tuple without fields, such as
# Bernoulli(), has length 0.
types.BaseNamedTuple.__bool__ = lambda self: True

_methods: set[tuple[str, tuple[str, ...]]] = set()
_classes: set[type] = set()
_functions: set[Callable[..., Any]] = set()


def register(cls: type) -> None:
    """Let compiled code call the methods of this `NamedTuple` class, and every helper marked `compilable` so far."""
    for function in primitives.COMPILABLE:
        if function not in _functions:
            _functions.add(function)
            _overload_with_itself(function)
    if cls in _classes:
        return
    _classes.add(cls)
    for name, value in vars(cls).items():
        if isinstance(value, python_types.FunctionType) and not name.startswith("_"):
            if (name, _names(value)) not in _methods:
                _methods.add((name, _names(value)))
                _overload_method(name, value)


def _overload_with_itself(function: Callable[..., Any]) -> None:
    overload(function, jit_options=INLINED, strict=False)(_same_parameters(function, lambda *args: function))


class _MethodOfTuple(_OverloadMethodTemplate):
    """A method of our tuples for Numba. Unlike its base, it gives way to a field of the same name, and tells apart
    methods of different classes that share a name but not their parameters."""

    _names: tuple[str, ...] = ()

    def _key(self) -> tuple[Any, str]:
        return self.key, f"{self._attr}({', '.join(self._names)})"

    def _init_once(self) -> None:
        registry = self._get_target_registry("method")

        @registry.lower(self._key(), self.key, types.VarArg(types.Any))
        def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            function = self._get_function_type(context.typing_context, signature.args[0])
            exact = self._get_signature(context.typing_context, function, signature.args, {})
            call = context.get_function(function, exact)
            context.add_linking_libs(getattr(call, "libs", ()))
            return call(builder, args)

    def _resolve(self, kind: Any, attribute: str) -> Any:
        if attribute != self._attr or attribute in kind.fields:
            return None
        method = getattr(kind.instance_class, attribute, None)
        if not isinstance(method, python_types.FunctionType) or _names(method) != self._names:
            return None
        template = self

        class Bound(AbstractTemplate):
            key = template._key()

            def generic(self, args: Any, kws: Any) -> Any:
                function = template._get_function_type(template.context, kind)
                signature = template._get_signature(template.context, function, (kind, *args), kws)
                return signature.replace(pysig=inspect.signature(template._overload_func)).as_method()

        return types.BoundFunction(Bound, kind)


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _overload_method(name: str, method: Callable[..., Any]) -> None:
    typed = _same_parameters(method, lambda kind, *args: getattr(kind.instance_class, name))
    template = make_overload_attribute_template(types.BaseNamedTuple, name, typed, inline="never", base=_MethodOfTuple)
    template._names = _names(method)
    infer_getattr(template)
    overload(typed, jit_options=INLINED, strict=False)(typed)


def _same_parameters(function: Callable[..., Any], answer: Callable[..., Any]) -> Any:
    """`answer` under the parameter names of `function`: Numba folds a call's arguments by the names of the typing
    function."""
    names = ", ".join(_names(function))
    scope: dict[str, Any] = {"answer": answer}
    exec(f"def typed({names}): return answer({names})", scope)
    return scope["typed"]


@overload(primitives.exponent_and_rest, jit_options=INLINED, strict=False)
def _exponent_and_rest(x: Any) -> Any:
    return primitives.exponent_and_rest_by_bits


@overload(primitives.times_power_of_two, jit_options=INLINED, strict=False)
def _times_power_of_two(x: Any, k: Any) -> Any:
    return primitives.times_power_of_two_by_bits


@overload(primitives.copy_state, jit_options=INLINED, strict=False)
def _copy_state(target: Any, source: Any) -> Any:
    lines = ["def copy(target, source):"]

    def walk(kind: Any, path: str) -> None:
        for position, field in enumerate(kind.types):
            here = f"{path}[{position}]"
            if isinstance(field, types.BaseNamedTuple):
                walk(field, here)
            else:
                lines.append(f"    for i in range(len(target{here})):\n        target{here}[i] = source{here}[i]")

    walk(target, "")
    lines.append("    return None")
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)
    return scope["copy"]


@overload(primitives.teach, jit_options=INLINED, strict=False)
def _teach(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any) -> Any:
    def with_chance(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any) -> None:
        policy.learn(state, t, arm, reward, rng)

    def without(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any) -> None:
        policy.learn(state, t, arm, reward)

    return with_chance if primitives.learns_by_chance(policy.instance_class) else without


def _weighs(policy: Any) -> bool:
    fields = policy.instance_class._fields
    return hasattr(policy.instance_class, "chance_of") and (
        "base" not in fields or _weighs(policy.types[fields.index("base")])
    )


@overload(primitives.weighs, jit_options=INLINED, strict=False)
def _weighs_compiled(policy: Any) -> Any:
    return (lambda policy: True) if _weighs(policy) else (lambda policy: False)


@overload(primitives.chance_of, jit_options=INLINED, strict=False)
def _chance_of(policy: Any, state: Any, t: Any, arm: Any, rng: Any) -> Any:
    if _weighs(policy):
        return lambda policy, state, t, arm, rng: policy.chance_of(state, t, arm, rng)
    return lambda policy, state, t, arm, rng: 0.0


@overload(primitives.teach_late, jit_options=INLINED, strict=False)
def _teach_late(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any, chance: Any) -> Any:
    def with_chance(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any, chance: Any) -> None:
        policy.learn_late(state, t, arm, reward, rng, chance)

    def without(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any, chance: Any) -> None:
        policy.learn_late(state, t, arm, reward, chance)

    def taught(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any, chance: Any) -> None:
        primitives.teach(policy, state, t, arm, reward, rng)

    if not _weighs(policy):
        return taught
    return with_chance if primitives.learns_by_chance(policy.instance_class) else without


_set_item = arraydecl.SetItemBuffer.generic


def _set_item_strictly(self: Any, args: Any, kws: Any) -> Any:
    array, _, value = args
    if isinstance(array, types.Array) and isinstance(array.dtype, types.Integer | types.Boolean):
        allowed = types.Boolean if isinstance(array.dtype, types.Boolean) else (types.Integer, types.Boolean)
        if isinstance(value, types.Number | types.Boolean) and not isinstance(value, allowed):
            kind = "truth values" if isinstance(array.dtype, types.Boolean) else f"whole numbers ({array.dtype})"
            raise NumbaTypeError(
                f"A number with a fraction ({value}) is written into an array of {kind}, which would cut it off. Make "
                "that field of the state np.zeros(...) without a dtype, or write int(...)"
            )
    return _set_item(self, args, kws)


@contextlib.contextmanager
def whole_stores() -> Iterator[None]:
    """While this lasts the compiler refuses to write a number with a fraction into an array of whole numbers.

    NumPy, and Numba after it, cut off the fraction; the interpreter's lists keep it. Refusing is what leaves one law
    for both."""
    arraydecl.SetItemBuffer.generic = _set_item_strictly
    try:
        yield
    finally:
        arraydecl.SetItemBuffer.generic = _set_item


# ---- the loop: its optional parts ------------------------------------------------------------------------------------


@overload(loop.tally, jit_options=INLINED, strict=False)
def _tally(counts: Any, arm: Any) -> Any:
    if isinstance(counts, types.NoneType):
        return lambda counts, arm: None

    def count(counts: Any, arm: Any) -> None:
        counts[arm] = counts[arm] + 1

    return count


@overload(loop.note, jit_options=INLINED, strict=False)
def _note(trace: Any, t: Any, arm: Any, reward: Any) -> Any:
    if isinstance(trace, types.NoneType):
        return lambda trace, t, arm, reward: None

    def write(trace: Any, t: Any, arm: Any, reward: Any) -> None:
        trace.arms[t] = arm
        trace.rewards[t] = reward
        trace.alarms[t] = trace.counter[0]

    return write


def prepare(value: Any) -> None:
    """Register the classes of a policy or environment, and of what it wraps."""
    if isinstance(value, tuple):
        if hasattr(type(value), "_fields"):
            register(type(value))
        for item in value:
            prepare(item)


_PLACE = re.compile(r'File "([^"]+)", line (\d+)|at (\S+\.py) \((\d+)\)')
_CAUSE = re.compile(r"^(Unknown|Invalid|Cannot|Untyped|Undefined|Use of|NameError|No implementation|No conversion)")


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
