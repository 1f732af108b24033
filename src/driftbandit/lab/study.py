"""A study: policies, environments, lists of values to try and the number of runs, from Python or from a file.

Every policy plays in every environment, and every value in a list makes one variant. Run r takes its random numbers
from (seed, r) only, so all variants meet the same random numbers in run r."""

import dataclasses
import itertools
import math
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftbandit.core.checks import check_rewards, nearest, whole
from driftbandit.core.draws import ENVIRONMENT, stream_key
from driftbandit.core.protocols import Environment, Policy
from driftbandit.core.state import count_numbers, fits_memory, init_in
from driftbandit.errors import SpecError, StudyError
from driftbandit.lab.engine.arguments import with_environment
from driftbandit.lab.engine.simulate import LANES, checkpoint_rounds
from driftbandit.lab.files import cache_root, code_digest, library_versions
from driftbandit.lab.result import Result
from driftbandit.lab.work import Cell, Part, Store
from driftbandit.spec import user_code

_LARGEST = 1_000_000  # cells; a study with more is refused
_MOST = 50_000_000  # numbers kept in memory: a larger study keeps the regret at the end only
_ROUNDS = 10**16  # at ten nanoseconds per round, three years of one core
_EXACT = 2**53  # beyond this, a float64 cannot count rounds


class Variants:
    """A policy or environment with lists of values to try; several lists make a grid.

    >>> list(Variants("ds-ts", gamma=[0.9, 0.99], tau_max=0.1).settings())
    [{'gamma': 0.9, 'tau_max': 0.1}, {'gamma': 0.99, 'tau_max': 0.1}]
    """

    def __init__(self, what: Any, label: str | None = None, **values: Any) -> None:
        self.what, self.values = what, values
        for name, value in values.items():
            if isinstance(value, list) and not value:
                raise SpecError(f"The list of {name} is empty; give it one value or more.")
            if isinstance(value, Mapping):
                raise SpecError(f"{name} needs a value or a list of values; got {dict(value)!r:.60}.")
        self.name = label or (" ".join(what.split()) if isinstance(what, str) else user_code.text_of(what))

    @property
    def swept(self) -> list[str]:
        """The parameters that take more than one value."""
        return [name for name, value in self.values.items() if isinstance(value, list) and len(value) > 1]

    def settings(self) -> Iterator[dict[str, Any]]:
        """Every combination of values."""
        lists = [value if isinstance(value, list) else [value] for value in self.values.values()]
        for combination in itertools.product(*lists):
            yield dict(zip(self.values, combination, strict=True))

    def count(self) -> int:
        return math.prod(len(value) for value in self.values.values() if isinstance(value, list))

    def __repr__(self) -> str:
        return f"Variants({self.name!r}, {', '.join(f'{k}={v!r}' for k, v in self.values.items())})"


@dataclass(frozen=True)
class Study:
    """Policies × environments × values, each played `runs` times.

    >>> study = Study(["ts", Variants("ds-ts", gamma=[0.9, 0.99])], ["abrupt(phases=2)"], horizon=1000, runs=5)
    >>> [cell.label for cell in study.cells()]
    ['ts', 'ds-ts [gamma=0.9]', 'ds-ts [gamma=0.99]']
    """

    policies: Sequence[Any]  # texts, policies or Variants
    environments: Sequence[Any]  # texts, environments or Variants
    runs: int = 100
    seed: int = 0
    horizon: int | None = None  # for every environment; None: each has its own
    checkpoints: int = 200
    reference: str | None = None  # the policy that others are compared with; None: the first
    drift: bool = False  # also compute the drift metrics; a few times slower
    title: str = ""

    def __post_init__(self) -> None:
        for name, least in (("runs", 1), ("seed", 0), ("checkpoints", 1)):
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
                raise SpecError(f"{twice[0]} is given twice among the {name}; give each its own label.")
            object.__setattr__(self, name, items)
        names = [item.name for item in self.policies]
        if self.reference is not None and self.reference not in names:
            hint = nearest(self.reference, names) or "."
            raise SpecError(f"The reference {self.reference!r} is not one of the policies{hint} "
                            f"They are: {', '.join(names)}.")  # fmt: skip

    def count(self) -> int:
        """The number of cells."""
        return int(sum(p.count() for p in self.policies) * sum(e.count() for e in self.environments))

    def make_environments(self, item: Variants) -> Iterator[tuple[dict[str, Any], Any]]:
        """Each variant of an environment with its swept values."""
        base = user_code.load_environment(item.what) if isinstance(item.what, str) else item.what
        if isinstance(base, type) or not isinstance(base, Environment):
            raise SpecError(f"An environment has n_arms, horizon and realise; got {base!r:.60}.")
        for values in item.settings():
            given = values if self.horizon is None or "horizon" in values else {**values, "horizon": self.horizon}
            environment = with_values(base, given)
            checkpoint_rounds(environment.horizon, self.checkpoints)
            yield {name: values[name] for name in item.swept}, environment

    def make_policies(self, item: Variants, environment: Environment) -> Iterator[tuple[dict[str, Any], Any]]:
        """Each variant of a policy with its swept values; `ds-ts.tuned` and the like are tuned to the environment."""
        base = user_code.load_policy(item.what, environment=environment) if isinstance(item.what, str) else item.what
        if isinstance(base, type) or not isinstance(base, Policy):
            raise SpecError(f"A policy has init, choose and learn; got {base!r:.60}.")
        for values in item.settings():
            policy = with_values(base, values)
            check_rewards(policy, environment)
            yield {name: values[name] for name in item.swept}, policy

    def cells(self) -> list[Cell]:
        """Everything to be played."""
        if self.count() > _LARGEST:
            raise SpecError(f"This makes {self.count()} cells, more than {_LARGEST}; shorten a list.")
        fixed = (self.runs, self.seed, self.checkpoints)
        return [
            Cell(
                policy,
                environment,
                *fixed,
                self.drift and not getattr(environment, "n_features", 0),
                0,
                item.name,
                place.name,
                values,
                setting,
            )
            for place in self.environments
            for setting, environment in self.make_environments(place)
            for item in self.policies
            for values, policy in self.make_policies(item, environment)
        ]


def with_values(base: Any, values: Mapping[str, Any]) -> Any:
    """A policy or environment with other values of some parameters; `law.sd` reaches into its part `law`.

    >>> from driftbandit.spec.parse import parse
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


# ---- playing ---------------------------------------------------------------------------------------------------------


def run(
    what: Study | Sequence[Any] | Mapping[str, Any],
    environments: Any = None,
    runs: int | None = None,
    seed: int | None = None,
    *,
    checkpoints: int | None = None,
    title: str | None = None,
    folder: str | Path | None = None,
    executor: Executor | str | int | None = None,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = True,
    compiled: bool = True,
) -> Result:
    """Play policies in environments, or a `Study`, and collect the regret of every run.

    Policies and environments are objects or texts; a mapping gives each policy a label. `environments` is one or a
    list (default: "Abrupt()"), `runs` is 100 and `seed` 0 unless given. In run r all policies meet the same environment
    and the same random numbers, so differences are paired.

    Finished chunks are kept in `folder`/chunks, or without a folder in the user's cache: the same call continues where
    it was stopped. `executor` is a text as on the command line, an Executor or a Dask client. It, `workers`, `progress`
    and `compiled` change no number.

    >>> run({"mine": "ds-ts(gamma=0.9)"}, "smooth(horizon=500)", runs=2, compiled=False).final("mine").shape
    (2,)
    """
    given = {"runs": runs, "seed": seed, "checkpoints": checkpoints, "title": title}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if isinstance(what, Study):
        if environments is not None:
            raise ValueError("A study lists its environments; leave `environments` out.")
        study = dataclasses.replace(what, **changes)
    else:
        policies = [Variants(p, label=label) for label, p in what.items()] if isinstance(what, Mapping) else what
        places = "Abrupt()" if environments is None else environments
        study = Study(policies, places if isinstance(places, list) else [places], **changes)
    cells = study.cells()
    for cell in cells:
        refuse_impossible(cell.policy, cell.environment, cell.runs, cell.checkpoints)
    if study.drift and (without := sorted({cell.environment_label for cell in cells if not cell.drift})):
        warnings.warn(f"No drift metrics in {', '.join(without)}: means depend on features there.", stacklevel=2)
    store = Store(cache_root() / "chunks" if folder is None else Path(folder) / "chunks", compiled)
    if folder is None:
        store.prune()
    tally = store.play(cells, executor, workers, progress, study.title or "run")
    parts: Iterator[Part] = map(store.result, cells)
    if len(cells) * study.runs * study.checkpoints > _MOST:
        parts = (part._replace(rounds=part.rounds[-1:], regret=part.regret[:, -1:].copy()) for part in parts)
    return Result(list(parts), provenance(cells, title=study.title, reference=study.reference), tally)


def provenance(
    cells: Sequence[Cell], id: str = "", title: str = "", shows: str = "", reference: str | None = None
) -> dict[str, Any]:
    """What is needed to play cells again beyond their policies and environments, as plain JSON."""
    return {
        "id": id,
        "title": title,
        "shows": shows,
        "reference": reference,
        "seed": cells[0].seed,
        "runs": cells[0].runs,
        "checkpoints": cells[0].checkpoints,
        "versions": library_versions(),
        "source": code_digest(*((cell.policy, cell.environment) for cell in cells)),
    }


def refuse_impossible(policy: Policy, environment: Environment, runs: int, checkpoints: int = 200) -> None:
    """Raise a ValueError if the rounds cannot be counted or played, or if environments, states or results would not fit
    into this machine's memory.

    >>> from driftbandit import DiscountedTS
    >>> from driftbandit.environments import Smooth
    >>> refuse_impossible(DiscountedTS(), Smooth(horizon=10**18), 1)
    Traceback (most recent call last):
    ...
    ValueError: horizon=1000000000000000000 is too long; take at most 9007199254740992 rounds.
    """
    horizon, n_arms = environment.horizon, environment.n_arms
    if horizon > _EXACT:
        raise ValueError(f"horizon={horizon} is too long; take at most {_EXACT} rounds.")
    if horizon * runs > _ROUNDS:
        raise ValueError(f"{runs} runs of {horizon} rounds would take years; take fewer.")
    fits_memory(runs * min(checkpoints, horizon), f"The regret of {runs} runs", 8)
    fits_memory(n_arms * getattr(environment, "phases", 1), f"{environment!r:.80}", 8)
    try:
        realised = environment.realise(stream_key(0, 0, ENVIRONMENT))
        state = init_in(with_environment(policy, realised), realised)
    except MemoryError:
        raise ValueError(f"{policy!r:.80} in {environment!r:.80} does not fit into memory.") from None
    if environment.realise(stream_key(0, 1, ENVIRONMENT)) is not realised:
        fits_memory(runs * count_numbers(realised), f"{runs} times {environment!r:.80}", 8)
    lanes = min(runs, LANES)
    fits_memory(lanes * count_numbers(state), f"The state of {policy!r:.80} in {lanes} runs at once", 8)


# ---- a study from a file ---------------------------------------------------------------------------------------------

_KINDS = {"title": str, "horizon": int, "runs": int, "seed": int, "checkpoints": int, "reference": str, "drift": bool}
_KEYS = (*_KINDS, "policies", "environments", "policy", "environment")


def load_study(path: str | Path) -> Study:
    """Read a study from a TOML file; paths in it are relative to the file."""
    path = Path(path)
    if path.suffix != ".toml":
        raise StudyError(f"A study file ends in .toml; got {str(path)!r}.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise StudyError(f"Cannot read {str(path)!r}: {reason}.") from None
    return loads(text, path.name, path.resolve().parent)


def loads(text: str, name: str = "study.toml", folder: str | Path = ".") -> Study:
    """Read a study from TOML; paths of the user's files are relative to `folder`. Every variant is made once, so that a
    wrong value is found before any work is done."""
    place = ""
    try:
        data = tomllib.loads(text)
        for key, value in data.items():
            place = f", {key}"
            _check_key(key, value)
        items: dict[str, list[tuple[str, Variants]]] = {}
        for single, several in (("policy", "policies"), ("environment", "environments")):
            items[several] = []
            for number, entry in enumerate([*data.get(several, []), *data.get(single, [])]):
                table = {"text": entry} if isinstance(entry, str) else entry
                count = number + 1 - len(data.get(several, []))
                place = f", {several}, {entry!r}" if isinstance(entry, str) else f", [[{single}]] number {count}"
                items[several].append((place, _variants(table, folder)))
        place = ""
        plain = {key: data[key] for key in _KINDS if key in data}
        policies, environments = ([item for _, item in listed] for listed in items.values())
        study = Study(policies, environments, **plain)
        made = []
        for place, item in items["environments"]:  # noqa: B007 - the handlers below name the place
            made.append([environment for _, environment in study.make_environments(item)])
        for place, item in items["policies"]:  # noqa: B007
            for variants in made:
                list(study.make_policies(item, variants[0]))
    except RecursionError:
        raise StudyError(f"{name}: its tables or lists are nested too deeply.") from None
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{name} is not valid TOML: {error}.") from None
    except (ValueError, TypeError) as error:
        raise StudyError(f"{name}{place}: {error}") from None
    return study


def _check_key(key: str, value: Any) -> None:
    if key not in _KEYS:
        raise SpecError(f"there is no key {key!r}{nearest(key, _KEYS) or '.'} The keys are: {', '.join(_KEYS)}.")
    kind = _KINDS.get(key)  # the study checks numbers
    if kind in (str, bool) and not isinstance(value, kind):
        raise SpecError(f"{key} needs {'a text in quotes' if kind is str else 'true or false'}; got {value!r:.60}.")
    if key in ("policies", "environments") and not (isinstance(value, list) and all(isinstance(t, str) for t in value)):
        raise SpecError(f'{key} needs a list of texts, such as ["ds-ts.tuned", "ts"].')
    if key in ("policy", "environment") and not (isinstance(value, list) and all(isinstance(t, dict) for t in value)):
        raise SpecError(f"write each {key} with lists as a table under [[{key}]].")


def _variants(table: Mapping[str, Any], folder: str | Path) -> Variants:
    values = dict(table)
    text, label = values.pop("text", None), values.pop("label", None)
    if not isinstance(text, str) or not isinstance(label, str | None):
        hint = nearest("text", values) or "."
        raise SpecError(f'a table needs text = "...", such as "ds-ts", and may have label = "..."{hint}')
    return Variants(user_code.resolve_paths(text, folder), label or " ".join(text.split()), **_flatten(values))


def _flatten(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested tables as dotted names: TOML reads `law.sd = 0.1` as a table within a table."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flatten(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
    return flat


def write_template(path: str | Path) -> Path:
    """Write a commented study that runs as it is, never over another file."""
    path = Path(path)
    if path.suffix != ".toml":
        raise ValueError(f"The name of a new study must end in .toml; got {str(path)!r}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as out:
            out.write((Path(__file__).parent / "template.toml").read_text(encoding="utf-8"))
    except FileExistsError:
        raise ValueError(f"{str(path)!r} exists already; choose another name.") from None
    return path
