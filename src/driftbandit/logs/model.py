"""The guess q_t(a) that the doubly robust estimator starts from: an arm's average so far, at the memory that has
guessed best so far.

Any guess made of earlier events leaves the estimate unbiased; a good one makes it sharp. So several memories run side
by side, from everything to the last few plays, and at each event the one with the smallest squared error until then
speaks. All policies are judged with the same guesses, which is why their differences are sharper than their values."""

from typing import Any, NamedTuple

import numpy as np

MEMORIES = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, np.inf)  # plays of an arm, mean age


class Model(NamedTuple):
    """Averages of each memory and arm."""

    keep: Any  # 1 - 1 / memory
    total: Any  # memories × arms: weight
    mean: Any
    error: Any  # squared error of each memory so far


def model(n_arms: int) -> Model:
    """Before the first event every guess is the middle, with the weight of one play."""
    keep = np.array([1.0 - 1.0 / memory for memory in MEMORIES])
    shape = (len(keep), n_arms)
    return Model(keep, np.ones(shape), np.full(shape, 0.5), np.zeros(len(keep)))


def guess(model: Any, arm: Any, reward: Any, known: Any, order: Any, time: Any, begin: int, out: Any) -> None:
    """Write the guesses for all arms at each event from `begin` on; rewards are taken in as they become known."""
    learnt = 0
    n_arms = out.shape[1]
    for e in range(begin, len(time)):
        while learnt < len(order):
            w = order[learnt]
            if w >= e or known[w] > time[e] or time[w] >= time[e]:
                break
            a = arm[w]
            for m in range(len(model.keep)):
                miss = reward[w] - model.mean[m, a]
                model.error[m] += miss * miss
                model.total[m, a] = model.total[m, a] * model.keep[m] + 1.0
                model.mean[m, a] += miss / model.total[m, a]
            learnt += 1
        best = 0
        for m in range(1, len(model.keep)):
            if model.error[m] <= model.error[best]:
                best = m
        for i in range(n_arms):
            out[e, i] = model.mean[best, i]
