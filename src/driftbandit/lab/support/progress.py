"""A progress bar with time left: silent for two seconds, and for ever when nobody is looking at a terminal."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any


class Progress:
    """Counts finished work from several threads and shows it.

    `show` is False (nothing), True (a bar on a terminal, once the work has taken two seconds) or a function called with
    the share done."""

    _shown = threading.Lock()  # held by the one bar on the screen: work within work shows no second one

    def __init__(self, total: float, show: bool | Callable[[float], None] = False, label: str = "") -> None:
        self.total, self.label, self.done = max(total, 1), label, 0.0
        self._call = show if callable(show) else None
        self._terminal = show is True and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar[0].stop()
            Progress._shown.release()

    def add(self, amount: float) -> None:
        """Note that this much work is finished."""
        with self._lock:
            self.done += amount
            if self._call is not None:
                self._call(min(self.done / self.total, 1.0))
            elif self._terminal:
                self._draw()

    def _draw(self) -> None:
        if self._bar is None:
            if time.monotonic() - self._started < 2.0 or not Progress._shown.acquire(blocking=False):
                return
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Rich

            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
            bar = Rich(
                *columns,
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            bar.start()
            self._bar = (bar, bar.add_task(self.label, total=self.total))
        self._bar[0].update(self._bar[1], completed=self.done)
