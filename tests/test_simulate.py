"""The simulator gives the same bits however the work is spread, keeps no more than requested, ends on request,
and never runs old code."""

import os
import threading
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import driftbandit
from driftbandit.core.draws import ENVIRONMENT, POLICY, REWARD, Stream, stream_key
from driftbandit.core.parameters import checked
from driftbandit.core.primitives import where
from driftbandit.environments import Abrupt, Constant, Gaussian, Smooth, from_means, phased
from driftbandit.errors import PolicyError
from driftbandit.lab.engine.simulate import checkpoint_rounds, simulate
from driftbandit.policies.discounted_ts import DiscountedTS

POLICY_ = DiscountedTS(gamma=0.97)
FRESH = Abrupt(n_arms=4, horizon=1500, phases=3)
SOURCE = Path(driftbandit.__file__).parent


def same(one, two) -> bool:
    """Two simulations agree to the last bit in everything that was asked for."""
    one, two = (result._replace(seconds=0.0, alarms=None) for result in (one, two))
    parts = zip(one, two, strict=True)
    return all((a is None and b is None) or np.array_equal(a, b) for a, b in parts)


@pytest.fixture(scope="module")
def reference():
    """A hundred runs, interpreted: the plainest way there is."""
    return simulate(POLICY_, FRESH, runs=100, seed=3, compiled=False, pulls=True, checkpoints=10)


# ---- the same bits


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("lockstep", [True, False])
def test_workers_lockstep_and_compiling_change_no_bit(reference, workers, lockstep):
    result = simulate(POLICY_, FRESH, 100, seed=3, pulls=True, checkpoints=10, workers=workers, lockstep=lockstep)
    assert same(result, reference)


@pytest.mark.parametrize("runs", [1, 2, 5, 31, 32, 33, 64, 65])
def test_any_number_of_runs_gives_the_first_runs_of_a_longer_simulation(reference, runs):
    for lockstep in (True, False):
        result = simulate(POLICY_, FRESH, runs, seed=3, pulls=True, checkpoints=10, lockstep=lockstep)
        assert np.array_equal(result.regret, reference.regret[:runs])
        assert np.array_equal(result.pulls, reference.pulls[:runs])


@pytest.mark.parametrize(("first", "count"), [(0, 40), (40, 60), (7, 1), (95, 5)])
def test_runs_can_be_simulated_in_pieces(reference, first, count):
    result = simulate(POLICY_, FRESH, count, seed=3, first_run=first, pulls=True, checkpoints=10)
    assert np.array_equal(result.regret, reference.regret[first : first + count])
    assert np.array_equal(result.pulls, reference.pulls[first : first + count])


def test_runs_differ_from_each_other_and_between_seeds(reference):
    assert len(np.unique(reference.regret[:, -1])) == 100
    other = simulate(POLICY_, FRESH, 100, seed=4, checkpoints=10, pulls=True)
    assert not np.intersect1d(other.regret[:, -1], reference.regret[:, -1]).size


@pytest.mark.long
@pytest.mark.parametrize(
    "environment",
    [
        Smooth(n_arms=6, horizon=700, start=0, rescaled=True, law=Gaussian(sd=0.2)),
        Abrupt(n_arms=3, horizon=700, phases=5, law=Constant()),
    ],
    ids=repr,
)
def test_other_environments_and_laws_give_the_same_bits_in_lockstep(environment):
    plain = simulate(POLICY_, environment, 40, seed=5, compiled=False, checkpoints=7, pulls=True)
    assert same(simulate(POLICY_, environment, 40, seed=5, checkpoints=7, pulls=True), plain)


@pytest.mark.long
def test_forgetting_means_and_weights_give_the_same_bits_in_lockstep():
    policy = DiscountedTS(gamma=0.8, tau_max=1.0, forget_below=1e-3, weight=4.0)
    plain = simulate(policy, FRESH, 40, seed=5, compiled=False, checkpoints=7, pulls=True)
    assert same(simulate(policy, FRESH, 40, seed=5, checkpoints=7, pulls=True), plain)


# ---- what is reported


def test_regret_pulls_and_trajectories_tell_the_same_story():
    environment = Abrupt(n_arms=4, horizon=1500, phases=3, instance="1")
    asked = {"runs": 3, "seed": 9, "checkpoints": [1, 10, 777, 1500], "pulls": True, "trajectories": True}
    result = simulate(POLICY_, environment, **asked)
    assert same(result, simulate(POLICY_, environment, **asked, compiled=False))
    means = environment.realise(0).means(0, 1500)
    for run in range(3):
        arms, rewards = result.arms[run], result.rewards[run]
        gaps = means.max(axis=1) - means[np.arange(1500), arms]
        assert np.allclose(result.regret[run], gaps.cumsum()[[0, 9, 776, 1499]], atol=1e-9)
        assert np.bincount(arms, minlength=4).tolist() == result.pulls[run].tolist()
        reward_rng = Stream(stream_key(9, run, REWARD))
        expected = [float(reward_rng.at(t).uniform(0) < means[t, arms[t]]) for t in range(1500)]
        assert rewards.tolist() == expected
    assert (result.pulls.sum(axis=1) == 1500).all()
    without = simulate(POLICY_, environment, runs=3, seed=9, checkpoints=[1500])
    assert np.array_equal(without.regret[:, 0], result.regret[:, -1])
    assert without.pulls is without.arms is without.rewards is None


def test_the_simulator_is_the_plain_loop():
    environment = FRESH.realise(stream_key(3, 2, ENVIRONMENT))
    state, draws, reward_rng = POLICY_.init(4), Stream(stream_key(3, 2, POLICY)), Stream(stream_key(3, 2, REWARD))
    regret = 0.0
    for t in range(1500):
        arm = POLICY_.choose(state, t, draws.at(t))
        POLICY_.learn(state, t, arm, environment.pull(t, arm, reward_rng.at(t)))
        regret += environment.best(t) - environment.mean(t, arm)
    assert simulate(POLICY_, FRESH, 1, seed=3, first_run=2, checkpoints=1).regret[0, 0] == regret


@pytest.mark.long
def test_every_run_of_a_fresh_environment_has_its_own_means_and_a_fixed_one_has_not():
    spread = {}
    for name in ("fresh", "5"):
        environment = Abrupt(n_arms=2, horizon=50, phases=1, instance=name, law=Constant())
        result = simulate(DiscountedTS(tau_max=100.0), environment, 40, seed=1, pulls=True, trajectories=True)
        spread[name] = len(np.unique(result.rewards))
    assert spread == {"fresh": 80, "5": 2}


def test_the_reward_changes_in_the_round_in_which_the_means_change():
    environment = phased([[0.0], [1.0]], starts=[0, 5], horizon=10, law=Constant())
    result = simulate(POLICY_, environment, 1, pulls=True, trajectories=True)
    assert result.rewards[0].tolist() == [0.0] * 5 + [1.0] * 5


@pytest.mark.parametrize(
    ("horizon", "wanted", "expected"),
    [
        (1000, 4, [250, 500, 750, 1000]),
        (10, 200, list(range(1, 11))),
        (1, 200, [1]),
        (7, 3, [2, 5, 7]),
        (100, [1, 50, 100], [1, 50, 100]),
        (100, [30.0], [30]),
    ],
)
def test_checkpoints_are_even_and_end_at_the_horizon_or_are_those_given(horizon, wanted, expected):
    assert checkpoint_rounds(horizon, wanted).tolist() == expected


def test_environments_of_one_round_and_of_one_arm_are_played():
    for policy_environment in (from_means([[0.3, 0.6]]), from_means([[0.5]] * 20)):
        result = simulate(POLICY_, policy_environment, 2, seed=1, pulls=True)
        assert result.pulls.sum(axis=1).tolist() == [policy_environment.horizon] * 2
        assert same(result, simulate(POLICY_, policy_environment, 2, seed=1, pulls=True, compiled=False))


def test_progress_is_reported_in_order_and_ends_at_one():
    for compiled in (True, False):
        seen: list[float] = []
        simulate(POLICY_, FRESH, 3, seed=3, progress=seen.append, compiled=compiled, workers=1, lockstep=False)
        assert seen == sorted(seen)
        assert seen[-1] == 1.0


def test_a_progress_bar_writes_nothing_without_a_terminal(capsys):
    simulate(POLICY_, FRESH, 3, seed=3, progress=True)
    assert capsys.readouterr() == ("", "")


# ---- memory


def peak(horizon: int, environment: Any) -> int:
    simulate(POLICY_, environment(100), 40, seed=1)  # everything compiled and loaded
    tracemalloc.start()
    simulate(POLICY_, environment(horizon), 40, seed=1)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return used


@pytest.mark.parametrize(
    "environment", [lambda t: Smooth(horizon=t), lambda t: Abrupt(horizon=t)], ids=["smooth", "abrupt"]
)
def test_memory_does_not_grow_with_the_horizon(environment):
    # NumPy reports its arrays to tracemalloc. A table of means would need 2 MB for each of 40 runs of the longer
    # environment. What may grow is an index of phases, shared by all runs, of 8 bytes for every 256 rounds, and garbage
    # not yet collected.
    assert peak(50_000, environment) - peak(2000, environment) < 1_000_000


# ---- bad input


class NoLearn(NamedTuple):
    def init(self, n_arms):
        return None

    def choose(self, state, t, rng):
        return 0


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: simulate(DiscountedTS, FRESH), "is not a policy"),
        (lambda: simulate("ds-t", FRESH), "no policy named .ds-t.; did you mean ds-ts"),
        (lambda: simulate(object(), FRESH), "is not a policy: it lacks init, choose, learn"),
        (lambda: simulate(NoLearn(), FRESH), "NoLearn has no method learn; a policy needs"),
        (lambda: simulate(POLICY_, POLICY_), "is not an environment: it lacks n_arms, horizon, realise"),
        (lambda: simulate(POLICY_, None), "is not an environment"),
        (lambda: simulate(POLICY_, FRESH, runs=0), "runs needs a whole number"),
        (lambda: simulate(POLICY_, FRESH, runs=2.5), "runs needs a whole number"),
        (lambda: simulate(POLICY_, FRESH, runs="many"), "runs needs a whole number"),
        (lambda: simulate(POLICY_, FRESH, seed=-1), "seed needs a whole number"),
        (lambda: simulate(POLICY_, FRESH, seed=None), "seed needs a whole number"),
        (lambda: simulate(POLICY_, FRESH, first_run=-1), "first_run needs a whole number"),
        (lambda: simulate(POLICY_, FRESH, workers=0), "workers needs a whole number"),
        (lambda: simulate(POLICY_, FRESH, checkpoints=0), "checkpoints needs"),
        (lambda: simulate(POLICY_, FRESH, checkpoints=[]), "checkpoints needs"),
        (lambda: simulate(POLICY_, FRESH, checkpoints=[0, 5]), "checkpoints needs"),
        (lambda: simulate(POLICY_, FRESH, checkpoints=[5, 5]), "checkpoints needs"),
        (lambda: simulate(POLICY_, FRESH, checkpoints=[1501]), "checkpoints needs"),
        (lambda: simulate(POLICY_, FRESH, checkpoints=[1.5]), "checkpoints needs"),
        (lambda: simulate(POLICY_, FRESH, checkpoints=[np.nan]), "checkpoints needs"),
        (lambda: simulate(POLICY_, FRESH, checkpoints="all"), "checkpoints needs"),
        (lambda: simulate(POLICY_, FRESH, checkpoints=[[1, 2]]), "checkpoints needs"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(build, words):
    with pytest.raises((ValueError, TypeError), match=words) as error:
        build()
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 250


# ---- the user's own classes


class OwnState(NamedTuple):
    total: Any
    scores: Any


@checked
class Own(NamedTuple):
    """A user's policy, defined outside the package."""

    pull: float = 0.1

    def init(self, n_arms):
        return OwnState(np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state, t, rng):
        best = 0
        for arm in range(len(state.total)):
            state.scores[arm] = self.pull * state.total[arm] + rng.uniform(arm)
            if state.scores[arm] > state.scores[best]:
                best = arm
        return best

    def learn(self, state, t, arm, reward):
        state.total[arm] = 0.9 * state.total[arm] + reward


class Bent(NamedTuple):
    """Does not compile: a text where a number should be."""

    def init(self, n_arms):
        return OwnState(np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state, t, rng):
        return {"arm": 0, 1: "another kind"}["arm"]

    def learn(self, state, t, arm, reward):
        pass


def stored_files() -> set[str]:
    root = Path(os.environ["DRIFTBANDIT_CACHE"])
    return {path.name for path in root.rglob("*.nb?")}


def test_a_users_own_policy_compiles_and_is_not_stored(monkeypatch, tmp_path):
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))
    result = simulate(Own(), FRESH, 3, seed=1, trajectories=True)
    assert same(result, simulate(Own(), FRESH, 3, seed=1, trajectories=True, compiled=False))
    assert stored_files() == set()


class Lost(NamedTuple):
    """Plays one arm and, from round 100 on, another: no rehearsal gets there."""

    arm: int = -1

    def init(self, n_arms):
        return LostState(np.zeros(n_arms))

    def choose(self, state, t, rng):
        return where(state.pulls[0] >= 100.0, self.arm, 0)

    def learn(self, state, t, arm, reward):
        state.pulls[arm] += 1.0


class LostState(NamedTuple):
    pulls: Any


Lost.lockstep = True


@pytest.mark.long
@pytest.mark.parametrize(
    "how", [{"compiled": False}, {"lockstep": False}, {}], ids=["interpreted", "alone", "lockstep"]
)
@pytest.mark.parametrize("arm", [-1, 3, 10**9])
def test_an_arm_that_does_not_exist_is_refused_before_anything_is_written(arm, how):
    environment = Abrupt(n_arms=3, horizon=200, phases=2)
    with pytest.raises((ValueError, PolicyError), match="from 0 to K - 1"):
        simulate(Lost(arm), environment, runs=8, progress=False, **how)
    assert (
        simulate(Lost(2), environment, runs=8, pulls=True, progress=False, **how).pulls.tolist() == [[100, 0, 100]] * 8
    )


def test_a_simulation_that_was_stopped_compiles_nothing(monkeypatch):
    """As one that waited while another thread compiled."""
    from driftbandit.lab.engine import simulate as engine

    stop = threading.Event()
    stop.set()
    monkeypatch.setattr(engine, "_compiled_kinds", set())
    with pytest.raises(KeyboardInterrupt):
        simulate(POLICY_, FRESH, runs=1, stop=stop)
    assert not engine._compiled_kinds
