"""What git has recorded, as trees of bytes: the two sides of a `git diff`. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.errors import PatchError, ToolError, UserError
from constrained_agent.tools.capture import capture
from constrained_agent.tools.rooted import Rooted

MAX_BYTES = 200_000_000
"""Of changed files, old and new together: they are held in memory, several times over."""

_TIMEOUT_S = 60.0
_MAX_LISTING_BYTES = 50_000_000

# No daemon of the repository's choice, no write to its index.
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")
_NO_OBJECT = set("0")
_FILE, _EXECUTABLE, _ABSENT = "100644", "100755", "000000"
_KINDS = {"120000": "a symbolic link", "160000": "a submodule"}


@dataclass(frozen=True, slots=True)
class Tree:
    """One side: of the files that differ, those that it has.

    Attributes:
        files: path, relative to the folder that was asked about, to bytes.
        executable: the paths of those that can be executed.
    """

    files: dict[str, bytes]
    executable: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Change:
    path: str
    old_mode: str
    new_mode: str
    old_object: str
    new_object: str


def trees(root: Path, revision: str) -> tuple[Tree, Tree]:
    """Both sides of `git diff REVISION` below a folder: of what git tracks, the files that differ.

    Args:
        root: a folder inside a repository; the repository's other folders are left out.
        revision: a commit, compared to the files as they stand on the disk, or two of them (`A..B`, `A...B`).

    Raises:
        UserError: no repository, no such revision, no git, or more than `MAX_BYTES`.
        PatchError: a file is, or was, no regular file but a link or a submodule.

    Cost: that of `git diff`, and reading the files.
    """
    if revision.startswith("-"):
        raise UserError(f"{revision}: this is no revision")
    try:
        changes = list(_changes(root, revision))
        contents = _contents(root, changes)
    except ToolError as error:
        if isinstance(error, PatchError):
            raise
        # Behind its first line, git explains its own flags.
        raise UserError(f"git diff {revision}: {str(error).partition(chr(10))[0]}") from error
    old = {c.path: contents[c.old_object] for c in changes if c.old_mode != _ABSENT}
    on_disk = [c.path for c in changes if c.new_mode != _ABSENT and set(c.new_object) == _NO_OBJECT]
    new = {c.path: contents[c.new_object] for c in changes if set(c.new_object) != _NO_OBJECT}
    new.update(_read(root, on_disk))
    can_before = frozenset(c.path for c in changes if c.old_mode == _EXECUTABLE)
    can_after = frozenset(c.path for c in changes if c.new_mode == _EXECUTABLE)
    return Tree(old, can_before), Tree(new, can_after)


def _changes(root: Path, revision: str) -> Iterator[_Change]:
    flags = ("--raw", "-z", "--no-abbrev", "--no-renames", "--relative", "--no-ext-diff", "--no-textconv")
    listing = capture(root, (*_GIT, "diff", *flags, revision, "--"), b"", _MAX_LISTING_BYTES, _TIMEOUT_S)
    fields = listing.split(b"\0")
    # git-diff(1), raw output: ":mode mode object object status", NUL, path, NUL
    for facts, name in zip(fields[0:-1:2], fields[1::2], strict=True):
        old_mode, new_mode, old_object, new_object, _ = facts.decode("ascii").lstrip(":").split(" ")
        path = name.decode("utf-8", "surrogateescape")
        for mode in (old_mode, new_mode):
            if mode not in (_FILE, _EXECUTABLE, _ABSENT):
                reason = (
                    f"this is {_KINDS.get(mode, 'no file')} on one side; a patch changes regular files only"
                )
                raise PatchError("bad_path", reason, path=path)
        yield _Change(path, old_mode, new_mode, old_object, new_object)


def _contents(root: Path, changes: Sequence[_Change]) -> dict[str, bytes]:
    """Object name to bytes."""
    both = (name for change in changes for name in (change.old_object, change.new_object))
    names = [name for name in dict.fromkeys(both) if set(name) != _NO_OBJECT]
    asked = "".join(f"{name}\n" for name in names).encode("ascii")
    facts = capture(
        root, (*_GIT, "cat-file", "--batch-check=%(objectsize)"), asked, _MAX_LISTING_BYTES, _TIMEOUT_S
    )
    if b" missing\n" in facts:
        raise UserError("git lacks some of the files' old contents: is this an incomplete clone? (git fetch)")
    sizes = [int(size) for size in facts.split()]
    _check_size(sum(sizes))
    room = MAX_BYTES + len(facts) + 100 * len(names)
    packed = capture(root, (*_GIT, "cat-file", "--batch=%(objectname)"), asked, room, _TIMEOUT_S)
    found: dict[str, bytes] = {}
    at = 0
    for name, size in zip(names, sizes, strict=True):
        at += len(name) + 1
        found[name] = packed[at : at + size]
        at += size + 1
    return found


def _read(root: Path, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    rooted = Rooted(root)
    facts = [rooted.stat(path) for path in paths]
    _check_size(sum(fact.st_size for fact in facts if fact is not None))
    for path in paths:
        try:
            yield path, rooted.read(path)
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from error


def _check_size(n_bytes: int) -> None:
    if n_bytes > MAX_BYTES:
        raise UserError(f"the changed files have {n_bytes:,} bytes; up to {MAX_BYTES:,} are compared")
