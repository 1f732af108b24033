"""A progress bar with the time left: shown after two seconds, on a terminal or in a notebook only.

The time left is computed from the first finished work on, so that it includes little of the compiling."""

import html
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from driftbandit.spec.half_life import SECOND, format_duration

_QUIET = 2.0  # seconds before a bar is shown


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

    `show` is False (nothing), True (a bar) or a function that is called with the finished share."""

    open_bars: "list[Progress]" = []  # noqa: RUF012 - shared on purpose: only the first, the outermost, is shown

    def __init__(self, total: float, show: bool | Callable[[float], None] = False, label: str = "") -> None:
        self.total, self.label, self.done = max(total, 1), label, 0.0
        self._first: tuple[float, float] | None = None  # when the first work was finished, and how much
        self._call = show if callable(show) else None
        self._screen = _find_screen() if show is True else None
        self._lock = threading.RLock()
        self._started = time.monotonic()
        self._bar: Any = None
        self._timer: threading.Timer | None = None
        self._over = False

    def __enter__(self) -> "Progress":
        if self._screen is not None:
            Progress.open_bars.append(self)
            self._timer = threading.Timer(_QUIET, self._draw)  # also if nothing is finished by then
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._over = True
            if self in Progress.open_bars:
                Progress.open_bars.remove(self)
            if self._bar is not None:
                self._bar.stop()

    def add(self, amount: float) -> None:
        """Count finished work."""
        with self._lock:
            self.done += amount
            self._first = self._first or (time.monotonic(), self.done)
            if self._call is not None:
                self._call(min(self.done / self.total, 1.0))
            elif self._screen is not None:
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
            if self._over or time.monotonic() - self._started < _QUIET or Progress.open_bars[:1] != [self]:
                return
            if self._bar is None and self._screen is not None:
                self._bar = self._screen(self.label, self.total)
            self._bar.update(self.done, self.describe())

    def describe(self) -> str:
        """The text after the bar: "compiling", or the time left."""
        left = self.left()
        words = [f"{format_duration(left * SECOND, 2)} left"] if left is not None else []
        return ", ".join([*words, "compiling"] if _compiling else words)


class _TerminalBar:
    """A bar on standard error, removed when the work is done."""

    def __init__(self, label: str, total: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Rich

        texts = [TextColumn(text) for text in ("{task.description}", "{task.percentage:>3.0f}%", "{task.fields[text]}")]
        columns = (texts[0], BarColumn(), texts[1], TimeElapsedColumn(), texts[2])
        self.rich = Rich(*columns, console=Console(stderr=True), transient=True)
        self.rich.start()
        self.task = self.rich.add_task(label, total=total, text="")

    def update(self, done: float, text: str) -> None:
        self.rich.update(self.task, completed=done, text=text)

    def stop(self) -> None:
        self.rich.stop()


class _NotebookBar:
    """A bar below the running cell: an HTML element, sent at most five times per second."""

    def __init__(self, label: str, total: float) -> None:
        shown: Any = import_module("IPython.display")  # its types lack what we use
        self.label, self.total, self.html = label, total, shown.HTML
        self.began, self.sent = time.monotonic(), -math.inf
        self.place = shown.display(shown.HTML(""), display_id=True)

    def update(self, done: float, text: str) -> None:
        now = time.monotonic()
        if now - self.sent >= 0.2:
            self.sent = now
            share = min(max(done / self.total, 0.0), 1.0)
            words = " · ".join(filter(None, [f"{share:.0%}", format_duration((now - self.began) * SECOND, 2), text]))
            bar = f'{html.escape(self.label)} <progress value="{share:.4f}"></progress> {html.escape(words)}'
            self.place.update(self.html(f"<label>{bar}</label>"))

    def stop(self) -> None:
        self.place.update(self.html(""))


def _find_screen() -> type[_TerminalBar] | type[_NotebookBar] | None:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and getattr(shell, "kernel", None) is not None:
        return _NotebookBar
    return _TerminalBar if sys.stderr is not None and sys.stderr.isatty() else None
