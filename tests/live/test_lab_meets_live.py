"""A simulation played by a bandit: the same arms as `simulate` with the same draws, in memory and with a journal."""

import pytest

from driftbandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.core.draws import POLICY, REWARD, Stream, stream_key
from driftbandit.core.primitives import learns_with_random_numbers
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.wrappers import Delayed
from driftbandit.spec.parse import policies
from live.button import Clock

ENVIRONMENT = Abrupt(n_arms=4, horizon=120, phases=3, instance="1")
SIMULATED = {name for name, cls in policies().items() if getattr(cls, "simulated_only", False)}
NAMES = sorted(set(policies()) - SIMULATED)


def make(name: str):
    cls = policies()[name]
    given = {}
    if "base" in cls._fields:
        given["base"] = policies()["DiscountedTS"]()
    if "horizon" in cls._fields:
        given["horizon"] = ENVIRONMENT.horizon
    return cls(**given)


@pytest.mark.parametrize("name", NAMES)
def test_a_bandit_with_immediate_rewards_plays_the_simulators_arms(name: str) -> None:
    policy = make(name)
    simulated = simulate(policy, ENVIRONMENT, runs=1, seed=3, trajectories=True, compiled=False)
    environment, numbers = to_lists(ENVIRONMENT.realise(stream_key(3, 0, 0))), Stream(stream_key(3, 0, REWARD))
    bandit = Bandit(ENVIRONMENT.n_arms, policy, reward_range=(0, 1), seed=3, floor=0.0, first=False)
    arms, rewards = [], []
    for t in range(ENVIRONMENT.horizon):
        decision = bandit.decide()
        arms.append(decision.arm)
        rewards.append(float(environment.pull(t, arms[-1], numbers.at(t))))
        assert bandit.reward(decision.id, rewards[-1]) == "learned"
    assert rewards == simulated.rewards[0].tolist()
    assert arms == simulated.arms[0].tolist()


@pytest.mark.parametrize("options", [{}, {"floor": 0.3, "holdback": 0.2, "baseline": "uniform"}])
def test_memory_and_journal_learn_the_same_bits(options, tmp_path) -> None:
    """The same ids, rewards and times: the same arms and the same folded state, but for the way to hash ids."""
    time = iter(range(10**15, 2 * 10**15, 1000))
    now = [0]

    def clock() -> int:
        return now[0]

    memory = Bandit(["a", "b", "c"], "ds-ts(gamma=0.95)", seed=1, clock=clock, **options)
    path = tmp_path / "j.db"
    with Bandit.open(path, "x", "ds-ts(gamma=0.95)", ["a", "b", "c"], seed=1, clock=clock, **options) as journal:
        for n in range(300):
            now[0] = next(time)
            one, other = (bandit.decide(f"id{n}") for bandit in (memory, journal))
            assert (one.arm, one.how, one.at) == (other.arm, other.how, other.at)
            now[0] = next(time)
            for bandit in (memory, journal):
                bandit.reward(one.id, float(n % 3 == 0))
        assert memory.state.mean.tolist() == journal.state.mean.tolist()
        assert memory.probabilities() == journal.probabilities()
    assert [found.differences for found in audit(path)] == [[]]


LATE = [name for name in NAMES if not learns_with_random_numbers(policies()[name])]


@pytest.mark.parametrize("name", LATE)
def test_a_bandit_with_wait_plays_what_the_simulator_plays_with_outcomes_in_the_order_of_decisions(name):
    """One decision per second; successes only are reported, some of them too late. (Policies that draw random numbers
    to learn are left out: the simulator gives them those of the round, a bandit those of the number of outcomes.)"""
    policy, wait, mean = make(name), 15, 6
    late = Delayed(policy, rounds=mean, random=True, wait=wait, order="decision")
    played = simulate(late, ENVIRONMENT, runs=1, seed=3, trajectories=True, compiled=False)
    environment, draws = to_lists(ENVIRONMENT.realise(stream_key(3, 0, 0))), Stream(stream_key(3, 0, REWARD))
    rule, numbers = late.with_environment(environment), Stream(stream_key(3, 0, POLICY))
    clock, arms, reports, verdicts = Clock(), [], {}, set()
    options = {
        "reward_range": (0, 1),
        "seed": 3,
        "floor": 0.0,
        "first": False,
        "clock": clock,
        "wait": wait,
        "default": 0.0,
    }
    bandit = Bandit(ENVIRONMENT.n_arms, policy, **options)
    for t in range(ENVIRONMENT.horizon):
        clock.now += 1_000_000
        decision = bandit.decide()
        arms.append(decision.arm)
        if environment.pull(t, arms[-1], draws.at(t)) > 0.0:
            reports.setdefault(t + rule.delay(numbers.at(t)), []).append((decision.id, 1.0))
        verdicts |= set(bandit.reward_many(reports.pop(t, [])))
    assert arms == played.arms[0].tolist()
    assert verdicts == {"waiting", "late"}
