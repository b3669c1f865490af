"""A terminal with an input line at its bottom that can be typed into at any time (prompt_toolkit).

Threads: the editor runs in one of its own, with its own event loop; only that one touches the screen. All others write
to `Above`, and change what stands before the line.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TextIO, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.input.vt100 import Vt100Input, cooked_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from constrained_agent.cli.interactive.above import Above
from constrained_agent.cli.interactive.typed import LABELS, Hands, Mode
from constrained_agent.cli.transcript_view import printable

_PACE_S = 0.1
"""Between two looks at what was written: each costs a few milliseconds of this process's time."""

_STOP_S = 5.0  # a terminal that takes no more output must not keep the program
_LIVE_ROWS = 3  # of a line that is being written
_SHORT_LABELS: dict[Mode, str] = {"task": "$ ", "message": "+ ", "answer": "? "}
_NARROW, _ROOMY = 30, 70  # columns: below, labels are short; from here on there is room for what is going on
_TAB = 8


class LineEditor:
    """See the module; `open` may be called once."""

    def __init__(
        self,
        history: History,
        *,
        keyboard: Input | None = None,
        screen: Output | None = None,
        real: TextIO | None = None,
    ) -> None:
        """Args: `keyboard`, `screen` and `real` default to stdin and stderr, which must be terminals."""
        self._real = real or sys.stderr
        self._above = Above(self._real, self._news)
        self._mode: Mode = "task"
        self._status = ""
        self._ready = threading.Event()
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._written: asyncio.Event | None = None
        self._session: PromptSession[None] = PromptSession(
            self._before,
            multiline=True,
            history=history,
            key_bindings=self._keys(),
            prompt_continuation="  ",
            reserve_space_for_menu=0,
            erase_when_done=True,
            input=keyboard or _Keyboard(sys.stdin),
            output=screen or _screen(self._real),
        )

    @contextmanager
    def open(self, hands: Hands) -> Iterator[None]:
        self._hands = hands
        stdout, stderr = sys.stdout, sys.stderr
        thread = threading.Thread(target=self._serve, name="line editor", daemon=True)
        above = cast(TextIO, self._above)
        # Results go where they were sent, if that is not this terminal.
        sys.stdout, sys.stderr = above if stdout.isatty() else stdout, above
        thread.start()
        try:
            yield
        finally:
            self._stop()
            thread.join(_STOP_S)
            sys.stdout, sys.stderr = stdout, stderr
            with suppress(OSError):
                self._real.write(self._above.rest())
                self._real.flush()

    def ask_for(self, mode: Mode) -> None:
        self._mode = mode
        self._news()

    def status(self, text: str) -> None:
        self._status = text
        self._news()

    def give_back(self, text: str) -> None:
        """Put a text into the line, before what stands there."""

        def put() -> None:
            buffer = self._session.default_buffer
            buffer.text = f"{text}\n{buffer.text}" if buffer.text else text
            buffer.cursor_position = len(buffer.text)

        self._in_loop(put)

    def _serve(self) -> None:
        """The editor's own thread."""
        try:
            with suppress(EOFError, OSError):  # the terminal is gone
                self._session.app.run(pre_run=self._begin, set_exception_handler=False, handle_sigint=False)
        finally:
            self._ready.set()
            if not self._stopping:
                self._hands.end()

    def _begin(self) -> None:
        self._loop, self._written = asyncio.get_running_loop(), asyncio.Event()
        self._written.set()
        self._session.app.create_background_task(self._draw())
        self._ready.set()

    async def _draw(self) -> None:
        """Bring what was written onto the screen."""
        assert self._written is not None
        while True:
            await self._written.wait()
            self._written.clear()
            if whole := self._above.taken():
                await run_in_terminal(lambda text=whole: self._print(text))  # type: ignore[misc]
            self._session.app.invalidate()
            await asyncio.sleep(_PACE_S)

    def _print(self, text: str) -> None:
        output = self._session.app.output
        output.enable_autowrap()
        output.write_raw(text)
        output.flush()

    def _stop(self) -> None:
        self._stopping = True
        self._ready.wait()
        self._in_loop(self._exit)

    def _exit(self) -> None:
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit()

    def _news(self) -> None:
        if self._written is not None and not self._written.is_set():
            self._in_loop(self._written.set)

    def _in_loop(self, call: object) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nothing is drawn any more
                self._loop.call_soon_threadsafe(call)  # type: ignore[arg-type]

    def _before(self) -> StyleAndTextTuples:
        """What stands before the input: the line that is being written, what is going on, what the input is for."""
        columns = self._session.app.output.get_size().columns
        shown: StyleAndTextTuples = []
        if live := self._above.live():
            shown += [*last_rows(live, columns, _LIVE_ROWS), ("", "\n")]
        if self._status and columns >= _ROOMY:
            shown.append(("fg:ansibrightblack", f"({self._status}) "))
        return [*shown, ("bold", (_SHORT_LABELS if columns < _NARROW else LABELS)[self._mode])]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        typing = has_focus(DEFAULT_BUFFER)
        empty = Condition(lambda: not self._session.default_buffer.text)

        @keys.add("enter", filter=typing)
        def _(event: KeyPressEvent) -> None:
            self._send(event)

        @keys.add("escape", "enter", filter=typing)
        @keys.add("c-j", filter=typing)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.newline(copy_margin=False)

        @keys.add("c-c", filter=typing)
        def _(event: KeyPressEvent) -> None:
            if self._mode == "task":
                event.current_buffer.reset()
            self._hands.interrupt()

        @keys.add("c-d", filter=typing & empty)
        def _(event: KeyPressEvent) -> None:
            self._end_of_input(event)

        @keys.add("c-z", filter=typing)
        def _(_: KeyPressEvent) -> None:
            run_in_terminal(self._suspend)

        return keys

    def _send(self, event: KeyPressEvent) -> None:
        buffer, mode = event.current_buffer, self._mode
        # Bytes that are no UTF-8 came as half a surrogate pair, which nothing could write down.
        text = buffer.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if mode != "answer" and text.strip():
            buffer.text = text
            buffer.append_to_history()
        buffer.reset()
        if text.strip() or mode == "answer":
            self._above.insert(_echo(LABELS[mode], text))
            self._hands.line(text, mode)

    def _end_of_input(self, event: KeyPressEvent) -> None:
        if self._mode == "answer":
            self._send(event)  # an empty line: no
        elif self._mode == "task":
            self._hands.end()
        else:
            self._above.insert("(Ctrl-C stops it; twice ends the program)")

    def _suspend(self) -> None:
        """Ctrl-Z: give the terminal back as it was, and stop until somebody says `fg`."""
        with cooked_mode(self._session.app.input.fileno()):
            os.kill(0, signal.SIGTSTP)


class _Keyboard(Vt100Input):
    """Stays raw while lines are printed: what is typed or pasted meanwhile would be echoed into them."""

    def cooked_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


def _screen(real: TextIO) -> Vt100_Output:
    """Without questions for the cursor's place: their answers come as keys, late where the line is slow."""

    def size() -> Size:
        try:
            columns, rows = os.get_terminal_size(real.fileno())
        except OSError:
            columns, rows = 0, 0
        return Size(rows=rows or 24, columns=columns or 80)

    return Vt100_Output(real, size, term=os.environ.get("TERM"), enable_cpr=False)


def _echo(label: str, text: str) -> str:
    """A line as it stands on the screen after it was sent."""
    lines = [printable(line) for line in text.split("\n")]
    return "\n".join([f"\x1b[1m{label}{lines[0]}\x1b[0m", *(f"\x1b[1m  {line}\x1b[0m" for line in lines[1:])])


def last_rows(text: str, columns: int, n_rows: int) -> StyleAndTextTuples:
    """The end of a long line with terminal codes, as it stands on so many rows of a terminal."""
    rows: list[StyleAndTextTuples] = [[]]
    used = 0
    for style, char, *_ in to_formatted_text(ANSI(text)):
        char = " " * (_TAB - used % _TAB) if char == "\t" else char
        width = get_cwidth(char)
        if used + width > columns:
            rows.append([])
            used = 0
        rows[-1].append((style, char))
        used += width
    shown: StyleAndTextTuples = []
    for row in rows[-n_rows:]:
        shown += [("", "\n"), *row] if shown else row
    return shown
