"""Logs whose truth is known: a world played by a logger that writes down its chances."""

from typing import Any

import numpy as np

from driftbandit.logs.log import Log


def uniform_log(world: Any, seed: int = 0, **options: Any) -> Log:
    """A log of the world's whole horizon with every arm drawn evenly; times are rounds."""
    rng = np.random.default_rng(seed)
    means = world.means(0, world.horizon)
    n, k = means.shape
    arm = rng.integers(0, k, n)
    reward = (rng.random(n) < means[np.arange(n), arm]).astype(np.float64)
    return Log({"time": np.arange(n, dtype=np.float64), "arm": arm, "reward": reward}, propensity="uniform", **options)


def adaptive_log(world: Any, seed: int = 0, epsilon: float = 0.1, refresh: int = 50, **options: Any) -> Log:
    """The same by an adaptive logger: Thompson sampling with chances renewed every `refresh` events, mixed with a share
    `epsilon` of even draws."""
    from driftbandit.logs import machine
    from driftbandit.logs.largest import BETA, chances_into, room

    rng = np.random.default_rng(seed)
    means = world.means(0, world.horizon)
    n, k = means.shape
    scratch = room(k)
    quadrature = machine.compiled(chances_into, scratch)
    a, b, chance = np.ones(k), np.ones(k), np.zeros(k)
    arm, reward, mu = np.empty(n, np.int64), np.empty(n), np.empty(n)
    for start in range(0, n, refresh):
        rows = slice(start, min(start + refresh, n))
        size = rows.stop - start
        quadrature(BETA, a, b, scratch, chance)
        p = epsilon / k + (1.0 - epsilon) * chance
        arm[rows] = np.minimum(np.searchsorted(np.cumsum(p), rng.random(size)), k - 1)
        mu[rows] = p[arm[rows]]
        reward[rows] = rng.random(size) < means[np.arange(start, rows.stop), arm[rows]]
        a += np.bincount(arm[rows], reward[rows], minlength=k)
        b += np.bincount(arm[rows], 1.0 - reward[rows], minlength=k)
    columns = {"time": np.arange(n, dtype=np.float64), "arm": arm, "reward": reward, "propensity": mu}
    return Log(columns, arms=range(k), **options)
