"""How plain methods become machine code: what Numba is told, and where compiled code is kept.

Policies, environments and draws are `NamedTuple`s whose methods are ordinary Python. `register` tells Numba that
calling such a method means compiling the function found on the tuple's class, and that a `compilable` helper means its
own source. The policy's identity is then part of the argument's type, which pickles by name, so that compiled loops can
be kept on disk and found by the next process.

Three traps, and the answers used here:
* Numba's disk cache looks only at the file of the outermost function, so an edited policy would go on running its old
  code. The cache directory is named by a digest of every source of the package.
* A cache index that has seen a user's own class cannot be read where that class does not exist. So there are two
  dispatchers: `stored` for what is made of the package's own classes only, `fresh` for everything else.
* A home directory may be read-only. The cache then goes to a temporary directory."""

import contextlib
import hashlib
import inspect
import os
import tempfile
import types as python_types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core.typing.templates import (
    AbstractTemplate,
    _OverloadMethodTemplate,
    infer_getattr,
    make_overload_attribute_template,
)
from numba.extending import overload

from driftbandit import numerics
from driftbandit.draws import Draws, beta_from, round_key
from driftbandit.lab import loop
from driftbandit.lab.rows import LaneArray

OPTIONS = {"error_model": "numpy", "boundscheck": False, "_nrt": False}
AHEAD = 8  # rounds whose draws are computed together when a run plays alone: one AVX-512 register of float64


# ---- what Numba is told ----------------------------------------------------------------------------------------------

# Numba asks `if receiver_type:` where it means `is not None`, and the type of a tuple without fields, such as
# Bernoulli(), has length 0.
types.BaseNamedTuple.__bool__ = lambda self: True

_methods: set[tuple[str, tuple[str, ...]]] = set()
_classes: set[type] = set()
_functions: set[Callable[..., Any]] = set()


def register(cls: type) -> None:
    """Let compiled code call the methods of this `NamedTuple` class, and every helper marked `compilable` so far."""
    for function in numerics.COMPILABLE:
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
    overload(function, jit_options=OPTIONS, strict=False)(_same_parameters(function, lambda *args: function))


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
    overload(typed, jit_options=OPTIONS, strict=False)(typed)


def _same_parameters(function: Callable[..., Any], answer: Callable[..., Any]) -> Any:
    """`answer` under the parameter names of `function`: Numba folds a call's arguments by the names of the typing
    function."""
    names = ", ".join(_names(function))
    scope: dict[str, Any] = {"answer": answer}
    exec(f"def typed({names}): return answer({names})", scope)
    return scope["typed"]


@overload(numerics.copy_state, jit_options=OPTIONS, strict=False)
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


# ---- streams for compiled code ---------------------------------------------------------------------------------------


class KeyStream(NamedTuple):
    """A stream whose numbers are hashed as they are asked for: one run's, or one a lane."""

    keys: Any

    def at(self, t: int) -> Any:
        """The numbers of round t."""
        return Draws(round_key(self.keys[0], t))


class AheadStream(NamedTuple):
    """A single run's stream that computes the normals of eight rounds at once, since nothing in them depends on what is
    learnt meanwhile."""

    keys: Any
    steps: Any  # 0, 1, .. as a row
    filled: Any  # first round of the block held, for normals and for Beta material
    normal_rows: Any
    material_rows: Any

    def at(self, t: int) -> Any:
        """The numbers of round t."""
        return AheadDraws(round_key(self.keys[0], t), t, self)


class AheadDraws(NamedTuple):
    """One round of an `AheadStream`; the same numbers as `Draws` gives."""

    key: Any
    t: Any
    stream: Any

    def block_keys(self, first: int) -> Any:
        """The keys of the block's rounds, as a row."""
        return round_key(self.stream.keys[0], self.stream.steps[0] + first)

    def uniform(self, slot: int) -> Any:
        """As `Draws.uniform`."""
        return Draws(self.key).uniform(slot)

    def normal(self, slot: int) -> Any:
        """As `Draws.normal`."""
        return Draws(self.key).normal(slot)

    def spare(self, attempt: int) -> Any:
        """As `Draws.spare`."""
        return Draws(self.key).spare(attempt)

    def beta(self, a: float, b: float, slot: int) -> float:
        """As `Draws.beta`."""
        return Draws(self.key).beta(a, b, slot)

    def normals(self, out: Any) -> None:
        """As `Draws.normals`, from the block."""
        column = self.t % AHEAD
        first = self.t - column
        if self.stream.filled[0] != first:
            Draws(self.block_keys(first)).normals(self.stream.normal_rows)
            self.stream.filled[0] = first
        for i in range(len(out)):
            out[i] = self.stream.normal_rows.store[i, column]

    def betas(self, a: Any, b: Any, out: Any) -> None:
        """As `Draws.betas`, from the block."""
        column = self.t % AHEAD
        first = self.t - column
        rows_ = self.stream.material_rows
        if self.stream.filled[1] != first:
            block = Draws(self.block_keys(first))
            for arm in range(len(out)):
                x, y, u, v = block.beta_material(arm)
                rows_[4 * arm] = x
                rows_[4 * arm + 1] = y
                rows_[4 * arm + 2] = u
                rows_[4 * arm + 3] = v
            self.stream.filled[1] = first
        held = rows_.store
        for arm in range(len(out)):
            out[arm] = beta_from(
                self,
                a[arm],
                b[arm],
                arm,
                held[4 * arm, column],
                held[4 * arm + 1, column],
                held[4 * arm + 2, column],
                held[4 * arm + 3, column],
            )


for _cls in (Draws, KeyStream, AheadStream, AheadDraws):
    register(_cls)


def ahead_stream(key: int, n_arms: int) -> AheadStream:
    """The stream of a run that plays alone, with room for its blocks."""
    return AheadStream(
        np.array([key], np.uint64),
        LaneArray(np.arange(AHEAD, dtype=np.int64).reshape(1, AHEAD)),
        np.full(2, -1, np.int64),
        LaneArray(np.zeros((n_arms, AHEAD))),
        LaneArray(np.zeros((4 * n_arms, AHEAD))),
    )


# ---- the loop: its optional parts ------------------------------------------------------------------------------------


@overload(loop.tally, jit_options=OPTIONS, strict=False)
def _tally(counts: Any, arm: Any) -> Any:
    if isinstance(counts, types.NoneType):
        return lambda counts, arm: None

    def count(counts: Any, arm: Any) -> None:
        counts[arm] = counts[arm] + 1

    return count


@overload(loop.note, jit_options=OPTIONS, strict=False)
def _note(trace: Any, t: Any, arm: Any, reward: Any) -> Any:
    if isinstance(trace, types.NoneType):
        return lambda trace, t, arm, reward: None

    def write(trace: Any, t: Any, arm: Any, reward: Any) -> None:
        trace.arms[t] = arm
        trace.rewards[t] = reward

    return write


# ---- where compiled code is kept -------------------------------------------------------------------------------------


def source_digest() -> str:
    """A digest of every source file of the package and of the compilers' versions: another digest, another cache."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(f"{numba.__version__} {llvmlite.__version__} {np.__version__}".encode())
    return digest.hexdigest()[:16]


def cache_directory() -> Path:
    """Where compiled loops are kept: $DRIFTBANDIT_CACHE, else the user's cache directory, else a temporary one."""
    choices = [os.environ.get("DRIFTBANDIT_CACHE"), os.environ.get("XDG_CACHE_HOME")]
    base = Path(choices[0]) if choices[0] else Path(choices[1] or Path.home() / ".cache") / "driftbandit"
    for root in (base, Path(tempfile.gettempdir()) / f"driftbandit-{os.getuid() if hasattr(os, 'getuid') else 'user'}"):
        directory = root / f"kernels-{source_digest()}"
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                return directory
    return Path(tempfile.mkdtemp(prefix="driftbandit-"))


@contextlib.contextmanager
def _numba_cache(directory: Path) -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


_dispatchers: dict[bool, Any] = {}


def compiled_advance(own: bool) -> Any:
    """`advance` as machine code, on demand: kept on disk if every class involved is the package's own, otherwise for
    this process only."""
    if own not in _dispatchers:
        if own:
            with _numba_cache(cache_directory()):
                _dispatchers[own] = numba.njit(nogil=True, cache=True, **OPTIONS)(loop.advance)
        else:
            _dispatchers[own] = numba.njit(nogil=True, **OPTIONS)(loop.advance)
    return _dispatchers[own]


def is_own(value: Any) -> bool:
    """Is this tuple made of the package's own classes only?"""
    if not isinstance(value, tuple):
        return True
    module = type(value).__module__ or ""
    plain = type(value) is tuple or module.split(".")[0] == "driftbandit"
    return plain and all(is_own(item) for item in value)


def prepare(value: Any) -> None:
    """Register the classes of a policy or environment, wrappers' contents included, and say plainly what a class
    lacks."""
    if isinstance(value, tuple):
        if hasattr(type(value), "_fields"):
            register(type(value))
        for item in value:
            prepare(item)


def explain(error: Exception, policy: Any, environment: Any) -> str:
    """One sentence from a compiler's page: which method failed to compile, and why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = next(
        (
            line
            for line in lines
            if line.startswith(("- Resolution failure", "No implementation", "Unknown", "Invalid"))
        ),
        "",
    )
    place = next((line for line in reversed(lines) if line.startswith("File ")), "")
    name = f"{type(policy).__name__} on {type(environment).__name__}"
    source = inspect.getsourcefile(type(policy)) or ""
    return (
        f"{name} does not compile: {cause or lines[0] if lines else error}. {place} Methods of a policy may use "
        "numbers, arrays, loops, `math` and functions marked `compilable`; simulate(..., compiled=False) runs it interpreted "
        f"meanwhile. (policy in {os.path.basename(source)})"
    )
