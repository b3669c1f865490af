"""Located hunks to changed lines: what is taken out, what comes in, and with which indentation and endings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from constrained_agent.errors import PatchError
from constrained_agent.patch import explain
from constrained_agent.patch.indent import Shift, find_shift
from constrained_agent.patch.locate import Place
from constrained_agent.patch.match import Level, equal
from constrained_agent.patch.sections import Hunk
from constrained_agent.patch.textfile import TextFile

NEW = -1
"""Origin of a line that is not in the old file as it stands."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A file between two sections.

    Attributes:
        file: its lines now.
        origins: for each line its 0-based line in the file on disk, or `NEW`.
    """

    file: TextFile
    origins: Sequence[int]


@dataclass(frozen=True, slots=True)
class Change:
    """Lines `start` up to `start + n_removed` (0-based) make way for `added`."""

    start: int
    n_removed: int
    added: tuple[str, ...]


def changes_of(hunk: Hunk, place: Place, texts: Sequence[str], where: explain.Where) -> list[Change]:
    """The changes that a located hunk makes, in file order.

    Raises:
        PatchError: `inexact_removal`, `indent_mismatch`, `not_text` or `no_change`.
    """
    _check_removed(hunk, place, texts, where)
    shift = _shift_of(hunk, place, texts, where)
    # A CR at the end of an added line is a line ending: endings come from the file, unless this very hunk
    # shows that the file's lines hold such a CR.
    keeps_cr = place.level == Level.EXACT and any(line.endswith("\r") for line in hunk.old())
    found: list[Change] = []
    at, start, added = place.start, place.start, list[str]()
    for line in hunk.lines:
        if line.op == "+":
            text = line.text if keeps_cr else line.text.removesuffix("\r")
            if "\0" in text:
                raise PatchError("not_text", "an added line holds NUL", path=where.path, hunk=where.hunk)
            moved = shift(text)
            if moved is None:
                raise explain.indent_of_added(where, hunk, place, texts, text)
            added.append(moved)
            continue
        if line.op == " ":
            if at > start or added:
                found.append(Change(start, at - start, tuple(added)))
            start, added = at + 1, []
        at += 1
    if at > start or added:
        found.append(Change(start, at - start, tuple(added)))
    if all(tuple(texts[c.start : c.start + c.n_removed]) == c.added for c in found):
        raise explain.no_change(where, place)
    return found


def _check_removed(hunk: Hunk, place: Place, texts: Sequence[str], where: explain.Where) -> None:
    if place.level != Level.FOLDED:
        return
    old = [line for line in hunk.lines if line.op != "+"]
    folded = [
        (place.start + i, line.text)
        for i, line in enumerate(old)
        if line.op == "-" and not equal(line.text, texts[place.start + i], Level.TRIMMED)
    ]
    if folded:
        raise explain.inexact_removal(where, folded, texts)


def _shift_of(hunk: Hunk, place: Place, texts: Sequence[str], where: explain.Where) -> Shift:
    if place.level <= Level.RIGHT_TRIMMED:
        return lambda text: text
    old = hunk.old()
    shift = find_shift(zip(old, texts[place.start : place.start + len(old)], strict=True))
    if shift is None:
        raise explain.indent_of_old(where, hunk, place, texts)
    return shift


def splice(draft: Draft, changes: Iterable[Change]) -> Draft:
    """Make changes that do not overlap.

    Args:
        changes: those that start at the same line go in the order given, but before one that removes it.
    """
    old = draft.file
    texts, endings, origins = list[str](), list[str](), list[int]()
    at, ends_new = 0, False
    for change in [*sorted(changes, key=lambda c: (c.start, c.n_removed > 0)), Change(len(old.texts), 0, ())]:
        texts += [*old.texts[at : change.start], *change.added]
        endings += [*old.endings[at : change.start], *_endings(change, old.endings)]
        origins += [*draft.origins[at : change.start], *[NEW] * len(change.added)]
        if change.added or change.start > at:
            ends_new = bool(change.added)
        at = change.start + change.n_removed
    if old.endings and not old.endings[-1]:
        _settle_last_line(old.endings, endings, origins)
        if ends_new:
            # An empty line without an ending would be no line at all.
            endings[-1] = "" if texts[-1] else _filled(old.endings)
    return Draft(TextFile(texts, endings, old.bom), origins)


def _endings(change: Change, old: Sequence[str]) -> list[str]:
    """Each new line has the ending of the line it replaces, else of the line before."""
    replaced = list(old[change.start : change.start + change.n_removed])
    if not replaced:
        # Above the first line there is no line before; the one below is the next best.
        replaced = list(old[max(0, change.start - 1) : max(1, change.start)]) or ["\n"]
    n_more = len(change.added) - len(replaced)
    return replaced[: len(change.added)] + [replaced[-1]] * n_more


def _settle_last_line(old: Sequence[str], endings: list[str], origins: list[int]) -> None:
    """The old file lacks its final newline; where its last line is not the last any more, it gets one."""
    for i in range(len(endings) - 1):
        if not endings[i]:
            endings[i], origins[i] = _filled(old), NEW


def _filled(endings: Sequence[str]) -> str:
    """The ending for a last line that had none."""
    return endings[-2] if len(endings) > 1 else "\n"
