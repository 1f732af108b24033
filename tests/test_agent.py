"""The live agent: named arms that come and go, the clock, rewards, and refusals that change nothing."""

import math

import numpy as np
import pytest

from agent_policies import ALONE, POLICIES, Coins, Lottery, Stubborn, memory, played
from driftbandit import Agent, DiscountedTS
from driftbandit.environments import Abrupt, from_means
from driftbandit.lab.engine.simulate import simulate

# ---- arms


def test_arms_may_be_any_hashable_names_or_a_number():
    names = ["red", 3, ("a", 1), None, 2.5, "x" * 1000]
    agent = Agent(DiscountedTS(), arms=names, seed=0)
    assert agent.arms == names
    assert set(played(agent, 200)) <= set(names)
    assert Agent(DiscountedTS(), arms=3).arms == [0, 1, 2]
    assert Agent(DiscountedTS(), arms=np.int64(2)).arms == [0, 1]
    assert Agent(DiscountedTS(), arms=(x for x in "ab")).arms == ["a", "b"]


def test_one_arm_is_enough_and_always_chosen():
    agent = Agent(DiscountedTS(), arms=["only"], seed=0)
    assert played(agent, 5) == ["only"] * 5
    assert agent.probabilities() == {"only": 1.0}


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_only_available_arms_are_chosen(policy):
    agent, seen = Agent(policy, arms=list("abcd"), seed=1), set()
    for n in range(300):
        allowed = [["b"], ["a", "d"], list("abcd"), ["d", "b", "b"]][n % 4]
        arm = agent.choose(available=allowed)
        assert arm in allowed
        agent.learn(arm, 0.5)
        seen.add(arm)
    assert seen >= {"a", "b", "d"}


def test_among_available_arms_the_largest_sample_wins():
    everything, some = (Agent(DiscountedTS(), arms=4, seed=5) for _ in range(2))
    for _ in range(200):
        arm, restricted = everything.choose(), some.choose(available=[1, 2, 3])
        if arm in (1, 2, 3):
            assert restricted == arm
        for agent in (everything, some):
            agent.learn(restricted, 1.0)


def test_drawn_arms_are_renormalised_among_the_available():
    agent = Agent(Lottery(), arms=3, seed=2)
    for arm, wins in ((0, 5), (1, 2)):
        for _ in range(wins):
            agent.learn(arm, 1.0)
    n = 6000  # chances are 6, 3 and 1 of 10; without arm 0 they are 3/4 and 1/4
    share = sum(agent.choose(available=[1, 2]) == 1 for _ in range(n)) / n
    assert abs(share - 0.75) < 4.9 * math.sqrt(0.75 * 0.25 / n)  # false alarm: one in a million


def test_a_policy_that_insists_on_an_arm_that_is_not_available_is_overruled_evenly():
    agent = Agent(Stubborn(), arms=3, seed=3, **ALONE)
    assert agent.choose() == 0
    n = 900
    ones = sum(agent.choose(available=[1, 2]) == 1 for _ in range(n))
    assert abs(ones - n / 2) < 4.9 * math.sqrt(n / 4)  # false alarm: one in a million


def test_a_removed_arm_is_never_chosen_and_knows_no_rewards():
    agent = Agent(DiscountedTS(), arms=["a", "b", "c"], seed=4, late="refuse")
    played(agent, 30)
    agent.remove_arm("b")
    assert agent.arms == ["a", "c"]
    assert "b" not in played(agent, 300)
    for act in (lambda: agent.learn("b", 1.0), lambda: agent.choose(available=["b"]), lambda: agent.remove_arm("b")):
        before = memory(agent)
        with pytest.raises(ValueError, match=r"^Arm 'b' was removed; the arms are \['a', 'c'\]\.$"):
            act()
        assert memory(agent) == before


def test_the_last_arm_cannot_be_removed():
    agent = Agent(DiscountedTS(), arms=["a", "b"], seed=4)
    agent.remove_arm("a")
    with pytest.raises(ValueError, match="'b' is the last one"):
        agent.remove_arm("b")
    assert agent.choose() == "b"


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_an_added_arm_starts_unknown_and_leaves_the_others_as_they_were(policy):
    agent = Agent(policy, arms=["a", "b"], seed=6)
    played(agent, 50)
    before = agent.state
    agent.add_arm("new")
    after, fresh = agent.state, policy.init(3)
    for name in before._fields:
        old, new = getattr(before, name), getattr(after, name)
        assert new[: len(old)].tolist() == old.tolist()
        assert new[len(old) :].tolist() == getattr(fresh, name)[len(old) :].tolist()
    assert agent.arms == ["a", "b", "new"]
    if not isinstance(policy, Coins):  # whose early winner keeps winning
        assert "new" in played(agent, 400)


# ---- the clock and the stream


def test_the_same_seed_plays_the_same_and_another_does_not():
    one, two, other = (played(Agent(DiscountedTS(), arms=5, seed=seed), 60) for seed in (1, 1, 2))
    assert one == two
    assert one != other
    free = {tuple(played(Agent(DiscountedTS(), arms=5), 30)) for _ in range(5)}
    assert len(free) > 1


def test_asking_again_changes_the_draw_only_and_late_rewards_are_taken():
    agent = Agent(DiscountedTS(gamma=0.5), arms=2, seed=0)
    state = agent.state
    answers = [agent.choose() for _ in range(50)]
    assert set(answers) == {0, 1}
    assert agent.state.pulls.tolist() == state.pulls.tolist()
    assert agent.rewards_learnt == 0
    for arm in (0, 1, 1):
        agent.learn(arm, 1.0)
    assert agent.state.pulls.tolist() == [0.25, 1.5]


def test_evidence_halves_each_round_when_gamma_is_one_half():
    agent = Agent(DiscountedTS(gamma=0.5), arms=2, seed=0)
    agent.learn(0, reward=1.0)
    agent.learn(1, reward=1.0)
    assert agent.state.pulls.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("policy", [DiscountedTS(gamma=0.95), DiscountedTS(gamma=0.9, forget_below=1e-8)], ids=repr)
def test_an_agent_fed_the_simulators_rewards_chooses_the_simulators_arms(policy):
    world = Abrupt(n_arms=4, horizon=1500, phases=3, world="1")
    result = simulate(policy, world, runs=1, seed=11, pulls=True, trajectories=True)
    agent = Agent(policy, arms=4, seed=11, **ALONE)
    for arm, reward in zip(result.arms[0], result.rewards[0], strict=True):
        assert agent.choose() == arm
        agent.learn(int(arm), reward)


# ---- rewards


@pytest.mark.parametrize(
    "reward",
    [math.nan, math.inf, -math.inf, "1", b"1", None, [1.0], 1j, 1.5, -0.1, 10**400, object(), np.array([1.0]), np.nan],
    ids=lambda value: repr(value)[:20],
)
def test_a_bad_reward_is_refused_in_one_sentence_and_changes_nothing(reward):
    agent = Agent(DiscountedTS(), arms=["a", "b"], seed=1)
    played(agent, 10)
    before = memory(agent)
    with pytest.raises(ValueError, match=r"[Rr]eward") as error:
        agent.learn("a", reward)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250
    assert memory(agent) == before


@pytest.mark.parametrize("arm", ["z", 7, None, ("a",), [1], {"a": 1}], ids=repr)
def test_an_unknown_arm_is_refused_in_one_sentence_and_changes_nothing(arm):
    agent = Agent(DiscountedTS(), arms=["a", "b"], seed=1)
    before = memory(agent)
    for act in (lambda: agent.learn(arm, 1.0), lambda: agent.choose(available=[arm]), lambda: agent.remove_arm(arm)):
        with pytest.raises(ValueError, match=r" is unknown; the arms are \['a', 'b'\]\.$"):
            act()
        assert memory(agent) == before


@pytest.mark.parametrize("available", [[], 5, "a", 3.5])
def test_bad_available_arms_are_refused_and_change_nothing(available):
    agent = Agent(DiscountedTS(), arms=["a", "b"], seed=1)
    before = memory(agent)
    with pytest.raises(ValueError, match=r"^choose\(available=...\) needs"):
        agent.choose(available=available)
    assert memory(agent) == before


def test_rewards_of_any_kind_of_number_are_taken():
    agent = Agent(DiscountedTS(gamma=0.5), arms=2, seed=1)
    for reward in (True, 1, 1.0, np.float32(1), np.int64(1), np.bool_(True)):
        agent.learn(0, reward)
    assert agent.state.mean.tolist() == [1.0, 0.0]


def test_the_reward_range_is_mapped_to_zero_one_and_enforced_as_asked():
    agent = Agent(DiscountedTS(gamma=1.0), arms=1, reward_range=(-10, 30))
    agent.learn(0, 0.0)
    assert agent.state.mean.tolist() == [0.25]
    with pytest.raises(ValueError, match=r"^Reward 31 lies outside reward_range=\(-10, 30\); nothing was learnt\. "):
        agent.learn(0, 31)
    clip = Agent(DiscountedTS(gamma=1.0), arms=1, reward_range=(-10, 30), outside="clip")
    clip.learn(0, 31)
    clip.learn(0, -99)
    assert (clip.state.mean.tolist(), clip.clipped) == ([0.5], 2)
    allow = Agent(DiscountedTS(gamma=1.0), arms=1, reward_range=(0, 2), outside="allow")
    allow.learn(0, 5.0)
    assert (allow.state.mean.tolist(), allow.clipped) == ([2.5], 0)
    for agent in (clip, allow):
        with pytest.raises(ValueError, match="finite"):
            agent.learn(0, math.inf)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Agent(DiscountedTS(), arms=0),
        lambda: Agent(DiscountedTS(), arms=-2),
        lambda: Agent(DiscountedTS(), arms=[]),
        lambda: Agent(DiscountedTS(), arms=["a", "b", "a"]),
        lambda: Agent(DiscountedTS(), arms=[1, True]),
        lambda: Agent(DiscountedTS(), arms=[[1], [2]]),
        lambda: Agent(DiscountedTS(), arms="abc"),
        lambda: Agent(DiscountedTS(), arms=2.5),
        lambda: Agent(DiscountedTS(), arms=True),
        lambda: Agent(DiscountedTS(), arms=None),
        lambda: Agent(DiscountedTS(), arms=2, seed=-1),
        lambda: Agent(DiscountedTS(), arms=2, seed=1.5),
        lambda: Agent(DiscountedTS(), arms=2, seed="1"),
        lambda: Agent(DiscountedTS(), arms=2, reward_range=(1, 0)),
        lambda: Agent(DiscountedTS(), arms=2, reward_range=(0, math.nan)),
        lambda: Agent(DiscountedTS(), arms=2, reward_range=(0, math.inf)),
        lambda: Agent(DiscountedTS(), arms=2, reward_range=3),
        lambda: Agent(DiscountedTS(), arms=2, reward_range=("a", "b")),
        lambda: Agent(DiscountedTS(), arms=2, reward_range="01"),
        lambda: Agent(DiscountedTS(), arms=2, outside="ignore"),
        lambda: Agent(DiscountedTS, arms=2),
        lambda: Agent("ds-ts", arms=2),
        lambda: Agent(DiscountedTS(), arms=["a"]).add_arm("a"),
        lambda: Agent(DiscountedTS(), arms=["a"]).add_arm([]),
    ],
)
def test_a_bad_agent_is_refused_in_one_sentence(build):
    with pytest.raises((ValueError, TypeError), match=r"\.( |$)") as error:
        build()
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 200


def test_the_simulator_can_play_the_agents_own_world_too():
    # The smallest possible end-to-end check: with a clear best arm the agent finds it.
    world = from_means(np.tile([0.1, 0.9], (400, 1)))
    agent = Agent(DiscountedTS(gamma=0.99), arms=2, seed=3)
    reward_rng = np.random.default_rng(0)
    wins = 0
    for t in range(400):
        arm = agent.choose()
        wins += arm == world.best_arm(t)
        agent.learn(arm, float(reward_rng.random() < world.mean(t, arm)))
    assert wins > 350


@pytest.mark.parametrize("n_arms", [2, 11])
def test_a_compiled_agent_chooses_as_an_interpreted_one_alone_and_in_batches(n_arms):
    plain, fast = (Agent(DiscountedTS(gamma=0.9), n_arms, seed=5, compiled=compiled) for compiled in (False, True))
    for t in range(300):
        arm = plain.choose()
        assert fast.choose() == arm
        for agent in (plain, fast):
            agent.learn(arm, float(t % 3 == 0))
    assert plain.choose(50) == fast.choose(50)
    for agent in (plain, fast):
        agent.add_arm("new")
    assert plain.choose(50) == fast.choose(50)
    assert plain.choose(available=[0, "new"]) == fast.choose(available=[0, "new"])
    assert plain.snapshot() == fast.snapshot()
    assert Agent.restore(fast.snapshot(), compiled=True).choose(20) == plain.choose(20)
