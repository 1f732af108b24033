"""DriftLinTS and DriftAuto hold the same numbers as their twins, and every constant of DriftLinTS matters to that."""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from driftbandit import Bandit
from driftbandit.core.draws import Stream
from driftbandit.core.state import to_lists
from driftbandit.player import Player
from driftbandit.policies.drift import drift_lin_ts, lin_learning, regressions
from driftbandit.policies.drift.drift_auto import LEARNED_TWO, TRIAL, VALUES, DriftAuto
from driftbandit.policies.drift.drift_lin_ts import DriftLinTS, by_hypothesis
from driftbandit.policies.drift.regressions import (
    CENTRE,
    FOURTH,
    MEAN,
    N_CUT,
    N_RUNS,
    NOISE,
    ORIGIN,
    RATES,
    RUNS,
    TOP,
    VARIANCE,
)
from harness import TwinRound
from naive.drift_auto import NaiveDriftAuto
from naive.drift_lin_ts import NaiveDriftLinTS


class Lessons(NamedTuple):
    """What is learned in which form, and after how many rewards the states are compared."""

    n_arms: int
    n_features: int
    joint: bool
    rewards: list[float]
    features: list[list[float]]
    arms: list[int]
    compared: tuple[int, ...]


def far_off(values: Any, place: int, factor: float) -> float:
    """A value in this place that is `factor` times as far from the median as the third farthest of all."""
    values[place] = np.inf
    middle = np.median(values)
    return float(middle + factor * np.sort(abs(values - middle))[-3])


def lessons(name: str) -> Lessons:
    """Rewards with and without features in which one or another rule of the policy binds."""
    rng = np.random.default_rng(sum(map(ord, name)))
    n_arms, d, joint, rounds = {"long": (2, 1, False, 1500), "joint": (3, 3, True, 200)}.get(name, (2, 2, False, 100))
    features = np.round(rng.normal(0.5, 1.0, (rounds, d)) * 1024.0) / 1024.0
    arms = rng.integers(0, n_arms, rounds)
    effects = rng.normal(0.0, 0.5, (2, 1 if joint else n_arms, d))[np.arange(rounds) // (rounds // 2)]
    means = np.einsum("rd,rd->r", features, effects[np.arange(rounds), 0 if joint else arms]) + (not joint) * arms
    rewards = np.round((means + rng.normal(0.0, 0.25, rounds)) * 1024.0) / 1024.0
    compared: tuple[int, ...] = (1, 2, 3, 15, 16, 17, 40, rounds)
    if name == "long":
        compared = (*range(16, 1500, 16), 1500)
    if name == "far":  # 3.5 times the third largest distance from the median, once among the first and once later
        rewards[5] = far_off(rewards[:16], 5, 3.5)
        rewards[60] += 8.0
        compared = (*range(1, 101),)
    if name == "far features":
        features[7, 1] = far_off(features[:16, 1], 7, 12.0)
        features[50, 0] = 12.0 * np.abs(features[:50, 0]).max()
        compared = (*range(1, 101),)
    if name == "little noise":  # a jump that no old run survives
        rewards[:] = arms + 0.004 * rng.normal(size=rounds)
        rewards[50:] += 1.0
        compared = (*range(40, 101),)
    if name == "huge":
        rewards[0], rewards[20] = 1e25, -1e28
    return Lessons(n_arms, d, joint, rewards.tolist(), features.tolist(), arms.tolist(), compared)


NAMES = ("long", "joint", "far", "far features", "little noise", "huge")


def of_twin(twin: NaiveDriftLinTS) -> dict[str, list[float]]:
    """What a twin holds, as lists of numbers."""
    everything, groups = twin.hypotheses(), range(twin.n_groups)
    low = np.tril_indices(twin.n_features + 1)
    return {
        "numbers": [twin.first_reward, twin.c0, twin.s2, twin.top, twin.reward_mean, twin.reward_variance,
                    twin.reward_fourth, twin.n_cut],
        "weights": [math.log(hypothesis.weight) for hypothesis in everything],
        "runs": [number for run in twin.runs for number in (run.start, run.age_class)],
        "means": [float(number) for h in everything for g in groups for number in h.means[g]],
        "covariances": [float(number) for h in everything for g in groups for number in h.covariances[g][low]],
        "levels": [number for h in twin.common_drifts for number in (h.level, h.level_variance)],
        "links": [float(number) for h in twin.common_drifts for g in groups for number in h.level_covariances[g]],
        "prior": [float(number) for number in twin.V0[low]],
        "last": [float(number) for number in twin.last],
    }  # fmt: skip


def of_state(state: Any) -> dict[str, list[float]]:
    """The same of the fast policy's state."""
    n, size, numbers, runs = len(state.x), len(state.prior), state.numbers, state.counts[N_RUNS]
    used = [*range(RUNS), *state.slots[:runs]]
    link = np.reshape(state.link, (len(state.last), RATES // 4, n, 4)) * np.reshape(state.fade, (1, RATES // 4, 1, 4))
    kinds = zip(state.began[:runs], state.age_class[:runs], strict=True)
    return {
        "numbers": [*(numbers[place] for place in (ORIGIN, CENTRE, NOISE, TOP, MEAN, VARIANCE, FOURTH)),
                    state.counts[N_CUT]],
        "weights": [math.log(state.weights[h]) for h in used],
        "runs": [number for run in kinds for number in run],
        "means": by_hypothesis(state.mean, n)[:, :, used].transpose(2, 0, 1).ravel().tolist(),
        "covariances": by_hypothesis(state.covariance, size)[:, :, used].transpose(2, 0, 1).ravel().tolist(),
        "levels": [number for pair in zip(state.level, state.level_variance, strict=True) for number in pair],
        "links": link.transpose(1, 3, 0, 2).ravel().tolist(),
        "prior": list(state.prior),
        "last": list(state.last),
    }  # fmt: skip


@cache
def known(name: str) -> list[dict[str, list[float]]]:
    """The states of the twin in the rounds that are compared."""
    given, found = lessons(name), []
    twin = NaiveDriftLinTS(given.n_arms, given.n_features, given.joint)
    for t, (reward, x, arm) in enumerate(zip(given.rewards, given.features, given.arms, strict=True)):
        twin.learn(t, arm, reward, x)
        if t + 1 in given.compared:
            found.append(of_twin(twin))
    return found


def difference(name: str) -> str:
    """The first difference between policy and twin; empty if there is none."""
    given, policy, expected = lessons(name), DriftLinTS(), iter(known(name))
    state = to_lists(policy.init(given.n_arms, given.n_features, given.joint))
    for t, (reward, x, arm) in enumerate(zip(given.rewards, given.features, given.arms, strict=True)):
        policy.learn_in(state, t, arm, reward, x)
        if t + 1 in given.compared:
            mine = of_state(state)
            for field, numbers in next(expected).items():
                scale = max(map(abs, numbers), default=0.0)
                same = len(numbers) == len(mine[field])
                if not (same and np.allclose(mine[field], numbers, rtol=1e-6, atol=1e-9 * scale)):
                    return f"{name}, after {t + 1} rewards: {field}"
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_it_holds_the_numbers_of_its_twin(name: str) -> None:
    assert difference(name) == ""


MUTANTS = [
    (lin_learning, "CUT", 6.0), (lin_learning, "CUT", 3.1), (lin_learning, "FAR", 4.0),
    (lin_learning, "FARTHER", 16.0), (lin_learning, "MEMORY", 1.0 / 256.0), (lin_learning, "MEMORY", 1.0 / 1024.0),
    (lin_learning, "DEAD", 1e-12), (lin_learning, "DEAD", 1e-50), (lin_learning, "LARGEST", 1e20),
    (lin_learning, "COMMON", 1.0 / 8.0), (lin_learning, "KEPT", 0.5), (regressions, "CAP", 16.0),
    (regressions, "LEAST", 1e-100),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "constant", "value"), MUTANTS, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_the_comparison_sees_a_changed_constant(module: Any, constant: str, value: float, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, constant, value)
    assert any(difference(name) for name in NAMES)


def test_choices_see_a_changed_share_of_the_variance(monkeypatch: Any) -> None:
    def arms() -> list[int]:
        policy, stream, given = DriftLinTS(), Stream(5), lessons("far")
        state, chosen = to_lists(policy.init(2, 2)), []
        for t, (reward, x, arm) in enumerate(zip(given.rewards, given.features, given.arms, strict=True)):
            chosen.append(policy.choose_in(state, t, stream.at(t), x))
            policy.learn_in(state, t, arm, reward, x)
        return chosen

    twin, given, expected = NaiveDriftLinTS(2, 2), lessons("far"), []
    for t, (reward, x, arm) in enumerate(zip(given.rewards, given.features, given.arms, strict=True)):
        expected.append(twin.choose(t, TwinRound(Stream(5).at(t)), x))
        twin.learn(t, arm, reward, x)
    assert arms() == expected
    monkeypatch.setattr(drift_lin_ts, "SHRINK", 1.0)
    assert arms() != expected


# ---- DriftAuto -------------------------------------------------------------------------------------------------------

PAIRS = {
    "zeros and ones": [0.0, 1.0], "a loss and a gain": [-20.0, 20.0], "the larger first": [7.0, 5.0],
    "both below 0": [-3.0, -8.0], "a single value": [4.0],
}  # fmt: skip


def assert_as_the_twin(player: Any, twin: Any, reward: Any, rounds: range) -> None:
    """Both play these rounds; the choices are equal."""
    stream = Stream(5)
    for t in rounds:
        arm = player.choose(stream.at(t))
        assert arm == twin.choose(t, TwinRound(stream.at(t))), t
        player.learn(arm, reward(t, arm))
        twin.learn(t, arm, reward(t, arm))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("third", [3, 40, 10_000])
def test_drift_auto_makes_the_choices_of_its_twin(pair: str, third: int) -> None:
    values, chances = PAIRS[pair], np.random.default_rng(2).random((120, 3))

    def reward(t: int, arm: int) -> float:
        if t >= third:
            return round(float(chances[t, arm]) + arm, 3)
        return values[min(int(t > 1 and chances[t, arm] < 0.3 + 0.2 * arm), len(values) - 1)]

    player, twin = Player(DriftAuto(), 3, key=5), NaiveDriftAuto(3)
    assert_as_the_twin(player, twin, reward, range(120))
    assert player.state.counts[VALUES] == len(twin.values)
    assert player.state.counts[LEARNED_TWO] == twin.two.t


@pytest.mark.parametrize("value", [0.0, 5.0, -5.0])
def test_with_a_single_value_so_far_a_bandit_warns_of_nothing(value: float) -> None:
    bandit = Bandit(3, seed=1)
    for _ in range(120):
        bandit.reward(bandit.decide(), value)
    assert bandit.health()["warnings"] == []


def test_after_its_trial_drift_lin_ts_begins_anew_in_both() -> None:
    """What was learned before is of no consequence then, so both learn the same arms of two values first."""
    player, twin, chances = Player(DriftAuto(), 2, key=5), NaiveDriftAuto(2), np.random.default_rng(3).random(TRIAL)
    twin.many.learn = lambda *lesson: None  # learned in vain, and slow
    for t in range(TRIAL):
        for one in (player.learn, lambda arm, reward: twin.learn(0, arm, reward)):
            one(t % 2, float(chances[t] < 0.5))

    def reward(t: int, arm: int) -> float:
        return float(t % 2) if t < TRIAL + 5 else arm + float(chances[t - TRIAL])

    assert_as_the_twin(player, twin, reward, range(TRIAL, TRIAL + 60))
    assert [twin.many.t, twin.t] == [55, TRIAL + 60]
