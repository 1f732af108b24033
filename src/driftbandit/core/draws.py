"""Random numbers that depend on nothing but (stream, round, slot).

An ordinary generator has a position: the first to draw shifts all the others. Every number of this module is a hash of
its place. So a policy has the same bits interpreted, compiled, in one run, in 32 lanes, and on any number of workers.

* Rounds and runs can be computed in any order, many at a time.
* Drawing more, or less, in one place changes nothing anywhere else, so all policies get the same random numbers.
* A stream is one 64-bit key, so a bandit's snapshot holds a key and a counter, not the inside of a generator.

The hash is the output function of SplitMix64 (Steele, Lea and Flood 2014) applied twice: key and round give the round's
key, round's key and slot give 64 bits. Normals come from those by the Box-Muller transform, Beta draws by Marsaglia and
Tsang's gamma method (2000).

Everything from `mix` to `beta_passes` is written element by element, so the same lines run on NumPy arrays (one
entry per round, interpreted), on numbers (compiled) and on rows of SIMD lanes (compiled, one lane per run). Only +,
-, *, /, sqrt and integer operations occur. IEEE 754 defines each of them to the last bit, and no multiply-add is
fused, so the results agree everywhere."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.primitives import as_float, as_uint, compilable, exponent_and_rest, stride, where

U64 = np.uint64
_M1, _M2 = U64(0xBF58476D1CE4E5B9), U64(0x94D049BB133111EB)
_S30, _S27, _S31 = U64(30), U64(27), U64(31)
_S12, _S62, _S63 = U64(12), U64(62), U64(63)
_ONE = U64(0x3FF0000000000000)  # the bits of 1.0: with 52 random bits below it, a number in [1, 2)
_SIGN = U64(1 << 63)
_SWAP, _ZERO = U64(4), U64(0)

# Slots of one round, a range for each kind of number so that none is used twice.
NORMALS, BETAS, RETRIES, SINGLES = 1 << 40, 1 << 41, 1 << 42, 1 << 43
ATTEMPT, ATTEMPTS = 1 << 32, 250  # one more attempt at all Beta draws; more do not happen (probability 10**-250)

# Chebyshev fits on the intervals used below, with errors under 1e-16 (sine, cosine) and 5e-14 of a small correction
# (logarithm).
_SIN = (
    0.7853981633974483, -0.08074551218828054, 0.0024903945701888475, -3.657620415893934e-05,
    3.1336162260314437e-07, -1.7571501346118312e-09, 6.877382283776327e-12,
)  # fmt: skip
_COS = (
    1.0, -0.30842513753403783, 0.015854344243741558, -0.0003259918864835905,
    3.590859179950622e-06, -2.4609507185981378e-08, 1.1365472347161524e-10,
)  # fmt: skip
_LOG = (
    0.6666666666666208, 0.400000000112122, 0.2857142413651654, 0.22222862476843064,
    0.18140185202383088, 0.16621947095593598,
)  # fmt: skip
_LN2 = 0.6931471805599453
_SERIES = (-0.75 / 9.0, 0.6 / 9.0, -0.5 / 9.0, 3.0 / 63.0, -0.375 / 9.0)  # of q(y) / (9 y^4), see gamma_candidate
_MISSING = (0.75 / 9.0, -0.6 / 9.0, 0.82 / 9.0)  # see gamma_candidate; z^2 is 9 d y^2


@compilable
def mix(z: Any) -> Any:
    """64 bits in, 64 well-mixed bits out: one-to-one, and every input bit moves every output bit."""
    z = (z ^ (z >> _S30)) * _M1
    z = (z ^ (z >> _S27)) * _M2
    return z ^ (z >> _S31)


@compilable
def round_key(key: Any, t: int) -> Any:
    """The key of round t of the stream `key`."""
    return mix(key + stride(t + 1))


@compilable
def bits(key: Any, slot: int) -> Any:
    """The 64 random bits of one slot of one round."""
    return mix(key + stride(slot + 1))


@compilable
def unit(word: Any) -> Any:
    """A number in [0, 1) from the upper 52 of 64 bits."""
    return as_float((word >> _S12) | _ONE) - 1.0


@compilable
def unit_above_zero(word: Any) -> Any:
    """A number in (0, 1], safe under a logarithm."""
    return 2.0 - as_float((word >> _S12) | _ONE)


@compilable
def log_of_unit(x: Any) -> Any:
    """Natural logarithm of a positive normal number, without a branch or a library, so that its bits are the same
    everywhere."""
    k, f = exponent_and_rest(x)
    s = f / (2.0 + f)
    z = s * s
    p = _LOG[0] + z * (_LOG[1] + z * (_LOG[2] + z * (_LOG[3] + z * (_LOG[4] + z * _LOG[5]))))
    return k * _LN2 + (2.0 * s + s * (z * p))


@compilable
def normal_pair(first: Any, second: Any) -> Any:
    """Two independent standard normals from twice 64 bits (Box and Muller 1958).

    The first word gives the radius. The second gives a point on a quarter of the circle, mirrored and swapped by three
    of its spare bits."""
    radius = np.sqrt(-2.0 * log_of_unit(unit_above_zero(first)))
    a = as_float((second >> _S12) | _ONE) * 2.0 - 3.0
    z = a * a
    s = _SIN[1] + z * (_SIN[2] + z * (_SIN[3] + z * (_SIN[4] + z * (_SIN[5] + z * _SIN[6]))))
    s = (_SIN[0] + z * s) * a
    c = _COS[1] + z * (_COS[2] + z * (_COS[3] + z * (_COS[4] + z * (_COS[5] + z * _COS[6]))))
    c = _COS[0] + z * c
    swap = (second & _SWAP) != _ZERO
    x = where(swap, s, c)
    y = where(swap, c, s)
    x = as_float(as_uint(x) ^ ((second << _S63) & _SIGN))
    y = as_float(as_uint(y) ^ ((second << _S62) & _SIGN))
    return radius * x, radius * y


@compilable
def gamma_candidate(d: Any, z: Any) -> Any:
    """Marsaglia and Tsang's candidate for Gamma(d + 1/3), d >= 2/3, made from a normal z: its cube root over d**(1/3),
    the candidate, and a bound on the probability of rejecting it; entry by entry.

    With y = z / sqrt(9 d) it is accepted with probability exp(d q(y)), q(y) = 1.5 y^2 - 3 y - y^3 + 3 ln(1 + y) =
    -0.75 y^4 + 0.6 y^5 - 0.5 y^6 + ... This is at least 1 - d y^4 (0.75 - 0.6 y + 0.82 y^2): for y > 0 by the
    series, for y < 0 at d = 2/3 numerically (0.815 would do), and for larger d because exp(d q) - 1 + c d is convex
    in d and 0 at d = 0. Their own bound, 1 - 0.0331 z^4, loses half as much again at d = 2/3 and far more beyond.
    Where y <= -1 and the candidate has the wrong sign, the bound is below 0."""
    y = z / math.sqrt(9.0 * d)
    v = 1.0 + y
    zy = z * y
    return v, d * (v * v * v), (zy * zy) * (_MISSING[0] + y * (_MISSING[1] + y * _MISSING[2]))


@compilable
def gamma_log_probability(d: Any, z: Any, v: Any) -> Any:
    """The logarithm d q(y) of the probability to accept a candidate of cube root v > 0; entry by entry.

    For large d the terms cancel, and their rounding errors would disturb the other candidate's test: there the
    series is used, whose next term is below 1e-13 for every z that occurs."""
    y = z / math.sqrt(9.0 * d)
    zy = z * y
    series = zy * zy * (_SERIES[0] + y * (_SERIES[1] + y * (_SERIES[2] + y * (_SERIES[3] + y * _SERIES[4]))))
    return where(abs(y) < 0.01, series, 0.5 * (z * z) + d * (1.0 - v * v * v + 3.0 * log_of_unit(v)))


@compilable
def beta_attempt(a: Any, b: Any, x: Any, y: Any, u: Any) -> Any:
    """One attempt at Gamma(a) and Gamma(b), a, b >= 1, together: two candidates, and whether they are accepted without
    a logarithm; entry by entry.

    Two independent candidates may share one uniform number: both are accepted with the product of their
    probabilities, and (1 - p)(1 - q) >= 1 - (p + q)."""
    _, ga, missing_a = gamma_candidate(a - 1.0 / 3.0, x)
    _, gb, missing_b = gamma_candidate(b - 1.0 / 3.0, y)
    return ga, gb, u < 1.0 - (missing_a + missing_b)


@compilable
def beta_passes(a: Any, b: Any, x: Any, y: Any, u: Any) -> Any:
    """Whether the candidates of `beta_attempt` are accepted, by the exact test; entry by entry."""
    da = a - 1.0 / 3.0
    db = b - 1.0 / 3.0
    va, _, _ = gamma_candidate(da, x)
    vb, _, _ = gamma_candidate(db, y)
    real = (va > 0.0) & (vb > 0.0)
    log_probability = gamma_log_probability(da, x, where(real, va, 1.0)) + gamma_log_probability(
        db, y, where(real, vb, 1.0)
    )
    return real & (log_of_unit(u) < log_probability)


AGAIN = 1 << 44  # keys of further draws of one round, far from every slot in use


class Draws(NamedTuple):
    """All numbers of one round of one stream. `key` is the round's key: a number, or one for each lane or round.

    The vector methods of this class are the definition. `Stream` and the compiled loop call them for many rounds at
    a time. Only the normals of `Stream` are made for all arms at once from the same slots."""

    key: Any

    def again(self, attempt: int) -> "Draws":
        """Other numbers of the same round."""
        return Draws(round_key(self.key, AGAIN + attempt - 1))

    def uniform(self, slot: int) -> Any:
        """The number of this slot, uniform on [0, 1)."""
        return unit(bits(self.key, slot))

    def normal(self, slot: int) -> Any:
        """The standard normal of this slot."""
        return normal_pair(bits(self.key, SINGLES + 2 * slot), bits(self.key, SINGLES + 2 * slot + 1))[0]

    def normals(self, out: Any) -> None:
        """Fill `out` with independent standard normals, entry i being arm i's."""
        n = len(out)
        for i in range(0, n - 1, 2):
            x, y = normal_pair(bits(self.key, NORMALS + i), bits(self.key, NORMALS + i + 1))
            out[i] = x
            out[i + 1] = y
        if n % 2 == 1:
            x, y = normal_pair(bits(self.key, NORMALS + n - 1), bits(self.key, NORMALS + n))
            out[n - 1] = x

    def beta_material(self, arm: Any, attempt: int) -> Any:
        """Two normals and a uniform in (0, 1]: what one attempt at arm's Beta draw needs, whatever its parameters."""
        slot = BETAS + 4 * arm + attempt * ATTEMPT
        x, y = normal_pair(bits(self.key, slot), bits(self.key, slot + 1))
        return x, y, unit_above_zero(bits(self.key, slot + 2))

    def beta(self, a: float, b: float, slot: int) -> Any:
        return beta_from(self, a, b, slot)

    def betas(self, a: Any, b: Any, out: Any) -> None:
        """Fill `out` with independent Beta(a[i], b[i]) draws, entry i being arm i's."""
        for arm in range(len(out)):
            out[arm] = self.beta(a[arm], b[arm], arm)

    def spare(self, attempt: int) -> Any:
        """A normal and a uniform in (0, 1] for one more attempt of a rejection method."""
        z, _ = normal_pair(bits(self.key, RETRIES + 4 * attempt), bits(self.key, RETRIES + 4 * attempt + 1))
        return z, unit_above_zero(bits(self.key, RETRIES + 4 * attempt + 2))


@compilable
def beta_from(rng: Any, a: float, b: float, arm: int) -> Any:
    """A Beta(a, b) draw as G(a) / (G(a) + G(b)), by attempts until one is accepted (9 in 10 are where a = b = 1, nearly
    all where both are large).

    Below 1 a shape is raised by 1 and the gamma is multiplied by U**(1/shape), which underflows for tiny shapes. The
    ratio is then computed from logarithms, so that it never becomes 0/0."""
    x, y, u = rng.beta_material(arm, 0)
    if a == 1.0 and b == 1.0:
        return u  # an arm at the usual prior, as most arms of a sliding window are
    shape_a = a if a >= 1.0 else a + 1.0
    shape_b = b if b >= 1.0 else b + 1.0
    ga, gb, accepted = beta_attempt(shape_a, shape_b, x, y, u)
    attempt = 0
    while not (accepted or beta_passes(shape_a, shape_b, x, y, u)) and attempt < ATTEMPTS:
        attempt += 1
        x, y, u = rng.beta_material(arm, attempt)
        ga, gb, accepted = beta_attempt(shape_a, shape_b, x, y, u)
    if a >= 1.0 and b >= 1.0:
        return ga / (ga + gb)
    log_a = math.log(ga)
    log_b = math.log(gb)
    if a < 1.0:
        log_a += math.log(1.0 - rng.uniform(BETAS - 2 * arm - 2)) / a
    if b < 1.0:
        log_b += math.log(1.0 - rng.uniform(BETAS - 2 * arm - 1)) / b
    if log_b - log_a > 700.0:
        return 0.0
    return 1.0 / (1.0 + math.exp(log_b - log_a))


@lru_cache(maxsize=64)
def _normal_strides(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers that `bits` adds to a round's key for the two words of each pair of normals."""
    strides = np.array([stride(NORMALS + slot + 1) for slot in range(n + n % 2)], np.uint64)
    return strides[0::2], strides[1::2]


class Stream:
    """A stream for interpreted use: `stream.at(t)` gives the numbers of round t, one Python number at a time.

    NumPy computes a block of rounds at once and plain lists return them, which makes a normal about as cheap as
    `random.gauss`. The block grows while rounds come one after the other, so that a single decision does not compute
    256 rounds."""

    SMALLEST, LARGEST = 8, 256  # rounds in a block
    TOGETHER = 1 << 15  # numbers made together

    def __init__(self, key: int) -> None:
        self.key = key
        self._first = -1
        self._column = 0
        self._size = self.SMALLEST // 2
        self._block = Draws(np.zeros(0, np.uint64))
        self._uniforms: dict[int, list[float]] = {}
        self._normals: dict[int, tuple[int, list[list[float]]]] = {}
        self._materials: dict[tuple[int, int], list[tuple[float, float, float]]] = {}
        self._singles: dict[int, list[float]] = {}

    @classmethod
    def of(cls, keys: np.ndarray) -> "Stream":
        """The numbers of rounds with these keys; `at(n)` moves to the n-th of them."""
        stream = cls(0)
        stream._first, stream._size, stream._block = 0, len(keys), Draws(keys)
        return stream

    @property
    def round_key(self) -> Any:
        """The key of the present round, from which all its numbers follow."""
        return self._block.key[self._column]

    def again(self, attempt: int) -> "Stream":
        """Other numbers of the same round."""
        return Stream.of(np.asarray(mix(self._block.key[self._column : self._column + 1] + stride(AGAIN + attempt))))

    def at(self, t: int) -> "Stream":
        """Move to round t and return the stream itself, ready for a policy or an environment."""
        column = t - self._first
        if self._first < 0 or not 0 <= column < self._size:
            self._size = min(2 * self._size, self.LARGEST) if column == self._size else self.SMALLEST
            self._first, column = t, 0
            rounds = np.array([stride(s + 1) for s in range(t, t + self._size)], np.uint64)
            self._block = Draws(mix(np.uint64(self.key) + rounds))
            self._uniforms.clear()
            self._normals.clear()
            self._materials.clear()
            self._singles.clear()
        self._column = column
        return self

    def uniform(self, slot: int) -> float:
        values = self._uniforms.get(slot)
        if values is None:
            values = self._uniforms[slot] = self._block.uniform(slot).tolist()
        return values[self._column]

    def normal(self, slot: int) -> float:
        values = self._singles.get(slot)
        if values is None:
            values = self._singles[slot] = self._block.normal(slot).tolist()
        return values[self._column]

    def normals(self, out: Any) -> None:
        n = len(out)
        first, rounds = self._normals.get(n, (0, []))
        at = self._column - first
        if not 0 <= at < len(rounds):
            # All arms of some rounds in one go: as many numbers as fit into a processor's cache.
            keys = self._block.key[self._column : self._column + max(1, self.TOGETHER // n)]
            whole = np.empty((len(keys), n + n % 2))
            first_slots, second_slots = _normal_strides(n)
            words = mix(keys[:, None] + first_slots), mix(keys[:, None] + second_slots)
            whole[:, 0::2], whole[:, 1::2] = normal_pair(*words)
            at, rounds = 0, whole[:, :n].tolist()
            self._normals[n] = self._column, rounds
        out[:] = rounds[at]

    def beta_material(self, arm: int, attempt: int) -> tuple[float, float, float]:
        """The first two attempts are computed for the whole block; further ones are rare."""
        if attempt > 1:
            x, y, u = Draws(self._block.key[self._column : self._column + 1]).beta_material(arm, attempt)
            return float(x[0]), float(y[0]), float(u[0])
        values = self._materials.get((arm, attempt))
        if values is None:
            columns = [column.tolist() for column in self._block.beta_material(arm, attempt)]
            values = self._materials[arm, attempt] = list(zip(*columns, strict=True))
        return values[self._column]

    def betas(self, a: Any, b: Any, out: Any) -> None:
        for arm in range(len(out)):
            out[arm] = float(beta_from(self, a[arm], b[arm], arm))

    def beta(self, a: float, b: float, slot: int) -> float:
        return float(beta_from(self, a, b, slot))

    def spare(self, attempt: int) -> tuple[float, float]:
        z, u = Draws(self._block.key[self._column : self._column + 1]).spare(attempt)
        return float(z[0]), float(u[0])


# The streams of a run. Those of environment, rewards and contexts do not depend on the policy.
ENVIRONMENT, REWARD, POLICY, CONTEXT = 0, 1, 2, 3


@lru_cache(maxsize=100_000)
def stream_key(seed: int, run: int, stream: int) -> int:
    """The key of one of a run's streams: from (seed, run, stream), never from a worker or an order."""
    words = np.random.SeedSequence(seed, spawn_key=(run, stream)).generate_state(1, np.uint64)
    return int(words[0])
