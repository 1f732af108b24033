"""A progress bar with time left: silent for two seconds, and for ever when nobody looks at a terminal or a notebook.

Compiling is not work that was counted: while it goes on the bar says so, and the time left is reckoned from the time
that was spent on the work itself."""

import html
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

_QUIET = 2.0  # seconds before a bar is shown


class _Compiling:
    """How many threads are compiling now, and how many seconds of threads have gone into it so far."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.threads, self.finished, self.begun = 0, 0.0, 0.0

    def change(self, by: int) -> None:
        """One thread more, or one fewer."""
        now = time.monotonic()
        with self.lock:
            self.finished += self.threads * (now - self.begun)
            self.threads, self.begun = self.threads + by, now

    def seconds(self) -> float:
        """Seconds of compiling until now, added up over threads."""
        with self.lock:
            return self.finished + self.threads * (time.monotonic() - self.begun)


_compiling = _Compiling()


@contextmanager
def compiling(show: bool | Callable[[float], None] = False) -> Iterator[None]:
    """Around whatever compiles: bars on the screen say so, and count it as no work. With `show=True` there is a bar of
    its own where none is under way."""
    _compiling.change(+1)
    try:
        Progress.redraw()
        alone = show is True and not Progress.under_way
        with Progress(1, alone, label="compiling"):
            yield
    finally:
        _compiling.change(-1)
        Progress.redraw()


class Progress:
    """Counts finished work from several threads and shows it.

    `show` is False (nothing), True (a bar on a terminal or below a notebook's cell, once the work has taken two
    seconds) or a function called with the share done. `workers` threads share the work, so that one of them compiling
    holds up that part of it only."""

    under_way: "list[Progress]" = []  # noqa: RUF012 - shared on purpose: the outermost comes first and is the one shown

    def __init__(
        self, total: float, show: bool | Callable[[float], None] = False, label: str = "", workers: int = 1
    ) -> None:
        self.total, self.label, self.done, self.workers = max(total, 1), label, 0.0, max(workers, 1)
        self._call = show if callable(show) else None
        self._screen = _screen() if show is True else None
        self._lock = threading.RLock()
        self._started, self._compiled = time.monotonic(), _compiling.seconds()
        self._bar: Any = None
        self._timer: threading.Timer | None = None
        self._over = False

    def __enter__(self) -> "Progress":
        if self._screen is not None:
            Progress.under_way.append(self)
            self._timer = threading.Timer(_QUIET, self._draw)  # also when nothing is finished until then
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._over = True
            if self in Progress.under_way:
                Progress.under_way.remove(self)
            if self._bar is not None:
                self._bar.stop()

    def add(self, amount: float) -> None:
        """Note that this much work is finished."""
        with self._lock:
            self.done += amount
            if self._call is not None:
                self._call(min(self.done / self.total, 1.0))
            elif self._screen is not None:
                self._draw()

    def left(self) -> float | None:
        """Seconds that the rest may take, once there is something to judge by: at the pace of the work so far,
        compiling not counted."""
        if self.done <= 0.0 or self.done > 0.999 * self.total:
            return None
        elapsed = time.monotonic() - self._started
        worked = max(elapsed - (_compiling.seconds() - self._compiled) / self.workers, 0.001 * elapsed)
        return worked * (self.total - self.done) / self.done

    @classmethod
    def redraw(cls) -> None:
        """Show what has changed beside the work: compiling began or ended."""
        for bar in cls.under_way[:1]:
            bar._draw()

    def _draw(self) -> None:
        with self._lock:
            if self._over or time.monotonic() - self._started < _QUIET or Progress.under_way[:1] != [self]:
                return
            if self._bar is None and self._screen is not None:
                self._bar = self._screen(self.label, self.total)
            self._bar.update(self.done, self.said())

    def said(self) -> str:
        """What stands behind the bar: that it compiles, or how long the rest may take."""
        if _compiling.threads >= self.workers:
            return "compiling"
        left = self.left()
        rest = "" if left is None else f"{duration(left)} left"
        return f"{rest}, compiling".removeprefix(", ") if _compiling.threads else rest


class _TerminalBar:
    """A bar by rich, on standard error, gone when the work is done."""

    def __init__(self, label: str, total: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Rich

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
        said = TextColumn("{task.fields[said]}")
        self.rich = Rich(*columns, TimeElapsedColumn(), said, console=Console(stderr=True), transient=True)
        self.rich.start()
        self.task = self.rich.add_task(label, total=total, said="")

    def update(self, done: float, said: str) -> None:
        """Show how far it is."""
        self.rich.update(self.task, completed=done, said=said)

    def stop(self) -> None:
        """Leave nothing behind."""
        self.rich.stop()


class _NotebookBar:
    """A bar below the cell that is running: the browser's own element, sent again a few times per second."""

    _PAUSE = 0.2  # seconds

    def __init__(self, label: str, total: float) -> None:
        shown: Any = import_module("IPython.display")  # brings no types for what we use
        self.label, self.total, self.html = label, total, shown.HTML
        self.began, self.sent = time.monotonic(), -math.inf
        self.place = shown.display(shown.HTML(""), display_id=True)

    def update(self, done: float, said: str) -> None:
        """Show how far it is."""
        now = time.monotonic()
        if now - self.sent >= self._PAUSE:
            self.sent = now
            share = min(max(done / self.total, 0.0), 1.0)
            words = [f"{share:.0%}", duration(now - self.began), said]
            text = " · ".join(html.escape(word) for word in words if word)
            self.place.update(
                self.html(f'<label>{html.escape(self.label)} <progress value="{share:.4f}"></progress> {text}</label>')
            )

    def stop(self) -> None:
        """Leave nothing behind."""
        self.place.update(self.html(""))


def _screen() -> type[_TerminalBar] | type[_NotebookBar] | None:
    """What the user is looking at: a notebook, a terminal, or nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and getattr(shell, "kernel", None) is not None:
        return _NotebookBar
    return _TerminalBar if sys.stderr is not None and sys.stderr.isatty() else None


def duration(seconds: float) -> str:
    """A time that can be read at a glance.

    >>> duration(4.2), duration(95), duration(4000)
    ('4 s', '1:35', '1:06:40')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
