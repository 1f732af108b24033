"""Contexts through the simulator, the player and the command, and the contextual environments."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from driftbandit.core.draws import CONTEXT, POLICY, Stream, stream_key
from driftbandit.core.protocols import Environment, Policy
from driftbandit.core.state import equal_states, to_lists
from driftbandit.environments import Bernoulli, Gaussian, Linear
from driftbandit.environments.linear import CONTEXTS
from driftbandit.environments.named import LINEAR, PUBLISHED
from driftbandit.errors import PolicyError
from driftbandit.lab import run
from driftbandit.lab.engine.compiled_player import CompiledPlayer
from driftbandit.lab.engine.simulate import simulate
from driftbandit.player import Player
from driftbandit.policies import BetaTS, DiscountedTS, Oracle
from driftbandit.spec.parse import parse, parse_environment
from linear_policies import BookLinUCB

DISJOINT = Linear(n_arms=3, n_features=2, horizon=300)
JOINT = Linear(contexts="disc", n_arms=4, n_features=2, horizon=300, law=Gaussian(1.0))
FULL = {"checkpoints": 5, "pulls": True, "trajectories": True, "progress": False, "workers": 1}


def test_the_protocols_hold() -> None:
    assert isinstance(BookLinUCB(), Policy)
    for environment in (DISJOINT, JOINT):
        assert isinstance(environment, Environment)


@pytest.mark.long
@pytest.mark.parametrize("environment", [DISJOINT, JOINT], ids=["disjoint", "joint"])
def test_compiled_and_interpreted_give_the_same_bits(environment: Any) -> None:
    fast, slow = (simulate(BookLinUCB(), environment, 2, 3, compiled=flag, **FULL) for flag in (True, False))
    for field in ("regret", "pulls", "arms", "rewards"):
        assert np.array_equal(getattr(fast, field), getattr(slow, field)), field


def test_policies_without_features_play_too() -> None:
    fast, slow = (simulate(BlindTS(), DISJOINT, 2, 3, compiled=flag, **FULL) for flag in (True, False))
    assert np.array_equal(fast.arms, slow.arms)
    assert np.array_equal(fast.regret, slow.regret)


class BlindState(NamedTuple):
    sums: Any


class BlindTS(NamedTuple):
    """Chooses and learns with random numbers, without features."""

    def init(self, n_arms: int) -> BlindState:
        return BlindState(np.zeros(n_arms))

    def choose(self, state: BlindState, t: int, rng: Any) -> int:
        return int(rng.uniform(0) * len(state.sums)) if rng.normal(1) > state.sums[0] else 0

    def learn(self, state: BlindState, t: int, arm: Any, reward: Any, rng: Any) -> None:
        state.sums[arm] += reward * rng.uniform(2) / (1.0 + t)


class Recorder:
    """Plays arms in turn and keeps what it was given."""

    def init(self, n_arms: int, n_features: int = 0, joint: bool = False) -> dict[str, Any]:
        return {"arms": n_arms, "seen": SEEN, "now": None}

    def choose(self, state: Any, t: int, rng: Any) -> int:
        return 0

    def learn(self, state: Any, t: int, arm: int, reward: float) -> None:
        pass

    def choose_in(self, state: Any, t: int, rng: Any, features: Any) -> int:
        state["now"] = features.tolist()
        return t % state["arms"]

    def learn_in(self, state: Any, t: int, arm: int, reward: float, features: Any) -> None:
        state["seen"].append((arm, state["now"], features.tolist(), reward))


SEEN: list[Any] = []


@pytest.mark.filterwarnings("ignore:Played interpreted")
@pytest.mark.parametrize("environment", [DISJOINT, JOINT], ids=["disjoint", "joint"])
def test_a_policy_is_given_the_features_of_its_stream_and_regret_is_best_minus_mean(environment: Any) -> None:
    SEEN.clear()
    played = simulate(Recorder(), environment, 1, 5, checkpoints=environment.horizon, progress=False)
    realised, stream = environment.realise(stream_key(5, 0, 0)), Stream(stream_key(5, 0, CONTEXT))
    regret, n = 0.0, environment.n_features
    for t, (arm, features, chosen, reward) in enumerate(SEEN[-environment.horizon :]):
        expected = np.zeros(n * (environment.n_arms if environment.joint else 1))
        realised.features(t, stream.at(t), expected)
        assert features == expected.tolist()
        assert chosen == (features[arm * n : arm * n + n] if environment.joint else features)
        means = [float(realised.mean_in(t, a, expected)) for a in range(environment.n_arms)]
        coefficients = realised.table()[realised.row[t], 0 if environment.joint else arm]
        assert means[arm] == pytest.approx(coefficients[0] + np.dot(coefficients[1:], chosen))
        assert abs(reward - means[arm]) < 6 * environment.law.sd  # once in 10^9 rewards
        regret += max(means) - means[arm]
        assert played.regret[0, t] == pytest.approx(regret)


def test_linucb_has_the_published_regret_in_russacs_environment() -> None:
    """4,150 as read off the figure, to about 100; with 10 runs the standard error is 42."""
    final = simulate(BookLinUCB(), parse("russac-abrupt"), 10, **FULL).regret[:, -1]
    assert abs(final.mean() - 4150) < 300


# ---- environments


@pytest.mark.parametrize("name", [*(one.name for one in LINEAR), *PUBLISHED])
def test_a_named_environment_is_read_back_and_has_finite_means(name: str) -> None:
    environment = parse_environment(name)
    assert parse_environment(repr(environment)) == environment
    realised, stream = to_lists(environment.realise(3)), Stream(1)
    features = [0.0] * (environment.n_features * (environment.n_arms if environment.joint else 1))
    for t in (0, environment.horizon // 2, environment.horizon - 1):
        realised.features(t, stream.at(t), features)
        means = [realised.mean_in(t, arm, features) for arm in range(environment.n_arms)]
        assert realised.best_in(t, features) == max(means)
        assert all(map(math.isfinite, means))
        assert math.isfinite(realised.pull_in(t, 0, features, stream.at(t)))
        if environment.law == Bernoulli():
            assert min(means) >= 0.0
            assert max(means) <= 1.0


def contexts_of(rounds: int = 4000, **given: Any) -> np.ndarray:
    environment = Linear(horizon=rounds, **given)
    realised, stream, out = environment.realise(0), Stream(9), []
    for t in range(rounds):
        features = np.zeros(environment.n_features * (environment.n_arms if environment.joint else 1))
        realised.features(t, stream.at(t), features)
        out.append(features)
    return np.array(out)


def test_contexts_have_the_law_they_claim() -> None:
    """Moments of 4,000 contexts within 5 standard errors, about 0.08: a false alarm in a million each."""
    assert sorted(CONTEXTS) == sorted(
        {"normal", "uniform", "segment", "newcomer", "hour", "correlated", "drifting", "unit", "disc"}
    )
    normal = contexts_of(contexts="normal", centre=3.0, width=2.0)
    assert np.abs(normal.mean(axis=0) - 3.0).max() < 0.16
    assert np.abs(normal.std(axis=0) - 2.0).max() < 0.12
    uniform = contexts_of(contexts="uniform")
    assert np.abs(uniform.mean(axis=0)).max() < 0.05
    assert np.abs(uniform).max() <= 1.0
    assert np.abs(uniform.std(axis=0) - 1 / math.sqrt(3)).max() < 0.03
    segment = contexts_of(contexts="segment")
    assert (segment.sum(axis=1) == 1.0).all()
    assert np.abs(segment.mean(axis=0) - 0.25).max() < 0.035
    newcomer = contexts_of(contexts="newcomer")
    assert (newcomer.sum(axis=1) == 1.0).all()
    assert newcomer[:2000, -1].max() == 0.0
    assert np.abs(newcomer[2000:].mean(axis=0) - 0.25).max() < 0.05
    hour = contexts_of(200, contexts="hour")
    assert np.allclose(hour[:104], hour[96:])
    assert np.allclose(hour[24], [1.0, 0.0, 0.0, -1.0])
    correlated = contexts_of(contexts="correlated")
    assert np.abs(np.corrcoef(correlated.T)[np.triu_indices(4, 1)] - 0.9).max() < 0.02
    assert np.abs(correlated.std(axis=0) - 1.0).max() < 0.06
    drifting = contexts_of(contexts="drifting")
    assert np.abs(drifting.reshape(16, 250, 4).mean(axis=1)).max() > 1.5
    unit = contexts_of(500, contexts="unit", n_arms=3)
    assert np.allclose((unit.reshape(-1, 4) ** 2).sum(axis=1), 1.0)
    disc = contexts_of(500, contexts="disc", n_features=2).reshape(-1, 2)
    norms = np.sqrt((disc**2).sum(axis=1))
    assert norms.max() <= 1.0 + 1e-12
    assert np.mean(norms < 1 - 1e-12) == pytest.approx(math.pi / 4, abs=0.05)  # 6 standard errors


def coefficients(**given: Any) -> np.ndarray:
    environment = Linear(**{"horizon": 4000, **given}).realise(5)
    return environment.table()[environment.row]


def test_coefficients_change_as_they_claim() -> None:
    def changed(**given: Any) -> np.ndarray:
        return np.diff(coefficients(**given), axis=0) != 0.0

    assert changed(changes=6).any(axis=(1, 2)).sum() == 6
    assert not changed(changes=0).any()
    one_arm = changed(change="arm", changes=9)
    assert one_arm.any(axis=(1, 2)).sum() == 9
    assert (one_arm.any(axis=2).sum(axis=1) <= 1).all()
    coordinate = changed(change="coordinate", changes=9)
    assert (coordinate.any(axis=1).sum(axis=1) <= 1).all()
    cell = changed(change="cell", changes=9)
    assert cell.any(axis=(1, 2)).sum() == 9
    assert (cell.sum(axis=(1, 2)) <= 1).all()
    burst = np.flatnonzero(changed(change="bursts", changes=5, horizon=100_000).any(axis=(1, 2)))
    assert np.diff(burst).tolist() == [100] * 4
    assert (np.diff(np.flatnonzero(changed(change="spaced").any(axis=(1, 2)))) >= 500).all()
    signs = coefficients(change="signs")
    assert np.array_equal(abs(signs[0]), abs(signs[-1]))
    assert np.flatnonzero((np.diff(signs, axis=0) != 0).any(axis=(1, 2))).tolist() == [1599]
    trap = coefficients(change="trap")
    assert np.flatnonzero((np.diff(trap, axis=0) != 0).any(axis=(1, 2))).tolist() == [1999]
    gained = np.zeros((5, 5))
    gained[-1, 0] = 2.0
    for change in ("trap", "rising"):
        first, last = coefficients(change=change)[[0, -1]]
        assert np.allclose(last - first, gained)
    walk = coefficients(change="walk", memory=50, horizon=20_000, spread=0.3)
    # 200 independent stretches of 25 coefficients: the standard deviation to 1 in 100
    assert walk.std() == pytest.approx(0.3, rel=0.05)
    lagged = (walk[50:] * walk[:-50]).mean() / walk.var()
    assert lagged == pytest.approx(math.exp(-1), abs=0.05)
    season = coefficients(change="season", memory=1000)
    assert np.allclose(season[:3000], season[1000:])
    assert abs(season).max() <= 0.45
    turning = coefficients(contexts="unit", change="rotation", memory=2000)
    assert np.allclose((turning**2).sum(axis=2), 1.0)
    assert np.allclose(turning[0], -turning[1000])
    common = coefficients(changes=0, level=0.5)
    assert np.allclose(common - common[:, :1], (common - common[:, :1])[0])
    assert (np.diff(common[:, 0, 0]) != 0).sum() == 41  # days of 96 rounds


def test_russacs_coefficients_are_those_of_the_paper() -> None:
    abrupt, smooth = (parse(name).realise(0) for name in ("russac-abrupt", "russac-smooth"))
    table = abrupt.table()[abrupt.row][:, 0, 1:]
    assert abrupt.breakpoints.tolist() == [0, 1000, 2000, 3000]
    assert np.allclose(table[[0, 1000, 2000, 3000]], [[1, 0], [-1, 0], [0, 1], [0, -1]])
    assert abrupt.variation == pytest.approx(4 + math.sqrt(2))
    table = smooth.table()[smooth.row][:, 0, 1:]
    assert np.allclose(table[[0, 2999, 5999]], [[1, 0], [0, 1], [0, 1]])
    assert smooth.variation == pytest.approx(math.pi / 2, abs=1e-3)


@pytest.mark.parametrize(
    "given",
    [
        {"contexts": "strange"}, {"change": "strange"}, {"contexts": "unit", "change": "arm"}, {"change": "turns"},
        {"contexts": "disc", "n_features": 1}, {"useless": 5}, {"n_features": 0},
        {"changes": 50, "horizon": 50}, {"contexts": "unit", "useless": 4},
    ],
)  # fmt: skip
def test_a_bad_environment_is_refused_in_one_sentence(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        Linear(**given)


# ---- refusals, player, study


def test_what_cannot_be_played_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="features"):
        simulate(Oracle(), DISJOINT, 1, progress=False)
    with pytest.raises(ValueError, match=r"\[0, 1\] only"):
        simulate(BetaTS(), DISJOINT, 1, progress=False)
    with pytest.raises(PolicyError, match="one context per round"):
        simulate(OnlyDisjoint(), JOINT, 1, progress=False)
    with pytest.raises(PolicyError, match="learn_in"):
        simulate(NoLearnIn(), DISJOINT, 1, progress=False)


class NoLearnIn:
    def init(self, n_arms: int, n_features: int = 0) -> Any: ...

    def choose(self, state: Any, t: int, rng: Any) -> int:
        return 0

    def learn(self, state: Any, t: int, arm: int, reward: float) -> None: ...

    def choose_in(self, state: Any, t: int, rng: Any, features: Any) -> int:
        return 0


class OnlyDisjoint(NoLearnIn):
    def learn_in(self, state: Any, t: int, arm: int, reward: float, features: Any) -> None: ...


@pytest.mark.parametrize("environment", [DISJOINT, JOINT], ids=["disjoint", "joint"])
@pytest.mark.parametrize("player_class", [Player, CompiledPlayer])
def test_a_player_fed_the_simulators_features_and_rewards_chooses_its_arms(environment: Any, player_class: Any) -> None:
    played = simulate(BookLinUCB(), environment, 1, 3, **FULL)
    key, n = stream_key(3, 0, POLICY), environment.n_features
    player = player_class(BookLinUCB(), environment.n_arms, key, n_features=n, joint=environment.joint)
    realised, contexts, draws = environment.realise(0), Stream(stream_key(3, 0, CONTEXT)), Stream(key)
    features = np.zeros(n * (environment.n_arms if environment.joint else 1))
    for t in range(environment.horizon):
        realised.features(t, contexts.at(t), features)
        arm = player.choose(draws.at(t), features=features)
        assert arm == played.arms[0, t]
        chosen = features[arm * n : arm * n + n] if environment.joint else features
        player.learn(arm, float(played.rewards[0, t]), features=chosen)
    other = player_class(BookLinUCB(), environment.n_arms, key, n_features=n, joint=environment.joint)
    other.load(player.dump())
    assert equal_states(player.arrays(), other.arrays())
    values, _ = player.probabilities([0, 2], draws=50, features=features)
    assert values.tolist() == other.probabilities([0, 2], draws=50, features=features)[0].tolist()
    assert values.sum() == pytest.approx(1.0)
    for wrong in (None, [1.0], [math.nan] * len(features)):
        with pytest.raises(ValueError, match="feature"):
            player.choose(draws.at(0), features=wrong)


def test_features_are_refused_where_they_cannot_be_used() -> None:
    with pytest.raises(ValueError, match="0 features"):
        Player(BookLinUCB(), 2).choose(Stream(1).at(0), features=[1.0])
    with pytest.raises(ValueError, match="cannot use features"):
        Player(DiscountedTS(), 2, n_features=1)


@pytest.mark.parametrize("player_class", [Player, CompiledPlayer])
def test_with_a_half_life_a_late_reward_weighs_as_if_it_had_come_at_once(player_class: Any) -> None:
    events = [(0, 1.0, 100, [1.0, 0.5]), (1, 0.0, 250, [0.2, -1.0]), (0, 0.4, 400, [-0.3, 0.3])]
    players = [player_class(BookLinUCB(), 2, half_life=100, n_features=2) for _ in range(2)]
    for player, order in zip(players, (events, events[::-1]), strict=True):
        for arm, reward, decided, features in order:
            player.learn(arm, reward, decided, features=features)
    once, late = (player.arrays(400) for player in players)
    assert np.allclose(once.target, late.target)
    assert once.target[0] == pytest.approx(2.0**-3 * 1.0 - 0.3 * 0.4)


def test_a_study_plays_contextual_environments_without_drift_metrics(tmp_path: Any) -> None:
    from driftbandit.lab import Study

    study = Study(["drift-lin-ts", "uniform"], ["abrupt(horizon=300)", DISJOINT], runs=1, drift=True)
    with pytest.warns(UserWarning, match="No drift metrics"):
        result = run(study, folder=tmp_path, progress=False, compiled=False)
    assert len(result.parts) == 4
    assert {line.environment for line in result.drift} == {"abrupt(horizon=300)"}
    assert parse("ds-ts.tuned", environment=DISJOINT).gamma < 1.0
