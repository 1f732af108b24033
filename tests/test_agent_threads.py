"""Threads share an agent without losing an update."""

import sys
import threading
import time
from typing import NamedTuple

import numpy as np

from agent_policies import StubbornState
from driftbandit import Agent, DiscountedTS


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
