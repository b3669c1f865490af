"""What the text of a patch speaks of, right or wrong: the files that it names, and where its old lines lead in them.

The automaton of a large file cannot hold all of its lines. What a text is about is known before it is checked, so
the lines around the places that it leads to are enough: where its old lines stand, where they go on, and what a
wrong one comes near to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from constrained_agent.errors import UserError
from constrained_agent.grammar.located.likeness import nearest, sharing_most
from constrained_agent.grammar.located.offer import (
    MAX_ADDED_LINES,
    MAX_LINES,
    Editable,
    LocatedFile,
    LocatedPatches,
    located_file,
)

ADD, UPDATE, DELETE = "*** Add File: ", "*** Update File: ", "*** Delete File: "
MOVE, _END = "*** Move to: ", "*** End Patch"
_OTHERS = ("*** Begin Patch", "*** End of File", _END)

_MAX_STATES = 2 * MAX_LINES
"""A whole file has no more; about 40,000 of the 65,525 symbols that the engine takes."""

_MARGIN = 3
_N_PLACES = 3  # places of one run that are on offer, from the top and from the bottom each
_N_LIKE = 5  # lines like a wrong one
_MAX_WAY = 500  # lines down the file that a run is followed to where it is the only one


@dataclass(slots=True)
class Section:
    """A file that a text names.

    Attributes:
        path: as it stands there; empty for a line with stars that is misspelled, or not whole.
        hunks: the old lines of each hunk.
    """

    path: str
    hunks: list[list[str]] = field(default_factory=lambda: [[]])


def sections(data: bytes) -> list[Section]:
    """The files that a text updates or deletes, in its order; a last line that is not whole counts, too."""
    found: list[Section] = []
    here: Section | None = None
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        line = line.removesuffix("\r")
        if line.startswith((UPDATE, DELETE)):
            here = Section(line[len(UPDATE) :])
            found.append(here)
        elif line.startswith(ADD):
            here = None
        elif line.startswith("*") and not line.startswith(MOVE) and line not in _OTHERS:
            here = Section("")
            found.append(here)
        elif here is not None and line.startswith("@@"):
            here.hunks.append([])
        elif here is not None and line.startswith((" ", "-")):
            here.hunks[-1].append(line[1:])
    return found


def begun_path(data: bytes) -> str | None:
    """The path that the last line of a text has begun with; empty if one must come; None if that is not so.

    What may follow there depends on files that the text does not name.
    """
    before, _, line = data.decode("utf-8", "surrogateescape").rpartition("\n")
    if line.startswith((UPDATE, DELETE)):
        return line[len(UPDATE) :]
    return "" if not before or (before == _OTHERS[0] and not line) else None


def near(lines: Sequence[str], hunks: Sequence[Sequence[str]]) -> list[range]:
    """The lines of a file that hunks may be about, 0-based.

    Cost: 0.1 microseconds a line of the file; as much again for each line that a hunk's first line is, and for a hunk
    that does not fit.
    """
    n = len(lines)
    found = [range(max(0, n - _MARGIN), n)]  # so that another hunk may always follow
    starts: dict[str, list[int]] = {}
    for i, line in enumerate(lines):
        starts.setdefault(line, []).append(i)
    for i, old in enumerate(hunks):
        for end, length in _led_to(lines, old, starts, may_be_half=i == len(hunks) - 1):
            found.append(range(max(0, end - length - _MARGIN), min(n, end + _MARGIN)))
    return found


def _led_to(
    lines: Sequence[str], old: Sequence[str], starts: Mapping[str, Sequence[int]], *, may_be_half: bool
) -> list[tuple[int, int]]:
    """Ends (0-based, behind the last line) and lengths of the runs that a hunk can have meant.

    Args:
        starts: where each line stands in the file.
        may_be_half: the last line of the hunk may not be whole.
    """
    n = len(lines)
    ends: Sequence[int] = range(n + 1)
    found: list[tuple[int, int]] = []
    for length, text in enumerate(old):
        if length == 0:
            onward = [start + 1 for start in starts.get(text, ())]
        else:
            onward = [end + 1 for end in ends if end < n and lines[end] == text]
        if not onward or (may_be_half and length == len(old) - 1):
            # Wrong, or the last one, which may be only half of a line.
            texts = list(dict.fromkeys(lines[end] for end in ends if end < n))
            like = {*sharing_most(texts, text), *(() if onward else nearest(texts, text)[:_N_LIKE])}
            for other in like - {text}:
                found += _sample(
                    lines, [end + 1 for end in ends if end < n and lines[end] == other], length + 1
                )
        if not onward:
            return [*found, *_sample(lines, ends, length)]
        ends = onward
    return [*found, *_sample(lines, ends, len(old))]


def _sample(lines: Sequence[str], ends: Sequence[int], length: int) -> list[tuple[int, int]]:
    """Some of the places of a run, and the way from the last one to where it is the only one."""
    some = {*ends[:_N_PLACES], *ends[-_N_PLACES:]}
    last, others = ends[-1], ends[:-1]
    unique = last
    while others and unique < len(lines) and unique - last < _MAX_WAY:
        others = [end + 1 for end in others if lines[end] == lines[unique]]
        unique += 1
    return [*((end, length) for end in some), (unique, length + unique - last)]


def located(editable: Editable, whole: Collection[str]) -> LocatedPatches:
    """The language of patches of some files, without those that have no room in it.

    Args:
        editable: `read` are the lines that must be on offer.
        whole: paths of files whose other lines are on offer too, as long as there is room.

    Raises:
        UserError: the lines that must be on offer are too many.
    """
    lines = {file.path: {i for part in file.read or () for i in part} for file in editable.files}
    room = MAX_LINES - sum(map(len, lines.values()))
    if room < 0:
        raise UserError(
            f"the text speaks of {MAX_LINES - room:,} lines of files, and a located grammar holds {MAX_LINES:,}: "
            "check fewer of its hunks at once, or apply it (`patch --dry-run` has no such bound)"
        )
    for file in sorted(editable.files, key=lambda file: len(file.lines)):
        more = len(file.lines) - len(lines[file.path])
        if file.path in whole and more <= room:
            lines[file.path], room = set(range(len(file.lines))), room - more
    files: list[LocatedFile] = []
    n_states = _MAX_STATES
    for file in editable.files:
        files.append(located_file(file.path, file.lines, sorted(lines[file.path]), max(n_states, 2)))
        n_states -= len(files[-1].automaton.states)
    return LocatedPatches(tuple(files), editable.new_paths, MAX_ADDED_LINES)
