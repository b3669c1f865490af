"""What a person sees on stderr while a model works: progress, text as it comes, diffs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.text import Text

from constrained_agent.cli.transcript_view import printable

if TYPE_CHECKING:
    from constrained_agent.agent.turn import Turn
    from constrained_agent.messages import ToolCall, ToolResult
    from constrained_agent.model.tokenizer import Tokenizer

_SHORT_PROMPT = 64
"""Prompts below this many tokens get no progress bar: it would only flicker."""

_RESULT_LINES = 20
"""Lines shown of a tool result; the model and the transcript have it whole."""


def diff(text: str) -> Syntax:
    """A diff as it is shown on a terminal: coloured, and nothing in it steers that terminal."""
    return Syntax(_shown(text).rstrip("\n"), "diff", background_color="default")


def console(*, stderr: bool = True) -> Console:
    """A console that neither wraps nor decorates what models write."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True)


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Show that something is going on; yields a function that changes the text."""
    out = console()
    if not out.is_terminal:
        yield lambda message: out.print(message, markup=False)
        return
    with out.status(text) as shown:
        yield lambda message: shown.update(message)


class TokenStream:
    """Prints tokens as text while they come; forced ones dimmed; characters only when they are whole."""

    def __init__(self, out: Console, tokenizer: Tokenizer, bar_out: Console | None = None) -> None:
        """Args: `out` takes the text, `bar_out` the progress bar (default: the same)."""
        from constrained_agent.model.tokenizer import StreamDecoder

        self._out, self._bar_out = out, bar_out or out
        self._decoder = StreamDecoder(tokenizer)
        self._progress: Progress | None = None

    def prefill(self, done: int, total: int) -> None:
        """A progress bar for the prompt."""
        if total < _SHORT_PROMPT or not self._bar_out.is_terminal:
            return
        if self._progress is None:
            columns = (
                TextColumn("reading the prompt"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            self._progress = Progress(*columns, console=self._bar_out, transient=True)
            self._progress.start()
            self._progress.add_task("prompt", total=total)
        self._progress.update(self._progress.task_ids[0], completed=done)
        if done >= total:
            self.stop()

    def stop(self) -> None:
        """Take the progress bar away, if there is one."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def tokens(self, ids: Sequence[int], forced: bool) -> None:
        """Print what became whole."""
        self.stop()
        self._write(self._decoder.feed(ids), forced)

    def finish(self) -> None:
        """End the line."""
        self.stop()
        self._write(self._decoder.finish() + "\n", False)

    def _write(self, text: str, dim: bool) -> None:
        if text:
            text = _shown(text) if self._out.is_terminal else text
            self._out.print(Text(text, style="dim" if dim else ""), end="")


class RunView:
    """A run on a terminal or in a log; the agent's `Watcher`."""

    def __init__(self, tokenizer: Tokenizer, status: Callable[[str], None] | None = None) -> None:
        """Args: `status` is told what is going on, and takes the place of the progress bar."""
        self._tokenizer, self._status = tokenizer, status
        self._doing = ""
        self._out = console()
        self._stream = TokenStream(self._out, tokenizer)

    def turn_started(self, number: int) -> None:
        self._say_status(f"turn {number}")
        self._out.rule(f"turn {number}", align="left")
        self._stream = TokenStream(self._out, self._tokenizer)

    def prefill(self, done: int, total: int) -> None:
        if self._status is None:
            self._stream.prefill(done, total)
        elif total >= _SHORT_PROMPT:
            self._status(f"{self._doing}, prompt {done}/{total}" if done < total else self._doing)

    def tokens(self, ids: Sequence[int], forced: bool) -> None:
        self._stream.tokens(ids, forced)

    def turn_ended(self, turn: Turn) -> None:
        self._stream.finish()
        done = turn.generation
        n, seconds = len(done.tokens), done.decode_s
        self._out.print(
            f"{done.stop_reason}: {n} tokens ({sum(done.forced)} forced) in {done.model_steps} steps, "
            f"{seconds:.1f} s; prompt {done.prompt_tokens} ({done.reused_tokens} reused), {done.prefill_s:.1f} s",
            style="dim",
        )

    def call_started(self, call: ToolCall) -> None:
        shown = ", ".join(f"{key}={value!r}" for key, value in call.arguments.items() if key != "patch")
        self._say_status(call.name)
        self._out.print(Text(printable(f"→ {call.name}({shown})"), style="bold"))

    def call_ended(self, result: ToolResult) -> None:
        if changed := result.data.get("diff"):
            self._out.print(diff(str(changed)))
            return
        lines = _shown(result.text).split("\n")
        shown = "\n".join(lines[:_RESULT_LINES])
        if len(lines) > _RESULT_LINES:
            shown += f"\n… {len(lines) - _RESULT_LINES} more lines"
        self._out.print(Text(shown, style="" if result.ok else "red"))

    def note(self, text: str) -> None:
        first, *rest = text.split("\n")
        more = f" … ({len(rest)} more lines)" if rest else ""
        self._out.print(Text(f"(to the model) {printable(first)}{more}", style="yellow"))

    def _say_status(self, text: str) -> None:
        self._doing = text
        if self._status is not None:
            self._status(text)


def _shown(text: str) -> str:
    """A text in which nothing steers the terminal; that a line ends in CRLF is not shown."""
    return printable(text.replace("\r\n", "\n"))
