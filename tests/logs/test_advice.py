"""From sums over blocks to advice: which half-life is taken, when none is, and that the sentence says no more."""

import numpy as np
import pytest

from driftbandit.environments import phased
from driftbandit.logs import Log
from driftbandit.logs.advice import _paste, advise
from driftbandit.logs.bootstrap import block_mean
from driftbandit.logs.candidates import candidates
from driftbandit.logs.follow import follow
from driftbandit.logs.simulated import uniform_log

BLOCKS, FIRST = 32, 19
LOG = uniform_log(phased([[0.4, 0.5]], [0], 3200), seed=1)
NAMES = ["ts", "dts @ 100", "dts @ 1000"]
FOLLOWED = follow(LOG, candidates([*NAMES, "drift-ts"], False), compiled=False)
RIPPLE = np.where(np.arange(BLOCKS) % 2 == 0, 1.0, -1.0)  # noise that the blocks average away


def advice(*gains, ripples=None, waves=0.0, shared=0.0):
    """Advice where candidates earn these gains over ts per event, each a pair: in the first part and in the last; the
    ripple of a candidate is the noise of its blocks, and of their sixteen pieces (of each four times as much, which
    makes the same standard error). Waves are gains that come and go from block to block: no noise, but luck. Shared
    noise is that of ts too."""
    values = np.full((BLOCKS, len(gains) + 1), 0.4)
    noise = np.zeros((len(FOLLOWED.pieces), len(gains) + 1))
    for at, (first, last) in enumerate(gains, 1):
        ripple = 0.002 if ripples is None else ripples[at - 1]
        values[:, at] += np.where(np.arange(BLOCKS) < FIRST, first, last) + ripple * RIPPLE + waves * RIPPLE
        noise[:, at] = 4.0 * ripple * FOLLOWED.pieces * np.where(np.arange(len(noise)) % 2 == 0, 1.0, -1.0)
    noise += shared * FOLLOWED.pieces[:, None] * np.random.default_rng(1).normal(size=(len(noise), 1))
    events = np.full(BLOCKS, 100.0)
    columns = slice(0, len(gains) + 1)
    made = FOLLOWED._replace(
        candidates=FOLLOWED.candidates[columns],
        events=events,
        value=100.0 * values,
        noise=noise,
        weight=FOLLOWED.weight[:, columns],
        weight2=FOLLOWED.weight2[:, columns],
    )
    return advise(LOG, made, None, [100.0, 1000.0], True)


def test_the_longest_half_life_near_the_best_is_taken_where_it_gains():
    found = advice((0.050, 0.050), (0.0499, 0.040), ripples=(0.002, -0.004))
    assert found.recommended
    assert (found.forgetter, found.chosen) == ("dts @ 1000", "dts @ 1000")
    assert found.gain.mean == pytest.approx(0.040, abs=1e-3)


def test_the_best_half_life_is_taken_where_the_longest_near_it_gains_nothing():
    """Its blocks are so noisy that it is within a standard error of the best: judged alone, nothing would be found."""
    found = advice((0.050, 0.050), (0.040, 0.0), ripples=(0.002, 0.06))
    behind = next(trial.behind for trial in found.trials if trial.label == "dts @ 1000")
    assert behind.mean <= behind.error
    assert found.recommended
    assert found.forgetter == "dts @ 100"


def test_the_longest_near_the_best_is_taken_where_only_it_gains():
    found = advice((0.050, 0.0), (0.0499, 0.040), ripples=(0.002, -0.004))
    assert found.recommended
    assert found.forgetter == "dts @ 1000"


def test_a_half_life_far_behind_the_best_is_not_taken():
    assert advice((0.050, 0.050), (0.020, 0.020)).forgetter == "dts @ 100"


@pytest.mark.parametrize(
    ("gains", "ripple", "says"),
    [
        ((0.05, 0.05), 0.002, "Forgetting pays: dts @ 100 earns +4.98 points [+4.88, +5.09] over ts in the part"),
        ((-0.05, 0.05), 0.002, "The parts of the log disagree: "),
        ((0.05, -0.05), 0.002, "Forgetting by a half-life does not pay: "),
        ((0.05, 0.01), 0.06, "Not distinguishable: "),
        ((0.05, -0.01), 0.06, "No half-life is seen to pay: "),
        ((-0.05, 0.01), 0.06, "No half-life is seen to pay: "),
    ],
)
def test_the_sentence_says_what_the_interval_says(gains, ripple, says):
    found = advice(gains, ripples=[ripple])
    assert found.sentence.startswith(says)
    low, high = found.gain.low, found.gain.high
    assert found.recommended == says.startswith("Forgetting pays")
    if "pays:" in says or "disagree" in says:
        assert low > 0.0
    elif "does not pay" in says:
        assert high < 0.0
    else:
        assert low <= 0.0 <= high
    assert ("events would be needed" in found.sentence) == says.startswith("Not dist")
    assert found.chosen == ("dts @ 100" if found.recommended else "ts")


def test_a_loss_too_small_to_matter_is_not_said_to_be_one():
    """The margin is that of `drift`: a hundredth of a reward's standard deviation, here 0.005. A half-life that hardly
    forgets loses less for certain, and says nothing about those that forget."""
    assert LOG.negligible == pytest.approx(0.005, rel=0.05)
    small = advice((-0.004, -0.004), ripples=[1e-5])
    assert small.gain.high < 0.0
    assert small.sentence.startswith("No half-life is seen to pay: ")
    assert "does not exclude" not in small.sentence
    large = advice((-0.006, -0.006), ripples=[1e-5])
    assert large.sentence.startswith("Forgetting by a half-life does not pay: ")


def test_noise_that_both_policies_share_says_nothing_against_either():
    assert advice((0.05, 0.05), shared=9.0).gain == pytest.approx(advice((0.05, 0.05)).gain)


def test_luck_of_the_blocks_is_told_but_does_not_keep_from_speaking():
    """In this log forgetting paid, for certain; in other blocks like these it may not."""
    found = advice((0.05, 0.05), waves=0.3)
    assert found.recommended
    assert found.gain.low > 0.02
    assert found.gain_like.low < 0.0
    much = f"[{100 * found.gain_like.low:+.2f}, {100 * found.gain_like.high:+.2f}]"
    assert found.sentence.endswith(f"did not choose it (in other blocks of 99.97 like these: {much}).")


def test_luck_of_the_blocks_keeps_from_saying_that_forgetting_does_not_pay():
    found = advice((0.05, -0.05), waves=0.3)
    assert found.gain.high < 0.0 < found.gain_like.high
    assert found.sentence.startswith("No half-life is seen to pay: ")
    assert "does not exclude a gain (in other blocks of" in found.sentence


def test_the_number_of_events_believes_the_whole_log_more_than_a_last_part_that_flatters():
    """Where the first part shows less, the difference is that of the whole log: 0.6 * 0.01 + 0.4 * 0.05."""
    found = advice((0.01, 0.05), ripples=[0.2])
    whole = (FIRST * 0.01 + (BLOCKS - FIRST) * 0.05) / BLOCKS
    error = max(found.gain.error, (found.gain.mean - found.gain.low) / 1.96)
    asked = 3200 * (2.8 * error / whole) ** 2
    assert found.needed >= asked
    steady = advice((0.05, 0.05), ripples=[0.2])
    assert steady.needed < 0.7 * found.needed


def test_no_sentence_says_minus_nothing():
    found = advice((-1e-7, -1e-7), ripples=[1e-9])
    assert "earns 0.0000 points [0.0000, 0.0000] over ts" in found.sentence


def test_the_number_of_events_is_larger_than_the_log():
    for ripple in (0.03, 0.06, 0.2):
        found = advice((0.05, 0.01), ripples=[ripple])
        assert not found.recommended
        assert found.needed > LOG.n


def test_what_forgets_by_itself_must_gain_in_the_last_part_and_on_the_whole():
    better = advice((-0.01, -0.01), (-0.01, -0.01), (-0.001, 0.05))
    assert better.chosen == "drift-ts"
    assert better.sentence.endswith(": better.")
    not_overall = advice((-0.01, -0.01), (-0.01, -0.01), (-0.05, 0.05))
    assert not_overall.chosen == "ts"
    assert not_overall.sentence.endswith("better there, but not over the whole log.")
    worse = advice((-0.01, -0.01), (-0.01, -0.01), (-0.01, -0.01))
    assert worse.chosen == "ts"
    assert worse.sentence.endswith(": worse.")


def test_tiny_differences_are_written_out():
    assert "-0.0100 points" in advice((-0.0001, -0.0001), ripples=[1e-6]).sentence


def test_ripples_average_away():
    assert block_mean(RIPPLE[:18], np.ones(18)).mean == 0.0


_FADING = ["ts", "dts", "ds-ts(tau_max=0.2)"]
_LINES = [(name, half_life) for name in _FADING for half_life in (" @ 6 h", " @ inf", "")]


@pytest.mark.parametrize(
    ("name", "half_life"), [*_LINES, ("drift-ts", ""), ("kl-ucb", ""), ("periodic-restart(ds-ts, period=90)", "")]
)
@pytest.mark.parametrize("sides", [(0.0, 1.0), (0.0, 12.0), (-0.25, 1e6)])
def test_what_is_pasted_runs_and_learns_rewards_of_the_log(name, half_life, sides):
    n = 20
    rewards = np.linspace(*sides, n)
    log = Log(
        {"time": np.arange(n), "arm": [4, 5] * (n // 2), "reward": rewards}, propensity="uniform", reward_range=sides
    )
    (candidate,) = candidates(name + half_life, False)
    there = {}
    exec(_paste(log, candidate), there)
    for arm, reward in zip(["4", "5"] * 10, rewards, strict=True):
        there["agent"].learn(arm, reward)
    kind = "DiscountedBetaTS" if name == "ts" and half_life else type(candidate.policy).__name__
    assert type(there["agent"].policy).__name__ == kind
