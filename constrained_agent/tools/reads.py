"""What the model has read: which files, as they were then, and which of their lines. Looks at no disk."""

from __future__ import annotations

import bisect
import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from constrained_agent.patch.diff import FilePlan, LineChange
from constrained_agent.patch.textfile import count_lines
from constrained_agent.tools.rooted import digest

_MAX_RANGES = 64
"""Of one file: older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A file that the model has read and that still is on the disk as it was then.

    Attributes:
        path: relative to the root, `/` between its parts, links resolved.
        content: all of its bytes, those that were not shown included.
        ranges: the lines that were shown, 0-based and counted as `textfile.decode` does; the latest last. None is
            empty, and none lies within a later one. None at all for an empty file.
    """

    path: str
    content: bytes
    ranges: tuple[range, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is kept of a file: the SHA-256 of its bytes instead of them, and the lines that were shown."""

    digest: str
    ranges: tuple[range, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """The real paths between which a planned file goes.

    Attributes:
        source: whose text it starts from; not `left` where a link is moved, since what it leads to stays.
        left: the name that is given up; for an update the one that is kept.
        target: where the text is from now on, if anywhere.
    """

    source: Path
    left: Path
    target: Path


class Reads:
    """The files that were read, by their real paths; the most recently read or written one comes last."""

    def __init__(self) -> None:
        self._seen: dict[Path, Seen] = {}

    def get(self, path: Path) -> Seen | None:
        """What the model knows of a file; None if it has not read it."""
        return self._seen.get(path)

    def items(self) -> list[tuple[Path, Seen]]:
        """All files, in reading order."""
        return list(self._seen.items())

    def add(self, path: Path, content: bytes, lines: range | None = None) -> None:
        """The model has been shown lines (None: all) of a file with this content.

        They add to what it saw of the same content before; what it saw of another content is forgotten.
        """
        shown = _all_lines(content) if lines is None else lines
        before = self._seen.pop(path, None)
        stamp = digest(content)
        known = before.ranges if before is not None and before.digest == stamp else ()
        self._seen[path] = Seen(stamp, _kept([*known, shown]))

    def forget(self, path: Path) -> None:
        """The model no longer sees what it read of a file."""
        self._seen.pop(path, None)

    def refresh(self, files: Sequence[tuple[FilePlan, Route]]) -> None:
        """Take in a patch of the run itself that has landed.

        A file that it adds is seen whole; one that was read before stays read, with its lines where they are
        now; one that was not read before does not become so.
        """
        # All looks back come first: a file may have moved away, and another one taken its name.
        after = [(route.target, self._after(file, route)) for file, route in files]
        for _, route in files:
            self._seen.pop(route.left, None)
        for target, seen in after:
            if seen is not None:
                self._seen.pop(target, None)
                self._seen[target] = seen

    def _after(self, file: FilePlan, route: Route) -> Seen | None:
        if file.new is None:
            return None
        if file.old is None:
            return Seen(digest(file.new), _kept([_all_lines(file.new)]))
        before = self._seen.get(route.source)
        if before is None or before.digest != digest(file.old):
            return None
        # A byte-order mark alone counts as a line in a plan, but has none to show.
        ranges = carried(before.ranges, file.changes) if file.new != codecs.BOM_UTF8 else ()
        return Seen(digest(file.new), ranges)


def carried(ranges: Iterable[range], changes: Sequence[LineChange]) -> tuple[range, ...]:
    """Where seen lines are after a change. Pure.

    Lines that the change wrote count as seen: whoever wrote them knows them. That takes in a last line that
    got its missing newline, and a first one that met the byte-order mark; to the byte they are new lines.

    Args:
        ranges: seen lines of the old file, 0-based.
        changes: in file order, as a plan names them.

    Returns:
        Seen lines of the new file in the same order, those that the change wrote last.
    """
    # Between two changes lie lines that stayed; they all moved by as much.
    starts = [0, *(change.old_end for change in changes)]
    shifts = [0, *(change.new_end - change.old_end for change in changes)]
    found = []
    for seen in ranges:
        pieces = [range(c.new_start, c.new_end) for c in changes if seen.start <= c.old_start <= seen.stop]
        for i in range(bisect.bisect_right(starts, seen.start) - 1, len(starts)):
            if starts[i] >= seen.stop:
                break
            end = min(seen.stop, changes[i].old_start) if i < len(changes) else seen.stop
            pieces.append(range(max(seen.start, starts[i]) + shifts[i], end + shifts[i]))
        found += _merged(pieces)
    return _kept([*found, *(range(change.new_start, change.new_end) for change in changes)])


def _kept(ranges: Iterable[range]) -> tuple[range, ...]:
    """Without empty ranges and those within a later one, and not more than a few dozen."""
    kept: list[range] = []
    for lines in ranges:
        kept = [old for old in kept if not (lines.start <= old.start and old.stop <= lines.stop)]
        if lines:
            kept.append(lines)
    return tuple(kept[-_MAX_RANGES:])


def _merged(ranges: Iterable[range]) -> list[range]:
    found: list[range] = []
    for lines in sorted((lines for lines in ranges if lines), key=lambda lines: lines.start):
        if found and lines.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, lines.stop))
        else:
            found.append(lines)
    return found


def _all_lines(content: bytes) -> range:
    return range(count_lines(content.removeprefix(codecs.BOM_UTF8)))
