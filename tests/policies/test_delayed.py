"""Policies told of their rewards late, against twins that keep a plain list of what is under way."""

import math
from collections import deque

import numpy as np
import pytest

from driftbandit.draws import POLICY, REWARD, Stream, stream_key
from driftbandit.environments import Abrupt, PhaseTable
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import BetaTS, DiscountedTS
from driftbandit.policies.delayed import Delayed, earned_in
from driftbandit.policies.drift_ts import DriftTS
from driftbandit.policies.exp3 import EXP3S, REXP3
from driftbandit.policies.kl_ucb import KLUCB
from driftbandit.policies.meta import Meta
from driftbandit.policies.restart import PeriodicRestart
from driftbandit.policies.sliding_lb_sda import SlidingLBSDA
from driftbandit.primitives import chance_of, teach, teach_late
from driftbandit.state import to_lists
from driftbandit.text.parse import parse_policy
from driftbandit.validity import check_state

WORLD = Abrupt(n_arms=4, horizon=700, phases=4, world="1")


def twin_arms(base, arrives, hear=teach_late, horizon=700):
    """The obvious way: a list of (round of arrival, arm, reward, probability with which `choose` has just drawn the
    arm), looked through in every round."""
    world, reward_rng = to_lists(WORLD.realise(stream_key(3, 0, 0))), Stream(stream_key(3, 0, REWARD))
    stream, state = Stream(stream_key(3, 0, POLICY)), to_lists(base.init(4))
    under_way, heard, arms = [], 0, []
    for t in range(horizon):
        arm = base.choose(state, heard, stream.at(t))
        arms.append(arm)
        chances = getattr(state, "chances", None) or getattr(getattr(state, "base", None), "chances", None)
        under_way.append((arrives(t), arm, world.pull(t, arm, reward_rng.at(t)), chances and chances[arm]))
        for item in [item for item in under_way if item[0] == t]:
            hear(base, state, heard, item[1], item[2], stream.at(t), item[3])
            heard += 1
            under_way.remove(item)
    return arms


WEIGHING = [EXP3S(0.1, 0.01), REXP3(150, 0.2), Meta(700, 0.02, 1.0), PeriodicRestart(EXP3S(0.2, 0.01), 90)]


@pytest.mark.parametrize("base", [DiscountedTS(gamma=0.97), BetaTS(), KLUCB(), SlidingLBSDA(window=60), *WEIGHING])
@pytest.mark.parametrize(("rounds", "random"), [(0, False), (1, False), (37, False), (24, True), (1, True)])
def test_it_plays_as_a_twin_with_a_list_of_rewards_under_way(base, rounds, random):
    when = {earned_in(t, rounds): t for t in range(700 + 2 * rounds)} if random and rounds else {}
    expected = twin_arms(base, lambda t: when.get(t, -1) if random else t + rounds)
    for compiled in (True, False):
        played = simulate(Delayed(base, rounds, random), WORLD, 1, 3, trajectories=True, compiled=compiled)
        assert played.arms[0].tolist() == expected


@pytest.mark.parametrize("random", [False, True])
def test_lanes_hold_what_single_runs_give(random):
    for base in (DiscountedTS(gamma=0.97), BetaTS(), EXP3S(0.1, 0.01)):
        policy = Delayed(base, 30, random)
        assert policy.lockstep
        together, alone = (simulate(policy, WORLD, 8, 3, lockstep=flag).regret for flag in (True, False))
        assert (together == alone).all()
    assert not Delayed(KLUCB(), 30, random).lockstep


@pytest.mark.parametrize("rounds", [1, 2, 7, 12, 100])
def test_every_reward_arrives_once_and_on_average_as_late_as_said(rounds):
    earned = [earned_in(t, rounds) for t in range(rounds, 60 * rounds)]
    assert sorted(earned) == list(range(59 * rounds))
    late = np.arange(rounds, 60 * rounds) - np.array(earned)
    assert late.mean() == rounds
    assert late.min() >= 1
    assert late.max() <= 2 * rounds - 1


def test_a_policy_whose_lanes_learn_apart_plays_many_runs_as_it_plays_one():
    policy, world = Delayed(base=DriftTS(), rounds=20), Abrupt(3, 400, 2)
    many = simulate(policy, world, runs=16, seed=0, progress=False).regret
    plain = simulate(policy, world, runs=2, seed=0, progress=False, compiled=False).regret
    assert np.array_equal(many[:2], plain)
    assert not policy.lockstep


@pytest.mark.parametrize("base", WEIGHING)
def test_the_probability_of_back_then_makes_a_difference(base):
    def present(policy, state, t, arm, reward, rng, chance):
        teach(policy, state, t, arm, reward, rng)

    assert twin_arms(base, lambda t: t + 37) != twin_arms(base, lambda t: t + 37, present)


@pytest.mark.parametrize("base", WEIGHING)
def test_a_reward_at_once_gives_the_same_bits_with_its_probability_and_without(base):
    rng, rewards = Stream(stream_key(5, 0, POLICY)), np.random.default_rng(5)
    with_it, without = to_lists(base.init(4)), to_lists(base.init(4))
    for t in range(400):
        arm = base.choose(without, t, rng.at(t))
        chance, reward = chance_of(base, with_it, t, arm, rng.at(t)), float(rewards.random())
        teach(base, without, t, arm, reward, rng.at(t))
        teach_late(base, with_it, t, arm, reward, rng.at(t), chance)
        base.choose(with_it, t + 1, rng.at(t + 1))  # scratch
        base.choose(without, t + 1, rng.at(t + 1))
        assert repr(with_it) == repr(without), t


@pytest.mark.parametrize("base", WEIGHING)
@pytest.mark.parametrize("chance", [1e-300, 0.0, 1e-3, 0.5, 1.0])
def test_no_probability_from_elsewhere_leads_out_of_bounds(base, chance):
    """A snapshot, another policy's journal or a caller may bring any: the state stays one that can be played."""
    state, stream = base.init(4), Stream(stream_key(6, 0, POLICY))
    for t in range(60):
        teach_late(base, state, t, t % 2, 1.0, stream.at(t), chance)
    check_state(base, state, 60, base.init(4))
    assert all(np.isfinite(field).all() for field in (state.base if hasattr(state, "base") else state))


def test_weights_move_by_the_probability_given_as_computed_by_hand():
    policy = EXP3S(explore=0.5, share=0.1)
    state = to_lists(policy.init(2))
    policy.learn_late(state, 0, 0, 1.0, 0.25)
    # The gain is 0.5 / (2 * 0.25) = 1, so 0.5 e and 0.5, each plus e * 0.1 / 2, divided by their sum.
    whole = 0.5 * math.e + 0.5 + math.e * 0.1
    assert state.weights == pytest.approx([(0.5 * math.e + math.e * 0.05) / whole, (0.5 + math.e * 0.05) / whole])


def test_late_rewards_say_without_bias_what_an_arm_pays():
    """EXP3.S plays two arms that pay 1 and 0.5 always; its estimate of an arm's sum of rewards is the sum of reward
    over probability. Told 50 rounds late, with the probability of back then that sum is right on average (within 4
    standard errors, a false alarm in 16,000); with the present one it is not, by far more."""
    policy, rounds, runs = EXP3S(explore=0.1, share=1e-4), 50, 200
    then, now = [], []
    for run in range(runs):
        rng, state = Stream(stream_key(run, 0, POLICY)), to_lists(policy.init(2))
        under_way, sums = deque(), [0.0, 0.0]
        for t in range(400):
            arm = policy.choose(state, t, rng.at(t))
            under_way.append((arm, 1.0 - 0.5 * arm, state.chances[arm]))
            if len(under_way) > rounds:
                arm, reward, chance = under_way.popleft()
                if arm == 0:
                    sums[0] += reward / chance
                    sums[1] += reward / state.chances[arm]
                policy.learn_late(state, t, arm, reward, chance)
        then.append(sums[0] - 350)
        now.append(sums[1] - 350)
    error = np.std(then) / np.sqrt(runs)
    assert abs(np.mean(then)) < 4 * error
    assert np.mean(now) < -8 * error


def test_no_delay_is_the_policy_itself():
    plain = simulate(DiscountedTS(gamma=0.97), WORLD, 4, 1).regret
    assert (simulate(Delayed(DiscountedTS(gamma=0.97), 0), WORLD, 4, 1).regret == plain).all()
    assert (simulate(Delayed(DiscountedTS(gamma=0.97), 0, True), WORLD, 4, 1).regret == plain).all()


def test_with_rewards_a_phase_late_the_short_memory_turns_from_best_to_worst():
    """Two arms change places every 500 rounds: told a phase late, a short memory plays what was best and is worst now.
    By more than 5 standard errors each way, a chance failure in three million."""
    world = PhaseTable(means=((0.8, 0.3), (0.3, 0.8)) * 4, starts=tuple(range(0, 4000, 500)), horizon=4000)

    def lead(rounds):
        short, long = (
            simulate(Delayed(DiscountedTS(gamma=gamma), rounds), world, 32, 5).regret[:, -1] for gamma in (0.97, 1.0)
        )
        return (long - short).mean() / ((long - short).std(ddof=1) / np.sqrt(32))

    assert lead(0) > 5
    assert lead(500) < -5


def test_it_is_written_as_it_is_made():
    policy = Delayed(DiscountedTS(gamma=0.9), rounds=100, random=True)
    assert parse_policy(repr(policy)) == policy
    assert parse_policy("delayed(ds-ts, rounds=1000)") == Delayed(DiscountedTS(), 1000)


def test_mistakes_are_explained_in_one_sentence():
    with pytest.raises(ValueError, match="Delayed needs base to be a policy"):
        Delayed("ds-ts", 3)
    with pytest.raises(ValueError, match="Delayed needs rounds in"):
        Delayed(DiscountedTS(), -1)
