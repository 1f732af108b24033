"""Our environments in the Gymnasium that is installed."""

import copy

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs Gymnasium: make test-adapters, or pip install '.[gymnasium]'")
import gymnasium
from gymnasium.utils.env_checker import check_env

from driftbandit.adapters.gymnasium import ID, BanditEnv
from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.environments import Abrupt, Linear
from driftbandit.lab.engine.simulate import simulate
from driftbandit.player import Player
from driftbandit.spec.parse import parse_environment, parse_policy

KINDS = {
    "abrupt": "abrupt(n_arms=3, horizon=200, phases=2)",
    "smooth": "smooth(n_arms=4, horizon=200)",
    "one context": "linear(n_arms=3, n_features=2, horizon=200)",
    "a context for each arm": 'linear(contexts="disc", n_arms=3, n_features=2, horizon=200)',
}


@pytest.mark.parametrize("text", KINDS.values(), ids=KINDS)
@pytest.mark.filterwarnings("ignore:.*A Box observation space m.*value is")  # a normal context has no bounds
def test_the_checker_of_gymnasium_accepts_every_kind_of_environment(text):
    check_env(gymnasium.make(ID, environment=text, disable_env_checker=True).unwrapped)


@pytest.mark.parametrize("text", KINDS.values(), ids=KINDS)
def test_an_episode_is_the_run_that_the_simulator_plays(text):
    policy = parse_policy("lin-ucb" if "linear" in text else "ts")
    env = BanditEnv(text)
    joint = getattr(env.environment, "joint", False)
    player = Player(policy, env.action_space.n, stream_key(3, 0, POLICY), n_features=env.n_features, joint=joint)
    rng, (observation, _), regret, over = Stream(player.key), env.reset(seed=3), 0.0, False
    while not over:
        features = np.ravel(observation).tolist() if env.n_features else None
        arm = player.choose(rng.at(player.learned), features=features)
        chosen = np.asarray(observation)[arm].tolist() if joint else features
        observation, reward, ended, over, info = env.step(np.int64(arm))
        assert not ended
        player.learn(arm, reward, features=chosen)
        regret += info["regret"]
    simulated = simulate(policy, parse_environment(text), runs=1, seed=3, compiled=False, checkpoints=1)
    assert regret == pytest.approx(simulated.regret[0, -1], abs=1e-9)


def test_a_seed_repeats_an_episode_and_without_one_another_follows():
    def play(env, **seed):
        env.reset(**seed)
        return [env.step(0)[1] for _ in range(50)]

    env = BanditEnv(Linear(horizon=60))
    first = play(env, seed=1)
    second = play(env)
    assert play(env, seed=1) == first != second
    assert play(env) == second


def test_a_copy_goes_on_with_the_same_rewards():
    env = BanditEnv(Linear(n_arms=2, horizon=40))
    env.reset(seed=2)
    env.step(1)
    other = copy.deepcopy(env)
    assert [env.step(1)[1] for _ in range(10)] == [other.step(1)[1] for _ in range(10)]


def test_what_cannot_be_played_is_refused():
    env = BanditEnv(Abrupt(n_arms=2, horizon=3, phases=1))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="from 0 to 1"):
        env.step(2)
    assert [env.step(1)[3] for _ in range(3)] == [False, False, True]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(ValueError, match="Expected an environment"):
        BanditEnv(Abrupt)
