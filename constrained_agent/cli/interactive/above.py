"""What is written while a person types: whole lines go above the input line, the last one stands there as it grows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TextIO

MAX_LIVE_CHARS = 2_000
"""Of a line that is not finished yet; what is before is shown when it is."""


class Above:
    """Stands in for stderr (and stdout, if it is the same terminal); may be written to from any thread.

    Writing only collects. `taken` hands out what was finished; whoever draws the input line puts it on the screen.
    """

    def __init__(self, real: TextIO, news: Callable[[], None]) -> None:
        """Args: `real` is the terminal; `news` is called after each write, from the writer's thread."""
        self._real, self._news = real, news
        self.encoding, self.errors = real.encoding, real.errors
        self._lock = threading.Lock()
        self._whole: list[str] = []
        self._line = ""

    def write(self, text: str) -> int:
        with self._lock:
            before, newline, after = text.rpartition("\n")
            if newline:
                self._whole.append(self._line + before + newline)
                self._line = after
            else:
                self._line += after
        self._news()
        return len(text)

    def insert(self, text: str) -> None:
        """Put whole lines before the one that is being written."""
        with self._lock:
            self._whole.append(text if text.endswith("\n") else f"{text}\n")
        self._news()

    def taken(self) -> str:
        """The lines that were finished since the last time."""
        with self._lock:
            text = "".join(self._whole)
            self._whole.clear()
        return text

    def live(self) -> str:
        """The line that is being written, or its end; never from the middle of a terminal code on."""
        with self._lock:
            line = self._line
        if len(line) <= MAX_LIVE_CHARS:
            return line
        line = line[-MAX_LIVE_CHARS:]
        return line[max(0, line.find("\x1b")) :]

    def rest(self) -> str:
        """All that was not handed out; the last line is ended."""
        with self._lock:
            line, self._line = self._line, ""
        return self.taken() + (f"{line}\n" if line else "")

    def flush(self) -> None:
        """Nothing to do: a line that is not finished must not get onto the screen."""

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._real.isatty()

    def fileno(self) -> int:
        return self._real.fileno()
