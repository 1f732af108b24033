"""How plain methods become machine code.

Policies, environments and draws are `NamedTuple`s whose methods are ordinary Python. After `register`, Numba compiles a
call of such a method from the function on the tuple's class, and a `compilable` helper from its source. The policy is
part of the argument's type, which pickles by name, so the next process finds the compiled loop on disk."""

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

from driftbandit.core import primitives
from driftbandit.spec import policy_check, user_code

# Nothing in the loop allocates, so reference counting (`_nrt`) is off: it would cost more than the arithmetic.
OPTIONS = {"error_model": "numpy", "boundscheck": False, "_nrt": False}

# A call that is not inlined passes a policy's whole state by value, seven words per array; many policies cost less.
INLINED = {**OPTIONS, "forceinline": True}


# Numba tests `if receiver_type:` instead of `is not None`, and the type of a tuple without fields, such as
# Bernoulli(), has length 0.
types.BaseNamedTuple.__bool__ = lambda self: True

_methods: set[tuple[str, tuple[str, ...]]] = set()
_classes: set[type] = set()
_functions: set[Callable[..., Any]] = set()


def register(cls: type) -> None:
    """Let compiled code call the methods of this `NamedTuple` class, those of the policies that they call by a name of
    their module, and every helper marked `compilable` so far."""
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
            for called in value.__code__.co_names:
                prepare(value.__globals__.get(called))


def _overload_with_itself(function: Callable[..., Any]) -> None:
    source = primitives.COUNTERPARTS.get(function, function)
    overload(function, jit_options=INLINED, strict=False)(_match_parameters(function, lambda *args: source))


class _MethodOfTuple(_OverloadMethodTemplate):
    """A method of our tuples for Numba. Unlike its base, it prefers a field of the same name, and distinguishes methods
    of different classes that share a name but not their parameters."""

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
    typed = _match_parameters(method, lambda kind, *args: getattr(kind.instance_class, name))
    template = make_overload_attribute_template(types.BaseNamedTuple, name, typed, inline="never", base=_MethodOfTuple)
    template._names = _names(method)
    infer_getattr(template)
    overload(typed, jit_options=INLINED, strict=False)(typed)


def _match_parameters(function: Callable[..., Any], answer: Callable[..., Any]) -> Any:
    """`answer` with the parameter names of `function`, by which Numba matches a call's arguments."""
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


@overload(primitives.learn_reward, jit_options=INLINED, strict=False)
def _learn_reward(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any) -> Any:
    if primitives.learns_with_random_numbers(policy.instance_class):
        return lambda policy, state, t, arm, reward, rng: policy.learn(state, t, arm, reward, rng)
    return lambda policy, state, t, arm, reward, rng: policy.learn(state, t, arm, reward)


def _uses_probability(policy: Any) -> bool:
    fields = policy.instance_class._fields
    return hasattr(policy.instance_class, "arm_probability") and (
        "base" not in fields or _uses_probability(policy.types[fields.index("base")])
    )


@overload(primitives.uses_probability, jit_options=INLINED, strict=False)
def _uses_probability_compiled(policy: Any) -> Any:
    return (lambda policy: True) if _uses_probability(policy) else (lambda policy: False)


@overload(primitives.arm_probability, jit_options=INLINED, strict=False)
def _arm_probability(policy: Any, state: Any, t: Any, arm: Any, rng: Any) -> Any:
    if _uses_probability(policy):
        return lambda policy, state, t, arm, rng: policy.arm_probability(state, t, arm, rng)
    return lambda policy, state, t, arm, rng: 0.0


@overload(primitives.learn_late_reward, jit_options=INLINED, strict=False)
def _learn_late_reward(policy: Any, state: Any, t: Any, arm: Any, reward: Any, rng: Any, probability: Any) -> Any:
    if not _uses_probability(policy):
        return lambda policy, state, t, arm, reward, rng, probability: primitives.learn_reward(
            policy, state, t, arm, reward, rng
        )
    if primitives.learns_with_random_numbers(policy.instance_class):
        return lambda policy, state, t, arm, reward, rng, probability: policy.learn_late(
            state, t, arm, reward, rng, probability
        )
    return lambda policy, state, t, arm, reward, rng, probability: policy.learn_late(state, t, arm, reward, probability)


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
def refuse_fractions() -> Iterator[None]:
    """Let the compiler refuse to write a number with a fraction into an array of whole numbers.

    NumPy and Numba would cut off the fraction, while the interpreter's lists keep it."""
    arraydecl.SetItemBuffer.generic = _set_item_strictly
    try:
        yield
    finally:
        arraydecl.SetItemBuffer.generic = _set_item


def prepare(value: Any) -> None:
    """Register the classes of a policy or environment and of its parts."""
    if isinstance(value, tuple):
        if hasattr(type(value), "_fields"):
            register(type(value))
        for item in value:
            prepare(item)


_PLACE = re.compile(r'File "([^"]+)", line (\d+)|at (\S+\.py) \((\d+)\)')
_CAUSE = re.compile(r"^(Unknown|Invalid|Cannot|Untyped|Undefined|Use of|NameError|No implementation|No conversion)")


def explain(error: Exception, policy: Any) -> str:
    """Shorten Numba's message to the innermost of the user's lines and the cause."""
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
