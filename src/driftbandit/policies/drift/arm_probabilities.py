"""The probability that `DriftTS` chooses each arm under a hypothesis, by quadrature, for many hypotheses together.

Given a hypothesis (and, in bank S, which arms changed) every arm's score is a Beta draw, but not below its mean; of
equal scores the larger draw wins. So the winner's score either lies above the largest mean, where scores are Beta
draws, or is the largest mean itself. Both probabilities are integrals of products of Beta distribution functions. They
are computed panel by panel between points that are dense wherever some arm's density moves, by Gauss-Legendre
quadrature, and so are the distribution functions themselves."""

import math
from functools import cache
from typing import Any

import numpy as np

_FAR = 7.0  # standard deviations from its mean beyond which a law has no mass
_DENSE = 1.6  # distance of points, in standard deviations of the narrowest law alive there
_ELEMENTS = 50_000  # numbers in an array at a time


def integrate_hypotheses(a: np.ndarray, b: np.ndarray, first: np.ndarray, nodes: int) -> np.ndarray:
    """The probabilities of all arms under each hypothesis (hypotheses × arms)."""
    out = np.empty_like(first)
    single = (first == 1.0).all(axis=1)
    for rows, laws in ((np.flatnonzero(single), 1), (np.flatnonzero(~single), 2)):
        if len(rows) == 0:
            continue
        p = np.stack([first[rows], 1.0 - first[rows]], axis=1)[:, :laws]
        out[rows] = _integrate_laws(p, a[rows, :laws], b[rows, :laws], nodes)
    return out


def _integrate_laws(p: np.ndarray, a: np.ndarray, b: np.ndarray, nodes: int) -> np.ndarray:
    """The same for hypotheses with equally many laws per arm; arrays are hypotheses × laws × arms."""
    mean = a / (a + b)
    sd = np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    used = p > 0.0
    # Some arm's score is always as high as this, and an arm that cannot reach it does not matter.
    low = np.where(used, mean, 1.0).min(axis=1).max(axis=1)
    able = ((mean + _FAR * sd >= low[:, None, None]) & used).any(axis=1)
    reaching = np.sort(np.where(used & (mean >= low[:, None, None]), mean, np.nan).reshape(len(p), -1), axis=1)
    tied = np.where(np.diff(reaching, axis=1) == 0.0, reaching[:, 1:], np.nan)  # means that several laws have
    begins = np.where(np.isnan(tied).all(axis=1), low, 0.0)  # of equal scores the larger draw wins, however low
    block = max(1, 40 * _ELEMENTS // (2 * p[0].size ** 2))
    parts = [slice(start, start + block) for start in range(0, len(p), block)]
    parted = [_panels(p[part], mean[part], sd[part], begins[part]) for part in parts]
    panels = [np.concatenate(some) for some in zip(*parted, strict=True)]
    many = 4.0 * np.ceil(0.25 * panels[2][:, -1] - 1e-9)
    out = np.zeros((len(p), p.shape[2]))
    for count in np.unique(many).tolist():  # those that ask for about as many panels go together
        whole = np.flatnonzero(many == count)
        size = max(1, int(_ELEMENTS / (p[0].size * nodes * (count + 2.0))))
        for start in range(0, len(whole), size):
            rows = whole[start : start + size]
            arms = np.flatnonzero(able[rows].any(axis=0))
            likely, wins, losses, means = (values[rows][:, :, arms] for values in (p, a, b, mean))
            ends = _panel_ends(likely, means, begins[rows], [values[rows] for values in panels], int(count))
            found = _integrate_block(likely, wins, losses, means, low[rows], tied[rows], ends, nodes)
            out[np.ix_(rows, arms)] = found
    return out


def _integrate_block(
    p: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    tied: np.ndarray,
    ends: np.ndarray,
    nodes: int,
) -> np.ndarray:
    """The same, given the ends of panels and the means (hypotheses × some, NaN for none) that several laws have."""
    count, laws, arms = p.shape
    share, density, below, at_ends = _distribution(a, b, ends, nodes)
    # Above all means of arms: a score beats all others that lie below it.
    if laws == 1 and np.isnan(tied).all():
        lower, winning = below[:, 0], density[:, 0] * share[:, None]
    else:
        above = np.where(ends[:, None, None, :-1] >= mean[..., None], p[..., None], 0.0)[..., None]  # draws are scores
        lower, winning = (above * below).sum(axis=1), (above * density).sum(axis=1) * share[:, None]
    found = (winning * _product_of_others(lower)).sum(axis=(2, 3))
    # At a mean: all other scores are lower. Rows i are the laws whose mean it is, columns j those that must be lower.
    means, weights = mean.reshape(count, -1), p.reshape(count, -1)
    place = (ends[:, None, :] < means[..., None]).sum(axis=-1)
    there = np.take_along_axis(at_ends.reshape(count, laws * arms, -1), place[:, None, :], axis=2)  # j × i
    less = np.where(means[:, :, None] < means[:, None, :], weights[:, :, None] * there, 0.0)
    others = less.reshape(count, laws, arms, laws * arms).sum(axis=1)
    others[:, np.arange(laws * arms) % arms, np.arange(laws * arms)] = 1.0
    own = np.diagonal(there, axis1=1, axis2=2)
    alone = (weights > 0.0) & (means >= low[:, None]) & (means[..., None] != tied[:, None]).all(axis=-1)
    atoms = np.where(alone, weights * own * others.prod(axis=1), 0.0)
    found += atoms.reshape(count, laws, arms).sum(axis=1)
    # At a mean that several have: all other scores are lower, or equal and made from a lower draw.
    for row in np.flatnonzero(~np.isnan(tied).all(axis=1)).tolist():
        for value in np.unique(tied[row][~np.isnan(tied[row])]).tolist():
            upto = int(np.searchsorted(ends[row], value))
            equal = np.where(mean[row] == value, p[row], 0.0)[..., None, None]
            drawn, rivals = ((equal * of[row, :, :, :upto]).sum(axis=0) for of in (density, below))
            rivals += np.where(mean[row] < value, p[row] * at_ends[row, :, :, upto], 0.0).sum(axis=0)[:, None, None]
            found[row] += (drawn * share[row, :upto] * _product_of_others(rivals[None])[0]).sum(axis=(1, 2))
    return np.asarray(found)


def _panel_ends(
    p: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    found: list[np.ndarray],
    many: int,
) -> np.ndarray:
    """The ends of so many panels for each hypothesis, from `low` to 1 and with one at every mean, by `_panels`."""
    count, used, ends = len(p), (p > 0.0).reshape(len(p), -1), low[:, None]
    means, (steps, width, panels) = mean.reshape(count, -1), found
    wanted = panels[:, -1:] * (np.arange(1, many) / many)
    step = np.clip((panels[:, None, :] <= wanted[..., None]).sum(axis=-1) - 1, 0, width.shape[1] - 1)
    begin, passed, wide = (np.take_along_axis(of, step, 1) for of in (steps, panels, width))
    inside = np.clip(begin + (wanted - passed) * wide, ends, 1.0)
    further = np.sort(np.where(used & (means > ends), means, 0.0), axis=1)[:, ::-1]
    further = further[:, : int(np.count_nonzero(further, axis=1).max())]
    further = np.where(further > 0.0, further, inside[:, :1])  # where there are fewer, a panel of no width
    return np.sort(np.concatenate([ends, inside, further, np.ones((count, 1))], axis=1), axis=1)


def _panels(p: np.ndarray, mean: np.ndarray, sd: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where laws begin and cease to be alive. How wide panels may be in between, which is _DENSE standard deviations of
    the narrowest law alive and at most an eighth; and how many panels that makes up to each such place."""
    count, used, ends = len(p), (p > 0.0).reshape(len(p), -1), low[:, None]
    means, sds = mean.reshape(count, -1), sd.reshape(count, -1)
    steps = np.concatenate([means - _FAR * sds, means + _FAR * sds, np.ones((count, 1))], axis=1)
    steps = np.concatenate([ends, np.sort(np.clip(steps, ends, 1.0), axis=1)], axis=1)
    middle, length = 0.5 * (steps[:, 1:] + steps[:, :-1]), np.diff(steps, axis=1)
    alive = used[:, None] & (np.abs(middle[..., None] - means[:, None]) <= _FAR * sds[:, None])
    width = np.minimum(_DENSE * np.where(alive, sds[:, None], 1.0).min(axis=2), 0.125)
    return steps, width, np.concatenate([np.zeros((count, 1)), np.cumsum(length / width, axis=1)], axis=1)


def _distribution(a: np.ndarray, b: np.ndarray, ends: np.ndarray, nodes: int) -> Any:
    """Shares of the Gauss-Legendre nodes of every panel (hypotheses × panels × nodes); of every law (hypotheses × laws
    × arms) the density at the nodes, and the distribution function there and at the ends of panels, which is 1 at the
    last."""
    unit, unit_share, partial = _rule(nodes)
    half = 0.5 * np.diff(ends)[..., None]
    x = ends[:, :-1, None] + half * (1.0 + unit)
    share = half * unit_share
    norm = _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
    wide, narrow = (slice(None), None, None), (..., None, None)
    density = (a - 1.0)[narrow] * np.log(x)[wide] + (b - 1.0)[narrow] * np.log1p(-x)[wide]
    density = np.exp(density + norm[narrow])
    parts = (density * share[wide]).sum(axis=-1)
    tail = np.concatenate([np.cumsum(parts[..., ::-1], axis=-1)[..., ::-1], np.zeros((*a.shape, 1))], axis=-1)
    within = (density.reshape(-1, nodes) @ partial.T).reshape(density.shape)
    below = np.clip((1.0 - tail[..., :-1])[..., None] + half[wide] * within, 0.0, 1.0)
    return share, density, below, np.clip(1.0 - tail, 0.0, 1.0)


def _log_gamma(x: np.ndarray) -> np.ndarray:
    """The logarithm of the gamma function for numbers above 0, by Stirling's series eight places further on; within
    1e-13 of `math.lgamma`, or that part of it."""
    product, y = x.copy(), x + 8.0
    for step in range(1, 8):
        product *= x + step
    s = 1.0 / (y * y)
    rest = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))) / y
    return np.asarray((y - 0.5) * np.log(y) - y + 0.5 * math.log(2.0 * math.pi) + rest - np.log(product))


@cache
def _rule(nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and shares on [-1, 1], and the matrix that integrates from -1 to each node."""
    x, share = np.polynomial.legendre.leggauss(nodes)
    basis = np.polynomial.legendre.legvander(x, nodes)
    integrals = np.column_stack(
        [x + 1.0] + [(basis[:, k + 1] - basis[:, k - 1]) / (2 * k + 1) for k in range(1, nodes)]
    )
    return x, share, integrals @ np.linalg.inv(basis[:, :nodes])


def _product_of_others(values: np.ndarray) -> np.ndarray:
    """For every arm (axis 1) the product over all others, by prefix and suffix: no division by 0."""
    before, after = np.ones_like(values), np.ones_like(values)
    np.cumprod(values[:, :-1], axis=1, out=before[:, 1:])
    np.cumprod(values[:, :0:-1], axis=1, out=after[:, -2::-1])
    return np.asarray(before * after)
