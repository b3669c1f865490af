"""A terminal that can do nothing but print, or whose stderr goes elsewhere: lines as the system hands them over."""

from __future__ import annotations

import os
import selectors
import sys
import threading
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager

import click

from constrained_agent.cli.interactive.typed import LABELS, Hands, Mode

_CHUNK_BYTES = 65_536


class PlainTerminal:
    """The system edits and echoes the line, and makes Ctrl-C a signal; so it is mixed with what is printed."""

    def __init__(self) -> None:
        self._mode: Mode = "task"

    @contextmanager
    def open(self, hands: Hands) -> Iterator[None]:
        # A thread that hangs in `sys.stdin` could not be ended, and would bring the interpreter down at its exit.
        stop, stopped = os.pipe()
        reader = threading.Thread(target=self._read, args=(hands, stop), name="lines", daemon=True)
        reader.start()
        try:
            yield
        finally:
            os.close(stopped)
            reader.join()
            os.close(stop)

    def ask_for(self, mode: Mode) -> None:
        self._mode = mode
        if mode != "message":
            click.echo(LABELS[mode], nl=False, err=True)

    def status(self, text: str) -> None:
        """There is no place for it."""

    def give_back(self, text: str) -> None:
        click.echo(f"not sent:\n{text}", err=True)

    def _read(self, hands: Hands, stop: int) -> None:
        decoder = getincrementaldecoder("utf-8")("replace")
        line, stdin = "", sys.stdin.fileno()
        with selectors.DefaultSelector() as ready:
            ready.register(stdin, selectors.EVENT_READ)
            ready.register(stop, selectors.EVENT_READ)
            while all(key.fd != stop for key, _ in ready.select()):
                try:
                    data = os.read(stdin, _CHUNK_BYTES)
                except OSError:  # the terminal is gone
                    data = b""
                if not data:
                    hands.end()
                    return
                *whole, line = (line + decoder.decode(data)).split("\n")
                for one in whole:
                    hands.line(one, self._mode)
