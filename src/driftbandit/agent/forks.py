"""What happens to agents when a process forks, as web servers do with their workers.

Without care a child would get an agent whose lock is held by a thread that it does not have, and hang at its first
choice; and all children would explore in unison, since they have the same stream. So a fork waits until no agent is in
the middle of a call, and every child gets a lock of its own and, unless a seed was given, a stream of its own."""

import os
import threading
import weakref
from typing import Any

_PATIENCE = 5.0  # seconds a fork waits for one agent; one that takes longer is copied as it is

_agents: dict[int, Any] = {}  # weak references by id
_here = threading.local()  # the locks this thread holds around its fork


def watch(agent: Any) -> None:
    """Look after this agent in forks for as long as it lives."""
    key = id(agent)
    _agents[key] = weakref.ref(agent, lambda _: _agents.pop(key, None))


def _alive() -> list[Any]:
    """All agents, in an order on which all threads agree."""
    found = (reference() for _, reference in sorted(_agents.copy().items()))
    return [agent for agent in found if agent is not None]


def _before() -> None:
    _here.held = [agent._lock for agent in _alive() if agent._lock.acquire(timeout=_PATIENCE)]


def _in_parent() -> None:
    for lock in getattr(_here, "held", ()):
        lock.release()
    _here.held = []


def _in_child() -> None:
    _here.held = []
    for agent in _alive():
        agent._lock = threading.RLock()
        agent._own_stream_unless_seeded()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
