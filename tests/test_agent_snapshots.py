"""A restored agent goes on exactly as the original, and what is not a whole snapshot is refused in a sentence."""

import json
import math

import pytest

from agent_policies import OWN, POLICIES, played
from driftbandit import Agent, DiscountedTS
from driftbandit.agent.snapshots import FORMAT


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("after", [0, 1, 7, 300])
def test_a_restored_agent_continues_exactly_as_the_original(policy, after):
    agent = Agent(policy, arms=["a", ("b", 2), 3, None, 1.5, False], seed=12, reward_range=(-1, 2), outside="clip")
    played(agent, after)
    agent.add_arm("late")
    agent.remove_arm(3)
    agent.choose()  # a decision whose reward is still out
    agent.learn("a", 17)
    text = agent.snapshot()
    twin = Agent.restore(text, policies=OWN)
    assert twin.snapshot() == text
    assert twin.arms == agent.arms
    assert [type(arm) for arm in twin.arms] == [type(arm) for arm in agent.arms]
    assert played(twin, 120, seed=5) == played(agent, 120, seed=5)
    assert twin.snapshot() == agent.snapshot()
    assert twin.probabilities() == agent.probabilities()


def test_a_snapshot_is_plain_json_with_a_version_and_stays_as_it_is_read_by_others():
    agent = Agent(DiscountedTS(gamma=0.9), arms=["a", "b"], seed=1)
    data = json.loads(agent.snapshot(), parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert data["format"] == FORMAT
    assert data["policy"] == repr(DiscountedTS(gamma=0.9))
    assert data["state"]["pulls"] == [0.0, 0.0]
    assert json.loads(json.dumps(data)) == data
    assert Agent.restore(json.dumps(data, indent=2)).choose() == agent.choose()


def test_every_truncated_snapshot_is_refused():
    agent = Agent(DiscountedTS(), arms=["a", "b"], seed=1)
    played(agent, 5)
    text = agent.snapshot()
    for length in range(len(text)):
        with pytest.raises(ValueError, match=r"^This (is not a snapshot|snapshot)") as error:
            Agent.restore(text[:length])
        assert "\n" not in str(error.value)


def damaged(change) -> str:
    agent = Agent(DiscountedTS(), arms=["a", "b"], seed=1)
    played(agent, 5)
    data = json.loads(agent.snapshot())
    del data["check"]  # or it would notice first
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    "change",
    [
        *(
            lambda data, name=name: data.pop(name)
            for name in json.loads(damaged(lambda data: None))
            if name != "driftbandit"  # told for the record
        ),
        lambda data: data.update(format=FORMAT + 1),
        lambda data: data.update(format="1"),
        lambda data: data.update(format=True),
        lambda data: data.update(policy="Nonsense()"),
        lambda data: data.update(policy="DiscountedTS(gamma=7.0)"),
        lambda data: data.update(policy="Smooth()"),
        lambda data: data.update(policy="__import__('os').getcwd()"),
        lambda data: data.update(policy=3),
        lambda data: data.update(arms=["a"]),
        lambda data: data.update(arms=["a", "a"]),
        lambda data: data.update(arms=["a", ["b"]]),
        lambda data: data.update(arms=["a", {"list": 3}]),
        lambda data: data.update(arms=[]),
        lambda data: data.update(arms=None),
        lambda data: data.update(removed=[7]),
        lambda data: data.update(removed=[-1]),
        lambda data: data.update(removed=[0.5]),
        lambda data: data.update(removed=[0, 1]),
        lambda data: data.update(removed=3),
        lambda data: data.update(reward_range=[1, 0]),
        lambda data: data.update(reward_range=[0]),
        lambda data: data.update(reward_range="01"),
        lambda data: data.update(outside="perhaps"),
        lambda data: data.update(clipped=-1),
        lambda data: data.update(rewards_learnt=2.5),
        lambda data: data.update(decisions="5"),
        lambda data: data.update(decisions=10**30),
        lambda data: data.update(key="abc"),
        lambda data: data.update(key="-5"),
        lambda data: data.update(key=str(1 << 64)),
        lambda data: data.update(key=None),
        lambda data: data.update(state=[]),
        lambda data: data["state"].pop("pulls"),
        lambda data: data["state"].update(extra=[1.0]),
        lambda data: data["state"].update(pulls=[1.0]),
        lambda data: data["state"].update(pulls=[1.0, None]),
        lambda data: data["state"].update(pulls=[1.0, "many"]),
        lambda data: data["state"].update(pulls=[1.0, True]),
        lambda data: data["state"].update(pulls=[1.0, math.nan]),
        lambda data: data["state"].update(pulls=[1.0, math.inf]),
    ],
)
def test_a_damaged_snapshot_is_refused_in_one_sentence(change):
    with pytest.raises(ValueError, match=r"^This (snapshot|is not a snapshot)") as error:
        Agent.restore(damaged(change))
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", '"format"', f'{{"format": {FORMAT}}}', "[" * 100_000, "\x00", None, b"\xff"]
)
def test_what_is_no_snapshot_is_refused(text):
    with pytest.raises(ValueError, match=r"^This (snapshot|is not a snapshot)"):
        Agent.restore(text)


@pytest.mark.parametrize(
    ("other", "advice"), [(FORMAT + 1, "Read it with"), (1, "Read it with the version that made it")]
)
def test_a_snapshot_of_another_format_is_refused_with_what_to_do(other, advice):
    with pytest.raises(ValueError, match=f"has format {other}; this version reads format {FORMAT}\\. {advice}"):
        Agent.restore(damaged(lambda data: data.update(format=other)))


def test_a_snapshot_whose_numbers_were_altered_is_refused():
    agent = Agent(DiscountedTS(gamma=0.9), 2, seed=1)
    agent.learn(0, 1.0)
    data = json.loads(agent.snapshot())
    data["state"]["pulls"][0] = -5.0
    with pytest.raises(ValueError, match="checksum"):
        Agent.restore(json.dumps(data))
