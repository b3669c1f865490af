"""Patches taken back: the last one of a run, or one that a transcript tells of after the program has ended.

A patch's result holds its way back as plain data (`plain`), so that it survives in a transcript. What would make the
transcript large is left out: a deleted file, or the replaced lines of one, over `MAX_RECORDED_BYTES`.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

from constrained_agent.errors import PatchError, ToolError, UserError
from constrained_agent.messages import ToolResult
from constrained_agent.patch.diff import Action
from constrained_agent.tools import landed
from constrained_agent.tools.wayback import FileBack, Piece, WayBack
from constrained_agent.tools.workspace import Workspace

T = TypeVar("T")

MAX_RECORDED_BYTES = 200_000
"""Of one file in a transcript."""

CALL_ID = "undo"
"""Of the result that says that a patch was taken back; `undone` in its data names the patch's own call."""


def taken_back(workspace: Workspace, back: WayBack, call_id: str, *, dry_run: bool = False) -> ToolResult:
    """Take a patch back and say what came of it; an error is a result, too.

    Args:
        call_id: of the patch.
        dry_run: check everything, write nothing.
    """
    try:
        applied = workspace.take_back(back, dry_run=dry_run)
    except ToolError as error:
        path = error.path if isinstance(error, PatchError) else None
        return ToolResult(CALL_ID, False, landed.encodable(str(error)), error.kind, {"path": path})
    done = "the patch would be taken back:" if dry_run else "the patch is taken back:"
    text = "\n".join([done, *landed.lines(applied.files)])
    data = {"files": landed.facts(applied.files), "diff": landed.encodable(applied.diff)}
    if not dry_run:
        data["undone"] = call_id
    return ToolResult(CALL_ID, True, landed.encodable(text), "", data)


def undo_recorded(
    root: str | os.PathLike[str], event: Mapping[str, Any], *, dry_run: bool = False
) -> ToolResult:
    """Take a patch back by what a transcript tells of it, if its files are as it left them.

    Args:
        root: the repository.
        event: a `result` event of a patch that landed: see `last_applied`.
        dry_run: check everything, write nothing.

    Returns:
        How it went. Where it went well, it has to be added to the transcript as a `result`, so that the next call of
        `last_applied` finds the patch before this one.

    Raises:
        UserError: `root` is no folder, or the event tells of no patch that landed.
    """
    back = _way_back(event)
    return taken_back(Workspace(root), back, str(event.get("call_id", "")), dry_run=dry_run)


def last_applied(events: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Of a transcript's events, in order, the result of the last patch that was applied and not taken back since.

    Args:
        events: of one or more runs, as objects; what is no result of a patch is passed over.
    """
    standing: list[Mapping[str, Any]] = []
    for event in events:
        data = event.get("data")
        if event.get("event") != "result" or not isinstance(data, Mapping):
            continue
        if "undo" in data:
            standing.append(event)
        elif "undone" in data:
            ids = [patch.get("call_id") for patch in standing]
            if data["undone"] in ids:
                del standing[len(ids) - 1 - ids[::-1].index(data["undone"])]
    return standing[-1] if standing else None


def plain(back: WayBack) -> dict[str, Any]:
    """A way back as JSON has it."""
    return {"files": [_plain_file(file) for file in back.files], "folders": list(back.folders)}


def _plain_file(file: FileBack) -> dict[str, Any]:
    pieces = None
    if file.pieces is not None and sum(len(piece.old) for piece in file.pieces) <= MAX_RECORDED_BYTES:
        pieces = [[piece.start, piece.end, _plain_bytes(piece.old)] for piece in file.pieces]
    facts: dict[str, Any] = {
        "action": file.action,
        "path": file.path,
        "new_path": file.new_path,
        "now": file.now,
        "then": file.then,
        "pieces": pieces,
        "mode": file.mode,
    }
    if file.content is not None and len(file.content) <= MAX_RECORDED_BYTES:
        facts["content"] = _plain_bytes(file.content)
    if file.link is not None:
        facts["link"] = _plain_bytes(os.fsencode(file.link))
    return {name: fact for name, fact in facts.items() if fact is not None}


def _plain_bytes(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _way_back(event: Mapping[str, Any]) -> WayBack:
    data = event.get("data")
    recorded = data.get("undo") if isinstance(data, Mapping) else None
    if event.get("event") != "result" or not isinstance(recorded, Mapping):
        raise UserError(
            "the event tells of no patch that was applied, or comes from a version that kept no way back"
        )
    try:
        files = tuple(_file(file) for file in recorded["files"])
        folders = tuple(_typed(path, str) for path in recorded["folders"])
    except (KeyError, TypeError, ValueError) as error:
        reason = f"it cannot be read ({type(error).__name__}: {error}); was the transcript edited?"
        raise UserError(f"the way back of call {event.get('call_id')}: {reason}") from error
    if not files:
        raise UserError(f"the way back of call {event.get('call_id')} names no file")
    return WayBack(files, folders)


def _file(facts: Mapping[str, Any]) -> FileBack:
    if facts["action"] not in get_args(Action):
        raise ValueError(f"there is no action {facts['action']!r}")
    pieces, content, link = facts.get("pieces"), facts.get("content"), facts.get("link")
    return FileBack(
        facts["action"],
        _typed(facts["path"], str),
        _optional(facts.get("new_path"), str),
        _optional(facts.get("now"), str),
        _optional(facts.get("then"), str),
        None if pieces is None else tuple(_piece(*piece) for piece in pieces),
        None if content is None else _bytes(content),
        _optional(facts.get("mode"), int),
        None if link is None else os.fsdecode(_bytes(link)),
    )


def _piece(start: object, end: object, old: object) -> Piece:
    return Piece(_typed(start, int), _typed(end, int), _bytes(old))


def _bytes(data: object) -> bytes:
    if isinstance(data, Mapping):
        return base64.b64decode(_typed(data["base64"], str), validate=True)
    return _typed(data, str).encode("utf-8")


def _optional(value: object, kind: type[T]) -> T | None:
    return None if value is None else _typed(value, kind)


def _typed(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} where {kind.__name__} should stand")
    return value
