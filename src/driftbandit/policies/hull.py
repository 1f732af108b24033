"""Where a record of rewards may have changed: the corners of its path of sums, kept as two convex hulls.

The points are (s, sum of the first s rewards). A hull is a stretch of two arrays, `at` and `sums`, from position
`first` on, with room for `room` vertices; it lies above all points (side 1) or below (side -1)."""

from typing import Any

from driftbandit.policies.kl import kl_bernoulli
from driftbandit.primitives import compilable


@compilable
def push(at: Any, sums: Any, first: int, count: int, room: int, s: float, a: float, side: float) -> int:
    """Add the point (s, a), right of all others, to a hull (side 1: upper, -1: lower) and return its number of
    vertices.

    The newest vertices that the new point leaves on or inside the hull go first, each once and for all."""
    while count >= 2:
        last = first + count - 1
        rise = (a - sums[last - 1]) * (at[last] - at[last - 1])
        if side * (rise - (sums[last] - sums[last - 1]) * (s - at[last - 1])) < 0.0:
            break
        count -= 1
    share = 0.125
    while count == room:
        count = thin(at, sums, first, count, s, share)
        share *= 2.0
    at[first + count] = s
    sums[first + count] = a
    return count + 1


@compilable
def thin(at: Any, sums: Any, first: int, count: int, n: float, share: float) -> int:
    """Drop vertices from between neighbours that are close, and return how many are left.

    Close means: by at most this share of their distance to the nearer end of the record. A change point is found from
    few rewards on one side of it, so splits near the ends have to stay dense, while those in the middle may be
    sparse."""
    kept = 1
    for j in range(first + 1, first + count):
        left = at[first + kept - 1]
        if j == first + count - 1 or at[j + 1] - left > share * min(left, n - at[j + 1]):
            at[first + kept] = at[j]
            sums[first + kept] = sums[j]
            kept += 1
    return kept


@compilable
def largest_ratio(at: Any, sums: Any, first: int, count: int, n: float, whole: float, bar: float) -> float:
    """The largest log-likelihood ratio at the vertices of one hull, as far as it exceeds `bar`; otherwise some number
    below.

    kl(p, q) <= (p - q)**2 / (q (1 - q)) bounds the ratio at (s, a) by n (a - s m)**2 / (s (n - s) m (1 - m)), m the
    mean. Vertices bounded well below the bar are passed over; next to m = 0 and 1, where kl keeps its second argument
    off the ends, none is."""
    mean = whole / n
    limit = 0.9 * bar * mean * (1.0 - mean)
    if mean < 1e-12 or mean > 1.0 - 1e-12:
        limit = -1.0
    best = 0.0
    for j in range(first, first + count):
        s = at[j]
        excess = sums[j] - s * mean
        if n * excess * excess > limit * s * (n - s):
            # Rounding can leave the rest of the sum a hair outside [0, n - s], where kl has no logarithm.
            after = min(max((whole - sums[j]) / (n - s), 0.0), 1.0)
            ratio = s * kl_bernoulli(sums[j] / s, mean) + (n - s) * kl_bernoulli(after, mean)
            best = max(best, ratio)
    return best
