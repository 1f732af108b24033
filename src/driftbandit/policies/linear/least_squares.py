"""Discounted ridge regression, the arithmetic of all linear policies.

There are G groups of arms with a regression each: one per arm, or one for all. The matrix of a group is V = lam I + sum
of weight x x'. It is kept without lam I, so that discounting is one multiplication and an idle group returns to lam I
exactly. Of symmetric matrices the upper triangle is kept, n x n numbers row by row.

V = R'R is factorised where it has changed (Cholesky, D**3 / 6 multiplications). The prediction for x is u . w and its
variance u . u, with u the solution of R'u = x and w that of R'w = b. No inverse is updated: the errors of such updates
add up, and lam (1 - gamma) I, which discounting adds in every round, is not of rank one. With a regression per arm a
discounted policy therefore factorises all G matrices in every round, three quarters of its time with 20 arms and 19
features. A tridiagonal form Q T Q' would turn discounting into T -> gamma T, but to compute it for the group that
learned costs as much as 16 factorisations."""

import math
from typing import Any

from driftbandit.core.primitives import compilable, index


@compilable
def take_features(state: Any, features: Any) -> None:
    """Write the features of a call into the state, behind the 1 of the intercept if there is one."""
    first = 0 if len(features) >= len(state.u) else 1
    for i in range(len(features)):
        state.x[first + i] = features[i]


@compilable
def group_of(state: Any, arm: Any) -> Any:
    """The group of an arm: the arm, or the only one."""
    return arm if len(state.pulls) > 1 else 0


@compilable
def factorise(matrix: Any, lam: Any, factor: Any, first: int, row: Any) -> None:
    """Write R with R'R = lam I + matrix, of the n x n matrices that begin at `first`; the diagonal of R as reciprocals.
    `row` is scratch for n numbers: loops that write into another array than they read from run on SIMD registers.

    A pivot is at least lam, whatever rounding does to features of very different sizes."""
    n, at = len(row), index(first)
    for j in range(n):
        here = index(at + j * n)
        for i in range(j, n):
            row[i] = matrix[here + i]
        for k in range(j):
            above = index(at + k * n)
            part = factor[above + j]
            for i in range(j, n):
                row[i] -= part * factor[above + i]
        root = 1.0 / math.sqrt(max(row[j] + lam, lam))
        factor[here + j] = root
        for i in range(j + 1, n):
            factor[here + i] = row[i] * root


@compilable
def solve_lower(factor: Any, first: int, values: Any, start: int, n: int) -> None:
    """Replace n values y by the solution of R'u = y."""
    at, to = index(first), index(start)
    for j in range(n):
        row = index(at + j * n)
        value = values[to + j] * factor[row + j]
        values[to + j] = value
        for i in range(j + 1, n):
            values[to + i] -= factor[row + i] * value


@compilable
def solve_upper(factor: Any, first: int, values: Any, n: int) -> None:
    """Replace the n values u by the solution of R w = u."""
    at = index(first)
    for back in range(n):
        j = n - 1 - back
        row = index(at + j * n)
        value = values[j]
        for i in range(j + 1, n):
            value -= factor[row + i] * values[i]
        values[j] = value * factor[row + j]


@compilable
def quadratic(matrix: Any, first: int, u: Any) -> Any:
    """u' M u of a symmetric matrix given by its upper triangle."""
    n, total = len(u), 0.0
    for j in range(n):
        row = index(first + j * n)
        part = 0.5 * matrix[row + j] * u[j]
        for i in range(j + 1, n):
            part += matrix[row + i] * u[i]
        total += part * u[j]
    return 2.0 * total


@compilable
def square(u: Any) -> Any:
    """u . u."""
    total = 0.0
    for i in range(len(u)):
        total += u[i] * u[i]
    return total


@compilable
def predict(state: Any, row: Any, group: Any) -> Any:
    """The prediction of a group for the features at `row` of `x`; leaves u in the state, whose square is the variance
    of the prediction in units of the noise."""
    n, x, u, white = len(state.u), state.x, state.u, state.white
    at, first = index(group * n), index(row)
    for i in range(n):
        u[i] = x[first + i]
    solve_lower(state.factor, at * n, u, 0, n)
    total = 0.0
    for i in range(n):
        total += u[i] * white[at + i]
    return total


@compilable
def predict_arm(state: Any, arm: Any) -> Any:
    """The prediction for an arm, in a choice."""
    row = arm * len(state.u) if len(state.x) > len(state.u) else 0
    return predict(state, row, group_of(state, arm))


@compilable
def second_variance(state: Any, arm: Any, lam: Any) -> Any:
    """x' V^-1 (lam I + second) V^-1 x after `predict_arm`."""
    at = group_of(state, arm) * len(state.u) * len(state.u)
    solve_upper(state.factor, at, state.u, len(state.u))
    return lam * square(state.u) + quadratic(state.second, at, state.u)


@compilable
def renew(state: Any, group: Any, lam: Any) -> None:
    """Compute the values derived from the sums of a group."""
    n = len(state.u)
    at = index(group * n)
    factorise(state.gram, lam, state.factor, at * n, state.u)
    for i in range(n):
        state.white[at + i] = state.target[at + i]
    solve_lower(state.factor, at * n, state.white, at, n)


@compilable
def renew_all(state: Any, lam: Any) -> None:
    """Compute the values derived from the sums of every group."""
    for group in range(len(state.pulls)):
        renew(state, group, lam)


@compilable
def add_product(matrix: Any, first: int, x: Any, n: int, weight: Any) -> None:
    """Add weight x x' to the upper triangle of an n x n matrix."""
    for j in range(n):
        row, part = index(first + j * n), weight * x[j]
        for i in range(j, n):
            matrix[row + i] += part * x[i]


@compilable
def add(state: Any, group: Any, reward: Any, weight: Any) -> None:
    """Add one reward of this weight to the sums."""
    n, x = len(state.u), state.x
    at, part = index(group * n), weight * reward
    add_product(state.gram, at * n, x, n, weight)
    if len(state.second) > 0:
        add_product(state.second, at * n, x, n, weight * weight)
    for i in range(n):
        state.target[at + i] += part * x[i]
    state.pulls[group] += weight
    state.weight[0] += weight * weight


@compilable
def multiply(values: Any, factor: Any) -> None:
    """Multiply every value."""
    for i in range(len(values)):
        values[i] *= factor


@compilable
def discount(state: Any, factor: Any) -> None:
    """Multiply the weight of every past reward."""
    multiply(state.gram, factor)
    multiply(state.target, factor)
    multiply(state.second, factor * factor)
    multiply(state.pulls, factor)
    multiply(state.weight, factor * factor)


@compilable
def forget_group(state: Any, group: Any, lam: Any) -> None:
    """Forget all rewards of a group."""
    n = len(state.u)
    at = index(group * n)
    for i in range(n * n):
        state.gram[at * n + i] = 0.0
    for i in range(n):
        state.target[at + i] = 0.0
    state.weight[0] = max(state.weight[0] - state.pulls[group], 0.0)
    state.pulls[group] = 0.0
    renew(state, group, lam)


@compilable
def sample(state: Any, scale: Any, rng: Any) -> None:
    """Score every arm by coefficients drawn from N(V^-1 b, scale**2 V^-1). Groups are independent, so that one normal
    per arm does where every arm has its own group."""
    u, scores, draws, n = state.u, state.scores, state.draws, len(state.u)
    rng.normals(draws)
    if len(state.x) > n:
        for i in range(n):
            u[i] = state.white[i] + scale * draws[i]
        solve_upper(state.factor, 0, u, n)
        score_by(state, u)
    else:
        for arm in range(len(scores)):
            mean = predict_arm(state, arm)
            scores[arm] = mean + scale * math.sqrt(square(u)) * draws[arm]


@compilable
def score_by(state: Any, coefficients: Any) -> None:
    """Score every arm of the joint form by these coefficients."""
    n = len(coefficients)
    for arm in range(len(state.scores)):
        at, total = index(arm * n), 0.0
        for i in range(n):
            total += state.x[at + i] * coefficients[i]
        state.scores[arm] = total
