"""The random numbers have the laws they claim, do not know of each other, and are the same bits wherever they are
made."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from draws_of_rounds import ALARM, MANY, assert_independent, assert_uniform, rounds
from driftbandit.core import draws
from driftbandit.core.draws import ENVIRONMENT, POLICY, REWARD, Draws, Stream, log_of_unit, mix, round_key, stream_key
from driftbandit.core.primitives import TIES, argmax_fair, draw_from, shuffle

# ---- uniform numbers


@pytest.mark.parametrize("slot", [0, 1, 2, 99, TIES, 107])
def test_uniform_numbers_are_uniform_in_every_slot(slot):
    values = rounds(seed=1).uniform(slot)
    assert values.min() >= 0.0
    assert values.max() < 1.0
    assert_uniform(values)


def test_every_bit_of_a_uniform_number_is_a_fair_coin():
    words = draws.bits(rounds(seed=2).key, 0)
    ones = np.array([int(((words >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
    z = (ones - MANY / 2) / math.sqrt(MANY / 4)
    assert np.abs(z).max() < 5.9  # 64 coins at 5.9 standard errors: chance of a false alarm 2e-7


def test_flipping_one_input_bit_flips_half_the_output_bits():
    words = np.random.default_rng(3).integers(0, 1 << 63, 4000, dtype=np.uint64)
    for bit in range(64):
        changed = mix(words) ^ mix(words ^ np.uint64(1 << bit))
        share = np.unpackbits(changed.view(np.uint8)).mean()
        assert abs(share - 0.5) < 6.5 * 0.5 / math.sqrt(4000 * 64)  # 64 checks, 1e-10 each


def test_numbers_of_neighbouring_rounds_slots_streams_and_runs_are_independent():
    here = rounds(seed=4)
    x = here.uniform(0)
    others = {
        "the next round": rounds(seed=4, first=1).uniform(0),
        "the round after": rounds(seed=4, first=2).uniform(0),
        "256 rounds later": rounds(seed=4, first=256).uniform(0),
        "the next slot": here.uniform(1),
        "the slot for ties": here.uniform(TIES),
        "the next slot of the round before": rounds(seed=4, first=1).uniform(1),
        "the reward stream": rounds(seed=4, stream=REWARD).uniform(0),
        "the environment stream": rounds(seed=4, stream=ENVIRONMENT).uniform(0),
        "the next run": rounds(seed=4, run=1).uniform(0),
        "the next seed": rounds(seed=5).uniform(0),
    }
    for name, y in others.items():
        assert not np.array_equal(x, y), name
        assert_independent(x, y)


def test_sums_over_arms_and_over_rounds_have_the_variance_of_independent_numbers():
    # Weak dependence between many numbers shows in the variance of their sum sooner than in any pair.
    block = rounds(seed=6, count=1 << 14)
    table = np.array([block.uniform(slot) for slot in range(64)])
    for sums, terms in ((table.sum(axis=0), 64), (table.reshape(64, -1, 64).sum(axis=2).ravel(), 64)):
        ratio = sums.var(ddof=1) / (terms / 12)
        # The variance of n such sums is within 5 of its standard errors, about sqrt(2 / n): chance 6e-7 each.
        assert abs(ratio - 1) < 5 * math.sqrt(2 / len(sums))


def test_no_two_streams_of_a_thousand_runs_share_a_key_or_a_round():
    keys = [stream_key(0, run, which) for run in range(1000) for which in (ENVIRONMENT, REWARD, POLICY)]
    assert len(set(keys)) == 3000
    firsts = {int(mix(np.array([k], np.uint64) + np.uint64(0x9E3779B97F4A7C15))[0]) for k in keys}
    assert len(firsts) == 3000


# ---- normals


def test_normals_are_normal_for_every_arm_and_every_number_of_arms():
    block = rounds(seed=7)
    for n in (1, 2, 5):
        out: list = [None] * n
        block.normals(out)
        for arm in range(n):
            assert stats.kstest(out[arm], "norm").pvalue > ALARM


def test_an_arms_normal_does_not_depend_on_how_many_arms_there_are():
    block = rounds(seed=8, count=100)
    longest: list = [None] * 9
    block.normals(longest)
    for n in range(1, 9):
        out: list = [None] * n
        block.normals(out)
        for arm in range(n):
            assert np.array_equal(out[arm], longest[arm])


def test_tails_of_the_normals_are_as_heavy_as_they_should_be():
    out: list = [None] * 8
    rounds(seed=9).normals(out)
    z = np.concatenate(out)  # four million
    for limit in (2.0, 3.0, 4.0, 4.75):
        for count in (int((z > limit).sum()), int((z < -limit).sum())):
            expected = len(z) * stats.norm.sf(limit)
            assert stats.poisson.sf(count - 1, expected) > ALARM
            assert stats.poisson.cdf(count, expected) > ALARM
    assert np.abs(z).max() < math.sqrt(2 * 52 * math.log(2)) + 1e-9  # what 52 bits can reach
    for moment, value, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs((z**moment).mean() - value) < 5 * math.sqrt(variance / len(z))  # 6e-7 each


def test_the_two_normals_of_a_pair_are_independent():
    out: list = [None] * 4
    rounds(seed=10).normals(out)
    u = [stats.norm.cdf(z) for z in out]
    for i, j in ((0, 1), (1, 2), (0, 2), (2, 3)):
        assert_independent(u[i], u[j])
    assert_uniform((np.arctan2(out[0], out[1]) / (2 * math.pi)) % 1.0)
    assert_uniform(-np.expm1(-0.5 * (out[0] ** 2 + out[1] ** 2)))
    for scale in (4, 64, 1024):  # also within small parts of the circle
        assert_uniform((np.arctan2(out[2], out[3]) / (2 * math.pi) * scale) % 1.0)


def test_single_normals_uniforms_and_normals_of_a_round_are_independent():
    block = rounds(seed=11)
    out: list = [None] * 2
    block.normals(out)
    single = stats.norm.cdf(block.normal(0))
    assert_uniform(single)
    assert_independent(single, stats.norm.cdf(block.normal(1)))
    assert_independent(single, stats.norm.cdf(out[0]))
    assert_independent(block.uniform(0), stats.norm.cdf(out[0]))
    assert_independent(block.uniform(0), single)


@given(st.floats(1e-300, 1e300))
def test_the_logarithm_is_right_to_the_last_bits(x):
    assert float(log_of_unit(np.float64(x))) == pytest.approx(math.log(x), rel=2e-15, abs=1e-15)


def test_the_logarithm_is_right_next_to_one_and_where_its_pieces_meet():
    edge = math.sqrt(0.5)
    for start in (1.0, edge, 2 * edge, 0.5, 2.0**-52):
        x = np.array([start * (1 + k * 2.0**-52) for k in range(-50, 51)])
        reference = np.array([math.log(v) for v in x])
        assert np.allclose(log_of_unit(x), reference, rtol=2e-15, atol=1e-17)
    assert float(log_of_unit(np.float64(1.0))) == 0.0


def test_no_two_kinds_of_number_use_the_same_slot(monkeypatch):
    used: dict[str, set[int]] = {}
    kind = ""

    def recording(key, slot):
        used.setdefault(kind, set()).add(slot)
        return draws_bits(key, slot)

    draws_bits = draws.bits
    monkeypatch.setattr(draws, "bits", recording)
    stream = Stream(stream_key(15, 0, POLICY)).at(0)
    for kind in ("uniform", "normal", "spare", "normals", "betas"):
        if kind == "normals":
            Draws(np.ones(1, np.uint64)).normals([0.0] * 200)  # the stream makes the same, many at once
        elif kind == "betas":
            stream.betas([0.5] * 200, [0.5] * 200, [0.0] * 200)
            for arm in range(200):  # most need one attempt: ask for two more
                for attempt in (1, 2):
                    stream.beta_material(arm, attempt)
        else:
            for i in range(200):
                getattr(stream, kind)(i)
    # A rejected attempt beyond the second is rare: leave it out of the count.
    attempts = {slot for slot in used["betas"] if slot < draws.BETAS + 3 * draws.ATTEMPT}
    pools = [used["uniform"] | {TIES}, used["normal"], used["spare"], used["normals"], attempts]
    assert [len(pool) for pool in pools] == [201, 400, 600, 200, 200 * (3 * 3 + 2)]
    assert sum(len(pool) for pool in pools) == len(set.union(*pools))


# ---- the same bits everywhere


def test_a_stream_gives_the_same_numbers_in_any_order_of_rounds():
    forward, back = Stream(99), Stream(99)
    order = [*range(40), 1000, 3, 3, 2000, 7, 0, *range(500, 900)]
    seen = {}
    for t in sorted(set(order)):
        out = [0.0] * 3
        forward.at(t).normals(out)
        seen[t] = (forward.uniform(0), forward.normal(4), out, forward.beta(2.0, 3.0, 1), forward.spare(5))
    for t in order:
        out = [0.0] * 3
        spare, beta = back.at(t).spare(5), back.at(t).beta(2.0, 3.0, 1)
        back.normals(out)
        assert (back.uniform(0), back.normal(4), out, beta, spare) == seen[t]


def test_requesting_one_number_does_not_shift_others():
    asked, silent = Stream(5), Stream(5)
    for t in range(20):
        asked.at(t).uniform(3)
        asked.betas([0.5] * 4, [0.2] * 4, [0.0] * 4)
        assert asked.uniform(0) == silent.at(t).uniform(0)


@pytest.mark.long
def test_interpreted_compiled_and_lockstep_numbers_are_the_same_bits():
    import numba

    from driftbandit.lab.engine.compiled_draws import KeyStream, ahead_stream, lane_stream
    from driftbandit.lab.engine.lane_arrays import LaneArray
    from driftbandit.lab.engine.numba_methods import OPTIONS

    lanes, n_arms, count = 8, 5, 100
    keys = [stream_key(21, run, POLICY) for run in range(lanes)]

    @numba.njit(**OPTIONS)
    def plain(stream, normals, uniforms, scratch):
        for t in range(count):
            rng = stream.at(t)
            rng.normals(scratch)
            for i in range(n_arms):
                normals[t * n_arms + i] = scratch[i]
            uniforms[2 * t] = rng.uniform(7)
            uniforms[2 * t + 1] = rng.normal(3)

    @numba.njit(**OPTIONS)
    def beta(stream, a, b, out, scratch):
        for t in range(count):
            stream.at(t).betas(a, b, scratch)
            for i in range(n_arms):
                out[t * n_arms + i] = scratch[i]

    rows = LaneArray(np.zeros((count * n_arms, lanes)))
    units = LaneArray(np.zeros((2 * count, lanes)))
    plain(KeyStream(LaneArray(np.array([keys], np.uint64))), rows, units, LaneArray(np.zeros((n_arms, lanes))))
    # Each lane has its own parameters: at the prior, just above it, below 1, large.
    a = np.array([[1.0, 0.3, 20.0, 2.5, 1e-3], [1.0, 1.0, 1.0, 1.0, 1.5]] * 4).T
    b = np.array([[1.0, 4.0, 7.0, 0.9, 1e-3], [1.0, 1.1, 2.0, 300.0, 1.0]] * 4).T
    together = LaneArray(np.zeros((count * n_arms, lanes)))
    beta(lane_stream(keys, n_arms), LaneArray(a), LaneArray(b), together, LaneArray(np.zeros((n_arms, lanes))))
    for lane, key in enumerate(keys):
        normals, uniforms, betas = np.zeros(count * n_arms), np.zeros(2 * count), np.zeros(count * n_arms)
        if lane < 2:
            ahead, at_once = ahead_stream(key, n_arms), KeyStream(np.array([key], np.uint64))
            for stream in (ahead, at_once):
                plain(stream, normals, uniforms, np.zeros(n_arms))
                assert np.array_equal(normals, rows.array[:, lane])
                assert np.array_equal(uniforms, units.array[:, lane])
                beta(stream, a[:, lane].copy(), b[:, lane].copy(), betas, np.zeros(n_arms))
                assert np.array_equal(betas, together.array[:, lane])
        interpreted = Stream(key)
        for t in range(count):
            out = [0.0] * n_arms
            interpreted.at(t).normals(out)
            assert out == rows.array[t * n_arms : (t + 1) * n_arms, lane].tolist()
            assert interpreted.uniform(7) == units.array[2 * t, lane]
            assert interpreted.normal(3) == units.array[2 * t + 1, lane]
            interpreted.betas(a[:, lane].tolist(), b[:, lane].tolist(), out)
            assert out == together.array[t * n_arms : (t + 1) * n_arms, lane].tolist()


def test_known_bits():
    # Guards against a silent change of the generator, which would change every result ever published with a seed.
    assert stream_key(0, 0, POLICY) == int(np.random.SeedSequence(0, spawn_key=(0, 2)).generate_state(1, np.uint64)[0])
    # SplitMix64's first three outputs from the state 1234567, as its reference implementation prints them.
    first = [int(round_key(np.array([1234567], np.uint64), t)[0]) for t in range(3)]
    assert first == [6457827717110365317, 3203168211198807973, 9817491932198370423]


# ---- from numbers to decisions


class Fixed:
    """A round whose every uniform number is the same."""

    def __init__(self, u):
        self.u = u

    def uniform(self, slot):
        return self.u


def test_ties_are_broken_uniformly_and_a_single_maximum_needs_no_number():
    assert [argmax_fair([1.0, 3.0, 3.0, 0.0, 3.0], Fixed(u)) for u in (0.0, 0.34, 0.99)] == [1, 2, 4]
    assert argmax_fair([1.0, 3.0, 2.0], None) == 1
    stream = Stream(stream_key(16, 0, POLICY))
    counts = np.bincount([argmax_fair([5.0, 5.0, 1.0, 5.0], stream.at(t)) for t in range(9000)], minlength=4)
    assert counts[2] == 0
    assert stats.chisquare(counts[[0, 1, 3]]).pvalue > ALARM


def test_drawing_from_probabilities_takes_the_first_whose_cumulative_sum_exceeds_the_number():
    assert [draw_from([0.2, 0.0, 0.3, 0.5], u) for u in (0.0, 0.19, 0.2, 0.49, 0.5, 0.999)] == [0, 0, 2, 2, 3, 3]
    assert draw_from([0.5, 0.4999], 1 - 1e-16) == 1


def test_a_shuffle_gives_every_order_equally_often():
    stream, counts = Stream(stream_key(17, 0, POLICY)), {}
    for t in range(6000):
        items = [0, 1, 2]
        shuffle(items, 3, stream.at(t), 100)
        counts[tuple(items)] = counts.get(tuple(items), 0) + 1
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > ALARM
