"""A progress bar with the time left: shown after two seconds, on a terminal or in a notebook only.

The time left is computed from the first finished work on, so that it includes little of the compiling."""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from driftbandit.spec.half_life import SECOND, format_duration

_QUIET = 2.0  # seconds before a bar is shown
_PAUSE = 0.2  # seconds from one drawing to the next
_BLOCKS = 30  # of a full bar

_compiling: list[None] = []  # an entry for each thread that compiles


@contextmanager
def show_compiling(show: bool | Callable[[float], None] = False) -> Iterator[None]:
    """Show that the block compiles. With `show=True` there is a bar even if no other is shown."""
    _compiling.append(None)
    try:
        Progress.redraw()
        with Progress(1, show is True and not Progress.open_bars, label="compiling"):
            yield
    finally:
        _compiling.pop()
        Progress.redraw()


class Progress:
    """Counts finished work from several threads and shows it.

    `show` is False (nothing), True (a bar on standard error, removed when the work is done) or a function that is
    called with the finished share."""

    open_bars: "list[Progress]" = []  # noqa: RUF012 - shared on purpose: only the first, the outermost, is shown

    def __init__(self, total: float, show: bool | Callable[[float], None] = False, label: str = "") -> None:
        self.total, self.label, self.done = max(total, 1), label, 0.0
        self._first: tuple[float, float] | None = None  # when the first work was finished, and how much
        self._call = show if callable(show) else None
        self._shown = show is True and _has_reader()
        self._lock = threading.RLock()
        self._started = time.monotonic()
        self._drawn = 0.0  # when it was drawn last
        self._timer: threading.Timer | None = None

    def __enter__(self) -> "Progress":
        if self._shown:
            Progress.open_bars.append(self)
            self._timer = threading.Timer(_QUIET, self._draw)  # also if nothing is finished by then
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if self in Progress.open_bars:
                Progress.open_bars.remove(self)
            if self._drawn:
                _write_line("")

    def add(self, amount: float) -> None:
        """Count finished work."""
        with self._lock:
            self.done += amount
            self._first = self._first or (time.monotonic(), self.done)
            if self._call is not None:
                self._call(min(self.done / self.total, 1.0))
            elif self._shown and time.monotonic() - self._drawn >= _PAUSE:
                self._draw()

    def left(self) -> float | None:
        """Seconds that the rest will take at the pace since the first work was finished; None while unknown."""
        if self._first is None or self.done <= self._first[1] or self.done > 0.999 * self.total:
            return None
        return (time.monotonic() - self._first[0]) * (self.total - self.done) / (self.done - self._first[1])

    @classmethod
    def redraw(cls) -> None:
        """Update the bar when compiling begins or ends."""
        for bar in cls.open_bars[:1]:
            bar._draw()

    def _draw(self) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._started >= _QUIET and Progress.open_bars[:1] == [self]:
                self._drawn = now
                share = min(self.done / self.total, 1.0)
                bar = "#" * round(_BLOCKS * share)
                words = [format_duration((now - self._started) * SECOND, 2), *filter(None, [self.describe()])]
                _write_line(f"{self.label} [{bar:<{_BLOCKS}}] {share:.0%}  {', '.join(words)}")

    def describe(self) -> str:
        """The end of the line: the time left, and "compiling"."""
        left = self.left()
        words = [f"{format_duration(left * SECOND, 2)} left"] if left is not None else []
        return ", ".join([*words, "compiling"] if _compiling else words)


def _write_line(text: str) -> None:
    """Replace the last line of standard error."""
    width = shutil.get_terminal_size().columns - 1
    with contextlib.suppress(OSError, ValueError, AttributeError):  # it may have been closed, or be None
        sys.stderr.write(f"\r{text[:width]:<{width}}" if text else f"\r{'':{width}}\r")
        sys.stderr.flush()


def _has_reader() -> bool:
    """Whether standard error is a terminal, or the output of a notebook's cell."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    notebook = getattr(shell, "kernel", None) is not None
    return notebook or (sys.stderr is not None and sys.stderr.isatty())
