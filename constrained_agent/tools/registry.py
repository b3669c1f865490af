"""The tools on offer, and the one way to run a call."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from constrained_agent.errors import PatchError, ToolError, UserError
from constrained_agent.messages import ToolCall, ToolResult, ToolSpec
from constrained_agent.patch import format as patch_format
from constrained_agent.patch.diff import FilePlan
from constrained_agent.tools import files, landed, search, shell, syntax, undo
from constrained_agent.tools.changes import ChangeLog, Changes
from constrained_agent.tools.landed import encodable
from constrained_agent.tools.names import Taken
from constrained_agent.tools.output import shortened
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.reads import Reading
from constrained_agent.tools.wayback import WayBack
from constrained_agent.tools.workspace import Workspace

MAX_SHOWN_LINES = landed.MAX_SHOWN_LINES

MAX_UNDONE = 100
"""Patches that can be taken back, the last ones: what they replaced is kept in memory."""

MAX_VIOLATIONS, MAX_VIOLATION_CHARS = 3, 200
"""Of one bad call: a message quotes the wrong value, which may be a whole patch."""

MAX_ERROR_CHARS = 4_000
"""Of one error, about 1,200 tokens: it may quote a path or a pattern of any length."""

MIN_COMMAND_S = 1.0
"""What a command gets though the run's time is over: the last tests should still be able to pass."""

APPLY_PATCH = ToolSpec(
    name="apply_patch",
    description=(
        "Add, update, move or delete files; the whole patch is applied or nothing. Read a file before you "
        "update it: context and removed lines are lines of the file as it is now, enough of them to fit only "
        "one place. Not for running anything."
    ),
    parameters={
        "type": "object",
        "properties": {"patch": {"type": "string"}},
        "required": ["patch"],
        "additionalProperties": False,
    },
    effect="write",
    freeform=True,
)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a tool hands back: text for the model, facts for the transcript."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    ok: bool = True
    landed: tuple[FilePlan, ...] = ()
    back: WayBack | None = None


_Run = Callable[[Workspace, Mapping[str, Any]], _Outcome]


class Tools:
    """The tools of one run, bound to a repository and to what the person allows.

    Args:
        refuse_broken: a patch that brings a syntax error into a file is not applied.
    """

    def __init__(self, workspace: Workspace, policy: Policy, *, refuse_broken: bool = False) -> None:
        self._workspace, self._policy, self._refuse_broken = workspace, policy, refuse_broken
        self._log = ChangeLog()
        self._standing: deque[tuple[str, WayBack]] = deque(maxlen=MAX_UNDONE)
        self._deadline: float | None = None
        self.specs: tuple[ToolSpec, ...] = tuple(spec for spec, _ in _TABLE if policy.offers(spec.effect))

    @property
    def root(self) -> Path:
        """The repository: a real path."""
        return self._workspace.root

    def start_run(self, deadline: float | None) -> None:
        """Count changes anew; commands end at `deadline` (a `time.monotonic()` value) at the latest."""
        self._log = ChangeLog()
        self._deadline = deadline

    def run(self, call: ToolCall) -> ToolResult:
        """Check a call's arguments and permission, run it, and put its outcome or error into a result.

        Only what the model or the disk got wrong becomes a result; a bug of ours is raised.
        """
        try:
            outcome = self._outcome(call)
        except PatchError as error:
            data = {"path": error.path, "hunk": error.hunk, "lines": list(error.lines)}
            return ToolResult(call.id, False, _message(error), error.kind, data)
        except ToolError as error:
            return ToolResult(call.id, False, _message(error), error.kind)
        except OSError as error:
            return ToolResult(call.id, False, _message(error), "tool_error")
        self._log.record(outcome.landed)
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

    def run_tests(self, command: str) -> ToolResult:
        """Run the person's test command; `ok` where it ends with exit code 0 in time.

        No permission is asked: the person gave the command.
        """
        seconds = self._seconds(shell.MAX_TIMEOUT_S)
        result = shell.exec_command(self._workspace.root, command, seconds, self._policy.environment)
        passed = result.exit_code == 0 and not result.timed_out
        text = f"tests {'passed' if passed else 'failed'}: {command}\n{encodable(shell.report(result))}"
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

    def _outcome(self, call: ToolCall) -> _Outcome:
        for spec, run in _TABLE:
            if spec.name == call.name:
                _check_arguments(spec, call.arguments)
                self._policy.check(spec, call.arguments, self._workspace.root)
                arguments = dict(call.arguments)
                if spec.effect == "exec":
                    arguments["timeout_s"] = self._seconds(
                        arguments.get("timeout_s", shell.DEFAULT_TIMEOUT_S)
                    )
                    arguments["variables"] = self._policy.environment
                if spec is APPLY_PATCH:
                    arguments["refuse_broken"] = self._refuse_broken
                return run(self._workspace, arguments)
        names = ", ".join(spec.name for spec in self.specs)
        raise ToolError(f"there is no tool {call.name!r}; the tools are: {names}", "unknown_tool")

    def _seconds(self, wanted: float) -> float:
        """A command's time, or what the run has left if that is less."""
        if self._deadline is None:
            return wanted
        return max(MIN_COMMAND_S, min(wanted, self._deadline - time.monotonic()))


def _list_dir(workspace: Workspace, arguments: Mapping[str, Any]) -> _Outcome:
    return _Outcome(files.list_dir(workspace, arguments["path"]))


def _read_file(workspace: Workspace, arguments: Mapping[str, Any]) -> _Outcome:
    offset = int(arguments.get("offset", 1))  # JSON's 3.0 is an integer to a schema, not to a slice
    limit = int(arguments.get("limit", files.DEFAULT_LINES))
    return _Outcome(files.read_file(workspace, arguments["path"], offset, limit))


def _search_text(workspace: Workspace, arguments: Mapping[str, Any]) -> _Outcome:
    return _Outcome(search.search_text(workspace, arguments["pattern"], arguments["path"]))


def _exec_command(workspace: Workspace, arguments: Mapping[str, Any]) -> _Outcome:
    timeout_s = arguments.get("timeout_s", shell.DEFAULT_TIMEOUT_S)
    result = shell.exec_command(workspace.root, arguments["command"], timeout_s, arguments["variables"])
    # A failing test is an answer; a command that was cut short is not.
    return _Outcome(shell.report(result), asdict(result), ok=not result.timed_out)


def _apply_patch(workspace: Workspace, arguments: Mapping[str, Any]) -> _Outcome:
    parsed = patch_format.parse(arguments["patch"])
    broken: list[syntax.Broken] = []

    def check(planned: Sequence[FilePlan]) -> None:
        broken.extend(syntax.broken_by(planned))
        if broken and arguments["refuse_broken"]:
            raise syntax.refusal(broken)

    applied = workspace.apply(parsed.patch, check=check)
    data = {
        "files": landed.facts(applied.files),
        "diff": encodable(applied.diff),
        "leniencies": dict(parsed.leniencies),
        "syntax_errors": syntax.facts(broken),
        "undo": undo.plain(applied.back) if applied.back else None,
    }
    text = "\n".join(["the patch is applied:", *landed.lines(applied.files), *syntax.report(broken)])
    return _Outcome(text, data, landed=applied.files, back=applied.back)


_TABLE: tuple[tuple[ToolSpec, _Run], ...] = (
    (files.LIST_DIR, _list_dir),
    (files.READ_FILE, _read_file),
    (search.SEARCH_TEXT, _search_text),
    (shell.EXEC_COMMAND, _exec_command),
    (APPLY_PATCH, _apply_patch),
)


def _check_arguments(spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    found = sorted(
        Draft202012Validator(spec.parameters).iter_errors(arguments), key=lambda error: error.json_path
    )
    if found:
        reasons = [
            f"{error.json_path}: {shortened(error.message, MAX_VIOLATION_CHARS)}"
            for error in found[:MAX_VIOLATIONS]
        ]
        names = ", ".join(
            name if name in spec.parameters["required"] else f"{name} (may be left out)"
            for name in spec.parameters["properties"]
        )
        message = f"wrong arguments for {spec.name}: {'; '.join(reasons)}; its arguments are: {names}"
        raise ToolError(message, "schema_violated")


def _message(error: Exception) -> str:
    return encodable(shortened(str(error), MAX_ERROR_CHARS))
