"""Names below a root: those that a wrong path may mean, and those that a new file must not have."""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from constrained_agent.tools.rules import REPOSITORY_NAME

MAX_NAMES = 20_000
"""Of what is taken: some 50 ms, and more than all but very large repositories have."""

_MAX_LARGE = 5
"""Folders that do not fit into what is left of `MAX_NAMES`; each costs a look at as many names, so then it ends."""

_MAX_SUGGESTED = 5_000
"""Of existing files, looked through for one that a wrong path may mean."""

_CLOSED = frozenset({".git", "node_modules", "__pycache__", ".venv"})
"""Folders that other programs fill: nobody means a file in them, nor wants a new one there."""

OUTPUT = re.compile(r"output:(\d+)/(stdout|stderr)")
"""The name of what a command printed, which `outputs` keeps. A patch can give no new file a name with a colon."""

_LIKE_OUTPUT = re.compile(r"output:\s*\d+(?:/.*)?", re.DOTALL)

# As PATH in grammars/apply_patch_strict.lark; half a surrogate is a byte that was not UTF-8.
_NOT_IN_PATCHES = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]|(?:^|/) | (?:/|\Z)")


@dataclass(frozen=True, slots=True)
class Taken:
    """What a new file must not be named; all paths are relative, with `/`, and sorted.

    A name that no patch can spell is left out, and all below it. On a disk that ignores case, or how a letter is
    composed, other spellings of these names are taken too: they are not listed, and applying refuses them (`exists`).

    Attributes:
        files: a new path may neither equal one of them nor lie below it. Everything but real folders (links too,
            wherever they lead), folders that other programs fill, and folders whose names are not all known.
            `.` if that is the root itself: then nothing can be added.
        folders: real folders; a new path must not equal one, but may lie below it.
        truncated: there were more than `MAX_NAMES`, so that some folders stand in `files`.
    """

    files: tuple[str, ...]
    folders: tuple[str, ...]
    truncated: bool


def taken(root: Path, closed: Collection[str] = ()) -> Taken:
    """The names that are taken below a folder, as they are at this moment.

    Args:
        closed: paths at which, and below which, nothing new may be, whatever stands there.

    Folders are listed level by level, so that it is the deep and the very large ones that are cut off.
    A folder that cannot be listed is no error: it stands in `files`.

    Cost: some 50 ms for `MAX_NAMES`; at most as much again for folders that do not fit.
    """
    files: list[str] = list(closed)
    folders: list[str] = []
    waiting = deque([""])
    room, n_large = MAX_NAMES, 0
    while waiting:
        folder = waiting.popleft()
        entries = None
        with contextlib.suppress(OSError):
            entries = _entries(root / folder, room) if n_large < _MAX_LARGE else None
            n_large += entries is None
        if entries is None:
            files.append(folder or ".")
            continue
        room -= len(entries)
        if folder:
            folders.append(folder)
        for name, is_folder in entries:
            path = f"{folder}/{name}" if folder else name
            if is_spelled_in_patches(name) and path not in closed:
                walked = is_folder and name not in _CLOSED and not is_git(name)
                (waiting if walked else files).append(path)
    return Taken(tuple(sorted(files)), tuple(sorted(folders)), n_large > 0)


def suggestions(root: Path) -> Iterator[str]:
    """Paths of existing files, a bounded number."""
    n = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _CLOSED)
        for name in sorted(names):
            path = Path(folder, name).relative_to(root).as_posix()
            if not any("\ud800" <= char <= "\udfff" for char in path):  # a name that no message can hold
                yield path
            n += 1
            if n == _MAX_SUGGESTED:
                return


def is_spelled_in_patches(path: str) -> bool:
    """Whether a patch can spell a path that exists: no control characters, no blanks around a part, all UTF-8."""
    return _NOT_IN_PATCHES.search(path) is None


def is_output(path: str) -> bool:
    """Whether something is, or was meant to be, the name of what a command printed."""
    return _LIKE_OUTPUT.fullmatch(path) is not None


def is_git(part: str) -> bool:
    """`.git` also as disks see it that ignore case or invisible characters."""
    return as_seen(part) == ".git"


def is_rules(part: str) -> bool:
    """The file of rules of permission, in whatever spelling a disk may take for it."""
    return as_seen(part) == REPOSITORY_NAME


def as_seen(name: str) -> str:
    """A name or path as disks see it that ignore case and invisible characters."""
    if name.isascii():  # no need to look at each character
        return name.lower()
    return "".join(char for char in name if unicodedata.category(char) != "Cf").casefold()


def _entries(folder: Path, at_most: int) -> list[tuple[str, bool]] | None:
    """Sorted names, each with whether it is a real folder; None if there are more than `at_most`."""
    with os.scandir(folder) as found:
        entries = list(islice(found, at_most + 1))
    if len(entries) > at_most:
        return None
    return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
