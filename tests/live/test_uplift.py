"""What a policy brings over its baseline, where the configuration changed on the way."""

import math
import random

import numpy as np
import pytest

from driftbandit.bandit.records import StoredConfig
from driftbandit.bandit.reporting import compare
from live.button import Clock, opened


def _rewarded(bandit, rounds, random_numbers, chance, label) -> None:
    """So many rounds, each with the reward 1 by this chance of its arm."""
    made = bandit.decide_many([f"{label}{n}" for n in range(rounds)])
    bandit.reward_many([(one.id, float(random_numbers.random() < chance(one.arm))) for one in made])
    bandit.refresh()


def test_a_level_that_falls_while_more_is_held_back_is_not_the_policys_doing(tmp_path) -> None:
    random_numbers, clock = random.Random(1), Clock()
    with opened(tmp_path / "a.db", holdback=0.05, baseline="red", clock=clock) as bandit:
        _rewarded(bandit, 1000, random_numbers, lambda arm: 0.8, "a")
        clock.now += 1_000_000
        bandit.change(holdback=0.5)
        _rewarded(bandit, 1000, random_numbers, lambda arm: 0.2, "b")
        uplift = bandit.uplift()
        assert uplift.low < 0.0 < uplift.high  # of true nulls 5 % fail; these draws are fixed
        assert uplift.policy == pytest.approx(0.5, abs=0.05)
        assert (uplift.periods, uplift.left_out) == (2, 0)
        assert uplift.n_policy + uplift.n_baseline == 2000
        assert "within 2 periods of one configuration each" in str(uplift)
        clock.now += 1_000_000
        late = bandit.uplift(since=1.5)
        assert late.n_policy + late.n_baseline == 1000
        assert late.policy == pytest.approx(0.2, abs=0.06)


def test_a_period_without_holdback_is_left_out_and_counted_in_the_result(tmp_path) -> None:
    random_numbers, clock = random.Random(2), Clock()
    with opened(tmp_path / "a.db", clock=clock) as bandit:
        _rewarded(bandit, 300, random_numbers, lambda arm: 0.9, "a")
        assert "Set a holdback" in str(bandit.uplift())
        assert math.isnan(bandit.uplift().difference)
        clock.now += 1
        bandit.change(holdback=0.5, baseline="red", wait="1 h")
        _rewarded(bandit, 1, random_numbers, lambda arm: 0.1, "b")
        assert "Too few outcomes" in str(bandit.uplift())
        _rewarded(bandit, 400, random_numbers, lambda arm: 0.1, "c")
        clock.now += 1
        bandit.change(wait=None)  # the same period
        uplift = bandit.uplift()
        assert (uplift.periods, uplift.left_out) == (1, 300)
        assert uplift.policy < 0.2
        assert "300 outcomes had nothing to be compared with" in str(uplift)


def _config(holdback) -> StoredConfig:
    return StoredConfig("p", ["a"], [], (0.0, 1.0), "maximise", None, 0.0, holdback, None, False, None, 0.0, "wait",
                        None, "1", "hash")  # fmt: skip


def test_intervals_over_periods_of_other_shares_and_levels_hold_the_average_as_often_as_they_say() -> None:
    """60 histories of 4 periods with uplifts of 0.1, 0, 0 and -0.05. Fewer than 52 hits: a false alarm in 1 of 300
    seeds."""
    rng, hits, tries = np.random.default_rng(7), 0, 60
    sizes, shares, levels = [2000, 1000, 500, 80], [0.05, 0.5, 0.2, 0.2], [0.8, 0.2, 0.5, 0.1]
    gains = [0.1, 0.0, 0.0, -0.05]
    truth = sum(n * gain for n, gain in zip(sizes, gains, strict=True)) / sum(sizes)
    for _ in range(tries):
        groups = []
        for period, (size, share) in enumerate(zip(sizes, shares, strict=True)):
            held = int(rng.binomial(size, share))
            for how, count, p in ((0, size - held, levels[period] + gains[period]), (2, held, levels[period])):
                wins = float(rng.binomial(count, p))
                groups.append((period, how, count, wins, wins))
        uplift = compare([_config(share) for share in shares], groups, 0.95)
        hits += uplift.low <= truth <= uplift.high
        assert uplift.periods == 4
    assert hits >= 52
