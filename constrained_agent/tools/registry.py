"""The tools on offer, and the one way to run a call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from constrained_agent.errors import PatchError, ToolError, UserError
from constrained_agent.messages import ToolCall, ToolResult, ToolSpec
from constrained_agent.patch import format as patch_format
from constrained_agent.patch import textfile
from constrained_agent.patch.diff import FilePlan, LineChange
from constrained_agent.tools import files, search, shell
from constrained_agent.tools.changes import ChangeLog, Changes
from constrained_agent.tools.names import Taken
from constrained_agent.tools.permissions import Policy
from constrained_agent.tools.reads import Reading
from constrained_agent.tools.workspace import Workspace

MAX_SHOWN_LINES = 40
"""Of a patch's result: enough to see that it landed as meant; the whole file is one read_file away."""

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


_Run = Callable[[Workspace, Mapping[str, Any]], _Outcome]


class Tools:
    """The tools of one run, bound to a repository and to what the person allows."""

    def __init__(self, workspace: Workspace, policy: Policy) -> None:
        self._workspace, self._policy = workspace, policy
        self._log = ChangeLog()
        self._deadline: float | None = None
        self.specs: tuple[ToolSpec, ...] = tuple(spec for spec, _ in _TABLE if policy.offers(spec.effect))

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
        kind = "" if outcome.ok else "tool_error"
        return ToolResult(call.id, outcome.ok, _encodable(outcome.text), kind, outcome.data)

    def show(self, path: str, *, option: str = "--file") -> str:
        """A file as `read_file` shows it, put before the model by the person; it counts as read.

        Args:
            option: how the person named it, for the message.

        Raises:
            UserError: it cannot be read.
        """
        try:
            return _encodable(files.read_file(self._workspace, path))
        except (ToolError, OSError) as error:
            raise UserError(f"{option} {path}: {_message(error)}") from None

    def run_tests(self, command: str) -> ToolResult:
        """Run the person's test command; `ok` where it ends with exit code 0 in time.

        No permission is asked: the person gave the command.
        """
        result = shell.exec_command(self._workspace.root, command, self._seconds(shell.MAX_TIMEOUT_S))
        passed = result.exit_code == 0 and not result.timed_out
        text = f"tests {'passed' if passed else 'failed'}: {command}\n{_encodable(shell.report(result))}"
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
                self._policy.check(spec, call.arguments)
                arguments = dict(call.arguments)
                if spec.effect == "exec":
                    arguments["timeout_s"] = self._seconds(
                        arguments.get("timeout_s", shell.DEFAULT_TIMEOUT_S)
                    )
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
    result = shell.exec_command(workspace.root, arguments["command"], timeout_s)
    # A failing test is an answer; a command that was cut short is not.
    return _Outcome(shell.report(result), asdict(result), ok=not result.timed_out)


def _apply_patch(workspace: Workspace, arguments: Mapping[str, Any]) -> _Outcome:
    parsed = patch_format.parse(arguments["patch"])
    applied = workspace.apply(parsed.patch)
    facts = ("path", "action", "new_path", "added", "removed")
    data = {
        "files": [{name: getattr(file, name) for name in facts} for file in applied.files],
        "diff": _encodable(applied.diff),
        "leniencies": dict(parsed.leniencies),
    }
    text = "\n".join(["the patch is applied:", *_landed(applied.files)])
    return _Outcome(text, data, landed=applied.files)


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
            f"{error.json_path}: {_cut(error.message, MAX_VIOLATION_CHARS)}"
            for error in found[:MAX_VIOLATIONS]
        ]
        names = ", ".join(
            name if name in spec.parameters["required"] else f"{name} (may be left out)"
            for name in spec.parameters["properties"]
        )
        message = f"wrong arguments for {spec.name}: {'; '.join(reasons)}; its arguments are: {names}"
        raise ToolError(message, "schema_violated")


def _landed(plans: Sequence[FilePlan]) -> Iterator[str]:
    """One line for each file and, where old lines gave way, the new ones with their numbers."""
    room = MAX_SHOWN_LINES
    for file in plans:
        target = f" to {file.new_path}" if file.new_path else ""
        yield f"{file.action} {file.path}{target} (+{file.added} -{file.removed})"
        if file.action == "add" or file.new is None or not file.changes:
            continue
        texts = textfile.decode(file.new, file.path).texts
        for start, end in _spans(file.changes, len(texts)):
            yield from islice(files.numbered(texts[start:end], start + 1, len(str(len(texts)))), max(0, room))
            room -= end - start
    if room < 0:
        yield "[the rest is not shown]"


def _spans(changes: Sequence[LineChange], n_lines: int) -> list[tuple[int, int]]:
    """The new lines with one more line on either side, as 0-based ranges that do not touch."""
    spans: list[tuple[int, int]] = []
    for change in changes:
        start, end = max(0, change.new_start - 1), min(n_lines, change.new_end + 1)
        if spans and start <= spans[-1][1]:
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def _message(error: Exception) -> str:
    return _encodable(_cut(str(error), MAX_ERROR_CHARS))


def _cut(text: str, n_chars: int) -> str:
    return text if len(text) <= n_chars else text[:n_chars] + "…"


def _encodable(text: str) -> str:
    """Half a surrogate pair, from a model's JSON or an odd file name, must not break prompt or transcript."""
    return text.encode("utf-8", "backslashreplace").decode()
