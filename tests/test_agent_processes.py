"""Agents in several processes and copies: streams of their own, no lock left held, nothing shared."""

import copy
import multiprocessing
import os
import pickle
import threading
import time
from typing import Any

import pytest

from agent_crew import LIVE, make
from driftbandit import Agent, DiscountedTS

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def in_children(n: int, work: Any, seconds: float = 30.0) -> list[Any]:
    """What `work()` gives in n forked processes; one that hangs gives "hangs"."""
    context = multiprocessing.get_context("fork")
    pipes, children = [], []
    for _ in range(n):
        receive, send = context.Pipe(duplex=False)
        child = context.Process(target=lambda send=send: send.send(work()))
        child.start()
        pipes.append(receive)
        children.append(child)
    answers = [pipe.recv() if pipe.poll(seconds) else "hangs" for pipe in pipes]
    for child in children:
        child.kill() if "hangs" in answers else None
        child.join()
    return answers


@needs_fork
@pytest.mark.parametrize("compiled", [False, True])
def test_workers_without_a_seed_explore_apart_and_with_one_alike(compiled):
    free = Agent(DiscountedTS(), 5, compiled=compiled)
    assert len({tuple(arms) for arms in in_children(3, lambda: free.choose(40))}) == 3  # equal: one in 5**40
    assert free.choose(40) not in in_children(1, lambda: free.choose(40))
    seeded = Agent(DiscountedTS(), 5, seed=3, compiled=compiled)
    assert len({tuple(arms) for arms in in_children(3, lambda: seeded.choose(40))}) == 1


@needs_fork
def test_a_fork_keeps_what_was_learnt_and_a_childs_child_has_its_own_stream_too():
    agent = Agent(DiscountedTS(), 3)
    for _ in range(20):
        agent.learn(agent.choose(), 1.0)
    known = agent.state.pulls.tolist()
    assert in_children(1, lambda: agent.state.pulls.tolist()) == [known]
    inner, outer = in_children(1, lambda: (in_children(1, lambda: agent.choose(40))[0], agent.choose(40)))[0]
    assert inner != outer


def test_restores_explore_alike_unless_they_are_fresh():
    for seed in (None, 5):
        text = Agent(DiscountedTS(), 5, seed=seed).snapshot()
        assert len({tuple(Agent.restore(text).choose(40)) for _ in range(8)}) == 1
        assert len({tuple(Agent.restore(text, fresh=True).choose(40)) for _ in range(8)}) == 8


@needs_fork
def test_a_process_forked_while_threads_use_the_agent_does_not_hang():
    agent, stop = Agent(DiscountedTS(), 50, seed=1), threading.Event()

    def work():
        while not stop.is_set():
            agent.learn(agent.choose(), 1.0)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            time.sleep(0.01)
            # The state is whole too: every reward counted once, since a fork waits for the call under way.
            (answer,) = in_children(1, lambda: (agent.choose() in agent.arms, agent.decisions - agent.rewards_learnt))
            assert answer != "hangs"
            assert answer[0]
            assert 0 <= answer[1] <= 4
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert agent.choose() in agent.arms


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
@pytest.mark.parametrize("name", LIVE)
def test_a_copy_is_an_agent_of_its_own_that_goes_on_alike(name, copied):
    agent = Agent(make(name), ["a", "b", "c"], seed=4)
    for t in range(60):
        agent.learn(agent.choose(), float(t % 3 == 0))
    agent.remove_arm("b")
    twin = copied(agent)
    text = agent.snapshot()
    assert twin.snapshot() == text
    arms = []
    for t in range(40):
        arms.append(twin.choose())
        twin.learn(arms[-1], float(t % 2))
    assert agent.snapshot() == text
    assert twin.rewards_learnt == 100
    again = []
    for t in range(40):
        again.append(agent.choose())
        agent.learn(again[-1], float(t % 2))
    assert again == arms
    assert agent.snapshot() == twin.snapshot()


def test_copies_without_a_seed_have_streams_of_their_own():
    agent = Agent(DiscountedTS(), 5)
    packed = pickle.dumps(agent)
    choices = {tuple(twin.choose(40)) for twin in (agent, copy.copy(agent), pickle.loads(packed), pickle.loads(packed))}
    assert len(choices) == 4


def test_a_compiled_agent_is_copied_as_one():
    agent = Agent(DiscountedTS(), 3, seed=1, compiled=True)
    twin = pickle.loads(pickle.dumps(agent))
    assert type(twin._player) is type(agent._player)
    assert twin.choose(30) == agent.choose(30)


def test_agents_that_are_gone_are_not_looked_after_in_forks():
    from driftbandit.agent import forks

    before = len(forks._agents)
    agents = [Agent(DiscountedTS(), 2) for _ in range(10)]
    assert len(forks._agents) == before + 10
    del agents
    assert len(forks._agents) <= before
