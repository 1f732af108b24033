"""An experiment of your own as data: policies and worlds by their text, lists of values to try, how often to play.

Every policy meets every world; every value in a list makes one variant; run r takes its luck from (seed, r) alone. So
all variants meet the same luck in run r (common random numbers), and a difference between two of them is not a matter
of luck."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftbandit.checks import nearest, whole
from driftbandit.lab.engine.simulate import checkpoint_rounds
from driftbandit.lab.jobs.work import Cell
from driftbandit.protocols import Environment, Policy
from driftbandit.rewards import check_rewards
from driftbandit.text import load, user_code
from driftbandit.text.registry import SpecError

_LARGEST = 1_000_000  # cells: more must be a mistake


class Variants:
    """A policy or world with lists of values to try: a grid over all lists, or with `together` one list alongside the
    other.

    >>> list(Variants("ds-ts", gamma=[0.9, 0.99], tau_max=0.1).settings())
    [{'gamma': 0.9, 'tau_max': 0.1}, {'gamma': 0.99, 'tau_max': 0.1}]
    """

    def __init__(self, what: Any, label: str | None = None, together: bool = False, **values: Any) -> None:
        self.what, self.label, self.together = what, label, together
        self.values = {name: _spread(name, value) for name, value in values.items()}
        lengths = {name: len(value) for name, value in self.values.items() if isinstance(value, list)}
        if together and len(set(lengths.values())) > 1:
            raise SpecError(
                "Lists walked through together need the same length; got "
                + ", ".join(f"{name} with {length}" for name, length in lengths.items())
                + "."
            )

    @property
    def swept(self) -> list[str]:
        """The parameters that take more than one value."""
        return [name for name, value in self.values.items() if isinstance(value, list) and len(value) > 1]

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.label or (
            " ".join(self.what.split()) if isinstance(self.what, str) else user_code.text_of(self.what)
        )

    def settings(self) -> Iterator[dict[str, Any]]:
        """Each combination of values."""
        fixed = {name: value for name, value in self.values.items() if not isinstance(value, list)}
        lists = {name: value for name, value in self.values.items() if isinstance(value, list)}
        walk = zip(*lists.values(), strict=True) if self.together and lists else itertools.product(*lists.values())
        for combination in walk:
            yield {name: {**fixed, **dict(zip(lists, combination, strict=True))}[name] for name in self.values}

    def count(self) -> int:
        """How many combinations there are, without making them."""
        lengths = [len(value) for value in self.values.values() if isinstance(value, list)]
        return (lengths[0] if lengths else 1) if self.together else math.prod(lengths)

    def __repr__(self) -> str:
        return f"Variants({self.name!r}, {', '.join(f'{k}={v!r}' for k, v in self.values.items())})"


@dataclass(frozen=True)
class Study:
    """Policies × worlds × values, each played `runs` times.

    >>> study = Study(["ts", Variants("ds-ts", gamma=[0.9, 0.99])], ["abrupt(phases=2)"], horizon=1000, runs=5)
    >>> [cell.label for cell in study.cells()]
    ['ts', 'ds-ts [gamma=0.9]', 'ds-ts [gamma=0.99]']
    """

    policies: Sequence[Any]  # texts, policies or Variants
    environments: Sequence[Any]  # texts, worlds or Variants
    runs: int = 100
    seed: int = 0
    horizon: int | None = None  # given to every world; None: the worlds' own
    checkpoints: int = 200
    reference: str | None = None  # the policy others are compared with; None: the first
    drift: bool = False  # measure recovery, detection and the rest as well; a few times slower
    title: str = ""
    first_run: int = 0  # runs 0 to 49 and 50 to 99 made apart are together exactly the 100 runs made at once
    id: str = ""  # a short name to call it by: "fig3a"
    shows: str = ""  # what it is meant to show, in a sentence

    def __post_init__(self) -> None:
        for name, least in (("runs", 1), ("seed", 0), ("checkpoints", 1), ("first_run", 0)):
            whole(name, getattr(self, name), least, SpecError)
        if self.horizon is not None:
            whole("horizon", self.horizon, 1, SpecError)
        for name in ("policies", "environments"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Sequence) or not given:
                raise SpecError(f"{name} needs a list with one text or more; got {given!r:.60}.")
            items = [item if isinstance(item, Variants) else Variants(item) for item in given]
            names = [item.name for item in items]
            twice = [text for text in names if names.count(text) > 1]
            if twice:
                raise SpecError(f"{twice[0]} is given twice among the {name}; give each a label of its own.")
            object.__setattr__(self, name, items)
        if self.reference is not None and self.reference not in [item.name for item in self.policies]:
            names = [item.name for item in self.policies]
            hint = nearest(self.reference, names) or "."
            raise SpecError(
                f"The reference {self.reference!r} is none of the policies{hint} They are: {', '.join(names)}."
            )

    def count(self) -> int:
        """The number of cells."""
        return int(sum(p.count() for p in self.policies) * sum(e.count() for e in self.environments))

    def worlds(self, item: Variants) -> Iterator[tuple[dict[str, Any], Any]]:
        """Each variant of a world with its swept values."""
        base = load.load_environment(item.what) if isinstance(item.what, str) else item.what
        if isinstance(base, type) or not isinstance(base, Environment):
            raise SpecError(f"An environment has n_arms, horizon and realise; got {base!r:.60}.")
        for values in item.settings():
            given = values if self.horizon is None or "horizon" in values else {**values, "horizon": self.horizon}
            world = with_values(base, given)
            checkpoint_rounds(world.horizon, self.checkpoints)
            yield {name: values[name] for name in item.swept}, world

    def variants(self, item: Variants, world: Any) -> Iterator[tuple[dict[str, Any], Any]]:
        """Each variant of a policy for a world, from which `ds-ts.tuned` and the like take their numbers."""
        base = load.load_policy(item.what, world=world) if isinstance(item.what, str) else item.what
        if isinstance(base, type) or not isinstance(base, Policy):
            raise SpecError(f"A policy has init, choose and learn; got {base!r:.60}.")
        for values in item.settings():
            policy = with_values(base, values)
            check_rewards(policy, world)
            yield {name: values[name] for name in item.swept}, policy

    def cells(self) -> list[Cell]:
        """Everything that is to be played."""
        if self.count() > _LARGEST:
            raise SpecError(f"This makes {self.count()} cells, more than {_LARGEST}; shorten a list.")
        return [
            Cell(
                policy,
                world,
                self.runs,
                self.seed,
                self.checkpoints,
                self.drift,
                self.first_run,
                item.name,
                place.name,
                values,
                setting,
            )
            for place in self.environments
            for setting, world in self.worlds(place)
            for item in self.policies
            for values, policy in self.variants(item, world)
        ]


def with_values(base: Any, values: Mapping[str, Any]) -> Any:
    """A policy or world with other values of some parameters; `law.sd` and the like reach into its parts.

    >>> from driftbandit.text import parse
    >>> from driftbandit.text.parse import parse
    >>> with_values(parse("smooth(law=Gaussian(sd=0.1))"), {"law.sd": 0.2, "sigma": 0.01}).law
    Gaussian(sd=0.2)
    """
    if not values:
        return base
    fields = list(getattr(base, "_fields", ()))
    inner: dict[str, dict[str, Any]] = {}
    changes: dict[str, Any] = {}
    for path, value in values.items():
        name, _, rest = path.partition(".")
        if name not in fields:
            has = f"It has: {', '.join(fields)}." if fields else "It has none."
            raise SpecError(f"{type(base).__name__} has no parameter {name!r}{nearest(name, fields) or '.'} {has}")
        if rest:
            inner.setdefault(name, {})[rest] = value
        else:
            changes[name] = tuple(value) if isinstance(value, list) else value
    for name, parts in inner.items():
        changes[name] = with_values(getattr(base, name), parts)
    return type(base)(**{**base._asdict(), **changes})


def _spread(name: str, value: Any) -> Any:
    """A list of values; `{from, to, count, scale}` is a list too, evenly spaced on its scale.

    "forgetting" spaces 1 - value evenly in the logarithm: the scale on which discounts near 1 differ."""
    if isinstance(value, list | range):
        if not len(value):
            raise SpecError(f"The list of {name} is empty; give it one value or more.")
        return list(value)
    if not isinstance(value, Mapping):
        return value
    known = {"from", "to", "count", "scale"}
    wrong = [key for key in value if key not in known]
    if wrong or not {"from", "to", "count"} <= set(value):
        what = f"has no {wrong[0]!r}{nearest(wrong[0], known) or '.'}" if wrong else "is not complete."
        raise SpecError(
            f'The range of {name} {what} Write {name} = {{from = 0.9, to = 0.999, count = 5, scale = "log"}}.'
        )
    low, high, count, scale = value["from"], value["to"], value["count"], value.get("scale", "linear")
    scales: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
        "linear": (lambda x: x, lambda y: y),
        "log": (math.log, math.exp),
        "forgetting": (lambda x: math.log(1.0 - x), lambda y: 1.0 - math.exp(y)),
    }
    if scale not in scales:
        raise SpecError(f"There is no scale {scale!r}{nearest(str(scale), scales) or '.'} Take {', '.join(scales)}.")
    if not isinstance(count, int) or count < 2:
        raise SpecError(f"The range of {name} needs a count of 2 or more; got {count!r}.")
    there, back = scales[scale]
    try:
        ends = there(float(low)), there(float(high))
    except (ValueError, TypeError):
        raise SpecError(f"The range of {name} from {low!r} to {high!r} does not fit the scale {scale!r}.") from None
    steps = (ends[0] + (ends[1] - ends[0]) * step / (count - 1) for step in range(count))
    out = [float(f"{back(step):.10g}") for step in steps]
    return [round(x) for x in out] if isinstance(low, int) and isinstance(high, int) else out
