"""The live agent: named arms that come and go, chances, snapshots, refusals that change nothing, threads."""

import json
import math
import sys
import threading
import time
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit import Agent, DiscountedTS
from driftbandit.agent.snapshots import FORMAT
from driftbandit.beliefs import BetaBelief, NormalBelief, beta_cdf, chance_of_largest
from driftbandit.environments import Abrupt, from_means
from driftbandit.lab.engine.simulate import simulate
from driftbandit.parameters import checked
from driftbandit.primitives import draw_from


class CountState(NamedTuple):
    pulls: Any
    coin: Any
    scores: Any


@checked
class Coins(NamedTuple):
    """Plays the arm of the largest uniform number plus its count; notes a number in `choose` that `learn` adds."""

    def init(self, n_arms):
        return CountState(np.zeros(n_arms), np.zeros(1), np.zeros(n_arms))

    def choose(self, state, t, rng):
        state.coin[0] = rng.uniform(2)
        for arm in range(len(state.scores)):
            state.scores[arm] = rng.uniform(10 + arm) + 0.1 * state.pulls[arm]
        best = 0
        for arm in range(1, len(state.scores)):
            if state.scores[arm] > state.scores[best]:
                best = arm
        return best

    def learn(self, state, t, arm, reward):
        state.pulls[arm] += reward * state.coin[0]


class LotteryState(NamedTuple):
    wins: Any
    chances: Any


@checked
class Lottery(NamedTuple):
    """Draws arms with chances proportional to 1 + their wins."""

    def init(self, n_arms):
        return LotteryState(np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state, t, rng):
        total = 0.0
        for arm in range(len(state.wins)):
            total += 1.0 + state.wins[arm]
        for arm in range(len(state.wins)):
            state.chances[arm] = (1.0 + state.wins[arm]) / total
        return draw_from(state.chances, rng.uniform(0))

    def learn(self, state, t, arm, reward):
        state.wins[arm] += reward


class StubbornState(NamedTuple):
    wins: Any


class Stubborn(NamedTuple):
    """Wants arm 0 whatever it is asked, and keeps no scores."""

    def init(self, n_arms):
        return StubbornState(np.zeros(n_arms))

    def choose(self, state, t, rng):
        return 0

    def learn(self, state, t, arm, reward):
        state.wins[arm] += reward


ALONE: dict[str, Any] = {"first": False, "floor": 0.0}  # the policy and nothing else
OWN = {"Coins": Coins, "Lottery": Lottery}
POLICIES = [DiscountedTS(gamma=0.9, tau_max=0.3), Coins(), Lottery()]


def played(agent: Agent, rounds: int, seed: int = 0) -> list:
    """Arms chosen in some rounds with made-up rewards."""
    reward_rng, out = np.random.default_rng(seed), []
    for _ in range(rounds):
        arm = agent.choose()
        agent.learn(arm, float(reward_rng.random()))
        out.append(arm)
    return out


def memory(agent: Agent) -> tuple:
    """Everything that could change, to show that it did not."""
    return agent.snapshot(), agent.arms, agent.rewards_learnt, agent.decisions, agent.clipped


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


# ---- chances


def frequencies(agent: Agent, n: int) -> dict:
    counts = dict.fromkeys(agent.arms, 0)
    for _ in range(n):
        counts[agent.choose()] += 1
    return {arm: count / n for arm, count in counts.items()}


def assert_chances_match(agent: Agent, n: int = 8000) -> None:
    chances, seen = agent.probabilities(), frequencies(agent, n)
    assert list(chances) == agent.arms
    assert sum(chances.values()) == pytest.approx(1.0, abs=1e-9)
    for arm, chance in chances.items():
        # False alarm one in a million per arm; the stated error is two standard errors, so 2.5 of it are five.
        slack = 4.9 * math.sqrt(max(chance * (1 - chance), 1 / n) / n) + 2.5 * chances.error
        assert abs(seen[arm] - chance) < slack, (arm, seen, chances, chances.error)


@pytest.mark.parametrize("policy", [*POLICIES, DiscountedTS(gamma=0.5, tau_max=1.0, forget_below=0.1)], ids=repr)
def test_chances_agree_with_how_often_arms_are_chosen(policy):
    agent = Agent(policy, arms=list("abcde"), seed=7)
    assert_chances_match(agent, 3000)
    played(agent, 12, seed=1)
    agent.remove_arm("d")
    assert_chances_match(agent)


def test_chances_of_a_thompson_sampler_are_exact_for_two_arms():
    # P(N(m1, s1) > N(m2, s2)) = Phi((m1 - m2) / sqrt(s1**2 + s2**2))
    for m1, m2, s1, s2 in ((0.3, 0.1, 0.2, 0.1), (0.5, 0.1, 0.001, 0.2), (0.0, 0.0, 1.0, 1e-6), (0.9, 0.1, 0.1, 0.1)):
        p, error = chance_of_largest(NormalBelief(np.array([m1, m2]), np.array([s1, s2])))
        exact = 0.5 * math.erfc(-(m1 - m2) / math.hypot(s1, s2) / math.sqrt(2))
        assert abs(p[0] - exact) <= error
        assert error < 2e-3


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(1e-4, 1)), min_size=2, max_size=6))
def test_chances_are_probabilities_and_follow_the_arms(arms):
    mean, sd = (np.array(column) for column in zip(*arms, strict=True))
    p, error = chance_of_largest(NormalBelief(mean, sd))
    assert p.sum() == pytest.approx(1.0)
    assert p.min() >= 0
    mirrored, _ = chance_of_largest(NormalBelief(mean[::-1], sd[::-1]))
    assert np.allclose(mirrored[::-1], p, atol=2 * error + 1e-9)


def test_the_beta_distribution_function_agrees_with_scipy():
    from scipy import stats

    x = np.concatenate([[0.0, 1e-12, 1e-5], np.linspace(0.01, 0.99, 99), [1 - 1e-9, 1.0]])
    for a, b in ((1, 1), (0.5, 0.5), (2, 5), (0.05, 3), (300, 700), (50_000, 3), (1e-3, 1e-3)):
        assert np.allclose(beta_cdf(float(a), float(b), x), stats.beta(a, b).cdf(x), atol=1e-9), (a, b)


def test_chances_of_beta_samples_agree_with_drawing_them():
    a, b = np.array([1.0, 8.0, 0.3, 300.0]), np.array([1.0, 3.0, 0.2, 150.0])
    p, error = chance_of_largest(BetaBelief(a, b))
    n = 200_000
    won = np.bincount(np.random.default_rng(1).beta(a, b, (n, 4)).argmax(axis=1), minlength=4) / n
    assert np.abs(p - won).max() < 4.9 * 0.5 / math.sqrt(n) + error  # false alarm: four in a million
    assert error < 2e-3


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_asking_for_chances_changes_nothing(policy):
    asked, silent = (Agent(policy, arms=3, seed=8) for _ in range(2))
    for n in range(30):
        one, two = asked.choose(), silent.choose()
        assert one == two
        before = memory(asked)
        asked.probabilities(draws=20)
        assert memory(asked) == before
        asked.learn(one, n % 2)
        silent.learn(two, n % 2)
    assert asked.snapshot() == silent.snapshot()


def test_a_sampled_chance_of_zero_is_not_called_exact():
    agent = Agent(Coins(), arms=2, seed=9, **ALONE)
    for _ in range(40):
        agent.choose()
        agent.learn(0, 1.0)
    chances = agent.probabilities(draws=100)
    assert chances[1] == 0.0
    assert chances.error >= 0.01
    for draws in (0, -1, 2.5, True, "many"):
        with pytest.raises(ValueError, match="probabilities needs draws of 1 or more"):
            agent.probabilities(draws=draws)


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


# ---- snapshots


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
    assert data["format"] == 3
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
        lambda data: data.update(format=4),
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


@pytest.mark.parametrize(("other", "advice"), [(4, "Update driftbandit"), (1, "Read it with the version that made it")])
def test_a_snapshot_of_another_format_is_refused_with_what_to_do(other, advice):
    with pytest.raises(ValueError, match=f"has format {other}; this version reads formats 2 and 3\\. {advice}"):
        Agent.restore(damaged(lambda data: data.update(format=other)))


# ---- threads


class Slow(NamedTuple):
    """Gives way to other threads between reading and writing."""

    def init(self, n_arms):
        return StubbornState(np.zeros(n_arms))

    def choose(self, state, t, rng):
        return 0

    def learn(self, state, t, arm, reward):
        held = state.wins[arm]
        time.sleep(0.0001)
        state.wins[arm] = held + reward


def test_an_update_is_finished_before_the_next_begins():
    agent = Agent(Slow(), arms=1, seed=1)
    threads = [threading.Thread(target=lambda: [agent.learn(0, 1.0) for _ in range(100)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert agent.state.wins.tolist() == [200.0]


def test_two_threads_lose_no_update():
    agent, each, failures = Agent(DiscountedTS(gamma=1.0), arms=3, seed=1), 3000, []

    def work(arm):
        try:
            for _ in range(each):
                agent.choose()
                agent.learn(arm, 1.0)
        except Exception as error:
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # change threads as often as Python can
    try:
        threads = [threading.Thread(target=work, args=(arm,)) for arm in (0, 1)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert agent.arms == [0, 1, 2]
            Agent.restore(agent.snapshot())
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failures
    assert agent.state.pulls.tolist() == [each, each, 0]
    assert agent.rewards_learnt == agent.decisions == 2 * each


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


def test_a_snapshot_whose_numbers_were_altered_is_refused():
    agent = Agent(DiscountedTS(gamma=0.9), 2, seed=1)
    agent.learn(0, 1.0)
    data = json.loads(agent.snapshot())
    data["state"]["pulls"][0] = -5.0
    with pytest.raises(ValueError, match="checksum"):
        Agent.restore(json.dumps(data))


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
