"""Logs whose truth is known: an environment played by a logger that records its probabilities."""

from typing import Any

import numpy as np

from driftbandit.logs.log import Log


def uniform_log(environment: Any, seed: int = 0, more: Any = None, **options: Any) -> Log:
    """A log of the environment's whole horizon with arms drawn uniformly; times are rounds. `more` are columns."""
    rng = np.random.default_rng(seed)
    means = environment.means(0, environment.horizon)
    n, k = means.shape
    arm = rng.integers(0, k, n)
    reward = (rng.random(n) < means[np.arange(n), arm]).astype(np.float64)
    columns = {"time": np.arange(n, dtype=np.float64), "arm": arm, "reward": reward}
    return Log({**columns, **(more or {})}, propensity="uniform", **options)


def adaptive_log(
    environment: Any, seed: int = 0, epsilon: float = 0.1, refresh: int = 50, more: Any = None, **options: Any
) -> Log:
    """The same by an adaptive logger: Thompson sampling with probabilities renewed every `refresh` events, mixed with a
    share `epsilon` of uniform draws."""
    rng = np.random.default_rng(seed)
    means = environment.means(0, environment.horizon)
    n, k = means.shape
    a, b = np.ones(k), np.ones(k)
    arm, reward, mu = np.empty(n, np.int64), np.empty(n), np.empty(n)
    for start in range(0, n, refresh):
        rows = slice(start, min(start + refresh, n))
        size = rows.stop - start
        chance = np.bincount(rng.beta(a, b, (2000, k)).argmax(axis=1), minlength=k) / 2000
        p = epsilon / k + (1.0 - epsilon) * chance
        arm[rows] = np.minimum(np.searchsorted(np.cumsum(p), rng.random(size)), k - 1)
        mu[rows] = p[arm[rows]]
        reward[rows] = rng.random(size) < means[np.arange(start, rows.stop), arm[rows]]
        a += np.bincount(arm[rows], reward[rows], minlength=k)
        b += np.bincount(arm[rows], 1.0 - reward[rows], minlength=k)
    columns = {"time": np.arange(n, dtype=np.float64), "arm": arm, "reward": reward, "propensity": mu}
    return Log({**columns, **(more or {})}, **options)
