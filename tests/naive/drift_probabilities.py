"""Each arm's chance of being chosen by DriftTS under one hypothesis: one at a time, panel by panel, with many nodes."""

import math
from functools import cache

import numpy as np

_FAR = 7.0  # standard deviations from its mean beyond which a law has nothing
_DEVIATIONS = np.arange(-_FAR, _FAR + 0.1, 1.0)
_DENSE = 1.0  # least distance of points, in standard deviations of the narrowest law alive there


def probabilities(a, b, first, nodes=14):
    """The chances of all arms under one hypothesis: a and b are laws × arms, first says how likely the first law is."""
    laws = 1 if (first == 1.0).all() else 2
    p = np.stack([first, 1.0 - first])[:laws]  # laws × arms, as everything below
    a, b = a[:laws], b[:laws]
    mean = a / (a + b)
    sd = np.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    # Some arm's score is always as high as this, and who cannot reach it does not matter.
    low = np.where(p > 0.0, mean, 1.0).min(axis=0).max()
    chances = np.zeros(len(first))
    able = ((mean + _FAR * sd >= low) & (p > 0.0)).any(axis=0)
    p, a, b, mean, sd = (values[:, able] for values in (p, a, b, mean, sd))
    if able.sum() == 1:
        return np.where(able, 1.0, 0.0)
    ties = len(np.unique(mean[(p > 0.0) & (mean >= low)])) < np.count_nonzero((p > 0.0) & (mean >= low))
    ends = _panel_ends(mean, sd, p > 0.0, 0.0 if ties else low)
    share, density, below, at_ends = _distribution(a, b, ends, nodes)
    above = (ends[:-1] >= mean[..., None])[..., None]  # draws in such a panel are scores
    here = p[..., None, None]
    # Above all means of arms: a score beats all others that lie below it.
    lower = (here * below * above).sum(axis=0)
    winning = (here * density * above).sum(axis=0) * share
    found = (winning * _product_of_others(lower)).sum(axis=(1, 2))
    # At a mean: all other scores are lower, or equal and made from a lower draw.
    for law, arm in zip(*np.nonzero((p > 0.0) & (mean >= low)), strict=True):
        place = int(np.searchsorted(ends, mean[law, arm]))
        less = np.where(mean < mean[law, arm], p * at_ends[..., place], 0.0).sum(axis=0)
        tied = (mean == mean[law, arm]) & (p > 0.0)
        others = np.arange(len(less)) != arm
        if not tied[:, others].any():
            found[arm] += p[law, arm] * at_ends[law, arm, place] * less[others].prod()
        else:
            equal = np.where(tied[..., None, None], here * below[:, :, :place], 0.0).sum(axis=0)
            rivals = (less[:, None, None] + equal)[others].prod(axis=0)
            found[arm] += (p[law, arm] * density[law, arm, :place] * share[:place] * rivals).sum()
    chances[able] = found
    return chances


def _panel_ends(mean, sd, used, low):
    """`low`, 1, every mean between them, and points as dense as the narrowest law that is alive there asks for."""
    near = (mean[used][:, None] + sd[used][:, None] * _DEVIATIONS).ravel()
    inside = np.concatenate([near, np.linspace(0.0, 1.0, 9)])
    inside = np.sort(inside[(inside > low) & (inside < 1.0)])
    alive = np.abs(inside[:, None] - mean[used]) <= _FAR * sd[used]
    width = _DENSE * np.where(alive, sd[used], 1.0).min(axis=1)
    kept, last = [low, 1.0], low
    for point, least in zip(inside.tolist(), width.tolist(), strict=True):
        if point - last >= least:
            kept.append(point)
            last = point
    return np.unique(np.concatenate([kept, mean[used & (mean >= low)]]))


def _distribution(a, b, ends, nodes):
    """Shares of the Gauss-Legendre nodes of every panel; of every law the density at the nodes, and the distribution
    function there and at the ends of panels, which is 1 at the last."""
    unit, unit_share, partial = _rule(nodes)
    half = 0.5 * np.diff(ends)[:, None]
    x = ends[:-1, None] + half * (1.0 + unit)
    share = half * unit_share
    norm = np.array([math.lgamma(p + q) - math.lgamma(p) - math.lgamma(q) for p, q in zip(a.flat, b.flat, strict=True)])
    density = (a - 1.0)[..., None, None] * np.log(x) + (b - 1.0)[..., None, None] * np.log1p(-x)
    density = np.exp(density + norm.reshape(a.shape)[..., None, None])
    parts = (density * share).sum(axis=-1)
    tail = np.concatenate([np.cumsum(parts[..., ::-1], axis=-1)[..., ::-1], np.zeros((*a.shape, 1))], axis=-1)
    below = np.clip((1.0 - tail[..., :-1])[..., None] + half * (density @ partial.T), 0.0, 1.0)
    return share, density, below, np.clip(1.0 - tail, 0.0, 1.0)


@cache
def _rule(nodes):
    """Nodes and shares on [-1, 1], and the matrix that integrates from -1 to each node."""
    x, share = np.polynomial.legendre.leggauss(nodes)
    basis = np.polynomial.legendre.legvander(x, nodes)
    integrals = np.column_stack(
        [x + 1.0] + [(basis[:, k + 1] - basis[:, k - 1]) / (2 * k + 1) for k in range(1, nodes)]
    )
    return x, share, integrals @ np.linalg.inv(basis[:, :nodes])


def _product_of_others(values):
    """For every arm the product over all others, by prefix and suffix: no division by 0."""
    before, after = np.ones_like(values), np.ones_like(values)
    for i in range(1, len(values)):
        before[i] = before[i - 1] * values[i - 1]
        after[-1 - i] = after[-i] * values[-i]
    return np.asarray(before * after)
