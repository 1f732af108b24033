"""Outcomes that are learned late or in another order, against a twin that keeps the list of all decisions."""

import itertools
import math
from collections import deque
from typing import NamedTuple

import numpy as np
import pytest

from driftbandit.bandit import Bandit
from driftbandit.core.draws import POLICY, REWARD, Stream, stream_key
from driftbandit.core.primitives import arm_probability, learn_late_reward, learn_reward
from driftbandit.core.state import to_lists
from driftbandit.core.validity import check_state
from driftbandit.environments import Abrupt, PhaseTable
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import BetaTS, DiscountedTS
from driftbandit.policies.baseline import Oracle
from driftbandit.policies.drift import DriftTS
from driftbandit.policies.exp3 import EXP3S, REXP3
from driftbandit.policies.kl_ucb import KLUCB
from driftbandit.policies.lb_sda import SlidingLBSDA
from driftbandit.policies.wrappers import ORDERS, Delayed, PeriodicRestart
from driftbandit.spec.parse import parse_policy
from naive.delayed import OutcomeList

ENVIRONMENT = Abrupt(n_arms=4, horizon=700, phases=4, instance="1")
LATE = {
    "at once": {"rounds": 0},
    "one round": {"rounds": 1},
    "fixed": {"rounds": 37},
    "random": {"rounds": 24, "random": True},
    "one-sided, fixed": {"rounds": 5, "wait": 31},
    "one-sided, always too late": {"rounds": 40, "wait": 31},
    "one-sided, on arrival": {"rounds": 24, "random": True, "wait": 40},
    "one-sided, after wait": {"rounds": 24, "random": True, "wait": 40, "order": "decision"},
    "batches": {"rounds": 0, "batch": 50, "order": "decision"},
    "batches, shuffled": {"rounds": 0, "batch": 50, "order": "shuffled"},
    "batches, successes first": {"rounds": 0, "batch": 50, "order": "successes-first"},
    "everything": {"rounds": 9, "random": True, "wait": 30, "batch": 7, "order": "successes-first"},
}


def twin_arms(base, outcomes, hear=learn_late_reward):
    """Play with the probability with which `choose` has just drawn the arm, where the state holds it."""
    environment, reward_rng = to_lists(ENVIRONMENT.realise(stream_key(3, 0, 0))), Stream(stream_key(3, 0, REWARD))
    stream, state = Stream(stream_key(3, 0, POLICY)), to_lists(base.init(4))
    learned, arms = 0, []
    for t in range(ENVIRONMENT.horizon):
        rng = stream.at(t)
        arm = base.choose(state, learned, rng)
        arms.append(arm)
        probabilities = getattr(state, "probabilities", None) or getattr(
            getattr(state, "base", None), "probabilities", None
        )
        outcomes.decided(t, arm, environment.pull(t, arm, reward_rng.at(t)), probabilities and probabilities[arm], rng)
        for one in outcomes.due_in(t, rng):
            hear(base, state, learned, one.arm, one.reward, rng, one.chance)
            learned += 1
    return arms


WEIGHING = [EXP3S(0.1, 0.01), REXP3(150, 0.2), PeriodicRestart(EXP3S(0.2, 0.01), 90)]
BASES = [DiscountedTS(gamma=0.97), BetaTS(), KLUCB(), SlidingLBSDA(window=60), *WEIGHING]
COMPILED = [DiscountedTS(gamma=0.97), SlidingLBSDA(window=60), EXP3S(0.1, 0.01)]  # compiling takes seconds


@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("how", LATE)
def test_it_plays_as_a_twin_with_a_list_of_all_decisions(base, how):
    expected = twin_arms(base, OutcomeList(**LATE[how]))
    played = simulate(Delayed(base, **LATE[how]), ENVIRONMENT, 1, 3, trajectories=True, compiled=False)
    assert played.arms[0].tolist() == expected


@pytest.mark.parametrize(
    "base", [COMPILED[0], *(pytest.param(base, marks=pytest.mark.long) for base in COMPILED[1:])], ids=repr
)
def test_compiled_it_plays_as_its_twin(base):
    for late in LATE.values():
        played = simulate(Delayed(base, **late), ENVIRONMENT, 1, 3, trajectories=True)
        assert played.arms[0].tolist() == twin_arms(base, OutcomeList(**late))


class NotesState(NamedTuple):
    notes: list


class Notes(NamedTuple):
    """A policy that writes down what it learns."""

    def init(self, n_arms):
        return NotesState([])

    def choose(self, state, t, rng):
        return 0

    def learn(self, state, t, arm, reward):
        state.notes.append((t, arm, reward))


def learned_by_round(rewards, **late):
    """The rewards learned in each round, if decision t plays arm t."""
    policy = Delayed(Notes(), **late).with_environment(None)
    state, stream = to_lists(policy.init(1)), Stream(1)
    out = []
    for t, reward in enumerate(rewards):
        before = len(state.base.notes)
        policy.learn(state, t, t, reward, stream.at(t))
        out.append([(arm, reward) for _, arm, reward in state.base.notes[before:]])
    assert [t for t, _, _ in state.base.notes] == list(range(len(state.base.notes)))
    return out


def test_what_is_learned_when_as_worked_out_by_hand():
    rewards = [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    zero, one = [(t, 0.0) for t in range(6)], [(t, 1.0) for t in range(6)]
    assert learned_by_round(rewards, rounds=0) == [[zero[0]], [one[1]], [zero[2]], [one[3]], [zero[4]], [zero[5]]]
    assert learned_by_round(rewards, rounds=2) == [[], [], [zero[0]], [one[1]], [zero[2]], [one[3]]]
    # Successes after one round, failures when they are three rounds old.
    on_arrival = [[], [], [one[1]], [zero[0]], [one[3]], [zero[2]]]
    assert learned_by_round(rewards, rounds=1, wait=3) == on_arrival
    after_wait = [[], [], [], [zero[0]], [one[1]], [zero[2]]]
    assert learned_by_round(rewards, rounds=1, wait=3, order="decision") == after_wait
    lost = [[], [], [], [zero[0]], [zero[1]], [zero[2]]]
    assert learned_by_round(rewards, rounds=4, wait=3) == lost
    assert learned_by_round(rewards, rounds=4, wait=3, order="decision") == lost
    first, second = [zero[0], one[1], zero[2]], [one[3], zero[4], zero[5]]
    assert learned_by_round(rewards, rounds=0, batch=3, order="decision") == [[], [], first, [], [], second]
    first, second = [one[1], zero[0], zero[2]], [one[3], zero[4], zero[5]]
    assert learned_by_round(rewards, rounds=0, batch=3, order="successes-first") == [[], [], first, [], [], second]


@pytest.mark.parametrize("how", LATE)
def test_every_outcome_is_learned_once_and_no_later_than_the_longest_delay(how):
    late = LATE[how]
    rewards = [float(t % 7 == 3) for t in range(900)]
    found = learned_by_round(rewards, **late)
    arms = [arm for row in found for arm, _ in row]
    longest = (late.get("wait") or late["rounds"] * (20 if late.get("random") else 1)) + late.get("batch", 0)
    assert len(set(arms)) == len(arms)
    assert set(range(900 - longest - 1)) <= set(arms)
    for t, row in enumerate(found):
        assert all(t - longest <= arm <= t for arm, _ in row)
        assert all(reward in (0.0, rewards[arm]) for arm, reward in row)


def test_shuffled_batches_hold_the_same_outcomes_in_every_order():
    """Each of 3 outcomes stands first in a third of 3,000 batches, within 5 standard errors (26): a false alarm in
    300,000."""
    found = learned_by_round([1.0, 0.0, 1.0] * 3_000, rounds=0, batch=3, order="shuffled")
    batches = [row for row in found if row]
    assert all(sorted(row) == [(t, r) for t, r in zip(range(3 * b, 3 * b + 3), (1.0, 0.0, 1.0), strict=True)]
               for b, row in enumerate(batches))  # fmt: skip
    first = np.bincount([row[0][0] % 3 for row in batches], minlength=3)
    assert (abs(first - 1_000) < 5 * 26).all()


def test_random_delays_are_exponential_with_the_mean_given():
    """20,000 delays of mean 50: mean, and shares within 1, 2 and 3 means, within 5 standard errors."""
    found = learned_by_round([1.0] * 21_000, rounds=50, random=True)
    late = np.array([t - arm for t, row in enumerate(found) for arm, _ in row if arm < 20_000])
    assert len(late) == 20_000
    assert abs(late.mean() - 49.5) < 5 * 50 / math.sqrt(20_000)  # rounded down
    for means in (1, 2, 3):
        share = 1 - math.exp(-means)
        assert abs((late < 50 * means).mean() - share) < 5 * math.sqrt(share * (1 - share) / 20_000)


@pytest.mark.long
def test_many_runs_are_played_as_one_is():
    policy, environment = Delayed(base=DriftTS(), rounds=20), Abrupt(3, 400, 2)
    many = simulate(policy, environment, runs=16, seed=0, progress=False).regret
    plain = simulate(policy, environment, runs=2, seed=0, progress=False, compiled=False).regret
    assert np.array_equal(many[:2], plain)


RATES = PhaseTable(means=((0.10, 0.07, 0.16, 0.08),), starts=(0,), horizon=12_000)


def best_share(policy, environment=RATES, best=2):
    return simulate(policy, environment, 6, 0, pulls=True, progress=False).pulls[:, best].mean() / environment.horizon


@pytest.mark.long
def test_successes_learned_before_failures_mislead_the_default_policy_and_learning_after_wait_does_not():
    """Chance is 0.25. Bounds lie far from what 6 runs give: 0.36 and 0.93; 0.26, 0.93 and 0.93."""
    late = {"rounds": 40, "random": True, "wait": 200}
    assert best_share(Delayed(DriftTS(), **late)) < 0.6
    assert best_share(Delayed(DriftTS(), **late, order="decision")) > 0.85
    shares = [best_share(Delayed(DriftTS(), 0, batch=500, order=order)) for order in ORDERS[1:]]
    assert shares[0] > 0.85
    assert shares[1] > 0.85
    assert shares[2] < 0.6


def test_the_order_within_a_batch_means_nothing_to_a_policy_that_counts():
    policies = [Delayed(BetaTS(), 0, batch=50, order=order) for order in ORDERS[1:]]
    found = [simulate(policy, ENVIRONMENT, 2, 1, compiled=False).regret for policy in policies]
    assert all((one == other).all() for one, other in itertools.pairwise(found))


@pytest.mark.parametrize("base", WEIGHING)
def test_the_probability_of_back_then_makes_a_difference(base):
    def present(policy, state, t, arm, reward, rng, chance):
        learn_reward(policy, state, t, arm, reward, rng)

    late = {"rounds": 37}
    assert twin_arms(base, OutcomeList(**late)) != twin_arms(base, OutcomeList(**late), present)


@pytest.mark.parametrize("base", WEIGHING)
def test_a_reward_at_once_gives_the_same_bits_with_its_probability_and_without(base):
    rng, rewards = Stream(stream_key(5, 0, POLICY)), np.random.default_rng(5)
    with_it, without = to_lists(base.init(4)), to_lists(base.init(4))
    for t in range(400):
        arm = base.choose(without, t, rng.at(t))
        chance, reward = arm_probability(base, with_it, t, arm, rng.at(t)), float(rewards.random())
        learn_reward(base, without, t, arm, reward, rng.at(t))
        learn_late_reward(base, with_it, t, arm, reward, rng.at(t), chance)
        base.choose(with_it, t + 1, rng.at(t + 1))  # scratch
        base.choose(without, t + 1, rng.at(t + 1))
        assert repr(with_it) == repr(without), t


@pytest.mark.parametrize("base", WEIGHING)
@pytest.mark.parametrize("chance", [1e-300, 0.0, 1e-3, 0.5, 1.0])
def test_no_probability_from_elsewhere_leads_out_of_bounds(base, chance):
    """A snapshot, another policy's journal or a caller may bring any: the state stays one that can be played."""
    state, stream = base.init(4), Stream(stream_key(6, 0, POLICY))
    for t in range(60):
        learn_late_reward(base, state, t, t % 2, 1.0, stream.at(t), chance)
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
            under_way.append((arm, 1.0 - 0.5 * arm, state.probabilities[arm]))
            if len(under_way) > rounds:
                arm, reward, chance = under_way.popleft()
                if arm == 0:
                    sums[0] += reward / chance
                    sums[1] += reward / state.probabilities[arm]
                policy.learn_late(state, t, arm, reward, chance)
        then.append(sums[0] - 350)
        now.append(sums[1] - 350)
    error = np.std(then) / np.sqrt(runs)
    assert abs(np.mean(then)) < 4 * error
    assert np.mean(now) < -8 * error


def test_no_delay_is_the_policy_itself():
    plain = simulate(DiscountedTS(gamma=0.97), ENVIRONMENT, 2, 1, compiled=False).regret
    for late in ({}, {"random": True}, {"batch": 1, "order": "shuffled"}):
        policy = Delayed(DiscountedTS(gamma=0.97), 0, **late)
        assert (simulate(policy, ENVIRONMENT, 2, 1, compiled=False).regret == plain).all()


def test_the_wrapped_policy_may_look_into_the_environment():
    base = Oracle()
    plain, late = (simulate(policy, ENVIRONMENT, 2, 1, compiled=False).regret for policy in (base, Delayed(base, 0)))
    assert (plain == late).all()


@pytest.mark.long
def test_with_rewards_a_phase_late_the_short_memory_turns_from_best_to_worst():
    """Two arms change places every 500 rounds: informed a phase late, a short memory plays what was best and is worst
    now. By more than 5 standard errors each way, a chance failure in three million."""
    environment = PhaseTable(means=((0.8, 0.3), (0.3, 0.8)) * 4, starts=tuple(range(0, 4000, 500)), horizon=4000)

    def lead(rounds):
        short, long = (
            simulate(Delayed(DiscountedTS(gamma=gamma), rounds), environment, 32, 5).regret[:, -1]
            for gamma in (0.97, 1.0)
        )
        return (long - short).mean() / ((long - short).std(ddof=1) / np.sqrt(32))

    assert lead(0) > 5
    assert lead(500) < -5


def test_it_is_written_as_it_is_made():
    policy = Delayed(DiscountedTS(gamma=0.9), rounds=100, random=True, wait=500, order="decision")
    assert parse_policy(repr(policy)) == policy
    assert parse_policy("delayed(ds-ts, rounds=1000)") == Delayed(DiscountedTS(), 1000)
    assert parse_policy('delayed(ts, batch=500, order="successes-first")').order == "successes-first"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"base": "ds-ts"}, "needs base to be a policy"),
        ({"rounds": -1}, "needs rounds in"),
        ({"order": "sorted"}, "needs order to be one of arrival, decision, shuffled, successes-first; got 'sorted'"),
        ({"order": "decision"}, "without wait and batch needs order='arrival'; got 'decision'"),
        ({"wait": 5, "order": "shuffled"}, "with wait and no batch needs order='arrival' or 'decision'"),
        ({"batch": 5}, "with batch needs order='decision' or 'shuffled' or 'successes-first'; got 'arrival'"),
        ({"rounds": 1_000_000, "random": True}, "at most 10,000,000 outcomes waiting; these settings need 20,000,001"),
        ({"wait": 9_000_000, "batch": 9_000_000, "order": "decision"}, "at most 10,000,000 outcomes waiting"),
    ],
)
def test_mistakes_are_explained_in_one_sentence(given, why):
    with pytest.raises(ValueError, match=why):
        Delayed(**{"base": DiscountedTS(), **given})


def test_it_plays_in_simulations_only(tmp_path):
    with pytest.raises(ValueError, match="only plays in simulations"):
        Bandit(2, Delayed(BetaTS()))
    with pytest.raises(ValueError, match="only plays in simulations"):
        Bandit.open(tmp_path / "j.db", "b", Delayed(BetaTS()), arms=2)
