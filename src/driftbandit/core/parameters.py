"""How the parameters of a policy or an environment are declared and checked.

A policy is a `NamedTuple` of parameters with three plain methods. Being a tuple of numbers, it has a text (its
`repr`), can be compared, stored and sent; its type is all the compiler needs to find the methods. `checked` converts
every parameter to its annotated type and tests it against its domain."""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from driftbandit.core.checks import parse_whole

T = TypeVar("T")

SMALLEST, LARGEST = 1e-100, 1e100  # the size of a float parameter that is neither 0 nor infinite


def described(**facts: Any) -> Callable[[type[T]], type[T]]:
    """Class decorator that attaches facts about a policy or environment, which a `NamedTuple` has no other place for.

    * `short`, `family` (how it copes with change), `forgets`, `knows`, `cost` and `reference` are columns of tables.
    * `formula` is its rule in LaTeX, one equation per line: i is an arm, a the one played, x its reward, an arrow an
      update.
    * `rewards` and `pays` declare which rewards it accepts or pays (see checks.py).
    * `arrays` names the fields of a state that are arrays in the interpreter too (see `core.state.to_lists`).
    * `lockstep` declares that its methods also work on rows of lanes, `simulated_only` that it can only be simulated.

    Methods that several classes share are attached in the same way. A policy with a `family` and nothing to tune gets
    `tuned`; one whose parameters in the paper's `text` are those of the authors' code gets `code`."""

    def attach(cls: type[T]) -> type[T]:
        for name, fact in facts.items():
            setattr(cls, name, fact)
        if "family" in facts and not hasattr(cls, "tuned"):
            cls.tuned = classmethod(_check_sizes(tuned))  # type: ignore[attr-defined]
        if hasattr(cls, "text") and not hasattr(cls, "code"):
            cls.code = classmethod(_check_sizes(vars(cls)["text"].__func__, "code"))  # type: ignore[attr-defined]
        return cls

    return attach


def add_missing(cls: type, methods: Mapping[str, Any]) -> None:
    """Give a class those of these methods that it does not define itself."""
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(cls, name, method)


def tuned(cls: Any, horizon: int, phases: int, n_arms: int = 0) -> Any:
    """The policy itself: it has nothing to tune."""
    return cls()


class Domain(NamedTuple):
    """The values a parameter may take, as text: "(0, 1]", ">= 1", "any"."""

    text: str
    advice: str = ""

    def holds(self, values: Any) -> Any:
        """Whether the value, or each of an array, is inside; infinity only where a closed interval includes it."""
        low, high, open_low, open_high = _bounds(self.text)
        above = values > low if open_low else values >= low
        return above & (values < high if open_high else values <= high)  # NaN is neither

    def describe(self) -> str:
        """The domain in a sentence: "in (0, 1]", ">= 1"."""
        return f"in {self.text}" if self.text[0] in "([" else self.text


within = Domain  # in `Annotated[float, within("(0, 1]")]`


@functools.cache
def _bounds(text: str) -> tuple[float, float, bool, bool]:
    if text == "any":
        return -math.inf, math.inf, True, True
    if text[0] in "([":
        low, high = (float(part) for part in text[1:-1].split(","))
        return low, high, text[0] == "(", text[-1] == ")"
    sign, bound = text.split()
    return float(bound), math.inf, sign == ">", True


class Parameter(NamedTuple):
    """One parameter of a policy or environment, as its class declares it."""

    name: str
    kind: type
    domain: Domain | None
    default: Any


def parameters(cls: type) -> list[Parameter]:
    """The parameters of a policy or environment class, in order."""
    hints = get_type_hints(cls, include_extras=True)
    defaults = getattr(cls, "_field_defaults", {})
    out = []
    for name in cls._fields:  # type: ignore[attr-defined]
        hint, domain = hints[name], None
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
            domain = next((extra for extra in extras if isinstance(extra, Domain)), None)
        out.append(Parameter(name, hint, domain, defaults.get(name)))
    return out


def checked(cls: type[T]) -> type[T]:
    """Class decorator for policies and environments: convert each parameter to its annotated type and refuse values
    outside its domain.

    `DiscountedTS(gamma=1)` would otherwise be another type to the compiler than `gamma=1.0`, and be compiled again.
    A class may define `validate(self)` for conditions between parameters; it raises ValueError."""
    declared = parameters(cls)
    make: Callable[..., Any] = cls.__new__

    def __new__(klass: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            made = make(klass, *args, **kwargs)
        except TypeError as error:
            names = ", ".join(p.name for p in declared)
            takes = f"the parameters ({names})" if names else "no parameters"
            raise TypeError(f"{cls.__name__} takes {takes}: {str(error).split('() ')[-1]}.") from None
        values = [_convert(cls, p, value) for p, value in zip(declared, made, strict=True)]
        made = tuple.__new__(klass, values)
        validate = getattr(made, "validate", None)
        if validate is not None:
            validate()
        return made

    for name, value in list(vars(cls).items()):
        if isinstance(value, classmethod) and "horizon" in inspect.signature(value.__func__).parameters:
            setattr(cls, name, classmethod(_check_sizes(value.__func__, name)))

    # Tuples are equal if their items are: Bernoulli() and Constant(), which have none, would be one key of a cache.
    def __eq__(self: Any, other: object) -> bool:
        return type(self) is type(other) and bool(tuple.__eq__(self, other))  # type: ignore[operator]

    def __ne__(self: Any, other: object) -> bool:
        return not self == other

    def __hash__(self: Any) -> int:
        return hash((type(self), tuple.__hash__(self)))

    for method in (__new__, __eq__, __ne__, __hash__):
        setattr(cls, method.__name__, method)
    return cls


def _check_sizes(maker: Callable[..., Any], called: str = "") -> Callable[..., Any]:
    """A named constructor such as `tuned` whose horizon, phases and n_arms are checked before any formula uses them."""
    signature = inspect.signature(maker)

    @functools.wraps(maker)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        name = f"{args[0].__name__}.{called or maker.__name__}"
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}{signature}: {error}.") from None
        for size, least in (("horizon", 1), ("phases", 1), ("n_arms", 0)):
            if size in given.arguments:
                number = parse_whole(given.arguments[size], least)
                if number is None:
                    raise ValueError(
                        f"{name} needs {size} >= {least}, a whole number; got {given.arguments[size]!r:.60}."
                    )
                given.arguments[size] = number
        sizes = given.arguments
        if sizes.get("phases", 1) > sizes["horizon"]:
            raise ValueError(
                f"{name} needs phases <= horizon; got {sizes['phases']} phases in {sizes['horizon']} rounds."
            )
        if sizes.get("n_arms") == 0 and signature.parameters["n_arms"].default is inspect.Parameter.empty:
            raise ValueError(f"{name} needs n_arms >= 1, a whole number; got 0.")
        try:
            return maker(*given.args, **given.kwargs)
        except ArithmeticError:
            raise ValueError(
                f"{name} has no value for these sizes; use a longer horizon or set the parameters."
            ) from None

    return wrapped


def _convert(cls: type, parameter: Parameter, value: Any) -> Any:
    """The value as its declared type, or a ValueError."""
    kind, name = parameter.kind, parameter.name
    if kind not in (float, int, bool, str):
        return value
    domain = parameter.domain
    if kind is str:
        if not isinstance(value, str):
            raise ValueError(f"{cls.__name__} needs {name} to be a text; got {value!r:.60}.")
        return value
    if kind is bool:
        if isinstance(value, bool | np.bool_):
            return bool(value)
        raise ValueError(f"{cls.__name__} needs {name} to be True or False; got {value!r:.60}.")
    if domain is not None and domain.text != "any":
        right = f"{name} {domain.describe()}"
        right += ", a whole number" if kind is int else ""
    else:
        right = f"{name} to be {'a number' if kind is float else 'a whole number'}"
    advice = f" {domain.advice}" if domain is not None and domain.advice else ""
    number = _as_number(kind, value)
    if number is None or not (domain.holds(number) if domain is not None else number == number):
        raise ValueError(f"{cls.__name__} needs {right}; got {value!r:.60}.{advice}")
    if kind is float and math.isfinite(number) and number != 0.0 and not SMALLEST <= abs(number) <= LARGEST:
        raise ValueError(
            f"{cls.__name__} needs {name} to be 0 or between {SMALLEST:g} and {LARGEST:g} in size, so that squares "
            f"and sums fit a float; got {value!r:.60}."
        )
    return number


def _as_number(kind: type, value: Any) -> Any:
    """The value as a 64-bit float or int, which compiled code uses; None if it is not such a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        number = kind(value)
    except (OverflowError, ValueError):  # too large for a float; infinite or NaN where an int is needed
        return None
    if kind is int and (number != value or not -(2**63) <= number < 2**63):
        return None
    return number
