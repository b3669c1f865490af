"""The tools on offer, and the one way to run a call."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from constrained_agent.errors import PatchError, ToolError, UserError
from constrained_agent.messages import ToolCall, ToolResult, ToolSpec
from constrained_agent.tools import catalog, files, landed, search, shell, undo
from constrained_agent.tools.arguments import violations
from constrained_agent.tools.changes import ChangeLog, Changes
from constrained_agent.tools.landed import encodable
from constrained_agent.tools.names import Taken, is_output
from constrained_agent.tools.output import shortened
from constrained_agent.tools.outputs import Outputs
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.reads import Reading
from constrained_agent.tools.rooted import digest
from constrained_agent.tools.wayback import WayBack
from constrained_agent.tools.workspace import Workspace

MAX_SHOWN_LINES, APPLY_PATCH = landed.MAX_SHOWN_LINES, catalog.APPLY_PATCH

MAX_UNDONE = 100
"""Patches that can be taken back, the last ones: what they replaced is kept in memory."""

MAX_ERROR_CHARS = 4_000
"""Of one error, about 1,200 tokens: it may quote a path or a pattern of any length."""

_QUOTING = (
    "context_not_found",
    "anchor_not_found",
    "ambiguous",
    "eof_mismatch",
    "indent_mismatch",
    "inexact_removal",
    "already_applied",
)
"""Kinds of errors that show lines of the file, or tell whether a line stands in it."""

MIN_COMMAND_S = 1.0
"""What a command gets though the run's time is over: the last tests should still be able to pass."""


class Tools:
    """The tools of one run, bound to a repository and to what the person allows.

    Args:
        refuse_broken: a patch that brings a syntax error into a file is not applied.
    """

    def __init__(self, workspace: Workspace, policy: Policy, *, refuse_broken: bool = False) -> None:
        self._workspace, self._policy, self._refuse_broken = workspace, policy, refuse_broken
        self._outputs, self._share = Outputs(workspace.root), 1.0
        self._log = ChangeLog()
        self._landed: dict[str, list[str | None]] = {}
        self._standing: deque[tuple[str, WayBack]] = deque(maxlen=MAX_UNDONE)
        self._deadline: float | None = None
        self.specs: tuple[ToolSpec, ...] = tuple(
            spec for spec, _ in catalog.TABLE if policy.offers(spec.effect)
        )

    @property
    def root(self) -> Path:
        """The repository: a real path."""
        return self._workspace.root

    def start_run(self, deadline: float | None) -> None:
        """Count changes anew; commands end at `deadline` (a `time.monotonic()` value) at the latest."""
        self._log = ChangeLog()
        self._deadline = deadline

    def limit_outputs(self, n_chars: int) -> None:
        """Show no more of what a command prints, stdout and stderr together; all of it can be read after a cut."""
        self._share = min(1.0, n_chars / (shell.STDOUT_LIMIT + shell.STDERR_LIMIT))

    def run(self, call: ToolCall) -> ToolResult:
        """Check a call's arguments and permission, run it, and put its outcome or error into a result.

        Only what the model or the disk got wrong becomes a result; a bug of ours is raised.
        """
        try:
            outcome = self._outcome(call)
        except PatchError as caught:
            error = self._told(caught)
            data = {"path": error.path, "hunk": error.hunk, "lines": list(error.lines)}
            return ToolResult(call.id, False, _message(error), error.kind, data)
        except ToolError as caught:
            return ToolResult(call.id, False, _message(caught), caught.kind)
        except OSError as caught:
            return ToolResult(call.id, False, _message(caught), "tool_error")
        self._log.record(outcome.landed)
        if outcome.landed:
            after = [None if file.new is None else digest(file.new) for file in outcome.landed]
            self._landed[call.arguments["patch"]] = after
        if outcome.back is not None:
            self._standing.append((call.id, outcome.back))
        kind = "" if outcome.ok else "tool_error"
        return ToolResult(call.id, outcome.ok, encodable(outcome.text), kind, outcome.data)

    def undo(self) -> ToolResult:
        """Take back the last patch that still stands, of this run or of one before it: see `Workspace.take_back`.

        Its files count as read in the state that they have then. No permission is asked: it is the person who asks.
        """
        if not self._standing:
            return ToolResult(undo.CALL_ID, False, "there is no patch to take back", "tool_error")
        call_id, back = self._standing[-1]
        result = undo.taken_back(self._workspace, back, call_id)
        if result.ok:
            self._standing.pop()
            self._log.take_back()
        return result

    def show(self, path: str, *, option: str = "--file") -> str:
        """A file as `read_file` shows it, put before the model by the person; it counts as read.

        Args:
            option: how the person named it, for the message.

        Raises:
            UserError: it cannot be read.
        """
        try:
            return encodable(files.read_file(self._workspace, path))
        except (ToolError, OSError) as error:
            raise UserError(f"{option} {path}: {_message(error)}") from None

    def run_tests(self, command: str, *, what: str = "tests") -> ToolResult:
        """Run the person's test command; `ok` where it ends with exit code 0 in time.

        No permission is asked: the person gave the command.

        Args:
            what: the command in a word or two, for the result.
        """
        try:
            result = catalog.executed(self._setting(), command, shell.MAX_TIMEOUT_S)
        except (ToolError, OSError) as error:
            return ToolResult("tests", False, f"{what} failed: {command}\n{_message(error)}", "tests_failed")
        passed = result.exit_code == 0 and not result.timed_out
        text = f"{what} {'passed' if passed else 'failed'}: {command}\n{encodable(shell.report(result))}"
        return ToolResult("tests", passed, text, "" if passed else "tests_failed", asdict(result))

    def readings(self) -> list[Reading]:
        """What the model may change without reading it again: see `Workspace.readings`, also for the cost."""
        return self._workspace.readings()

    def forget(self, path: str) -> None:
        """Take a file as not read: the conversation had no room for it any more."""
        self._workspace.forget(path)

    def taken(self) -> Taken:
        """What a new file must not be named: see `Workspace.taken`, also for the cost."""
        return self._workspace.taken()

    def changes(self) -> Changes:
        """What the patches of this run changed in all."""
        return self._log.summary()

    @property
    def applied(self) -> Collection[str]:
        """The texts of the patches that were applied, also in runs before this one."""
        return self._landed.keys()

    @property
    def patched(self) -> bool:
        """Whether a patch still stands, of this run or of one before it."""
        return bool(self._standing or self._log.summary().paths)

    def _outcome(self, call: ToolCall) -> catalog.Outcome:
        for spec, run in catalog.TABLE:
            if spec.name == call.name:
                _check_arguments(spec, call.arguments)
                self._permit(spec, call.arguments)
                return run(self._setting(), call.arguments)
        names = ", ".join(spec.name for spec in self.specs)
        raise ToolError(f"there is no tool {call.name!r}; the tools are: {names}", "unknown_tool")

    def _permit(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
        """Let a call pass, asking a person if need be; raises ToolError if it must not run."""
        self._policy.check(spec, arguments, self._workspace.root)
        path = arguments.get("path", "")
        if (
            spec in (files.READ_FILE, search.SEARCH_TEXT)
            and not is_output(path)
            and self._workspace.holds_credentials(path)
        ):
            self._policy.check_credentials(spec, arguments, path)

    def _told(self, error: PatchError) -> PatchError:
        """An error as the model may see it: it quotes no lines of credentials that nobody let it read."""
        path = error.path
        if path is None or error.kind not in _QUOTING:
            return error
        with contextlib.suppress(PatchError):
            if self._workspace.holds_credentials(path) and self._workspace.seen(path) is None:
                reason = "the patch does not fit this file, which holds credentials; read it first: a person is asked"
                return PatchError(error.kind, reason, path=path, hunk=error.hunk)  # type: ignore[arg-type]
        return error

    def _setting(self) -> catalog.Setting:
        return catalog.Setting(
            self._workspace,
            self._outputs,
            self._seconds,
            self._policy.environment,
            self._share,
            self._refuse_broken,
            self._landed,
        )

    def _seconds(self, wanted: float) -> float:
        """A command's time, or what the run has left if that is less."""
        if self._deadline is None:
            return wanted
        return max(MIN_COMMAND_S, min(wanted, self._deadline - time.monotonic()))


def _check_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    if found := violations(spec, arguments):
        names = ", ".join(
            name if name in spec.parameters["required"] else f"{name} (may be left out)"
            for name in spec.parameters["properties"]
        )
        message = f"wrong arguments for {spec.name}: {'; '.join(found)}; its arguments are: {names}"
        raise ToolError(message, "schema_violated")


def _message(error: Exception) -> str:
    return encodable(shortened(str(error), MAX_ERROR_CHARS))
