"""A conversation: tasks one after the other, and what the person says while one is going on.

What is typed comes as lines into one queue. Only the main thread looks into it, and decides by what is going on then:
between answers a line goes to the model, at a question it may be the answer, between tasks it is the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from constrained_agent.cli.interactive import typed
from constrained_agent.cli.interactive.interrupts import Interrupts
from constrained_agent.cli.interactive.typed import Line, Mode, Terminal
from constrained_agent.errors import ConstrainedAgentError

if TYPE_CHECKING:
    from constrained_agent.agent.loop import Agent
    from constrained_agent.agent.values import RunResult
    from constrained_agent.cli.interactive.commands import Commands

_INTERRUPT, _END = object(), object()
"""Come into the queue beside lines: Ctrl-C while nothing went on, and the end of the input."""

HINT = "(Ctrl-C once more, or Ctrl-D, ends the program; /help lists the commands)"

INTRODUCTION = "(a conversation: /help lists commands and keys, Ctrl-D ends it)"


class Talk:
    """One conversation; the agent's `Inbox`, the terminal's `Hands`, and who is asked about commands."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._events: SimpleQueue[object] = SimpleQueue()
        self._interrupts = Interrupts(lambda: self._events.put(_INTERRUPT))
        self._aside: deque[Line] = deque()  # lines that came at a question and were no answer
        self._later: deque[str] = deque()  # tasks for when the present one is done
        self._over = False  # no line will come any more
        self._commands: Commands | None = None

    def run(
        self,
        agent: Agent,
        commands: Commands,
        report: Callable[[RunResult], None],
        files: Sequence[str] = (),
    ) -> int:
        """Talk until the person ends it.

        Args:
            report: shows how a task ended.
            files: paths that are put before the model with the first task.

        Returns:
            The exit code: 0, or 130 if it was interrupted.
        """
        self._commands = commands
        click.echo(INTRODUCTION, err=True)
        with self._interrupts.held(), self.terminal.open(self):
            while (task := self._next_task()) is not None:
                # An interrupt may still come when the run is over, and nothing is left to be stopped.
                with suppress(KeyboardInterrupt):
                    self._work(agent, task, files, report)
                files = ()
                self._after_work()
        return 130 if self._interrupts.ending else 0

    # --- What the terminal calls, from its own thread.

    def line(self, text: str, mode: Mode) -> None:
        self._interrupts.forget()
        self._events.put(Line(text, mode, self._interrupts.count))

    def interrupt(self) -> None:
        self._interrupts.pressed()

    def end(self) -> None:
        self._events.put(_END)

    # --- What the agent calls.

    def take(self) -> Sequence[str]:
        """What was typed for the model since the last look; commands among it are carried out."""
        assert self._commands is not None
        said = []
        while (line := self._line(wait=False)) is not None:
            purpose, text = typed.read(line.text)
            if purpose == "words":
                said.append(text)
            elif purpose == "later":
                self._later.append(text)
            elif purpose == "command" and self._commands.run(text, working=True):
                click.echo("(the program ends when nothing is left to do)", err=True)
                self._over = True
        return said

    def ask(self, spec: Any, arguments: Mapping[str, Any], verdict: Any = None) -> bool:
        """Put a call before the person; what is typed before the question, or is no answer to it, waits its turn."""
        from constrained_agent.cli.question import question

        click.echo(question(spec, arguments, verdict), err=True)
        self.terminal.ask_for("answer")
        try:
            while not self._over:
                event = self._events.get()
                if event is _END:
                    self._over = True
                elif isinstance(event, Line):
                    answer = typed.answered(event.text) if event.mode == "answer" else None
                    if answer is not None:
                        return answer
                    self._aside.append(event)
                    if event.mode == "answer":
                        click.echo("(that is no answer: y or n; it goes to the model later)", err=True)
                        self.terminal.ask_for("answer")
            return False
        finally:
            self.terminal.ask_for("message")

    # --- The loop.

    def _work(
        self, agent: Agent, task: str, files: Sequence[str], report: Callable[[RunResult], None]
    ) -> None:
        self.terminal.ask_for("message")
        n_interrupts = self._interrupts.count
        try:
            with self._interrupts.raised():
                result = agent.run(task, files)
        except ConstrainedAgentError as error:
            click.echo(f"error: {error}", err=True)
            return
        finally:
            self.terminal.status("")
            if self._interrupts.count > n_interrupts:
                self._give_back()
        report(result)

    def _after_work(self) -> None:
        """What was typed for the task and did not get into it is the next one: it was said to be more of it."""
        lines = self._lines()
        said = [text for line in lines for purpose, text in [typed.read(line.text)] if purpose == "words"]
        self._aside.extend(line for line in lines if typed.read(line.text)[0] != "words")
        if said:
            self._later.appendleft("\n".join(said))

    def _next_task(self) -> str | None:
        """The next task; None at the end of the conversation."""
        assert self._commands is not None
        while not self._interrupts.ending:
            if self._later and not self._aside:
                return _shown(self._later.popleft())
            if self._over:
                return None
            self.terminal.ask_for("task")
            line = self._line(wait=True)
            if line is None:
                continue
            purpose, text = typed.read(line.text)
            if purpose == "words":
                return text if line.mode == "task" else _shown(text)
            if purpose == "later":
                self._later.append(text)
            elif purpose == "command" and self._commands.run(text, working=False):
                return None
        return None

    def _line(self, *, wait: bool) -> Line | None:
        """The next line; None if there is none yet, or if something else came."""
        if self._aside:
            return self._aside.popleft()
        try:
            event = self._events.get(wait)
        except Empty:
            return None
        if isinstance(event, Line):
            return event
        if event is _END:
            self._over = True
        elif wait and not self._interrupts.ending:
            click.echo(HINT, err=True)
        return None

    def _lines(self) -> list[Line]:
        """All lines that are there."""
        found, self._aside = list(self._aside), deque()
        with suppress(Empty):
            while True:
                event = self._events.get(False)
                if isinstance(event, Line):
                    found.append(event)
                elif event is _END:
                    self._over = True
        return found

    def _give_back(self) -> None:
        """Whoever stops a task wants to think: what was typed before goes back into the line, unsent.

        Commands do not: they would be words there, beside others. They are run now.
        """
        unsent = []
        for line in self._lines():
            if line.n_interrupts == self._interrupts.count or typed.read(line.text)[0] == "command":
                self._aside.append(line)
            else:
                unsent.append(line.text)
        unsent += [f"> {task}" for task in self._later]
        self._later.clear()
        if unsent:
            self.terminal.give_back("\n".join(unsent))


def _shown(task: str) -> str:
    """A task that stands on the screen as something else so far."""
    click.echo(f"{typed.LABELS['task']}{task}", err=True)
    return task
