"""One stream on the disk: all of it, or its beginning and its end where it is longer than a disk should hold."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

HEAD_BYTES, TAIL_BYTES = 32_000_000, 32_000_000
"""Of a longer stream. The first errors stand at its beginning, the summary at its end."""

MIN_FREE_BYTES = 500_000_000
"""A disk with less room is left to those who need it."""


class Spill:
    """A file that takes a stream of any length.

    States: `add` while there is more, the first of which makes the file; `close` comes last, once. Never raises: a disk
    that refuses is no reason to lose a command. The file is then as long as it got, and `loss` says why.

    Args:
        name: how the model is told of it.
        place: makes the file's folder and returns the path; called by the first `add`.
    """

    def __init__(self, name: str, place: Callable[[], Path]) -> None:
        self.name = name
        self.loss = ""
        self._place = place
        self._folder: Path | None = None
        self._head: IO[bytes] | None = None
        self._tail: IO[bytes] | None = None
        self._n_head = self._n_tail = 0

    @property
    def kept(self) -> bool:
        """Whether any of it can be read."""
        return self._n_head > 0

    def add(self, data: bytes) -> None:
        """Take the next bytes in. Cost: a write, at most `HEAD_BYTES + TAIL_BYTES` of disk in all."""
        if self.loss:
            return
        try:
            self._add(data)
        except OSError as error:
            self._lose(error)

    def close(self) -> None:
        """Put the end behind the beginning. Cost: a copy of the end, if there is one of its own; 50 ms."""
        try:
            if self._tail is not None and self._head is not None:
                self._join(self._head, self._tail)
        except OSError as error:
            self._lose(error)
        for file in (self._head, self._tail):
            if file is not None:
                file.close()

    def _add(self, data: bytes) -> None:
        if self._head is None:
            path = self._place()
            self._folder = path.parent
            free = shutil.disk_usage(self._folder).free
            if free < MIN_FREE_BYTES:
                self.loss = f"the disk has only {free:,} bytes left"
                return
            self._head = path.open("xb", buffering=0)
        room = HEAD_BYTES - self._n_head
        if room > 0:
            self._n_head += _write(self._head, data[:room])
        rest = memoryview(data)[max(0, room) :]
        while rest:
            if self._tail is None:
                self._tail = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 (`close`)
            # A ring: what comes now takes the place of what came longest ago.
            at = self._n_tail % TAIL_BYTES
            piece = rest[: TAIL_BYTES - at]
            self._tail.seek(at)
            self._n_tail += _write(self._tail, piece)
            rest = rest[len(piece) :]

    def _join(self, head: IO[bytes], tail: IO[bytes]) -> None:
        dropped = max(0, self._n_tail - TAIL_BYTES)
        if dropped and not self.loss:
            self.loss = f"of it all, the first {HEAD_BYTES:,} and the last {TAIL_BYTES:,} bytes were kept"
        if dropped:
            _write(head, f"\n[... {dropped:,} bytes were not kept ...]\n".encode())
        oldest = self._n_tail % TAIL_BYTES if dropped else 0
        for start, end in ((oldest, min(self._n_tail, TAIL_BYTES)), (0, oldest)):
            tail.seek(start)
            while (length := min(1_000_000, end - tail.tell())) > 0:
                _write(head, tail.read(length))

    def _lose(self, error: OSError) -> None:
        self.loss = f"only the beginning could be kept: {error.strerror or error}"
        if not self.kept:
            self.loss = str(error.strerror or error)


def _write(file: IO[bytes], data: bytes | memoryview) -> int:
    """Write all of it: one call may write less."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
    return len(data)
