"""The calls of an answer: run in order, and each with one result, in the conversation and on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from constrained_agent.agent import notes
from constrained_agent.agent.budget import REPEATS_TO_STOP, ExitReason
from constrained_agent.agent.conversation import Conversation
from constrained_agent.agent.room import Room
from constrained_agent.agent.tally import Tally
from constrained_agent.agent.transcript import Transcript
from constrained_agent.agent.turn import Turn
from constrained_agent.agent.watch import Watcher
from constrained_agent.grammar.answers import Fault
from constrained_agent.grammar.patches import longest_added_run
from constrained_agent.messages import ToolCall, ToolResult
from constrained_agent.tools.output import shortened
from constrained_agent.tools.registry import Tools
from constrained_agent.tools.shell import EXEC_COMMAND
from constrained_agent.tools.snapshot import Snapshot, differences, look

_TASK_CHARS = 600  # of the task in a reminder


class Calls:
    """The calls of one run.

    States: *settled*, or *owing* results after `answered`, until `run` or `settle`. While owing, nothing may be said.

    Args:
        max_added_lines: `+` lines that may follow each other in a patch.
    """

    def __init__(
        self,
        run: Tally,
        tools: Tools,
        conversation: Conversation,
        room: Room,
        transcript: Transcript,
        watcher: Watcher,
        *,
        max_added_lines: int,
    ) -> None:
        self._run, self._tools, self._conversation, self._room = run, tools, conversation, room
        self._transcript, self._watcher = transcript, watcher
        self._max_added_lines = max_added_lines
        self._owed: dict[
            str, ToolResult | None
        ] = {}  # call to result, if it has one: what is not on record yet
        self._seen: Snapshot | None = None

    def answered(self, turn: Turn) -> None:
        """Take an answer into the conversation; every call in it is owed a result, also one that will not be run."""
        self._owed = dict.fromkeys(called(turn))
        self._conversation.answered(turn, len(self._owed))

    def settle(self, missing: str, kind: str = "not_run") -> None:
        """Give the calls that have no result `missing` as an error; of what is not on record yet, write that."""
        self._conversation.settle(missing)
        while self._owed:
            call_id, result = next(iter(self._owed.items()))
            self._transcript.no_result(result or ToolResult(call_id, False, missing, kind))
            del self._owed[call_id]

    def run(self, turn: Turn) -> ExitReason | None:
        """Run the calls of an answer in order and give every one its result."""
        run = self._run
        repeats = run.budget.repeats(turn.answer.items)
        if repeats >= REPEATS_TO_STOP:
            run.failures["loop"] += 1
            self.settle(notes.NOT_RUN)
            return "repeated_calls"
        run.answer = ""
        if not self._only_read(turn.answer.items):
            run.verifier.tests = None  # a call may change what they say
        changed = False
        for item in turn.answer.items:
            result = self._result_of(item)
            changed = changed or (result.ok and bool(result.data.get("files")))
        if changed and (tests := run.verifier.run_tests()):
            self._conversation.amend(tests.text)
        if (beside := turn.answer.beside) is not None:
            run.failures[beside.kind] += 1
            self._amend(notes.BESIDE_NOTE.format(fault=beside.message))
        if run.budget.warns(repeats):
            self._amend(notes.REPEAT_WARNING)
        if self._conversation.n_result_chars > self._room.long_chars:
            self._amend(notes.REMINDER.format(task=shortened(run.task, _TASK_CHARS)))
        self.settle(notes.INTERRUPTED)
        return None

    def _amend(self, text: str) -> None:
        """Tell the model something behind the last result, and put that on record."""
        self._conversation.amend(text)
        self._transcript.write("note", text=text)

    def _only_read(self, items: Sequence[ToolCall | Fault]) -> bool:
        """Whether nothing is another thing after these calls."""
        reading = {spec.name for spec in self._tools.specs if spec.effect == "read"}
        return all(isinstance(item, Fault) or item.name in reading for item in items)

    def _result_of(self, item: ToolCall | Fault) -> ToolResult:
        """Run one call, or answer one that could not be read; what happened is on record before anyone looks."""
        if isinstance(item, Fault):
            result = ToolResult(item.call_id, False, f"error: {item.message}", item.kind)
        else:
            result = self._outcome(item)
        self._owed[result.call_id] = result
        self._conversation.give(self._room.bounded(result.text), in_short(item), file_shown(item, result))
        changed = self._transcript.result(result)
        del self._owed[result.call_id]
        if isinstance(item, ToolCall) and item.name == EXEC_COMMAND.name and not self._run.commands:
            self._run.commands = self._changed() if changed is None else changed
        if not result.ok:
            self._run.failures[result.error_kind] += 1
            self._run.last_error = result.text
        self._watcher.call_ended(result)
        return result

    def _outcome(self, call: ToolCall) -> ToolResult:
        """Run one call."""
        self._watcher.call_started(call)
        self._transcript.before(call)
        is_command = call.name == EXEC_COMMAND.name
        if is_command and not self._transcript.watches and not self._run.commands:
            self._seen = look(self._tools.root, self._seen)
        try:
            result = self._tools.run(call)
        except KeyboardInterrupt:
            self._run.commands = self._run.commands or is_command  # nobody looks what it did
            raise
        n_added = longest_added_run(str(call.arguments.get("patch", ""))) if result.ok else 0
        if n_added >= self._max_added_lines:
            note = notes.LONG_RUN_NOTE.format(n=self._max_added_lines)
            return replace(result, text=f"{result.text}\n{note}")
        return result

    def _changed(self) -> bool:
        """Whether files are other ones than before a command; also where there are too many to look at."""
        if self._seen is None:
            return True
        before, self._seen = self._seen, look(self._tools.root, self._seen)
        return not self._seen.complete or bool(differences(before, self._seen))


def called(turn: Turn) -> list[str]:
    """The ids of an answer's calls, those that cannot be read or were cut off included."""
    items = turn.answer.items
    ids = [item.call_id if isinstance(item, Fault) else item.id for item in items]
    return [call_id for call_id in ids if call_id]


def file_shown(item: ToolCall | Fault, result: ToolResult) -> str | None:
    """The file whose lines a result shows."""
    if isinstance(item, ToolCall) and item.name == "read_file" and result.ok:
        return str(item.arguments["path"])
    return None


def in_short(item: ToolCall | Fault) -> str:
    """A call in a few words, for a summary."""
    if isinstance(item, Fault):
        return f"a call that was wrong ({item.kind})"
    return f"{item.name}({', '.join(f'{key}={shortened(repr(value), 80)}' for key, value in item.arguments.items())})"
