"""The progress bar: shows compiling, and leaves it out when it computes the time left."""

import io
import sys
import threading
from types import SimpleNamespace

import pytest

from driftbandit.lab import progress
from driftbandit.lab.progress import Progress, show_compiling


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""

    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_the_time_left_is_computed_from_the_first_finished_work(clock):
    with Progress(100.0) as bar:
        with show_compiling():
            clock.now += 60.0  # a cold start
        bar.add(1.0)
        assert bar.left() is None
        clock.now += 1.0
        bar.add(1.0)
        assert bar.left() == pytest.approx(98.0)
        with show_compiling():
            assert bar.describe() == "1.6 min left, compiling"


def test_on_a_terminal_the_word_is_seen_even_before_any_work_is_done(monkeypatch):
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "_QUIET", 0.05)
    with Progress(10.0, True, label="work"), show_compiling():
        shown = threading.Event()
        for _ in range(100):
            if "compiling" in screen.getvalue():
                break
            shown.wait(0.05)
        assert "work [" in screen.getvalue()
        assert "compiling" in screen.getvalue()
    assert screen.getvalue().endswith(" \r")  # removed when the work is done
    assert Progress.open_bars == []


def test_only_the_outermost_bar_is_shown(monkeypatch):
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "_QUIET", 0.0)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    with Progress(2.0, True, label="outer") as outer, Progress(2.0, True, label="inner") as inner:
        inner.add(1.0)
        outer.add(1.0)
    assert "outer [###############               ] 50%" in screen.getvalue()
    assert "inner" not in screen.getvalue()


def run_in_shell(monkeypatch, shell):
    """As if IPython were running: a notebook's shell has a kernel."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_in_a_notebook_the_bar_is_below_the_cell_and_is_drawn_at_most_five_times_a_second(monkeypatch, clock):
    run_in_shell(monkeypatch, SimpleNamespace(kernel=object()))
    output = io.StringIO()
    monkeypatch.setattr("sys.stderr", output)
    with Progress(10.0, True, label="work") as bar:
        clock.now += 5.0
        bar.add(4.0)
        bar.add(1.0)  # at once: not drawn again
        clock.now += 1.0
        bar.add(1.0)
    first, second, last = output.getvalue().split("\r")[1:-1]
    assert "40%  5 s" in first
    assert "60%  6 s, 2 s left" in second
    assert last.strip() == ""


def test_plain_ipython_without_a_terminal_shows_nothing(monkeypatch):
    run_in_shell(monkeypatch, SimpleNamespace())
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert not progress._has_reader()


def test_a_function_hears_the_share_and_nothing_is_drawn():
    heard = []
    with Progress(4.0, heard.append) as bar:
        bar.add(1.0)
        bar.add(3.0)
    assert heard == [0.25, 1.0]


def test_without_a_stream_for_errors_nothing_breaks(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with Progress(1.0, True) as bar:
        bar.add(1.0)


def test_the_bar_shows_when_a_simulation_compiles(monkeypatch):
    pytest.importorskip("numba")
    from driftbandit import DiscountedTS
    from driftbandit.environments import Smooth
    from driftbandit.lab.engine import simulate

    seen = []
    plain = simulate.compile_loop

    def watched(*given):
        seen.append(len(progress._compiling))
        return plain(*given)

    monkeypatch.setattr(simulate, "compile_loop", watched)
    simulate.simulate(DiscountedTS(), Smooth(n_arms=2, horizon=50), 1, progress=False)
    assert seen == [1]
    assert progress._compiling == []
