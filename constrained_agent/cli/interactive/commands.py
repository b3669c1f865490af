"""The commands of a conversation: lines that begin with a slash, for this program and not for the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from rich.text import Text

from constrained_agent.agent import notes
from constrained_agent.agent.editable import editable
from constrained_agent.agent.runtime import Level
from constrained_agent.cli import view
from constrained_agent.cli.interactive import tables
from constrained_agent.cli.transcript_view import printable
from constrained_agent.grammar.located.offer import left_out
from constrained_agent.messages import ToolCall
from constrained_agent.tools.undo import CALL_ID

if TYPE_CHECKING:
    from constrained_agent.agent.loop import Agent
    from constrained_agent.agent.transcript import Transcript
    from constrained_agent.cli.interactive.watched import Watched
    from constrained_agent.tools.registry import Tools

EXIT = "/exit"


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        usage: how it is typed.
        does: what it does, in a line.
        run: does it; gets what follows the name.
        while_working: whether it may come between two answers.
    """

    usage: str
    does: str
    run: Callable[[str], None]
    while_working: bool = True


class Commands:
    """The commands of one conversation; they print on stderr. To be used in the main thread, between answers."""

    def __init__(
        self,
        agent: Agent,
        tools: Tools,
        workspace: Watched,
        transcript: Transcript,
        context_limit: int,
        *,
        held_to_tool: bool = False,
    ) -> None:
        """Args: `held_to_tool`: the first answer of a task must call a tool, so there has to be a constraint."""
        self._agent, self._tools, self._workspace = agent, tools, workspace
        self._transcript, self._context_limit = transcript, context_limit
        self._levels = [level for level in get_args(Level) if level != "off" or not held_to_tool]
        self._out = view.console()
        found = [
            Command("/undo", "take the last patch back, and tell the model", self._undo, while_working=False),
            Command("/diff", "what was changed in this conversation", self._diff),
            Command("/files", "files that were read, and files that were changed", self._files),
            Command("/tokens", "what the context holds, message by message", self._tokens),
            Command(
                f"/constraint [{'|'.join(self._levels)}]",
                "show or set what holds the answers from now on",
                self._constraint,
            ),
            Command("/help", "this list", self._help),
            Command(EXIT, "end the program", lambda _: None),
        ]
        self._commands = {command.usage.split()[0]: command for command in found}

    def run(self, text: str, *, working: bool) -> bool:
        """Carry out one command.

        Args:
            text: the line.
            working: a task is going on.

        Returns:
            Whether the program is to end.
        """
        name, _, rest = text.replace("\n", " ").partition(" ")
        command = self._commands.get(name)
        if command is None:
            self._say(f"there is no command {name}; there are {', '.join(self._commands)}", "red")
        elif rest.strip() and "[" not in command.usage:
            self._say(f"{name} takes nothing after it", "red")
        elif working and not command.while_working:
            self._say(f"{name} has to wait: Ctrl-C stops the task first", "red")
        else:
            command.run(rest.strip())
            return name == EXIT
        return False

    def _undo(self, _: str) -> None:
        self._transcript.before(ToolCall(CALL_ID, CALL_ID, {}))
        result = self._tools.undo()
        if not result.ok:
            self._say(result.text, "red")
            return
        self._transcript.result(result)
        headline, _, report = result.text.partition("\n")
        self._agent.tell(notes.UNDONE_NOTE.format(report=report))
        self._say(headline)
        self._out.print(view.diff(str(result.data.get("diff", ""))))

    def _diff(self, _: str) -> None:
        changes = self._workspace.changes()
        if not changes.paths:
            self._say("no patch changed anything so far")
        else:
            self._out.print(view.diff(changes.diff))

    def _files(self, _: str) -> None:
        offered = editable(self._tools)
        intact = [reading.path for reading in self._tools.readings()]
        too_large = left_out(offered) if self._agent.level == "located" else ()
        changed = self._workspace.changes().paths
        self._list(tables.files(self._workspace.shown(), intact, too_large, changed))

    def _tokens(self, _: str) -> None:
        self._list(tables.tokens(self._agent.conversation.prompt(), self._context_limit))

    def _constraint(self, level: str) -> None:
        if level and level not in self._levels:
            self._say(f"there is no level {level!r}; there are {', '.join(self._levels)}", "red")
            return
        if level:
            self._agent.level = level  # type: ignore[assignment]
        self._say(f"constraint: {self._agent.level}")

    def _help(self, _: str) -> None:
        self._list(tables.help_lines({command.usage: command.does for command in self._commands.values()}))

    def _list(self, lines: Iterable[str]) -> None:
        self._say("\n".join(lines))

    def _say(self, text: str, style: str = "") -> None:
        self._out.print(Text(printable(text), style=style))
