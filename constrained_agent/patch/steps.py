"""From one text to another in steps, such that every new line inherits the ending it must have.

A patch cannot spell a line ending or a missing final newline: a new line takes the ending of the line that it
replaces, else of the line before. One step is one section of a patch; a second section finds what the first one
left, and that reaches texts that no single one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from constrained_agent.errors import PatchError
from constrained_agent.patch.align import Gap, gaps
from constrained_agent.patch.edits import NEW, Change, Draft, splice
from constrained_agent.patch.textfile import TextFile

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Step:
    """Changes to make at once, in file order, and the lines that they are made in."""

    texts: Sequence[str]
    changes: Sequence[Change]


def steps(old: TextFile, new: TextFile, path: str) -> list[Step]:
    """The steps that make the new text out of the old one: one wherever that is possible, at most four.

    Which texts can be reached at all:

    - The byte-order mark stays. A file that has none can get one: as the first character of its first line.
    - A new text without final newline needs an old one without; the way back is open.
    - The endings of the new lines, in order, must be those of the old lines, each taken any number of times or
      left out (the last line of a text without final newline has none to give). Or they are all `\\n`: that is
      what the first lines of an empty file get, and any file can be emptied first.

    Args:
        path: the file's name for the message.

    Raises:
        PatchError: `bad_line`, naming the first line that cannot be reached.

    Cost: that of `align.gaps`.
    """
    if old.bom and not new.bom:
        raise PatchError("bad_line", "a patch cannot take the byte-order mark away", path=path, lines=(1,))
    goal = _without_mark(new) if new.bom and not old.bom else new
    if _is_open(goal) and not _is_open(old):
        reason = f"line {len(goal.texts)} has no newline at its end; a patch adds whole lines only"
        raise PatchError("bad_line", reason, path=path, lines=(len(goal.texts),))
    way = _Way(old)
    if way.leads_to(goal, _aligned):
        return way.steps
    if _is_open(old) and not _is_open(goal):
        # With its last line, the file loses the lack of a final newline, too.
        way.go([Change(len(old.texts) - 1, 1, ())])
    for means in (_aligned, _in_turn_near, _in_turn, _anew):
        if way.leads_to(goal, means):
            return way.steps
    at = _first_without_source(way.file, goal)
    ending = "CRLF" if goal.endings[at] == "\r\n" else "LF alone"
    reason = (
        f"line {at + 1} ends in {ending}, which it can inherit from no line of the old file that stands there"
    )
    raise PatchError("bad_line", reason, path=path, lines=(at + 1,))


Means = Callable[[TextFile, TextFile], Iterable[Sequence[Change]] | None]


class _Way:
    """A text, and the steps that led to it."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.steps: list[Step] = []

    def go(self, changes: Sequence[Change]) -> None:
        if changes:
            self.steps.append(Step(self.file.texts, changes))
            # The very code that applies a patch: what it gives is what will be there.
            self.file = splice(Draft(self.file, [NEW] * len(self.file.texts)), changes).file

    def leads_to(self, goal: TextFile, means: Means) -> bool:
        """Go on by some means, if that ends at the goal."""
        start, n_steps = self.file, len(self.steps)
        found = means(start, goal)
        for changes in found or ():
            self.go(changes)
        if found is not None and (self.file.texts, self.file.endings) == (goal.texts, goal.endings):
            return True
        self.file = start
        del self.steps[n_steps:]
        return False


def _aligned(old: TextFile, new: TextFile) -> list[list[Change]]:
    """One step with as few changed lines as possible."""
    return [
        [
            Change(gap.a_start, gap.a_end - gap.a_start, tuple(new.texts[gap.b_start : gap.b_end]))
            for gap in _line_gaps(old, new)
        ]
    ]


def _in_turn_near(old: TextFile, new: TextFile) -> list[list[Change]] | None:
    """Up to three steps; lines that stay stay, and a new one takes its ending from a line beside its place."""
    sources: list[int] = []
    at = 0
    for gap in [*_line_gaps(old, new), None]:
        n_kept = (len(new.texts) if gap is None else gap.b_start) - len(sources)
        sources += range(at, at + n_kept)
        if gap is None:
            break
        near = range(max(gap.a_start - 1, 0), min(gap.a_end + 1, len(old.texts)))
        found = _inherited(old, new.endings[gap.b_start : gap.b_end], near)
        if len(found) < gap.b_end - gap.b_start:
            return None
        sources += found
        at = gap.a_end
    return _one_by_one(old, new, sources)


def _in_turn(old: TextFile, new: TextFile) -> list[list[Change]] | None:
    """Up to three steps; all lines may change."""
    sources = _inherited(old, new.endings, range(len(old.texts)))
    return _one_by_one(old, new, sources) if len(sources) == len(new.texts) else None


def _anew(old: TextFile, new: TextFile) -> list[list[Change]]:
    """Two steps: remove all that can go, then add all lines; they then end in `\\n`."""
    n_kept = int(_is_open(new))
    n_gone = len(old.texts) - n_kept
    return [[Change(0, n_gone, ())] if n_gone else [], [Change(0, n_kept, tuple(new.texts))]]


def _inherited(old: TextFile, endings: Sequence[str], where: range) -> list[int]:
    """For each new line an old one with its ending, never further up than the one before; cut if there is none."""
    found: list[int] = []
    at = where.start
    for ending in endings:
        while at < where.stop and old.endings[at] != ending:
            at += 1
        if at == where.stop:
            break
        found.append(at)
    return found


def _one_by_one(old: TextFile, new: TextFile, sources: Sequence[int]) -> list[list[Change]]:
    """First remove the lines that give nothing, then replace each other one by the new lines that take its ending.

    Neighbours do not change in one step: their changes would count as one.
    """
    made: list[list[str]] = [[] for _ in old.texts]
    for source, text in zip(sources, new.texts, strict=True):
        made[source].append(text)
    gone = [Change(i, 1, ()) for i, texts in enumerate(made) if not texts]
    kept = [(old.texts[i], texts) for i, texts in enumerate(made) if texts]
    every_other: list[list[Change]] = [[], []]
    shift = 0
    for i, (text, texts) in enumerate(kept):
        if texts != [text]:
            # The second of these two steps finds what the first one added.
            every_other[i % 2].append(Change(i + (shift if i % 2 else 0), 1, tuple(texts)))
        shift += 0 if i % 2 else len(texts) - 1
    return [_merged(gone), *every_other]


def _merged(gone: Sequence[Change]) -> list[Change]:
    """Removals of neighbours as one."""
    found: list[Change] = []
    for change in gone:
        if found and found[-1].start + found[-1].n_removed == change.start:
            found[-1] = replace(found[-1], n_removed=found[-1].n_removed + 1)
        else:
            found.append(change)
    return found


def _line_gaps(old: TextFile, new: TextFile) -> list[Gap]:
    """Where the two differ; lines are equal if their endings are, too."""
    numbers: dict[tuple[str, str], int] = {}
    of_old = [
        numbers.setdefault(line, len(numbers)) for line in zip(old.texts, _endings_of(old, new), strict=True)
    ]
    of_new = [numbers.setdefault(line, len(numbers)) for line in zip(new.texts, new.endings, strict=True)]
    return gaps(of_old, of_new)


def _endings_of(old: TextFile, new: TextFile) -> Sequence[str]:
    """The old endings; a last line without one gets one where it does not stay the last."""
    if not _is_open(old) or (_is_open(new) and old.texts[-1] == new.texts[-1]):
        return old.endings
    return [*old.endings[:-1], old.endings[-2] if len(old.endings) > 1 else "\n"]


def _is_open(file: TextFile) -> bool:
    """Whether the last line lacks its newline."""
    return bool(file.endings) and not file.endings[-1]


def _without_mark(file: TextFile) -> TextFile:
    """The same bytes, with the byte-order mark as a character of the first line."""
    if not file.texts:
        return TextFile([_BOM], [""])
    return TextFile([_BOM + file.texts[0], *file.texts[1:]], file.endings)


def _first_without_source(old: TextFile, new: TextFile) -> int:
    return len(_inherited(old, new.endings, range(len(old.texts))))
