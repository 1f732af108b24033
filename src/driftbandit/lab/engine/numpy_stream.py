"""The random numbers of interpreted policies under NumPy's names."""

from typing import Any

import numpy as np

from driftbandit.draws import Stream


class NumpyStream(Stream):
    """A `Stream` that is also a `numpy.random.Generator`: `rng.random()`, `rng.normal(mean, sd)`, `rng.integers(k)`,
    `rng.beta(a, b)`, `rng.choice(...)`. The generator starts anew in every round from the key of the round, so a run
    can be repeated. One whole number is a slot, as in `rng.uniform(1)`, and so is a third number of `rng.beta`."""

    _generator: Any = None

    def at(self, t: int) -> "NumpyStream":
        """Move to round t."""
        super().at(t)
        self._generator = None
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._generator is None:
            key = int(self._block.key[self._column])
            self._generator = np.random.Generator(np.random.Philox(key=key))
        return getattr(self._generator, name)

    def uniform(self, *given: Any, **named: Any) -> Any:
        """The number of a slot, or NumPy's `uniform`."""
        return super().uniform(*given) if _is_slot(given, named) else self.__getattr__("uniform")(*given, **named)

    def normal(self, *given: Any, **named: Any) -> Any:
        """The standard normal of a slot, or NumPy's `normal`."""
        return super().normal(*given) if _is_slot(given, named) else self.__getattr__("normal")(*given, **named)

    def beta(self, a: Any, b: Any, *slot: Any, **named: Any) -> Any:
        """The Beta draw of a slot, or NumPy's `beta`."""
        return super().beta(a, b, *slot) if _is_slot(slot, named) else self.__getattr__("beta")(a, b, **named)


def _is_slot(given: tuple[Any, ...], named: dict[str, Any]) -> bool:
    return len(given) == 1 and not named and isinstance(given[0], int | np.integer)
