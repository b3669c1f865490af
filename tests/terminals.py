"""A program on a terminal of its own (a pseudo terminal), typed into and looked at as a person does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

LIMIT_S = 120.0
"""For one thing to appear: models are loaded meanwhile, on machines that do other work."""

_CODES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()=>78][0AB]?|\r")

# Makes the terminal the program's own, so that it gets its signals, and then becomes the program.
_START = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class OnTerminal:
    """A started program. What it prints is kept without terminal codes; `expect` goes on where it stopped."""

    def __init__(self, command, *, cwd, env, size=(30, 100), stderr=None):
        """Args: `command` as a list; `size` in rows and columns; `stderr` a file in place of the terminal."""
        self._own, theirs = os.openpty()
        self.resize(*size)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, *command],
            cwd=cwd,
            env={"TERM": "xterm-256color", **env},
            stdin=theirs,
            stdout=theirs,
            stderr=stderr if stderr is not None else theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._raw, self._at = b"", 0

    @property
    def text(self):
        """All that was printed."""
        return _CODES.sub("", self._raw.decode("utf-8", "replace"))

    def type(self, text):
        """Press keys; `\\r` is Enter."""
        os.write(self._own, text.encode())

    def paste(self, text):
        """Paste, as terminals do that tell programs of it."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def expect(self, *texts):
        """Wait until these were printed in this order, after what was expected before."""
        for wanted in texts:
            until = time.monotonic() + LIMIT_S
            while (found := self.text.find(wanted, self._at)) < 0:
                if not self._read(until):
                    self._give_up(f"{wanted!r} did not come")
            self._at = found + len(wanted)

    def wait_for(self, holds, what):
        """Wait until something holds, whatever is printed meanwhile."""
        until = time.monotonic() + LIMIT_S
        while not holds():
            if not self._read(min(until, time.monotonic() + 0.05)) and time.monotonic() >= until:
                self._give_up(what)

    def ended(self):
        """Wait for the end; returns the exit code."""
        until = time.monotonic() + LIMIT_S
        while self.process.poll() is None:
            if not self._read(min(until, time.monotonic() + 0.05)) and time.monotonic() >= until:
                self._give_up("it does not end")
        while self._read(time.monotonic()):
            pass
        return self.process.returncode

    def is_cooked(self):
        """Whether the terminal edits lines itself, as a shell expects it."""
        return bool(termios.tcgetattr(self._own)[3] & termios.ICANON)

    def resize(self, rows, columns):
        """Another size, of which the program is told."""
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self):
        """Close the terminal, as its window is closed."""
        os.close(self._own)
        self._own = -1

    def close(self):
        """End whatever still runs."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self._own >= 0:
            os.close(self._own)

    def _read(self, until):
        """Take what comes. False: nothing came in time, or nothing will."""
        ready, _, _ = select.select([self._own], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return False
        try:
            chunk = os.read(self._own, 65_536)
        except OSError:  # the program has closed it
            chunk = b""
        self._raw += chunk
        return bool(chunk)

    def _give_up(self, why):
        last = self.text[-3_000:]
        pytest.fail(
            f"{why} (ended with {self.process.poll()}); the terminal said last:\n{last}", pytrace=False
        )
