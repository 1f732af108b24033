"""Columns as a data frame of whichever library the user has."""

import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np

BACKENDS = ("pandas", "polars", "pyarrow")  # in the order in which they are looked for


def to_frame(columns: Mapping[str, Any], backend: str | None = None) -> Any:
    """The columns as a pandas, Polars or PyArrow table: the one asked for, else the first that is installed.

    >>> to_frame({"run": [0, 1], "regret": [1.5, 2.5]}, "pyarrow").column_names
    ['run', 'regret']
    """
    if backend is None:
        backend = next((name for name in BACKENDS if importlib.util.find_spec(name) is not None), "pyarrow")
    if backend not in BACKENDS:
        raise ValueError(f"A frame is made by one of {', '.join(BACKENDS)}; got {backend!r}.")
    if importlib.util.find_spec(backend) is None:
        raise ImportError(f"This needs {backend}: pip install {backend}.", name=backend)
    import narwhals as nw

    plain = {name: column if isinstance(column, np.ndarray) else list(column) for name, column in columns.items()}
    library: Any = backend
    return nw.from_dict(plain, backend=library).to_native()
