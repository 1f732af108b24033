"""How the parameters of a policy or an environment are declared and checked.

A policy is a `NamedTuple` of parameters with three plain methods. Being a tuple of numbers, it has a text (its `repr`),
can be compared, stored and sent; its type is all the compiler needs to find the methods. `checked` adds what a bare
`NamedTuple` lacks: every parameter is brought to its annotated type and tested against its domain when the policy is
made."""

import functools
import inspect
import math
from collections.abc import Callable
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from driftbandit.checks import whole_from_float

T = TypeVar("T")

# How a policy copes with change, in a word: what tables group by.
FAMILIES = {
    "never forgets": "for worlds that stand still",
    "discounts": "old rewards count less, smoothly",
    "window": "only the latest rewards count",
    "detects": "begins anew when a test gives an alarm",
    "infers": "reckons with changes by Bayes' rule",
    "restarts": "begins anew by the calendar",
    "shares weight": "keeps a little weight on every arm",
    "wrapper": "changes what another policy is told",
    "baseline": "learns nothing: to compare with",
}
SMALLEST, LARGEST = 1e-100, 1e100  # the size of a float parameter that is neither 0 nor infinite


def described(**facts: Any) -> Callable[[type[T]], type[T]]:
    """Class decorator: what a table says of a policy or world (`short`, `family`, `forgets`, `knows`, `cost`,
    `reference`), its rule in mathematics (`formula`: LaTeX, one equation on each line, in which i is an arm, a the one
    played, x its reward and an arrow what learning does), which rewards it can bear or pays (`rewards`, `pays`:
    `driftbandit.rewards`), whether its methods also work on rows of lanes (`lockstep`), and whether it can only play in
    simulations (`simulated_only`). Facts about the class, not parameters: a `NamedTuple` has no other place for them.
    `family` is one of FAMILIES."""

    def attach(cls: type[T]) -> type[T]:
        for name, fact in facts.items():
            setattr(cls, name, fact)
        return cls

    return attach


class Domain(NamedTuple):
    """The values a parameter may take, written as people write it: "(0, 1]", ">= 1", "any"."""

    text: str
    advice: str = ""

    def holds(self, value: float) -> bool:
        """Is the value finite and inside?"""
        if math.isnan(value):
            return False
        text = self.text
        if text == "any":
            return math.isfinite(value)
        if text[0] in "([":
            low, high = (float(part) for part in text[1:-1].split(","))
            above = value > low if text[0] == "(" else value >= low
            below = value < high if text[-1] == ")" else value <= high
            return above and below
        sign, bound = text.split()
        return math.isfinite(value) and (value > float(bound) if sign == ">" else value >= float(bound))


def within(text: str, advice: str = "") -> Domain:
    """A parameter's domain, for use in `Annotated[float, within("(0, 1]")]`."""
    return Domain(text, advice)


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
    """Class decorator for policies and environments: coerce each parameter to its annotated type and refuse values
    outside its domain.

    Coercion matters beyond tidiness: `DiscountedTS(gamma=1)` would otherwise be another type to the compiler than
    `gamma=1.0`, and be compiled again. A class may define `validate(self)` for conditions between parameters; it raises
    ValueError."""
    declared = parameters(cls)
    make: Callable[..., Any] = cls.__new__

    def __new__(klass: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            made = make(klass, *args, **kwargs)
        except TypeError as error:
            names = ", ".join(p.name for p in declared)
            takes = f"the parameters ({names})" if names else "no parameters"
            raise TypeError(f"{cls.__name__} takes {takes}: {str(error).split('() ')[-1]}.") from None
        values = [_coerced(cls, p, value) for p, value in zip(declared, made, strict=True)]
        made = tuple.__new__(klass, values)
        validate = getattr(made, "validate", None)
        if validate is not None:
            validate()
        return made

    for name, value in list(vars(cls).items()):
        if isinstance(value, classmethod) and "horizon" in inspect.signature(value.__func__).parameters:
            setattr(cls, name, classmethod(_sized(value.__func__)))

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


def _sized(maker: Callable[..., Any]) -> Callable[..., Any]:
    """A named constructor such as `tuned` that looks at horizon, phases and n_arms before any formula does."""
    signature = inspect.signature(maker)

    @functools.wraps(maker)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        name = f"{args[0].__name__}.{maker.__name__}"
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}{signature}: {error}.") from None
        for size, least in (("horizon", 1), ("phases", 1), ("n_arms", 0)):
            if size in given.arguments:
                given.arguments[size] = _whole(name, size, given.arguments[size], least)
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
                f"{name} has no value for these sizes; a longer horizon, or given parameters, will do."
            ) from None

    return wrapped


def _whole(name: str, size: str, value: Any, least: int) -> int:
    number = whole_from_float(value, least)
    if number is None:
        raise ValueError(f"{name} needs {size} >= {least}, a whole number; got {value!r:.60}.")
    return number


def _coerced(cls: type, parameter: Parameter, value: Any) -> Any:
    """The value as its declared type, or a ValueError that names what is wrong, what is right and what to do."""
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
    right = "a number" if kind is float else "a whole number"
    if domain is not None and domain.text != "any":
        right = f"{name} {'in ' if domain.text[0] in '([' else ''}{domain.text}" + (
            ", a whole number" if kind is int else ""
        )
    else:
        right = f"{name} to be {right}"
    advice = f" {domain.advice}" if domain is not None and domain.advice else ""
    number = _as_number(kind, value)
    if number is None or not (domain.holds(number) if domain is not None else number == number):
        raise ValueError(f"{cls.__name__} needs {right}; got {value!r:.60}.{advice}")
    if kind is float and math.isfinite(number) and number != 0.0 and not SMALLEST <= abs(number) <= LARGEST:
        raise ValueError(
            f"{cls.__name__} needs {name} of a size between {SMALLEST:g} and {LARGEST:g}, so that no square or sum "
            f"leaves what a float can hold; got {value!r:.60}."
        )
    return number


def _as_number(kind: type, value: Any) -> Any:
    """The value as a float or an int of 64 bits, which is what compiled code holds; None if it is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        number = kind(value)
    except (OverflowError, ValueError):  # too large for a float; infinite or NaN where an int is wanted
        return None
    if kind is int and (number != value or not -(2**63) <= number < 2**63):
        return None
    return number
