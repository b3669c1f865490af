"""Texts kept to a length; what a command printed is bounded while it is read, and plain text when it is shown."""

from __future__ import annotations

import json

from constrained_agent.tools.rows import plain, row_of
from constrained_agent.tools.spill import Spill

_MAX_BYTES_PER_CHARACTER = 4  # UTF-8


def shortened(text: str, n_chars: int) -> str:
    """A text of at most so many characters, then a mark where there was more."""
    return text if len(text) <= n_chars else text[:n_chars] + "…"


class Kept:
    """The first and the last bytes of one stream, however long it gets; all of it in a file, if there is one.

    States: `add` while there is more; `close` comes last, once. A stream that is shown whole writes no file.

    Args:
        limit: characters of the text.
        spill: where all of it goes when it is cut; None for nowhere.

    Attributes:
        text: after `close`, the stream as plain text of at most the limit, which includes the mark of a cut.
    """

    __slots__ = ("_head", "_limit", "_size", "_spill", "_spilling", "_tail", "_total", "text")

    def __init__(self, limit: int, spill: Spill | None = None) -> None:
        self._limit = limit
        self._size = limit * _MAX_BYTES_PER_CHARACTER
        self._head, self._tail, self._total = bytearray(), bytearray(), 0
        self._spill, self._spilling = spill, False
        self.text = ""

    @property
    def whole(self) -> str | None:
        """The name under which all of it can be read, after a cut."""
        return self._spill.name if self._spilling and self._spill is not None and self._spill.kept else None

    def add(self, chunk: bytes) -> None:
        if self._spilling and self._spill is not None:
            self._spill.add(chunk)
        self._total += len(chunk)
        room = self._size - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._size:
            self._start_spilling()
            del self._tail[: -self._size]

    def close(self) -> None:
        """There is no more. Cost: some milliseconds; `Spill.close` where all of it is kept."""
        if self._total == len(self._head) + len(self._tail):
            first = last = plain(bytes(self._head + self._tail))
            if len(first) <= self._limit:
                self.text = first
                return
        else:
            first, last = plain(bytes(self._head)), plain(bytes(self._tail))
        self._start_spilling()
        if self._spill is not None:
            self._spill.close()
        mark = self._mark()
        half = (self._limit - len(mark)) // 2
        self.text = first[:half] + mark + last[-half:]

    def _start_spilling(self) -> None:
        """Everything so far goes to the file, and from now on what comes."""
        if self._spill is not None and not self._spilling:
            self._spilling = True
            self._spill.add(bytes(self._head))
            self._spill.add(bytes(self._tail))

    def _mark(self) -> str:
        """What stands in place of the middle: how much there was, and how to see it."""
        cut = f"cut: the middle of {self._total:,} bytes is left out"
        if self._spill is None:
            return f"\n[... {cut} ...]\n"
        if not self._spill.kept:
            return f"\n[... {cut}, and could not be kept: {self._spill.loss} ...]\n"
        # Where the cut is depends on the length of the mark, if by little: some rows are shown twice.
        row = row_of(bytes(self._head), max(0, self._limit // 2 - _MARK_CHARS))
        call = json.dumps({"path": self._spill.name, "offset": row})
        loss = f"; {self._spill.loss}" if self._spill.loss else ""
        return f"\n[... {cut}; to see it: read_file {call}{loss} ...]\n"


_MARK_CHARS = 200
"""At least half of what a mark has."""
