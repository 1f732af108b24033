"""Slow, obvious twins of every policy, written from the specification only, to hold the fast ones against.

`TWINS[name](n_arms, **parameters)` has the parameters of the policy class `name`; `choose(t, rng)` and
`learn(t, arm, reward)` as described in `draws.py`. A docstring says which random number decides what (its line
"Draws:") and settles everything a reader could do in two ways; twin and policy then choose the same arms.

A twin is found by its name, `Naive` and the policy's, in any module of this folder; `tried` holds the parameters it is
tried with.
"""

import importlib
import pkgutil

TWINS: dict[str, type] = {
    name.removeprefix("Naive"): value
    for info in pkgutil.iter_modules(__path__)
    if not info.name.startswith("test_") and info.name != "plays"
    for name, value in vars(importlib.import_module(f"{__name__}.{info.name}")).items()
    if name.startswith("Naive") and isinstance(value, type)
}
