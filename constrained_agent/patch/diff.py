"""A unified diff of planned files, for people and for `git apply`; built from the known changes, so linear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file\n"

Action = Literal["add", "update", "delete", "move"]


@dataclass(frozen=True, slots=True)
class LineChange:
    """Old lines `old_start` up to `old_end` became new lines `new_start` up to `new_end`; 0-based."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a hunk landed.

    Attributes:
        hunk: its number; counts on through the sections of one file.
        line: 1-based line of its first old line, in the file as that section found it.
        n_lines: how many old lines it has.
        level: `exact`, `right_trimmed`, `trimmed` or `folded`.
    """

    hunk: int
    line: int
    n_lines: int
    level: str


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What happens to one file.

    Attributes:
        path: as the patch spells it; for a move, the old path.
        action: `move` also when the text changes on the way.
        new_path: where a moved file goes.
        old, new: the file's bytes before and after; None where there is no file.
        added, removed: counts of lines.
        changes: which lines, in file order.
        landings: one for each hunk.
    """

    path: str
    action: Action
    new_path: str | None
    old: bytes | None
    new: bytes | None
    added: int
    removed: int
    changes: tuple[LineChange, ...]
    landings: tuple[Landing, ...] = ()


def unified_diff(files: Iterable[FilePlan]) -> str:
    """The diff of all files; bytes that are not UTF-8 stand as U+DC80 to U+DCFF."""
    return "".join(part for file in files for part in _file_diff(file))


def _file_diff(file: FilePlan) -> Iterator[str]:
    new_path = file.new_path or file.path
    yield f"diff --git a/{file.path} b/{new_path}\n"
    if file.action == "move":
        yield f"rename from {file.path}\nrename to {new_path}\n"
    elif file.action == "add":
        yield "new file mode 100644\n"
    elif file.action == "delete":
        yield "deleted file mode 100644\n"
    if any(b"\0" in data for data in (file.old, file.new) if data):
        if file.old != file.new:
            yield f"Binary files a/{file.path} and b/{new_path} differ\n"
        return
    if file.changes:
        yield "--- /dev/null\n" if file.old is None else f"--- a/{file.path}{_tab(file.path)}\n"
        yield "+++ /dev/null\n" if file.new is None else f"+++ b/{new_path}{_tab(new_path)}\n"
        old, new = _lines(file.old), _lines(file.new)
        for group in _groups(file.changes):
            yield from _hunk(group, old, new)


def _tab(path: str) -> str:
    """A tab ends a name with blanks, as git writes it."""
    return "\t" if " " in path else ""


def _lines(data: bytes | None) -> list[str]:
    lines = (data or b"").decode("utf-8", "surrogateescape").split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([f"{last}\n{_NO_NEWLINE}"] if last else [])


def _groups(changes: Sequence[LineChange]) -> Iterator[list[LineChange]]:
    """Changes whose context lines would touch share one hunk."""
    group = [changes[0]]
    for change in changes[1:]:
        if change.old_start - group[-1].old_end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    yield group


def _hunk(group: list[LineChange], old: list[str], new: list[str]) -> Iterator[str]:
    before = min(_CONTEXT, group[0].old_start)
    after = min(_CONTEXT, len(old) - group[-1].old_end)
    old_span = group[0].old_start - before, group[-1].old_end + after
    new_span = group[0].new_start - before, group[-1].new_end + after
    yield f"@@ -{_range(*old_span)} +{_range(*new_span)} @@\n"
    at = old_span[0]
    for change in group:
        yield from (" " + line for line in old[at : change.old_start])
        yield from ("-" + line for line in old[change.old_start : change.old_end])
        yield from ("+" + line for line in new[change.new_start : change.new_end])
        at = change.old_end
    yield from (" " + line for line in old[at : old_span[1]])


def _range(start: int, end: int) -> str:
    n = end - start
    # An empty range is named by the line before it.
    return str(start + 1) if n == 1 else f"{start + (n > 0)},{n}"
