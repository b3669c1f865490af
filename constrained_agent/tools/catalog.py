"""Each tool: what the model is told of it, and what runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from constrained_agent.errors import PatchError, ToolError
from constrained_agent.messages import ToolSpec
from constrained_agent.patch import format as patch_format
from constrained_agent.patch.diff import FilePlan
from constrained_agent.tools import files, hints, landed, search, shell, syntax, undo
from constrained_agent.tools.landed import encodable
from constrained_agent.tools.names import is_output
from constrained_agent.tools.outputs import Outputs
from constrained_agent.tools.rooted import digest
from constrained_agent.tools.wayback import WayBack
from constrained_agent.tools.workspace import Workspace

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
class Outcome:
    """What a tool hands back: text for the model, facts for the transcript."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    ok: bool = True
    landed: tuple[FilePlan, ...] = ()
    back: WayBack | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """What a tool has to work with, beside its arguments.

    Attributes:
        seconds: how long a command that wants so many may take.
        variables: what commands get.
        share: of the length that outputs may have.
        landed: for the text of each patch that was applied, the SHA-256 of each file after it.
    """

    workspace: Workspace
    outputs: Outputs
    seconds: Callable[[float], float]
    variables: Mapping[str, str] | None
    share: float
    refuse_broken: bool
    landed: Mapping[str, Sequence[str | None]] = field(default_factory=dict)


_SENT_AGAIN = (
    "this very patch was applied before, and the files are as it left them: nothing is left to do. To make the same "
    "change in one more place, send a patch with the lines around that place"
)

Run = Callable[[Setting, Mapping[str, Any]], Outcome]


def _list_dir(setting: Setting, arguments: Mapping[str, Any]) -> Outcome:
    return Outcome(files.list_dir(setting.workspace, arguments["path"]))


def _read_file(setting: Setting, arguments: Mapping[str, Any]) -> Outcome:
    path = arguments["path"]
    offset = int(arguments.get("offset", 1))  # JSON's 3.0 is an integer to a schema, not to a slice
    limit = int(arguments.get("limit", files.DEFAULT_LINES))
    if is_output(path):
        return Outcome(setting.outputs.read(path, offset, limit, files.MAX_READ_CHARS))
    return Outcome(files.read_file(setting.workspace, path, offset, limit))


def _search_text(setting: Setting, arguments: Mapping[str, Any]) -> Outcome:
    return Outcome(search.search_text(setting.workspace, arguments["pattern"], arguments["path"]))


def _exec_command(setting: Setting, arguments: Mapping[str, Any]) -> Outcome:
    command = arguments["command"]
    if reason := hints.waits(command):
        raise ToolError(reason)
    result = executed(setting, command, arguments.get("timeout_s", shell.DEFAULT_TIMEOUT_S))
    notes = hints.notes(command, result, [spec.name for spec, _ in TABLE])
    # A failing test is an answer; a command that was cut short is not.
    return Outcome(shell.report(result, notes), asdict(result), ok=not result.timed_out)


def executed(setting: Setting, command: str, timeout_s: float) -> shell.CommandResult:
    return shell.exec_command(
        setting.workspace.root,
        command,
        setting.seconds(timeout_s),
        setting.variables,
        setting.outputs,
        setting.share,
    )


def _digest(content: bytes | None) -> str | None:
    return None if content is None else digest(content)


def _apply_patch(setting: Setting, arguments: Mapping[str, Any]) -> Outcome:
    parsed = patch_format.parse(arguments["patch"])
    broken: list[syntax.Broken] = []

    def check(planned: Sequence[FilePlan]) -> None:
        # Lines that are only added fit beside themselves once more: a patch that is sent again would double them.
        if setting.landed.get(arguments["patch"]) == [_digest(file.old) for file in planned]:
            raise PatchError("already_applied", _SENT_AGAIN, path=planned[0].path)
        broken.extend(syntax.broken_by(planned))
        if broken and setting.refuse_broken:
            raise syntax.refusal(broken)

    applied = setting.workspace.apply(parsed.patch, check=check)
    data = {
        "files": landed.facts(applied.files),
        "diff": encodable(applied.diff),
        "leniencies": dict(parsed.leniencies),
        "syntax_errors": syntax.facts(broken),
        "undo": undo.plain(applied.back) if applied.back else None,
    }
    text = "\n".join(["the patch is applied:", *landed.lines(applied.files), *syntax.report(broken)])
    return Outcome(text, data, landed=applied.files, back=applied.back)


TABLE: tuple[tuple[ToolSpec, Run], ...] = (
    (files.LIST_DIR, _list_dir),
    (files.READ_FILE, _read_file),
    (search.SEARCH_TEXT, _search_text),
    (shell.EXEC_COMMAND, _exec_command),
    (APPLY_PATCH, _apply_patch),
)
