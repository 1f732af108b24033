"""What an agent is given: odd ranges, names, seeds; arms that go and come back; what a notebook shows."""

import json
import math

import numpy as np
import pytest

from agent_crew import LIVE, make
from driftbandit import Agent, DiscountedTS
from driftbandit.draws import POLICY, stream_key
from driftbandit.state import to_arrays
from driftbandit.validity import check_state


def nested(depth: int) -> tuple:
    arm: tuple = ("x",)
    for _ in range(depth):
        arm = (arm,)
    return arm


@pytest.mark.parametrize(
    "pair",
    [
        {0, 1},
        {0: 1, 1: 2},
        b"01",
        b"\x00\x01",
        "01",
        (0, 1, 2),
        (False, True),
        iter((0, 1)),
        frozenset((0, 1)),
        (0, 1j),
    ],
    ids=lambda pair: repr(pair)[:30],
)
def test_a_reward_range_that_is_no_pair_is_refused(pair):
    with pytest.raises(ValueError, match=r"^reward_range is a pair \(low, high\) of numbers; got "):
        Agent(DiscountedTS(), 2, reward_range=pair)


def test_a_reward_range_may_be_a_list_or_an_array():
    for pair in ([0, 10], np.array([0.0, 10.0]), (np.int64(0), np.float32(10))):
        assert Agent(DiscountedTS(), 2, reward_range=pair).reward_range == (0.0, 10.0)


@pytest.mark.parametrize("policy", [DiscountedTS(), make("DiscountedUCB"), make("EXP3S"), make("Meta")], ids=repr)
@pytest.mark.parametrize("draws", ["x", None, 2.5, 0, -1, True, [5]])
def test_odd_numbers_of_draws_are_refused_by_every_kind_of_policy(policy, draws):
    with pytest.raises(ValueError, match=r"^probabilities needs draws of 1 or more; got "):
        Agent(policy, 2).probabilities(draws)


@pytest.mark.parametrize(
    "act",
    [
        lambda agent, name: agent.learn(name, 1.0),
        lambda agent, name: agent.remove_arm(name),
        lambda agent, name: agent.choose(available=[name]),
        lambda agent, name: agent.choose(available=5 if name == "" else name),
        lambda agent, name: Agent(DiscountedTS(), [name, name]),
        lambda agent, name: Agent(DiscountedTS(), [name, object()]),
        lambda agent, name: Agent(DiscountedTS(), name),
        lambda agent, name: Agent(DiscountedTS(), 2, seed=name),
        lambda agent, name: Agent(DiscountedTS(), 2, outside=name),
        lambda agent, name: Agent(DiscountedTS(), 2, late=name),
        lambda agent, name: Agent(DiscountedTS(), 2, first=name),
        lambda agent, name: Agent(DiscountedTS(), 2, floor=name),
        lambda agent, name: Agent(DiscountedTS(), 2, reward_range=name),
        lambda agent, name: agent.choose(n=name),
        lambda agent, name: agent.probabilities(name),
        lambda agent, name: agent.learn("a", name),
        lambda agent, name: agent.add_arm({name}),
        lambda agent, name: Agent(name, 2),
    ],
)
def test_messages_cut_long_names(act):
    agent = Agent(DiscountedTS(), ["a", "b", "y" * 10_000], seed=1)
    with pytest.raises((ValueError, TypeError)) as error:
        act(agent, "z" * 10_000)
    assert len(str(error.value)) < 400
    assert "\n" not in str(error.value)


def test_the_last_arms_long_name_is_cut_too():
    agent = Agent(DiscountedTS(), ["y" * 10_000], seed=1)
    with pytest.raises(ValueError, match="is the last one") as error:
        agent.remove_arm("y" * 10_000)
    assert len(str(error.value)) < 200
    assert len(repr(agent)) < 300


@pytest.mark.parametrize(
    "name",
    [
        nested(21),
        nested(2000),
        nested(200_000),
        frozenset([1]),
        b"x",
        1j,
        math.nan,
        math.inf,
        object(),
        10**5000,
        [1],
        {},
    ],
    ids=lambda name: type(name).__name__,
)
def test_arms_that_a_snapshot_cannot_hold_are_refused_when_the_agent_is_made_or_grows(name):
    with pytest.raises(ValueError, match=r"^Arms need names that JSON can hold: ") as error:
        Agent(DiscountedTS(), ["a", name])
    assert len(str(error.value)) < 250
    agent = Agent(DiscountedTS(), ["a", "b"], seed=1)
    before = agent.snapshot()
    with pytest.raises(ValueError, match=r"^Arms need names that JSON can hold: "):
        agent.add_arm(name)
    with pytest.raises(ValueError, match="is unknown"):
        agent.learn(name, 1.0)
    assert agent.snapshot() == before


def test_names_that_json_can_hold_come_back_the_same():
    names = ["", "\ud800", "é", nested(19), None, True, 0, -1.5, 2**70, ("a", (1, None)), ()]
    agent = Agent(DiscountedTS(), names, seed=1)
    assert Agent.restore(agent.snapshot()).arms == names
    assert Agent(DiscountedTS(), np.arange(3)).arms == [0, 1, 2]
    assert [type(arm) for arm in Agent(DiscountedTS(), np.array(["a", "b"])).arms] == [str, str]


def test_seeds_are_kept_to_the_last_digit():
    near = [2**53, 2**53 + 1, 2**63, 2**63 + 1, 2**200, 2**200 + 1]
    keys = [json.loads(Agent(DiscountedTS(), 2, seed=seed).snapshot())["key"] for seed in near]
    assert keys == [str(stream_key(seed, 0, POLICY)) for seed in near]
    assert len(set(keys)) == len(near)
    assert Agent(DiscountedTS(), 2, seed=np.uint64(2**53 + 1))._stream.key == int(keys[1])


# ---- arms that go and come back


def test_late_rewards_of_a_removed_arm_are_accepted_without_effect_or_refused():
    agent = Agent(DiscountedTS(), ["a", "b"], seed=1)
    agent.choose()
    agent.remove_arm("b")
    state, learnt = agent.state, agent.rewards_learnt
    agent.learn("b", 1.0)
    assert (agent.ignored, agent.rewards_learnt) == (1, learnt)
    assert all((getattr(agent.state, field) == getattr(state, field)).all() for field in state._fields)
    with pytest.raises(ValueError, match="outside"):
        agent.learn("b", 7.0)  # a bad reward is bad whoever it is for
    with pytest.raises(ValueError, match="was removed"):
        agent.choose(available=["b"])
    strict = Agent(DiscountedTS(), ["a", "b"], seed=1, late="refuse")
    strict.remove_arm("b")
    before = strict.snapshot()
    with pytest.raises(ValueError, match=r"^Arm 'b' was removed; the arms are \['a'\]\.$"):
        strict.learn("b", 1.0)
    assert strict.snapshot() == before
    assert (Agent.restore(agent.snapshot()).ignored, Agent.restore(before).late) == (1, "refuse")


@pytest.mark.parametrize("name", LIVE)
def test_a_removed_name_comes_back_as_a_new_arm(name):
    agent = Agent(make(name), ["a", "b", "c"], seed=2)
    for t in range(50):
        agent.learn(agent.choose(), float(t % 2))
    agent.remove_arm("b")
    agent.add_arm("b")
    assert agent.arms == ["a", "c", "b"]
    assert agent.choose() == "b"  # nothing is known of it, so it comes first
    agent.learn("b", 1.0)
    agent.remove_arm("b")
    agent.add_arm("b")
    twin = Agent.restore(agent.snapshot())
    assert twin.arms == agent.arms
    for t in range(60):
        arm = agent.choose()
        assert twin.choose() == arm
        agent.learn(arm, float(t % 3 == 0))
        twin.learn(arm, float(t % 3 == 0))
    assert twin.snapshot() == agent.snapshot()


@pytest.mark.parametrize("name", LIVE)
def test_a_policy_that_has_grown_by_an_arm_is_in_a_state_it_can_be_in(name):
    """Whatever happened before: an arm added in mid-play leaves a valid state, and play goes on for 300 rounds."""
    for rounds in (0, 1, 30, 150):
        agent = Agent(make(name), 3, seed=rounds, first=False, floor=0.0)
        reward_rng = np.random.default_rng(rounds)
        for _ in range(rounds):
            agent.learn(agent.choose(), float(reward_rng.random() < 0.5))
        for _ in range(2):
            agent.add_arm(f"new{len(agent.arms)}")
            like = agent.policy.init(len(agent.arms))
            check_state(agent.policy, to_arrays(agent._player.state, like), agent.rewards_learnt, like)
        played = []
        for _ in range(300):
            arm = agent.choose()
            played.append(arm)
            agent.learn(arm, float(reward_rng.random() < (0.9 if isinstance(arm, str) else 0.2)))
            like = agent.policy.init(len(agent.arms))
            check_state(agent.policy, to_arrays(agent._player.state, like), agent.rewards_learnt, like)
        if name not in ("FixedArm", "SlidingOSUB", "KLUCB"):  # the unimodal ones climb along the line
            assert any(isinstance(arm, str) for arm in played), (rounds, name)


# ---- in a notebook


@pytest.mark.parametrize("name", LIVE)
def test_a_notebook_shows_the_policy_and_the_chances(name):
    agent = Agent(make(name), ["<b>bold</b>", "plain"], seed=1)
    agent.learn("plain", 1.0)
    before = agent.snapshot()
    shown = agent._repr_html_()
    assert agent.snapshot() == before
    assert "&lt;b&gt;bold&lt;/b&gt;" in shown
    assert "<b>bold" not in shown
    assert type(agent.policy).__name__ in shown
    assert "1 reward learnt" in shown


def test_a_notebook_shows_the_first_of_many_arms():
    shown = Agent(DiscountedTS(), 500)._repr_html_()
    assert shown.count("<tr>") == 22
    assert "and 480 more" in shown
