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
    pytest.importorskip("rich")
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "_QUIET", 0.05)
    with Progress(10.0, True, label="work") as bar, show_compiling():
        shown = threading.Event()
        for _ in range(100):
            if bar._bar is not None:
                break
            shown.wait(0.05)
        assert bar._bar is not None
        bar._bar.rich.refresh()
        assert "compiling" in screen.getvalue()
    assert Progress.open_bars == []


def test_only_the_outermost_bar_is_shown(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stderr", Screen())
    monkeypatch.setattr(progress, "_QUIET", 0.0)
    with Progress(2.0, True, label="outer") as outer, Progress(2.0, True, label="inner") as inner:
        inner.add(1.0)
        outer.add(1.0)
        assert inner._bar is None
        assert outer._bar is not None


def run_in_shell(monkeypatch, shell):
    """As if IPython were running: a notebook's shell has a kernel."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_in_a_notebook_the_bar_stands_below_the_cell_and_goes_when_the_work_is_done(monkeypatch, clock):
    sent = []

    class Place:
        def update(self, shown):
            sent.append(shown.data)

    run_in_shell(monkeypatch, SimpleNamespace(kernel=object()))
    display = SimpleNamespace(HTML=lambda data: SimpleNamespace(data=data), display=lambda shown, display_id: Place())
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with Progress(10.0, True, label="<work>") as bar:
        clock.now += 5.0
        bar.add(4.0)
        bar.add(1.0)  # at once: not sent again
        clock.now += 1.0
        bar.add(1.0)
    assert len(sent) == 3
    assert '&lt;work&gt; <progress value="0.4000">' in sent[0]
    assert "60% · 1 s · 2 s left" in sent[1]
    assert sent[2] == ""


def test_plain_ipython_in_a_terminal_is_not_a_notebook(monkeypatch):
    run_in_shell(monkeypatch, SimpleNamespace())
    monkeypatch.setattr("sys.stderr", Screen())
    assert progress._find_screen() is progress._TerminalBar


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

    def watched(shared, tasks):
        seen.append(len(progress._compiling))
        return plain(shared, tasks)

    monkeypatch.setattr(simulate, "compile_loop", watched)
    simulate.simulate(DiscountedTS(), Smooth(n_arms=2, horizon=50), 1, progress=False)
    assert seen == [1]
    assert progress._compiling == []
