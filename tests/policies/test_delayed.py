"""Policies told of their rewards late, against twins that keep a plain list of what is under way."""

import numpy as np
import pytest

from driftbandit.draws import POLICY, REWARD, Stream, stream_key
from driftbandit.environments import Abrupt, PhaseTable
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import BetaTS, DiscountedTS
from driftbandit.policies.delayed import Delayed, earned_in
from driftbandit.policies.drift_ts import DriftTS
from driftbandit.policies.kl_ucb import KLUCB
from driftbandit.policies.sliding_lb_sda import SlidingLBSDA
from driftbandit.primitives import teach
from driftbandit.state import to_lists
from driftbandit.text.parse import parse_policy

WORLD = Abrupt(n_arms=4, horizon=700, phases=4, world="1")


def twin_arms(base, arrives, horizon=700):
    """The obvious way: a list of (round of arrival, arm, reward), looked through in every round."""
    world, reward_rng = to_lists(WORLD.realise(stream_key(3, 0, 0))), Stream(stream_key(3, 0, REWARD))
    stream, state = Stream(stream_key(3, 0, POLICY)), to_lists(base.init(4))
    under_way, heard, arms = [], 0, []
    for t in range(horizon):
        arm = base.choose(state, heard, stream.at(t))
        arms.append(arm)
        under_way.append((arrives(t), arm, world.pull(t, arm, reward_rng.at(t))))
        for item in [item for item in under_way if item[0] == t]:
            teach(base, state, heard, item[1], item[2], stream.at(t))
            heard += 1
            under_way.remove(item)
    return arms


@pytest.mark.parametrize("base", [DiscountedTS(gamma=0.97), BetaTS(), KLUCB(), SlidingLBSDA(window=60)])
@pytest.mark.parametrize(("rounds", "random"), [(0, False), (1, False), (37, False), (24, True), (1, True)])
def test_it_plays_as_a_twin_with_a_list_of_rewards_under_way(base, rounds, random):
    when = {earned_in(t, rounds): t for t in range(700 + 2 * rounds)} if random and rounds else {}
    expected = twin_arms(base, lambda t: when.get(t, -1) if random else t + rounds)
    for compiled in (True, False):
        played = simulate(Delayed(base, rounds, random), WORLD, 1, 3, trajectories=True, compiled=compiled)
        assert played.arms[0].tolist() == expected


@pytest.mark.parametrize("random", [False, True])
def test_lanes_hold_what_single_runs_give(random):
    for base in (DiscountedTS(gamma=0.97), BetaTS()):
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
