"""The default policy of a bandit: any finite reward, no range, smaller or larger is better."""

import json
import logging
import random

import pytest

from driftbandit import Bandit
from driftbandit.bandit.export import export
from live.button import ARMS, Clock, assert_proved

HOUR = 3600 * 1_000_000


def spend(rng: random.Random, mean: float, buys: float = 0.02, sigma: float = 0.8) -> float:
    """What a visitor spends: mostly nothing, otherwise log-normal with this mean."""
    return mean * rng.lognormvariate(-0.5 * sigma**2, sigma) if rng.random() < buys else 0.0


def test_with_late_rewards_a_switch_is_logged_audited_kept_in_snapshots_and_exported(store, tmp_path, caplog) -> None:
    rng, clock, arms = random.Random(1), Clock(), {}
    options = {"wait": "1 h", "holdback": 0.1, "baseline": "uniform", "seed": 1, "snapshot_every": 50}
    with caplog.at_level(logging.INFO, "driftbandit"), Bandit.open(store, "x", arms=ARMS, clock=clock, **options) as b:
        for n in range(80):
            clock.now += HOUR // 20
            decision = b.decide(f"d{n}")
            arms[decision.id] = decision.arm
            assert n or decision.how in ("first", "holdback")
            if n == 60:
                assert b.health()["plays"] == "DriftTS"
            if rng.random() < 0.5:
                clock.now += HOUR // 40
                b.reward(decision, 1.0 if n < 50 else 1.0 + round(rng.random(), 2))
        clock.now += 2 * HOUR
        b.settle()
        missed = next(f"d{n}" for n in range(80) if b.outcome(f"d{n}").kind == "default")
        assert b.reward(missed, 3.0) == "late"
        assert b.health()["plays"] == "DriftLinTS"
        b.refresh()
        before, lines = b.fingerprint(), [one for one in caplog.records if "DriftLinTS" in one.getMessage()]
        assert len(lines) == 1
        assert lines[0].levelno == logging.INFO
    with Bandit.open(store, "x", clock=clock) as again:
        assert again.fingerprint() == before
    assert_proved(store)
    assert export(store, tmp_path / "log.jsonl") == 80
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["arm"] for row in rows] == [arms[f"d{n}"] for n in range(80)]
    assert all(0.0 < row["propensity"] <= 1.0 for row in rows)


def test_a_switch_after_many_rewards_is_a_warning(caplog) -> None:
    bandit = Bandit(2, seed=1)
    for n in range(1100):
        bandit.reward(bandit.decide(), float(n % 3 == 0))
    with caplog.at_level(logging.INFO, "driftbandit"):
        for _ in range(600):
            bandit.reward(bandit.decide(), 0.5)
    (line,) = [one for one in caplog.records if "DriftLinTS" in one.getMessage()]
    assert line.levelno == logging.WARNING


@pytest.mark.parametrize("goal", ["maximise", "minimise"])
def test_a_snapshot_of_any_rewards_continues_exactly(goal) -> None:
    rng, bandit = random.Random(2), Bandit(ARMS, seed=1, goal=goal)
    for _ in range(150):
        bandit.reward(bandit.decide(), rng.gauss(3.0, 20.0))
    before = bandit.fingerprint()
    bandit.decide_many(5)
    assert bandit.fingerprint() == before  # deciding leaves no trace in what was learned
    twin = Bandit.restore(bandit.snapshot())
    for _ in range(50):
        made = bandit.decide(), twin.decide()
        assert made[0].arm == made[1].arm
        value = rng.gauss(3.0, 20.0)
        assert [one.reward(decision, value) for one, decision in zip((bandit, twin), made, strict=True)] == [
            "learned"
        ] * 2


def test_a_reward_range_refuses_rewards_but_does_not_change_choices() -> None:
    rng, bandits = random.Random(3), [Bandit(ARMS, seed=1, **more) for more in ({}, {"reward_range": (-64, 64)})]
    for _ in range(300):
        made = [bandit.decide() for bandit in bandits]
        assert made[0].arm == made[1].arm
        value = float(rng.randrange(-40, 40) + 10 * ARMS.index(made[0].arm))
        for bandit, decision in zip(bandits, made, strict=True):
            bandit.reward(decision, value)
    last = [bandit.decide() for bandit in bandits]
    assert bandits[0].reward(last[0], 65.0) == "learned"
    with pytest.raises(ValueError, match=r"outside reward_range=\(-64, 64\)"):
        bandits[1].reward(last[1], 65.0)


def test_minimising_failures_plays_as_maximising_successes_does() -> None:
    bandits = [Bandit(3, seed=1, goal=goal, reward_range=(0, 1)) for goal in ("maximise", "minimise")]
    rng = random.Random(4)
    for n in range(200):
        arms = [bandit.decide(str(n)).arm for bandit in bandits]
        assert arms[0] == arms[1]
        success = rng.random() < 0.2 + 0.3 * arms[0]
        bandits[0].reward(str(n), float(success))
        bandits[1].reward(str(n), float(not success))


@pytest.mark.long
def test_revenue_without_a_range_is_earned() -> None:
    """Of visitors 2% buy, for 20, 30 or 45 on average. Uniform play has the best arm in a third of the rounds."""
    shares = []
    for seed in range(2):
        rng, bandit = random.Random(seed), Bandit([20.0, 30.0, 45.0], seed=seed)
        best = 0
        for _ in range(5000):
            decision = bandit.decide()
            best += decision.arm == 45.0
            bandit.reward(decision, spend(rng, decision.arm))
        shares.append(best / 5000)
    assert sum(shares) / 2 > 0.45  # seeds are fixed


def test_latency_is_minimised_with_an_absurd_value_among_it() -> None:
    rng, bandit, best = random.Random(1), Bandit([80.0, 100.0, 140.0], seed=1, goal="minimise"), 0
    for n in range(3000):
        decision = bandit.decide()
        best += n >= 1000 and decision.arm == 80.0
        bandit.reward(decision, 1e9 if n == 500 else decision.arm * rng.lognormvariate(0.0, 0.5))
    assert best / 2000 > 0.8
    assert bandit.health()["cut"] >= 1
    assert bandit.explain().arms[80.0].mean == pytest.approx(80.0 * 1.13, rel=0.15)
