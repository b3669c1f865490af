"""Which files stand below a folder, what changed between two looks, and how to put a file back as it was.

A file's *entry* is its mode and the SHA-256 of its bytes, as git writes a tree: `100644 9f86d0…`, `100755 …` for one
that can be executed, `120000 …` for a symbolic link (of its target). Where the bytes were not looked into, `?` stands
for them. None is no file.

Left out: `.git`, folders that say of themselves that they are caches or virtual environments, pipes and devices, and
names that are not UTF-8. Empty folders are nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from constrained_agent.tools.names import is_git
from constrained_agent.tools.rooted import Rooted, digest
from constrained_agent.tools.workspace import Workspace

MAX_FILES = 20_000
"""Looked at, some 0.2 s a look. Of a larger folder only the files that are asked for by name."""

MAX_FILE_BYTES, MAX_BYTES = 2_000_000, 200_000_000
"""Of one file, and of all in one look, that are read for their hashes: at most a second, and only the first time."""

UNREAD = "?"
"""In place of a hash."""

_CLOSED = frozenset({"node_modules", "__pycache__", ".venv", ".hypothesis", ".tox", ".nox"})
_MARKS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})
_RACY_NS = 2_000_000_000  # a write so soon before a look may be followed by one with the same time stamp

_Facts = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Known:
    facts: _Facts
    entry: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one look saw.

    Attributes:
        files: path (relative, `/` between its parts) to what is known of it.
        complete: False: there were more than `MAX_FILES`, so only those are here that were asked for by name.
        taken_ns: the clock when the look began.
    """

    files: Mapping[str, _Known]
    complete: bool
    taken_ns: int

    def entry(self, path: str) -> str | None:
        """A path's entry, None if no file was seen there."""
        known = self.files.get(path)
        return None if known is None else known.entry

    def digest(self) -> str:
        """SHA-256 of all paths and entries."""
        lines = (f"{self.files[path].entry}\t{path}\n" for path in sorted(self.files))
        return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Difference:
    """A path at which two looks saw different things, and the entries there; None for no file."""

    path: str
    before: str | None
    after: str | None


def look(
    root: Path, before: Snapshot | None = None, *, ignored: Collection[str] = (), also: Iterable[str] = ()
) -> Snapshot:
    """Look at all files below a folder.

    Args:
        root: real path of the folder.
        before: an earlier look; files that have not been written since are not read again.
        ignored: paths to leave out.
        also: paths to look at wherever they stand, in closed folders or large ones.
    """
    taken_ns = time.time_ns()
    files: dict[str, _Known] = {}
    room = MAX_BYTES
    if before is not None and not before.complete:
        return following(Snapshot({}, False, taken_ns), root, also)
    for path, found in _walk(root):
        if len(files) >= MAX_FILES:
            return following(Snapshot({}, False, taken_ns), root, also)
        if path not in ignored:
            earlier = before.files.get(path) if before is not None else None
            if earlier is None or earlier.facts != _facts(found) or _is_racy(earlier, before):
                is_large = found.st_size > min(MAX_FILE_BYTES, room)
                room -= 0 if is_large else found.st_size
                files[path] = _known(root, path, found, unread=is_large)
            else:
                files[path] = earlier
    return following(Snapshot(files, True, taken_ns), root, also)


def following(snapshot: Snapshot, root: Path, paths: Iterable[str]) -> Snapshot:
    """A snapshot with further paths as they stand now; those that it has, or where no file is, change nothing."""
    rooted = Rooted(root)
    more: dict[str, _Known] = {}
    for path in paths:
        with contextlib.suppress(OSError):  # a name that is too long, a link that came in between
            if path not in snapshot.files and (found := rooted.stat(path)) and _is_file(found.st_mode):
                more[path] = _known(root, path, found)
    return replace(snapshot, files={**snapshot.files, **more}) if more else snapshot


def differences(old: Snapshot, new: Snapshot) -> list[Difference]:
    """What two looks saw differently, by path. Of a file that was read in neither, its time stamp and size decide."""
    found = []
    for path in sorted(old.files.keys() | new.files.keys()):
        before, after = old.files.get(path), new.files.get(path)
        if before is not None and after is not None and not _differ(before, after):
            continue
        found.append(Difference(path, old.entry(path), new.entry(path)))
    return found


def _differ(before: _Known, after: _Known) -> bool:
    return before.entry != after.entry or (UNREAD in after.entry and before.facts != after.facts)


def entry(workspace: Workspace, path: str) -> str | None:
    """The entry of one path at this moment, read however large it is; None for no file.

    Raises:
        PatchError: the path leads out of the folder.
    """
    workspace.resolve(path)
    found = Rooted(workspace.root).stat(path)
    return None if found is None else _entry(workspace.root, path, found.st_mode)


def same(recorded: str | None, found: str | None) -> bool:
    """Whether two entries may be those of the same file: what was not looked into fits any."""
    if recorded is None or found is None or UNREAD not in (recorded[-1], found[-1]):
        return recorded == found
    return recorded.split(" ")[0] == found.split(" ")[0]


def put(workspace: Workspace, path: str, text: str | None, entry: str | None) -> None:
    """Write or remove one file. Not atomic; links are not followed.

    Args:
        text: the file's text; None removes it, and the folders that are empty after that.
        entry: what it is to be; of it, only the mode counts.

    Raises:
        PatchError: the path leads out of the folder.
        OSError: it cannot be written.
    """
    workspace.resolve(path)
    rooted = Rooted(workspace.root)
    folders = [path[:at] for at, char in enumerate(path) if char == "/"]
    if text is None:
        rooted.remove(path)
        for folder in reversed(folders):
            rooted.remove_folder(folder)
        return
    for folder in folders:
        if rooted.stat(folder) is None:
            rooted.make_folder(folder)
    data = text.encode()
    rooted.rewrite(path, data) if rooted.stat(path) else rooted.create(path, data)
    _set_executable(workspace.root / path, entry is not None and entry.startswith("100755"))


def _set_executable(where: Path, executable: bool) -> None:
    mode = stat.S_IMODE(where.stat().st_mode)
    wanted = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
    if wanted != mode:
        where.chmod(wanted)


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Files and links with their facts, a folder's own before those of its folders; nothing where it cannot look."""
    waiting = [""]
    while waiting:
        folder = waiting.pop(0)
        entries: list[os.DirEntry[str]] = []
        with contextlib.suppress(OSError), os.scandir(root / folder) as found:
            entries = sorted(found, key=lambda item: item.name)
        if folder and any(item.name in _MARKS for item in entries):
            continue
        for item in entries:
            path = f"{folder}/{item.name}" if folder else item.name
            if is_git(item.name) or not _is_utf8(item.name):
                continue
            if item.is_dir(follow_symlinks=False):
                if item.name not in _CLOSED:
                    waiting.append(path)
                continue
            with contextlib.suppress(OSError):
                facts = item.stat(follow_symlinks=False)
                if _is_file(facts.st_mode):
                    yield path, facts


def _known(root: Path, path: str, found: os.stat_result, *, unread: bool = False) -> _Known:
    seen = _entry(root, path, found.st_mode, unread=unread)
    return _Known(_facts(found), seen or f"{_mode(found.st_mode)} {UNREAD}")


def _facts(found: os.stat_result) -> _Facts:
    """What changes when a file is written."""
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _entry(root: Path, path: str, mode: int, *, unread: bool = False) -> str | None:
    """None if it cannot be read, or is neither a file nor a link."""
    try:
        if stat.S_ISLNK(mode):
            return f"120000 {digest(os.fsencode(os.readlink(root / path)))}"
        if stat.S_ISREG(mode):
            return f"{_mode(mode)} {UNREAD if unread else digest(_bytes(root / path))}"
    except OSError:
        return None
    return None


def _is_file(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _bytes(where: Path) -> bytes:
    """A file's bytes; neither a link nor a pipe that came in its place is followed or waited for."""
    handle = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        return file.read()


def _mode(mode: int) -> str:
    return "100755" if mode & stat.S_IXUSR else "100644"


def _is_racy(known: _Known, before: Snapshot | None) -> bool:
    """Whether a file was written so shortly before the look that it may have been written again unseen."""
    return before is not None and max(known.facts[2], known.facts[3]) >= before.taken_ns - _RACY_NS


def _is_utf8(name: str) -> bool:
    return not any("\udc80" <= char <= "\udcff" for char in name)
