"""META against its twin, its invariants (section 2.18 of the specification) and numbers one can check by hand."""

from itertools import pairwise

import pytest

from driftbandit.draws import POLICY, Stream, stream_key
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.meta import Meta
from driftbandit.primitives import teach
from driftbandit.state import to_lists
from harness import SITUATIONS, abrupt_means, assert_same_as_twin, play, rewards
from naive import TWINS

POLICIES = [
    Meta(horizon=600, c0=0.1),
    Meta(horizon=600, c0=0.3, replays=2.0),
    Meta(horizon=500, c0=0.2, replays=0.0),
    Meta(horizon=128, c0=0.4),
    Meta(horizon=600, c0=1.0),
]


def active_sets(state):
    """The active arms of every procedure on the stack, from the root up."""
    return [[i for i, place in enumerate(state.active_from) if place <= p] for p in range(state.top[0] + 1)]


@pytest.mark.parametrize(("n_arms", "world", "kind"), SITUATIONS)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_meta_chooses_the_arms_of_its_twin(policy, n_arms, world, kind):
    assert_same_as_twin(policy, n_arms, policy.horizon, n_arms, world, kind)


@pytest.mark.parametrize("policy", [Meta(horizon=2500, c0=0.4), Meta(horizon=2500, c0=0.25)], ids=str)
def test_meta_chooses_the_arms_of_its_twin_for_thousands_of_rounds(policy):
    assert_same_as_twin(policy, 5, 2500, 1)


def test_a_horizon_shorter_than_the_number_of_arms_is_played_like_the_twin():
    assert_same_as_twin(Meta(horizon=11, c0=0.1), 30, 11, 3)
    assert_same_as_twin(Meta(horizon=1), 2, 1, 3)


def test_compiled_and_interpreted_meta_choose_the_same_arms():
    world = Abrupt(n_arms=4, horizon=1500, phases=3, world="1")
    fast = simulate(Meta(horizon=1500, c0=0.3), world, runs=2, trajectories=True)
    slow = simulate(Meta(horizon=1500, c0=0.3), world, runs=2, trajectories=True, compiled=False)
    assert (fast.arms == slow.arms).all()


@pytest.mark.parametrize("policy", [Meta(horizon=800, c0=0.15), Meta(horizon=800, c0=0.3, replays=2.0)], ids=str)
def test_episodes_stack_and_active_sets_are_those_of_the_twin(policy):
    reward = rewards(abrupt_means(5, 800, 4), "binary", 4)
    twin, state = TWINS["Meta"](5, **policy._asdict()), to_lists(policy.init(5))
    mine, its = Stream(stream_key(4, 0, POLICY)), Stream(stream_key(4, 0, POLICY))
    deepest = 0
    for t in range(800):
        arm = policy.choose(state, t, mine.at(t))
        assert arm == twin.choose(t, its.at(t))
        teach(policy, state, t, arm, reward(t, arm), mine.at(t))
        twin.learn(t, arm, reward(t, arm))
        assert (state.alarms, state.start) == ([twin.episode - 1], [twin.start])
        kept = {(p.start, p.end): p.arms for p in twin.stack[1:]}
        sets = active_sets(state)
        assert sets[0] == twin.stack[0].arms
        for place in range(1, state.top[0] + 1):
            assert sets[place] == kept[state.begun[place], state.ends[place]]
        deepest = max(deepest, state.top[0])
    assert state.alarms[0] > 0
    assert deepest > 2


def test_the_master_set_is_never_empty_and_part_of_every_active_set():
    policy, reward = Meta(horizon=1000, c0=0.2), rewards(abrupt_means(5, 1000, 2), "binary", 2)
    state, stream = to_lists(policy.init(5)), Stream(stream_key(2, 0, POLICY))
    for t in range(1000):
        arm = policy.choose(state, t, stream.at(t))
        assert sum(state.chances) == pytest.approx(1.0)
        assert state.chances[arm] > 0.0
        teach(policy, state, t, arm, reward(t, arm), stream.at(t))
        sets = active_sets(state)
        assert sets[0]
        for below, above in pairwise(sets):
            assert set(below) <= set(above)
        assert all(state.ends[p] > state.ends[p + 1] for p in range(state.top[0]))


def test_the_worse_of_two_arms_is_evicted_when_sixteen_rounds_show_it():
    policy = Meta(horizon=100, c0=0.5, replays=0.0)
    state = to_lists(policy.init(2))
    for t in range(16):
        assert active_sets(state) == [[0, 1]]
        teach(policy, state, t, t % 2, float(t % 2), Stream(1).at(t))
    # The last 16 rounds pay 2 * 8 = 16 > 0.5 ln 100 sqrt(2 * 15) = 12.6; the last 8 pay 8 < 0.5 ln 100 sqrt(14) = 8.6.
    assert active_sets(state) == [[1]]
    for t in range(16, 60):
        teach(policy, state, t, 0, 1.0, Stream(1).at(t))
        if state.alarms == [1]:
            break
    assert (state.alarms, state.start, state.active_from) == ([1], [t + 1], [0, 0])


def test_without_replays_an_evicted_arm_is_not_played_again_within_an_episode():
    policy = Meta(horizon=400, c0=0.5, replays=0.0)
    arms = play(policy, 2, 400, lambda t, arm: float(arm), 1)
    assert 0 in arms[:60]
    assert 0 not in arms[60:]


def test_windows_hold_the_sums_of_their_rounds():
    policy, n_arms = Meta(horizon=256, c0=50.0), 3
    state, stream, entries = to_lists(policy.init(n_arms)), Stream(7), []
    reward = rewards(abrupt_means(n_arms, 256, 1), "real", 1)
    for t in range(256):
        arm = policy.choose(state, t, stream.at(t))
        teach(policy, state, t, arm, reward(t, arm), stream.at(t))
        entries.append((arm, n_arms * reward(t, arm)))  # nobody is ever evicted
        for level in range(8):
            if 2 ** (level + 1) <= t + 1:
                last = entries[-(2 ** (level + 1)) :]
                for i in range(n_arms):
                    exact = sum(x for a, x in last if a == i)
                    assert state.gains[level * n_arms + i] == pytest.approx(exact, abs=1e-9)


def test_rounds_past_the_horizon_are_played_within_the_same_memory():
    arms = play(Meta(horizon=100, c0=0.3), 3, 500, lambda t, arm: float(arm == 1), 1)
    assert set(arms) <= {0, 1, 2}


def test_ten_million_rounds_need_less_than_ninety_megabytes():
    assert sum(field.nbytes for field in Meta(horizon=10**7).init(10)) < 90e6


def test_more_arms_than_two_bytes_can_name_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"at most 32767 arms; got 40000\."):
        Meta(horizon=10).init(40_000)


def test_asking_twice_gives_the_same_arm():
    policy = Meta(horizon=100, c0=0.3)
    state = to_lists(policy.init(4))
    teach(policy, state, 0, policy.choose(state, 0, Stream(5).at(0)), 1.0, Stream(1).at(0))
    assert len({policy.choose(state, 1, Stream(5).at(1)) for _ in range(3)}) == 1
