"""Whether a task is done: what the person's own commands say, the tests and the stop hook."""

from __future__ import annotations

from constrained_agent.agent import notes
from constrained_agent.agent.room import Room
from constrained_agent.agent.transcript import Transcript
from constrained_agent.agent.values import Settings
from constrained_agent.agent.watch import Watcher
from constrained_agent.messages import ToolResult
from constrained_agent.tools.registry import Tools


class Verifier:
    """Runs the person's commands in one run, and remembers what the tests said last.

    Attributes:
        tests: their outcome on the present state; None: not known, or there are none.
    """

    def __init__(
        self, settings: Settings, tools: Tools, room: Room, transcript: Transcript, watcher: Watcher
    ) -> None:
        self.tests: ToolResult | None = None
        self._test_command, self._stop_hook = settings.test_command, settings.stop_hook
        self._tools, self._room = tools, room
        self._transcript, self._watcher = transcript, watcher

    @property
    def has_tests(self) -> bool:
        """Whether tests decide."""
        return self._test_command is not None

    def objection(self) -> str | None:
        """What speaks against the task being done, for the model; None if nothing does."""
        tests = self.run_tests()
        if tests is not None and not tests.ok:
            return f"The task is not done yet.\n{self._room.bounded(tests.text)}"
        if self._stop_hook is not None and not (hook := self._run(self._stop_hook, "check")).ok:
            return notes.HOOK_NOTE.format(command=self._stop_hook, report=self._room.bounded(hook.text))
        return None

    def run_tests(self) -> ToolResult | None:
        """The outcome of the tests, which are run if it is not known; None if there are none."""
        if self.tests is None and self._test_command is not None:
            self.tests = self._run(self._test_command)
        return self.tests

    def _run(self, command: str, what: str = "tests") -> ToolResult:
        self._transcript.before(command)
        result = self._tools.run_tests(command, what=what)
        self._transcript.result(result)
        self._watcher.call_ended(result)
        return result
