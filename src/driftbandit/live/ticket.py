"""What a caller of the writer waits for."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

_CHAIN = 0.05  # seconds after which a thread no longer relies on being woken by another


class Ticket:
    """The answers to come of some asks that go into one commit.

    Threads that wait for one commit are woken in a chain, each by the one before it as it goes on. Woken all at once
    they would fight for the interpreter, which lets one of them run."""

    __slots__ = ("_done", "_hook", "_next", "answers", "asks", "chance", "error", "settled", "waits", "wish")

    def __init__(self, asks: list[Any], wish: Any = None) -> None:
        self.asks = asks  # of a journal
        self.wish = wish  # what becomes the asks when the commit begins
        self.chance: Any = None  # of every arm, where the wish was for it
        self.answers: list[Any] = []
        self.error: BaseException | None = None
        self.settled = False
        self.waits = False  # whether a thread sleeps until this is settled
        self._next: Ticket | None = None
        self._hook: Callable[[], Any] | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def wait(self) -> list[Any]:
        """The answers, once they are on disk."""
        if not self.settled:
            self.waits = True
            try:
                # A chain is broken where a thread was interrupted before it came here; then the time wakes us.
                while not (self._done.acquire(True, _CHAIN) or self.settled):
                    pass
            finally:
                self.waits = False
                if self._next is not None:
                    self._next.wake()
        return self.result()

    def wake(self) -> None:
        """Let a waiting thread go on."""
        self._done.release()

    async def arrive(self) -> list[Any]:
        """The same for a coroutine: its loop goes on meanwhile."""
        import asyncio  # not before somebody uses it: it is a large part of all that is loaded

        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def arrived() -> None:
            if not future.done():
                future.set_result(None)

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits any more
                loop.call_soon_threadsafe(arrived)

        self._hook = tell
        if not self.settled:
            await future
        return self.result()

    def result(self) -> list[Any]:
        """The answers, or the error that kept all of them from being written."""
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        return self.answers

    def settle(self, answers: list[Any], error: BaseException | None = None) -> None:
        """Record the outcome; a waiting thread still has to be woken."""
        self.answers, self.error = answers, error
        self.settled = True
        if self._hook is not None:
            self._hook()

    def before(self, other: "Ticket") -> None:
        """Wake the other when this one goes on."""
        self._next = other
