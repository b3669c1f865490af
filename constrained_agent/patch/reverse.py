"""A patch taken back: from the files as it left them to files that it would turn into these."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import cast

from constrained_agent.errors import PatchError, PatchErrorKind
from constrained_agent.patch.plan import Plan, Read, plan
from constrained_agent.patch.sections import (
    AddFile,
    DeleteFile,
    Hunk,
    HunkLine,
    Op,
    Patch,
    Section,
    UpdateFile,
)
from constrained_agent.patch.textfile import decode

_OPPOSITE: dict[Op, Op] = {"+": "-", "-": "+", " ": " "}


def inverted(patch: Patch) -> Patch:
    """The sections from last to first, each the other way round.

    A header that the patch itself changes is left out. A file that the patch adds and then changes is deleted.

    Raises:
        PatchError: `file_not_found` for a section that deletes a file: its text is nowhere.
    """
    found: list[Section] = []
    added: set[str] = set()
    for section in patch.sections:
        match section:
            case AddFile(path):
                added.add(path)
            case DeleteFile(path):
                reason = "the patch deletes this file and does not hold its text, so it cannot bring it back"
                raise PatchError("file_not_found", _in_reverse(reason), path=path)
            case UpdateFile(path, move_to, _) if path in added:
                added.remove(path)
                added.add(move_to or path)
            case UpdateFile(path, move_to, hunks):
                gone = {line.text for hunk in hunks for line in hunk.lines if line.op == "-"}
                back = tuple(_inverted(hunk, gone) for hunk in hunks)
                found.append(UpdateFile(move_to or path, path if move_to else None, back))
    return Patch((*(DeleteFile(path) for path in sorted(added)), *reversed(found)))


def _inverted(hunk: Hunk, gone: set[str]) -> Hunk:
    lines = tuple(HunkLine(_OPPOSITE[line.op], line.text) for line in hunk.lines)
    return replace(hunk, headers=tuple(text for text in hunk.headers if text not in gone), lines=lines)


def plan_back(
    patch: Patch,
    read: Read,
    *,
    identity: Callable[[str], Hashable] = str,
    names: Callable[[], Iterable[str]] | None = None,
) -> Plan:
    """Work out how to take a patch back. Pure.

    The hunks are found by their context and added lines, under the same rules as ever, and then the patch is
    tried on the outcome: it must give exactly the files that are there now. Lines that come back take their ending
    from the lines around them, as all new lines do: where the patch removed lines with another ending than their
    neighbours, that is not the old one.

    Args:
        read, identity, names: as for `plan`.

    Raises:
        PatchError: the first thing that does not fit; `context_not_found` also for a hunk that removes lines and
            names none beside them, `inexact_removal` where the patch would not lead back to the present files.

    Cost: three times that of `plan`.
    """
    back = inverted(patch)
    before = _Overlay(read, identity)
    try:
        for section in back.sections:
            if isinstance(section, UpdateFile):
                _check_places(section, before.read)
            before.take(plan(Patch((section,)), before.read, identity=identity, names=names))
        planned = plan(back, read, identity=identity, names=names)
    except PatchError as error:
        kind = cast(PatchErrorKind, error.kind)
        reason = _in_reverse(error.reason)
        raise PatchError(kind, reason, path=error.path, hunk=error.hunk, lines=error.lines) from error
    _check_way_back(patch, before.read, read, identity)
    return planned


def _check_way_back(patch: Patch, before: Read, now: Read, identity: Callable[[str], Hashable]) -> None:
    """Applied to the files as they would be, the patch must give those that are there."""
    try:
        files = plan(patch, before, identity=identity).files
    except PatchError as error:
        reason = f"it could be taken back, but would not apply again ({error.kind}: {error.reason})"
        raise PatchError("inexact_removal", _in_reverse(reason), path=error.path) from error
    for file in files:
        path = file.new_path or file.path
        if file.new != now(path):
            reason = "it could be taken back, but applied again it would not give this file"
            raise PatchError("inexact_removal", _in_reverse(reason), path=path)


def _check_places(section: UpdateFile, read: Read) -> None:
    """Lines that come back need a place: a line beside them, the end of the file, or an empty file."""
    for number, hunk in enumerate(section.hunks, start=1):
        data = read(section.path)
        if not hunk.old() and not hunk.end_of_file and data and decode(data, section.path).texts:
            reason = "the hunk removes lines and names none beside them, so it does not say where they stood"
            raise PatchError("context_not_found", reason, path=section.path, hunk=number)


def _in_reverse(reason: str) -> str:
    return f"in reverse, + and - exchanged: {reason}"


class _Overlay:
    """Files, and what plans have made of them since."""

    def __init__(self, read: Read, identity: Callable[[str], Hashable]) -> None:
        self._read, self._identity = read, identity
        self._changed: dict[Hashable, bytes | None] = {}

    def read(self, path: str) -> bytes | None:
        key = self._identity(path)
        return self._changed[key] if key in self._changed else self._read(path)

    def take(self, planned: Plan) -> None:
        for file in planned.files:
            self._changed[self._identity(file.path)] = None if file.new_path else file.new
            if file.new_path:
                self._changed[self._identity(file.new_path)] = file.new
