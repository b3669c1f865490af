"""Ctrl-C in a conversation: once stops what is going on, twice ends the program. Terminations end it at once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

TWICE_S = 2.0
"""Between two Ctrl-C that belong together."""


@dataclass(slots=True)
class Presses:
    """Which presses belong together."""

    last_s: float | None = None
    was_idle: bool = False

    def press(self, now_s: float, idle: bool) -> bool:
        """Take in a press. True: it is the second of two: soon after the first, or both while nothing went on."""
        soon = self.last_s is not None and now_s - self.last_s <= TWICE_S
        twice = soon or (self.last_s is not None and idle and self.was_idle)
        self.last_s, self.was_idle = now_s, idle
        return twice

    def forget(self) -> None:
        """Something else came between."""
        self.last_s = None


class Interrupts:
    """Holds the signals of the main thread while a conversation goes on.

    States: *idle*, where an interrupt only wakes whoever waits, and *working*, where it raises `KeyboardInterrupt` in
    the main thread. A terminal in raw mode sends no signal for Ctrl-C: `pressed` sends it.

    Attributes:
        count: interrupts so far.
        ending: the program is to end.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        """Args: `wake` is called after each interrupt while idle; also inside a signal handler."""
        self.count = 0
        self.ending = False
        self._wake = wake
        self._working = False
        self._presses = Presses()
        self._sent = False  # the signal to come is of a key, which was counted
        self._terminated = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Handle SIGINT, SIGTERM and SIGHUP; of the latter two, those that are not ignored."""
        saved: dict[signal.Signals, Any] = {}
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before = signal.getsignal(kind)
            if kind is signal.SIGINT or before is not signal.SIG_IGN:
                saved[kind] = signal.SIG_DFL if before is None else before
                signal.signal(kind, self._came)
        try:
            yield
        finally:
            for kind, handler in saved.items():
                signal.signal(kind, handler)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Inside, an interrupt raises."""
        self._working = True
        try:
            yield
        finally:
            self._working = False

    def pressed(self) -> None:
        """The key was pressed; from any thread."""
        self._count(ends=False)
        self._sent = True
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGINT)  # so that what the main thread waits in wakes up

    def forget(self) -> None:
        """A line was sent: the next Ctrl-C is a first one."""
        self._presses.forget()

    def _came(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            # A terminal that is closed says so twice; the second time would come into what ends the commands.
            again, self._terminated = self._terminated, True
            if again:
                return
        if self._sent and number == signal.SIGINT:
            self._sent = False
        else:
            self._count(ends=number != signal.SIGINT)
        if self._working:
            raise KeyboardInterrupt
        self._wake()

    def _count(self, *, ends: bool) -> None:
        self.count += 1
        if self._presses.press(time.monotonic(), not self._working) or ends:
            self.ending = True
