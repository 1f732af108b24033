"""The probabilities of a contextual policy are the shares of its choices, whichever way they are computed."""

import csv
import random
import time

import numpy as np
import pytest

from driftbandit import Bandit
from driftbandit.bandit.candidates import Candidates
from driftbandit.bandit.export import export
from driftbandit.bandit.probabilities import prepare
from driftbandit.core.draws import Stream
from driftbandit.player import Player
from driftbandit.policies import linear
from driftbandit.policies.drift.drift_lin_ts import DriftLinTS
from driftbandit.spec.user_code import load_policy

POLICIES = [
    DriftLinTS(),
    linear.LinTS(alpha=0.5),
    linear.DiscountedLinTS(gamma=0.9, alpha=0.7),
    linear.StableLinTS(gamma=0.95),
    linear.DiscountedLogisticTS(gamma=0.95),
    linear.KalmanTS(drift=0.05),
    linear.LinUCB(alpha=1.0),
    linear.WeightedLinUCB(gamma=0.95),
    linear.DiscountedLinUCB(gamma=0.95, form="code"),
    linear.RestartLinUCB(period=20),
    linear.SlidingLinUCB(window=20),
    linear.DiscountedRandLinUCB(gamma=0.95, alpha=1.0),
    linear.CusumLinUCB(explore=0.3),
]


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("rounds", [0, 1, 45])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_probabilities_are_the_shares_of_the_choices(policy, rounds, joint):
    player, rng = Player(policy, 4, key=3, n_features=2, joint=joint), np.random.default_rng(1)
    for n in range(rounds):
        slot, features = n % 4, rng.normal(size=2)
        player.learn(slot, float(rng.random() < 0.4 + 0.1 * slot + 0.2 * features[0]), features=features)
    at = [0.5, -1.0, -0.2, 0.1, 0.7, 0.3, 0.0, 0.9] if joint else [0.5, -1.0]
    for allowed in (None, [0, 2, 3]):
        slots = [0, 1, 2, 3] if allowed is None else allowed
        found, error = prepare(player, 0, at, slots, 2000)()
        stream = Stream(99)
        chosen = [player.choose(stream.at(n), allowed, 0, at) for n in range(3000)]
        shares = np.bincount(chosen, minlength=4)[slots] / 3000
        assert found.sum() == pytest.approx(1.0)
        assert found == pytest.approx(shares, abs=error + 3.5 * np.sqrt(0.25 / 3000))
        assert error < 0.04
        assert (found[shares > 0.0] > 0.0).all()


SCENES = {  # options, arms or candidates that can be chosen, arms that were played before
    "all": ({}, None, [0, 1, 2]),
    "available, floor": ({"floor": 0.1, "holdback": 0.1, "baseline": "uniform"}, [1, 2], [0, 1, 2]),
    "untried, floor": ({"floor": 0.1}, None, [0, 1]),
    "untried, available": ({}, [0, 2], [0, 1]),
    "untried first": ({"first": True, "floor": 0.1}, None, [0, 1]),
    "nothing known": ({}, [1, 2], []),
    "candidates": ({}, ((0.5, 0.3), (0.6, -0.2), (0.2, 0.9)), None),
    "equal candidates, floor": ({"floor": 0.1}, ((0.5, 0.3), (0.6, -0.2), (0.5, 0.3)), None),
}
SHARP = ["lin-ts(sd=0.3)", "lin-ts(alpha=0)", "stable-lin-ts(sd=0.3)", "d-lin-ts(sd=0.3)", "kalman-ts", "drift-lin-ts",
         "lin-ucb(alpha=0.5)", "d-rand-lin-ucb"]  # fmt: skip


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize(
    "policy", [pytest.param(policy, marks=() if policy == "lin-ts(alpha=0)" else pytest.mark.long) for policy in SHARP]
)
def test_propensities_fit_20000_choices(policy, scene):
    """Chi-square at 1e-5: one of the 64 would fail in 1 of 1,500 sets of random numbers."""
    options, among, played = SCENES[scene]
    joint, rng = played is None, np.random.default_rng(1)
    options = {"first": False, **options} if not joint else options
    names, features = ["a", "b", "c"], {"x": "number", "y": "number"}
    with_arms = {"candidates": True} if joint else {"arms": names}
    bandit = Bandit(policy=policy, features=features, seed=1, **with_arms, **options)
    for n in range(0 if played == [] else 20):
        contexts = [dict(zip("xy", rng.normal(size=2).tolist(), strict=True)) for _ in names]
        given = {"candidates": dict(zip(names, contexts, strict=True))} if joint else {"context": contexts[0]}
        decision = bandit.decide(**given, **({} if joint else {"available": [names[played[n % len(played)]]]}))
        slot = names.index(decision.arm)
        bandit.reward(decision, 0.3 * contexts[slot if joint else 0]["x"] + 0.2 * slot + rng.normal(0.0, 0.3))
    fold, context = bandit._fold, {"x": 0.5, "y": 0.3}
    if joint:
        context = Candidates(
            {name: dict(zip("xy", pair, strict=True)) for name, pair in zip(names, among, strict=True)}
        )
    _, numbers = fold.read_context(context, fold.last_at)
    allowed = None if joint else among
    expected, _ = fold.probabilities(allowed, fold.last_at, 20_000 if joint else 200_000, numbers)
    stream = Stream(77)
    chosen = [fold.choose(stream.at(n), allowed, fold.last_at, numbers)[0] for n in range(20_000)]
    counts, expected = np.bincount(chosen, minlength=3), 20_000 * expected
    possible = expected > 0.0
    assert not counts[~possible].any()
    square = ((counts - expected)[possible] ** 2 / expected[possible]).sum() / 1.1  # of 200,000 draws
    assert square < {2: 19.52, 3: 23.03}[int(possible.sum())]


@pytest.mark.parametrize("allowed", [[0, 2], [2, 1], [1, 2, 3]])
@pytest.mark.parametrize("policy", ["kl-ucb", "lin-ucb"])
def test_ties_are_uniform_among_the_arms_that_are_allowed(policy, allowed):
    """Chi-square at 1e-5 of 20,000 choices; all five arms share the largest index."""
    features = [0.5, 1.0] if policy == "lin-ucb" else None
    player = Player(load_policy(policy), 5, n_features=2 if features else 0)
    for slot in range(0 if features else 5):
        player.learn(slot, 1.0)
    stream = Stream(5)
    chosen = [player.choose(stream.at(n), allowed, 0, features) for n in range(20_000)]
    counts, expected = np.bincount(chosen, minlength=5)[allowed], 20_000 / len(allowed)
    assert counts.sum() == 20_000
    assert ((counts - expected) ** 2 / expected).sum() < {2: 19.52, 3: 23.03}[len(allowed)]


@pytest.mark.parametrize("policy", ["lin-ts", "d-lin-ts", "stable-lin-ts", "kalman-ts", "d-lin-ucb", "drift-lin-ts"])
def test_asking_for_probabilities_takes_milliseconds(policy):
    chance = random.Random(1)
    bandit = Bandit(10, policy, features={f"x{n}": "number" for n in range(10)}, seed=1)
    for _ in range(60):
        decision = bandit.decide(context={f"x{n}": chance.gauss(0.0, 1.0) for n in range(10)})
        bandit.reward(decision, chance.random())
    best = min(timed(lambda: bandit.probabilities({"x0": 1.0})) for _ in range(5))
    assert best < 0.04


@pytest.mark.parametrize("policy", ["lin-ts(sd=0.2)", "drift-lin-ts", "d-lin-ucb(alpha=0.3)"])
def test_an_arm_that_was_chosen_has_a_propensity_above_0(tmp_path, policy):
    chance, path = random.Random(1), str(tmp_path / "journal.db")
    features = {"x": "number", "device": ["mobile", "desktop"]}
    with Bandit.open(path, "b", policy=policy, arms=["a", "b", "c"], features=features, seed=1) as bandit:
        for n in range(150):
            device = chance.choice(["mobile", "desktop"])
            decision = bandit.decide(f"d{n}", context={"x": chance.gauss(0.0, 1.0), "device": device})
            best = {"mobile": "a", "desktop": "b"}[device]
            bandit.reward(decision, (decision.arm == best) + chance.gauss(0.0, 0.3))
    began = time.process_time()
    assert export(path, tmp_path / "log.csv") == 150
    assert time.process_time() - began < 6.0
    with open(tmp_path / "log.csv") as file:
        found = [float(row["propensity"]) for row in csv.DictReader(file)]
    assert min(found) > 0.0


def test_the_last_decisions_of_many_in_memory_are_found_at_once():
    bandit = Bandit(2, "lin-ts", features={"x": "number"}, seed=1)
    for n in range(15):
        last = bandit.decide_many(1000, context={"x": float(n)})
    assert [outcome.decision.id for outcome in bandit.recent(3)] == [made.id for made in last[:-4:-1]]
    assert bandit.recent(1)[0].context == {"x": 14.0}
    assert min(timed(lambda: bandit.recent(3)) for _ in range(5)) < 0.005


def timed(action):
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
