"""A patch and the old bytes of its files to their new bytes: every check, and nothing written."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from constrained_agent.errors import PatchError
from constrained_agent.patch import explain
from constrained_agent.patch.diff import Action, FilePlan, Landing, LineChange, unified_diff
from constrained_agent.patch.edits import NEW, Change, Draft, changes_of, splice
from constrained_agent.patch.locate import Miss, Searcher
from constrained_agent.patch.replay import applied_at
from constrained_agent.patch.sections import AddFile, DeleteFile, Patch, UpdateFile
from constrained_agent.patch.textfile import count_lines, decode, encode

__all__ = ["FilePlan", "Landing", "LineChange", "Plan", "plan", "unified_diff"]

Read = Callable[[str], bytes | None]


class _Located(NamedTuple):
    """A hunk's old lines `start` up to `end` (0-based) and what becomes of them."""

    start: int
    end: int
    number: int
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a patch does, file by file, in the order in which the patch first names them."""

    files: tuple[FilePlan, ...]

    def diff(self) -> str:
        """A unified diff of all files."""
        return unified_diff(self.files)


def plan(
    patch: Patch,
    read: Read,
    *,
    identity: Callable[[str], Hashable] = str,
    names: Callable[[], Iterable[str]] | None = None,
) -> Plan:
    """Work out what a patch does. Pure: the same inputs give the same plan.

    Args:
        read: the bytes of the file at a path, None if there is none. It may raise `PatchError` for a path
            that may not be used.
        identity: equal for two paths that are one file (links, disks that ignore case).
        names: paths of existing files, to suggest one where a path is wrong; asked only then.

    Raises:
        PatchError: the first thing that does not fit.

    Cost: linear in the files and the patch; about 1 s for a file of a million lines.
    """
    planner = _Planner(read, identity, names)
    for section in patch.sections:
        match section:
            case AddFile():
                planner.add(section)
            case DeleteFile():
                planner.delete(section)
            case UpdateFile():
                planner.update(section)
    return Plan(tuple(planner.finish()))


@dataclass(slots=True)
class _Entry:
    """A file that the patch has touched so far: as it was, and as it is after the sections read."""

    path: str
    old: bytes | None
    at: str | None
    new: bytes | None
    draft: Draft | None = None
    landings: list[Landing] = field(default_factory=list)


class _Planner:
    """The overlay of touched files; each method applies one section to it."""

    def __init__(
        self,
        read: Read,
        identity: Callable[[str], Hashable],
        names: Callable[[], Iterable[str]] | None,
    ) -> None:
        self._read, self._identity, self._names = read, identity, names
        self._entries: list[_Entry] = []
        self._live: dict[Hashable, _Entry] = {}
        self._deleted: set[Hashable] = set()
        self._moved: dict[Hashable, str] = {}

    def add(self, section: AddFile) -> None:
        lines = "".join([line + "\n" for line in section.lines])
        if "\0" in lines:
            raise PatchError("not_text", "an added line holds NUL", path=section.path)
        new = lines.encode("utf-8", "surrogateescape")
        self._check_free(section.path, new)
        self._enter(_Entry(section.path, None, section.path, new))

    def delete(self, section: DeleteFile) -> None:
        key = self._identity(section.path)
        if key in self._live or key in self._deleted:
            reason = "the patch also changes or creates this file; name it in one section only"
            raise PatchError("duplicate_path", reason, path=section.path)
        old = self._existing(section.path, update=False)
        self._enter(_Entry(section.path, old, None, None))
        self._deleted.add(key)

    def update(self, section: UpdateFile) -> None:
        key = self._identity(section.path)
        if key in self._deleted:
            raise PatchError("duplicate_path", "the patch also deletes this file", path=section.path)
        entry = self._live.get(key)
        if entry is None:
            old = self._existing(section.path, update=True, move_to=section.move_to)
            entry = _Entry(section.path, old, section.path, old)
        target = self._real_move(section)
        if target is not None and self._identity(target) != key:
            self._check_free(target)
        if section.hunks:
            self._change(entry, section)
        if key not in self._live:
            self._enter(entry)
        if target is not None:
            del self._live[key]
            self._moved[key] = target
            self._settle(entry, target)

    def finish(self) -> Iterable[FilePlan]:
        self._check_folders()
        for entry in self._entries:
            yield _file_plan(entry)

    def _enter(self, entry: _Entry) -> None:
        self._entries.append(entry)
        if entry.at is not None:
            self._settle(entry, entry.at)

    def _settle(self, entry: _Entry, path: str) -> None:
        key = self._identity(path)
        entry.at, self._live[key] = path, entry
        self._moved.pop(key, None)

    def _real_move(self, section: UpdateFile) -> str | None:
        """The target, unless it is the file itself. Another case of the same name is a move on every disk."""
        path, target = section.path, section.move_to
        if target is None or target == path:
            return None
        same = self._identity(target) == self._identity(path)
        return None if same and target.casefold() != path.casefold() else target

    def _existing(self, path: str, *, update: bool, move_to: str | None = None) -> bytes:
        if target := self._moved.get(self._identity(path)):
            raise PatchError("file_not_found", f"an earlier section moves this file to {target}", path=path)
        old = self._read(path)
        if old is None:
            if move_to is not None and self._read(move_to) is not None:
                reason = f"there is no such file, but {move_to} exists: was it moved already?"
                raise PatchError("file_not_found", reason, path=path)
            raise explain.file_not_found(path, self._names, update=update)
        return old

    def _check_free(self, path: str, new: bytes | None = None) -> None:
        """Add and Move never overwrite, not even what an earlier section takes away."""
        key = self._identity(path)
        if key in self._deleted:
            reason = "the patch deletes this file and creates it again; change it with one *** Update File: instead"
            raise PatchError("duplicate_path", reason, path=path)
        if key in self._live and self._live[key].old is None:
            raise PatchError("duplicate_path", "an earlier section already creates this file", path=path)
        if key in self._moved:
            return
        there = self._read(path)
        if there is not None and there == new:
            raise PatchError("exists", "the file exists and already holds exactly this text", path=path)
        if key in self._live or there is not None:
            reason = "the file exists and would be overwritten; change it with *** Update File:, or choose another name"
            raise PatchError("exists", reason, path=path)

    def _change(self, entry: _Entry, section: UpdateFile) -> None:
        if entry.draft is None:
            assert entry.new is not None
            file = decode(entry.new, section.path)
            entry.draft = Draft(
                file, range(len(file.texts)) if entry.old is not None else [NEW] * len(file.texts)
            )
        entry.draft, landings = _apply(entry.draft, section, len(entry.landings))
        entry.landings += landings

    def _check_folders(self) -> None:
        """No new file may stand where another one needs a folder."""
        created = {
            entry.at for entry in self._entries if entry.at not in (None, entry.path) or entry.old is None
        }
        for path in filter(None, created):
            for i, char in enumerate(path):
                if char == "/" and path[:i] in created:
                    raise PatchError("bad_path", f"the patch also creates {path[:i]} as a file", path=path)


def _apply(draft: Draft, section: UpdateFile, n_before: int) -> tuple[Draft, list[Landing]]:
    """Apply the hunks of one section; all are located in the same lines."""
    texts = draft.file.texts
    searcher = Searcher(texts, section.hunks)
    found: list[_Located] = []
    landings = []
    after = 0
    for number, hunk in enumerate(section.hunks, start=1):
        where = explain.Where(section.path, number)
        place = searcher.locate(hunk, after)
        if (at := applied_at(hunk, place, texts)) is not None:
            raise explain.already_applied(where, at)
        if isinstance(place, Miss):
            raise explain.missed(where, hunk, place, searcher)
        n_old = len(hunk.old())
        after = place.start + n_old
        found.append(_Located(place.start, after, number, changes_of(hunk, place, texts, where)))
        landings.append(Landing(n_before + number, place.start + 1, n_old, place.level.name.lower()))
    found.sort(key=lambda located: (located.start, located.end))
    _check_overlap(section.path, found)
    return splice(draft, itertools.chain.from_iterable(located.changes for located in found)), landings


def _check_overlap(path: str, found: Sequence[_Located]) -> None:
    """No two hunks share a line, not even a context line; `found` is in file order."""
    reach = found[0]
    for located in found[1:]:
        if located.start < reach.end:
            first, second = sorted((reach.number, located.number))
            last = max(located.start, min(located.end, reach.end) - 1)
            raise explain.overlap(explain.Where(path, second), first, located.start, last)
        if located.end >= reach.end:
            reach = located


def _file_plan(entry: _Entry) -> FilePlan:
    new = entry.new if entry.draft is None else encode(entry.draft.file)
    action: Action = "update"
    if entry.old is None:
        action = "add"
    elif entry.at is None:
        action = "delete"
    elif entry.at != entry.path:
        action = "move"
    elif new == entry.old:
        raise PatchError("no_change", "after all sections the file is as it was before", path=entry.path)
    if action in ("add", "delete"):
        change = LineChange(0, count_lines(entry.old), 0, count_lines(new))
        changes = [change] if change.old_end or change.new_end else []
    else:
        changes = [] if entry.draft is None else _line_changes(entry.draft, count_lines(entry.old))
    path, new_path = entry.path, entry.at if action == "move" else None
    if action == "add" and entry.at is not None:
        path = entry.at
    added = sum(change.new_end - change.new_start for change in changes)
    removed = sum(change.old_end - change.old_start for change in changes)
    landings = tuple(entry.landings)
    return FilePlan(path, action, new_path, entry.old, new, added, removed, tuple(changes), landings)


def _line_changes(draft: Draft, n_old: int) -> list[LineChange]:
    """Where the run of kept lines is interrupted."""
    origins = list(draft.origins)
    if draft.file.bom and origins[:1] != [0]:
        # The mark stays at the top: what was the first line and what is now are other lines, to the byte.
        origins = [NEW, *(NEW if origin == 0 else origin for origin in origins[1:])]
    found = []
    old_at = new_at = 0
    for i, origin in enumerate([*origins, n_old]):
        if origin == NEW:
            continue
        if origin > old_at or i > new_at:
            found.append(LineChange(old_at, origin, new_at, i))
        old_at, new_at = origin + 1, i + 1
    return found
