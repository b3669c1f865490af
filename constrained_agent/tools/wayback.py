"""The way back from a patch that landed: what must be kept of it, and what it gives together with the files of now.

Pure, but for the reading that a caller hands in. A changed file's way back is its old lines where they differ, so it
is small and can stand in a transcript; SHA-256 on both sides makes sure that it gives the old file, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from constrained_agent.errors import PatchError, ToolError
from constrained_agent.patch.diff import Action, FilePlan, LineChange
from constrained_agent.patch.textfile import count_lines
from constrained_agent.tools.reads import Seen
from constrained_agent.tools.rooted import digest
from constrained_agent.tools.steps import Step

Read = Callable[[str], bytes | None]
"""The bytes of a regular file at a place, None for anything else."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines `start` up to `end` (0-based) of the file now were `old` before."""

    start: int
    end: int
    old: bytes


@dataclass(frozen=True, slots=True)
class FileBack:
    """What takes one file back. Paths are places: relative to the root, without links.

    Attributes:
        action: what the patch did.
        path: where the file was before; for an added one, where it is.
        new_path: where a moved file is.
        now, then: SHA-256 of the file as the patch left it and as it was; None where there is or was no file.
        pieces: of an updated or moved file, the lines that differ, in file order; None if they were too many to be
            kept.
        content: of a deleted file, its bytes; None if they were too many to be kept.
        mode: of a deleted file, its permission bits.
        link: it was a symbolic link to this, which was deleted or moved as itself.
        seen: what the model knew of a deleted file.
    """

    action: Action
    path: str
    new_path: str | None = None
    now: str | None = None
    then: str | None = None
    pieces: tuple[Piece, ...] | None = ()
    content: bytes | None = None
    mode: int | None = None
    link: str | None = None
    seen: Seen | None = None

    def places(self) -> Iterator[str]:
        """All paths that it speaks of."""
        yield self.path
        if self.new_path is not None:
            yield self.new_path


@dataclass(frozen=True, slots=True)
class WayBack:
    """What takes a patch back: its files, and the folders that it made, outer ones first."""

    files: tuple[FileBack, ...]
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Undone:
    """Files as they go back: what that means for people, and the operations that do it."""

    files: tuple[FilePlan, ...]
    steps: tuple[Step, ...]

    def vacated(self) -> set[str]:
        """Places where something goes away, with case folded."""
        return {step.path.casefold() for step in self.steps if step.kind == "remove"}


def file_back(file: FilePlan, place: str, new_place: str | None, seen: Seen | None) -> FileBack:
    """What takes a file back, but for mode and link.

    Args:
        place: where it is before the patch, or will be if it is added; of an updated file, the one behind links.
        new_place: where a moved file goes.
        seen: what the model knows of it.
    """
    now = None if file.new is None else digest(file.new)
    then = None if file.old is None else digest(file.old)
    if file.action == "delete":
        return FileBack("delete", place, then=then, content=file.old, seen=seen)
    found = _pieces(file.old, file.new, file.changes) if file.old is not None and file.new is not None else ()
    return FileBack(file.action, place, new_place, now, then, found)


def undone(back: WayBack, read: Read) -> Undone:
    """How the files go back, if all of them are as the patch left them.

    Raises:
        PatchError: `changed_on_disk`, naming the first file that something else has changed, moved or removed since.
        ToolError: the record lacks what is needed.
    """
    files, steps = zip(*(_undone(file, read) for file in back.files), strict=True)
    return Undone(files, tuple(step for some in steps for step in some))


def _undone(back: FileBack, read: Read) -> tuple[FilePlan, list[Step]]:
    if back.action == "delete":
        return _restored(back)
    where = back.new_path or back.path
    now = _unchanged(where, back.now, read)
    remove = Step("remove", where, None, now)
    if back.action == "add":
        return _plan(where, "delete", None, now, None), [remove]
    if back.link is not None:
        link = Step("create", back.path, link=back.link)
        return _plan(where, "delete", None, now, None), [remove, link]
    if back.pieces is None:
        raise _too_large(back.path)
    then = _rebuilt(now, back.pieces)
    if digest(then) != back.then:
        raise _incomplete(back.path)
    changes = tuple(_changes(back.pieces))
    if back.action == "update":
        return _plan(where, "update", None, now, then, changes), [Step("replace", where, then, now)]
    create = Step("create", back.path, then, like=where, same=now == then)
    return _plan(where, "move", back.path, now, then, changes), [remove, create]


def _restored(back: FileBack) -> tuple[FilePlan, list[Step]]:
    """A deleted file or link; of a link, the file that it led to stands in the plan, as when it was deleted."""
    content = back.content
    if back.link is not None:
        step = Step("create", back.path, link=back.link)
        return _plan(back.path, "add", None, None, content or b""), [step]
    if content is None:
        raise _too_large(back.path)
    if digest(content) != back.then:
        raise _incomplete(back.path)
    step = Step("create", back.path, content, mode=back.mode)
    return _plan(back.path, "add", None, None, content), [step]


def _unchanged(path: str, wanted: str | None, read: Read) -> bytes:
    data = read(path)
    if data is None:
        reason = "the file is not where the patch left it, so that patch cannot be taken back"
        raise PatchError("changed_on_disk", reason, path=path)
    if digest(data) != wanted:
        reason = (
            "something else changed the file after the patch; taking the patch back would lose that change"
        )
        raise PatchError("changed_on_disk", reason, path=path)
    return data


def _too_large(path: str) -> ToolError:
    return ToolError(f"{path}: what the patch took away was too large for the record: it cannot come back")


def _incomplete(path: str) -> ToolError:
    reason = "the record does not give the old file (a secret that was masked, or a record that was edited)"
    return ToolError(f"{path}: {reason}; nothing was changed")


def _plan(
    path: str,
    action: Action,
    new_path: str | None,
    old: bytes | None,
    new: bytes | None,
    changes: Sequence[LineChange] | None = None,
) -> FilePlan:
    if changes is None:
        whole = LineChange(0, count_lines(old), 0, count_lines(new))
        changes = [whole] if whole.old_end or whole.new_end else []
    added = sum(change.new_end - change.new_start for change in changes)
    removed = sum(change.old_end - change.old_start for change in changes)
    return FilePlan(path, action, new_path, old, new, added, removed, tuple(changes))


def _changes(found: Iterable[Piece]) -> Iterator[LineChange]:
    """The same pieces as changes from the file now to the one before."""
    shift = 0
    for piece in found:
        n_old = count_lines(piece.old)
        start = piece.start + shift
        yield LineChange(piece.start, piece.end, start, start + n_old)
        shift += n_old - (piece.end - piece.start)


def _pieces(old: bytes, new: bytes, changes: Sequence[LineChange]) -> tuple[Piece, ...]:
    if old == new:
        return ()
    lines = _lines(old)
    found = tuple(
        Piece(change.new_start, change.new_end, b"".join(lines[change.old_start : change.old_end]))
        for change in changes
    )
    if (
        _rebuilt(new, found) != old
    ):  # a plan names all lines that differ; but the old bytes must not hang on that
        return (Piece(0, count_lines(new), old),)
    return found


def _rebuilt(now: bytes, found: Sequence[Piece]) -> bytes:
    lines = _lines(now)
    at = 0
    parts: list[bytes] = []
    for piece in found:
        parts += [*lines[at : piece.start], piece.old]
        at = piece.end
    return b"".join([*parts, *lines[at:]])


def _lines(data: bytes) -> list[bytes]:
    """Lines with their endings, as `textfile` counts them."""
    *whole, last = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])
