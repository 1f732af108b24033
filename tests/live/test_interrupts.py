"""Ctrl-C at every line that a call goes through: nothing is lost that was acknowledged, nothing is counted as waiting
that does not wait, and the bandit goes on."""

import linecache
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit, writer
from driftbandit.bandit.audit import audit


def interrupted_at(number: int, call: Callable[[], Any]) -> bool:
    """Make a call in which the `number`-th line of the package raises what Ctrl-C raises. Whether it came to that.

    Python looks for signals after calls and at the beginning of functions and loops. So none can come at a bare `try`,
    nor where a `with` is met again because its block has ended, between the block and what gives its lock back."""
    left, met = number, set[tuple[Any, int]]()

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if "driftbandit/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            place = frame, frame.f_lineno
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            safe = line == "try:" or (place in met and line.startswith("with "))
            met.add(place)
            left -= not safe
            if left == 0 and not safe:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return left <= 0


def soon(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 5.0
    while not condition() and time.monotonic() < until:
        time.sleep(0.001)
    return condition()


CALLS: dict[str, Callable[[Bandit, int], Any]] = {
    "decide": lambda bandit, n: bandit.decide(f"d{n}"),
    "decide without an id": lambda bandit, n: bandit.decide(),
    "decide many": lambda bandit, n: bandit.decide_many(3),
    "reward": lambda bandit, n: bandit.reward("first", 1.0),
    "settle": lambda bandit, n: bandit.settle(),
    "fix": lambda bandit, n: bandit.fix(0),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_at_any_line_leaves_a_bandit_that_goes_on(name, tmp_path, monkeypatch) -> None:
    interrupt_everywhere(name, tmp_path / "a.db", monkeypatch)


@pytest.mark.parametrize("name", ["decide", "reward"])
def test_the_same_with_a_connection_that_may_be_in_the_middle_of_something(name, postgres, monkeypatch) -> None:
    interrupt_everywhere(name, postgres, monkeypatch)


def interrupt_everywhere(name: str, target: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(writer, "_UNCALLED", 0.005)
    number, reached, before = 0, True, set(threading.enumerate())
    with Bandit.open(target, "b", DiscountedTS(), 2, wait="1 h") as bandit:
        bandit.decide("first")
        while reached and number < 150:  # where ids are made ahead there are hundreds more, all alike
            number += 1
            reached = interrupted_at(number, partial(CALLS[name], bandit, number))
            assert soon(lambda: bandit._writer.waiting == 0), number
            assert bandit.decide(f"after{number}").id == f"after{number}"
            assert not bandit._writer._leads.locked()
            if number % 10 == 0:
                bandit._writer._crowd = (2, 2)  # now by the thread that writes for all
        assert bandit.health()["queued"] == 0
        if name == "decide":
            rows = {row.id for row in bandit._journal.decisions(1)}
            assert {f"after{n}" for n in range(1, number + 1)} <= rows
            assert bandit.decide(f"d{number}").id in rows  # the last one was not interrupted
    assert number > 30
    assert [report.differences for report in audit(target)] == [[]]
    assert not {thread for thread in threading.enumerate() if thread.name == "driftbandit-writer"} - before
