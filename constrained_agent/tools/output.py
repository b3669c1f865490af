"""Texts kept to a length; what a command printed is bounded while it is read, and plain text when it is shown."""

from __future__ import annotations

import re

_MAX_BYTES_PER_CHARACTER = 4  # UTF-8

_TERMINAL_CODES = re.compile(  # colours and cursor; titles and links; the short ones
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def shortened(text: str, n_chars: int) -> str:
    """A text of at most so many characters, then a mark where there was more."""
    return text if len(text) <= n_chars else text[:n_chars] + "…"


class Kept:
    """The first and the last bytes of one stream, however long it gets."""

    __slots__ = ("_head", "_limit", "_size", "_tail", "_total")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = limit * _MAX_BYTES_PER_CHARACTER
        self._head, self._tail, self._total = bytearray(), bytearray(), 0

    def add(self, chunk: bytes) -> None:
        self._total += len(chunk)
        room = self._size - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._size:
            del self._tail[: -self._size]

    def text(self) -> str:
        """The stream as plain text of at most the limit, which includes the mark of the cut."""
        if self._total == len(self._head) + len(self._tail):
            first = last = _plain(bytes(self._head + self._tail))
            if len(first) <= self._limit:
                return first
        else:
            first, last = _plain(bytes(self._head)), _plain(bytes(self._tail))
        mark = f"\n[... cut: the middle of {self._total:,} bytes is left out ...]\n"
        half = (self._limit - len(mark)) // 2
        return first[:half] + mark + last[-half:]


def _plain(data: bytes) -> str:
    """Decoded without fail, no terminal codes; other control characters and stray bytes as `\\xNN`."""
    text = _TERMINAL_CODES.sub("", data.decode("utf-8", "backslashreplace"))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
