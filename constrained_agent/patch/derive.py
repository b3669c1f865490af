"""The smallest patch that makes one tree of files out of another: the way back from `plan`.

    render(derive(old, new))        # and applied to `old`, that gives `new`, byte for byte

What the language cannot say is refused, never approximated:

- Binary files (NUL bytes, a UTF-16 mark) can be deleted or renamed, not added or changed.
- A new file ends in a newline or is empty, unless it is an old one renamed.
- In a file that stays, the byte-order mark stays; a final newline that is there stays; the line endings are
  inherited from the old ones (`steps` says exactly how; most files have one kind of ending and never meet this).
- A path is relative and UTF-8, without control characters and without blanks around a part.
- A file cannot become a folder, nor a folder a file.

Lines that are not UTF-8 can be said in a patch of this package's strings (as U+DC80 to U+DCFF), but not in a
patch that is stored as UTF-8 text; context is chosen so that they are avoided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from constrained_agent.errors import PatchError
from constrained_agent.patch.grow import hunks
from constrained_agent.patch.lenient import read
from constrained_agent.patch.renames import renames
from constrained_agent.patch.sections import AddFile, DeleteFile, Patch, Section, UpdateFile
from constrained_agent.patch.steps import steps
from constrained_agent.patch.textfile import decode


def derive(old: Mapping[str, bytes], new: Mapping[str, bytes], *, headers: bool = True) -> Patch:
    """The patch from one tree to another; sections in the order of the paths that they start from.

    As few lines as possible change (`align.gaps`), and each hunk has the least context that makes it unique
    (`grow.hunks`). A file that went is taken as renamed to one that came if they are alike (`renames.renames`).

    Args:
        old, new: path to bytes. Only files that differ count; others may be left out of both.
        headers: use `@@` headers where they save much context. Without, every place is fixed by context alone, as
            located grammars want it.

    Returns:
        The patch. Without sections if the trees are equal, which is the one patch that `parse` refuses.

    Raises:
        PatchError: the patch language cannot say this change: `not_text`, `bad_path`, `outside_root`, or
            `bad_line` with a line of the new file (the byte-order mark, an ending, the final newline).

    Cost: about 2 s for 100,000 lines of changed files.
    """
    gone = {path: old[path] for path in sorted(old.keys() - new.keys())}
    come = {path: new[path] for path in sorted(new.keys() - old.keys())}
    changed = sorted(path for path in old.keys() & new.keys() if old[path] != new[path])
    _check_paths([*gone, *come, *changed])
    _check_folders(old, come)
    sections: dict[str, list[Section]] = {
        path: _updates(path, old[path], new[path], headers=headers) for path in changed
    }
    for path, target in renames(gone, come).items():
        if updates := _moves(path, gone[path], target, come[target], headers=headers):
            sections[path] = updates
            del gone[path], come[target]
    for path in gone:
        sections[path] = [DeleteFile(path)]
    for path, data in come.items():
        sections[path] = [_add(path, data)]
    return Patch(tuple(section for path in sorted(sections) for section in sections[path]))


def _updates(
    path: str, old: bytes, new: bytes, move_to: str | None = None, *, headers: bool
) -> list[Section]:
    """One section for each step; the last one moves the file."""
    if old == new:
        return [UpdateFile(path, move_to, ())]
    found: list[Section] = [
        UpdateFile(path, None, hunks(step.texts, step.changes, headers=headers))
        for step in steps(decode(old, path), decode(new, move_to or path), move_to or path)
    ]
    last = found[-1]
    assert isinstance(last, UpdateFile), "steps are updates"
    return [*found[:-1], UpdateFile(path, move_to, last.hunks)]


def _moves(path: str, old: bytes, target: str, new: bytes, *, headers: bool) -> list[Section]:
    """The file under its new name; nothing if it can only be deleted and added, or that says more than adding."""
    try:
        return _updates(path, old, new, target, headers=headers)
    except PatchError:
        return []


def _add(path: str, data: bytes) -> AddFile:
    file = decode(data, path)
    if data and not data.endswith(b"\n"):
        n = len(file.texts)
        reason = f"line {n} has no newline at its end; a patch adds whole lines only"
        raise PatchError("bad_line", reason, path=path, lines=(n,))
    # A new file is what its lines say, with their CRs and a byte-order mark.
    return AddFile(path, tuple(data.decode("utf-8", "surrogateescape").split("\n")[:-1]))


def _check_paths(paths: Iterable[str]) -> None:
    for path in paths:
        if not path or any("\ud800" <= char <= "\udfff" or char in "\n\r" for char in path):
            shown = path.encode("unicode_escape").decode()
            raise PatchError("bad_path", "a patch cannot spell this path", path=shown)
        reading = read(f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n")
        if reading.leniencies:
            raise PatchError("bad_path", "a patch cannot spell this path", path=path)


def _check_folders(old: Mapping[str, bytes], come: Iterable[str]) -> None:
    """A section is checked against the files that are there before the patch."""
    if not (come := list(come)):
        return
    folders = {path[:i] for path in old for i, char in enumerate(path) if char == "/"}
    for path in come:
        if path in folders:
            raise PatchError("bad_path", "there a folder would become a file, which no patch does", path=path)
        for i, char in enumerate(path):
            if char == "/" and path[:i] in old:
                reason = f"the file {path[:i]} would become a folder, which no patch does"
                raise PatchError("bad_path", reason, path=path)
