"""Error messages that mend: what did not fit, what the file really holds, what to write instead.

They go back into the context of a small model, so each is at most a dozen lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from constrained_agent.errors import PatchError, PatchErrorKind
from constrained_agent.patch.candidates import advice, described
from constrained_agent.patch.indent import indent_of
from constrained_agent.patch.locate import Miss, Place, Searcher
from constrained_agent.patch.match import Level, equal
from constrained_agent.patch.nearest import best_start, near_names, similar_lines
from constrained_agent.patch.sections import Hunk
from constrained_agent.patch.visible import excerpt, lookalikes, quoted, visible

_MAX_SHOWN = 4
_NUMBERED = re.compile(r"\s*\d+\s*[:|│→\t]\s?")
_ELIDED = re.compile(r"(\.\.\.|…).*\b(existing|rest|unchanged|remain|omitted|same|other|code)", re.IGNORECASE)
_DIFF_HEADER = re.compile(r"(-- (a/|/dev/null)|\+\+ (b/|/dev/null))")


@dataclass(frozen=True, slots=True)
class Where:
    """The hunk that a message speaks of: file as the patch spells it, 1-based number within its section."""

    path: str
    hunk: int


def _error(kind: PatchErrorKind, where: Where, lines: Iterable[int], *text: str) -> PatchError:
    """The error; `lines` are 0-based, empty texts are left out."""
    numbers = tuple(line + 1 for line in lines)
    return PatchError(kind, "\n".join(filter(None, text)), path=where.path, hunk=where.hunk, lines=numbers)


def missed(where: Where, hunk: Hunk, miss: Miss, searcher: Searcher) -> PatchError:
    """The error for a hunk that has no place."""
    match miss.kind:
        case "ambiguous":
            return _ambiguous(where, hunk, miss, searcher.texts)
        case "anchor_not_found":
            return _anchor_not_found(where, miss, searcher.texts)
        case "eof_mismatch":
            return _eof_mismatch(where, hunk, miss, searcher.texts)
        case "context_not_found":
            return _context_not_found(where, hunk, miss, searcher)


def _ambiguous(where: Where, hunk: Hunk, miss: Miss, texts: Sequence[str]) -> PatchError:
    what = (
        "the old lines of the hunk fit" if miss.header is None else f"the header {quoted(miss.header)} fits"
    )
    listed = ", ".join(str(line + 1) for line in miss.lines[:20])
    more = f" and {len(miss.lines) - 20} more" if len(miss.lines) > 20 else ""
    head = f"{len(miss.lines)} matches: {what} the file equally well at lines {listed}{more}"
    shown = [described(texts, line, miss.lines) for line in miss.lines[:_MAX_SHOWN]]
    return _error("ambiguous", where, miss.lines, head, *shown, advice(texts, hunk, miss))


def _anchor_not_found(where: Where, miss: Miss, texts: Sequence[str]) -> PatchError:
    assert miss.header is not None
    below = f" below line {miss.lines[0] + 1}" if miss.lines else ""
    near = similar_lines(texts, miss.header)
    return _error(
        "anchor_not_found",
        where,
        (),
        f"no line of the file{below} is, or starts with, the header {quoted(miss.header)}",
        "the nearest lines of the file:" if near else "",
        *(excerpt(texts, line, line + 1) for line in near),
        "after @@ comes one whole line of the file that stands above the change, without a line number",
    )


def _eof_mismatch(where: Where, hunk: Hunk, miss: Miss, texts: Sequence[str]) -> PatchError:
    lines = ", ".join(str(line + 1) for line in miss.lines[:_MAX_SHOWN])
    return _error(
        "eof_mismatch",
        where,
        miss.lines,
        f"*** End of File binds the hunk to the end, but its old lines stand at line {lines}; the file ends with:",
        excerpt(texts, max(0, len(texts) - max(3, min(5, len(hunk.old())))), len(texts)),
        "leave *** End of File out, or give the file's last lines as the hunk's last old lines",
    )


def _context_not_found(where: Where, hunk: Hunk, miss: Miss, searcher: Searcher) -> PatchError:
    texts, old = searcher.texts, hunk.old()
    if miss.lines:
        header = quoted(hunk.headers[-1]) if hunk.headers else "the header"
        lines = ", ".join(str(line + 1) for line in miss.lines[:_MAX_SHOWN])
        text = f"the old lines stand at line {lines}, but not below {header}; leave that @@ line out or correct it"
        return _error("context_not_found", where, miss.lines, text)
    start = best_start(searcher.index, old)
    if start is None:
        return _nothing_found(where, hunk, texts)
    differs = next(
        i
        for i, line in enumerate(old)
        if not 0 <= start + i < len(texts) or not equal(line, texts[start + i], Level.FOLDED)
    )
    at = start + differs
    real = f"line {at + 1} is {quoted(texts[at])}" if 0 <= at < len(texts) else "there is no such line"
    return _error(
        "context_not_found",
        where,
        (at,) if 0 <= at < len(texts) else (),
        f"the old lines are not in the file. Nearest place: line {max(start, 0) + 1}. The first line that differs "
        f"is old line {differs + 1} of the hunk:",
        f"  hunk: {quoted(old[differs])}",
        f"  file: {real}",
        "the file there:",
        excerpt(texts, max(0, at - 2), min(len(texts), at + 3)),
        _hint(hunk, old[differs], texts) or "copy the old lines from the file exactly as they are now",
    )


def _nothing_found(where: Where, hunk: Hunk, texts: Sequence[str]) -> PatchError:
    old = hunk.old()
    line = next((line.text for line in hunk.lines if line.op == "-" and line.text.strip()), None)
    line = line or next((line for line in old if line.strip()), old[0])
    near = similar_lines(texts, line)
    return _error(
        "context_not_found",
        where,
        near[:1],
        f"none of the old lines is in the file; the first line that differs is {quoted(old[0])}"
        + ("" if texts else " (the file is empty)"),
        f"the lines most like {quoted(line)}:" if near else "",
        *(excerpt(texts, i, i + 1) for i in near),
        _hint(hunk, line, texts) or "read the file again and copy the old lines from it",
    )


def _hint(hunk: Hunk, differing: str, texts: Sequence[str]) -> str:
    """What probably went wrong, if it is one of the usual things."""
    solid = [line for line in hunk.old() if line.strip()]
    if solid and all(_NUMBERED.match(line) for line in solid):
        bare = {_NUMBERED.sub("", line, count=1).strip() for line in solid}
        if bare & {text.strip() for text in texts}:
            prefix = _NUMBERED.match(solid[0])
            assert prefix is not None
            return f'the lines carry a line-number prefix ("{visible(prefix[0].strip())}"): leave it out'
    if any(line.op != " " and _DIFF_HEADER.match(line.text) for line in hunk.lines):
        return "--- and +++ lines do not belong into this format: leave them out"
    if _ELIDED.search(differing):
        return "a line that stands for left-out code matches nothing: give the real lines, or fewer of them"
    if not differing.strip():
        return "an empty line inside a hunk is an empty line of the file: leave it out if it is not there"
    return ""


def already_applied(where: Where, start: int) -> PatchError:
    """The old lines are gone and the new ones are there."""
    text = f"the new text is already there, at line {start + 1}, and the old lines are not: nothing is left to do"
    return _error("already_applied", where, (start,), text)


def no_change(where: Where, place: Place) -> PatchError:
    """The hunk puts in what it takes out."""
    text = (
        "the added lines equal the removed ones, so nothing would change; write the new text on the + lines"
    )
    return _error("no_change", where, (place.start,), text)


def overlap(where: Where, other: int, first: int, last: int) -> PatchError:
    """Two hunks speak of the same lines (0-based, `last` included)."""
    lines = range(first, last + 1)
    shared = f"line {first + 1}" if first == last else f"lines {first + 1} to {last + 1}"
    text = f"hunk {other} also covers {shared}: join the two, or leave the shared lines out of one of them"
    return _error("overlap", where, lines, text)


def inexact_removal(where: Where, folded: Sequence[tuple[int, str]], texts: Sequence[str]) -> PatchError:
    """Removed lines that match only when look-alike characters are taken as equal."""
    return _error(
        "inexact_removal",
        where,
        [line for line, _ in folded],
        "a removed line differs from the file in look-alike characters, which the change would lose:",
        *(
            f"  line {line + 1} is {quoted(texts[line])}, with {lookalikes(texts[line])}; the hunk has {quoted(text)}"
            for line, text in folded[:_MAX_SHOWN]
        ),
        "write the - line with the file's own characters, and keep them on the + line",
    )


def indent_of_old(where: Where, hunk: Hunk, place: Place, texts: Sequence[str]) -> PatchError:
    """Old lines whose indentation differs from the file's in more than one way."""
    old = hunk.old()
    moved = [i for i, line in enumerate(old) if indent_of(line) != indent_of(texts[place.start + i])]
    return _error(
        "indent_mismatch",
        where,
        [place.start + i for i in moved],
        "the hunk matches only without indentation, and the indentation differs in more than one way:",
        *(
            f"  line {place.start + i + 1}: file {quoted(texts[place.start + i])}, hunk {quoted(old[i])}"
            for i in moved[:_MAX_SHOWN]
        ),
        "write the lines with the file's own indentation (→ is a tab)",
    )


def indent_of_added(where: Where, hunk: Hunk, place: Place, texts: Sequence[str], added: str) -> PatchError:
    """An added line whose indentation cannot be carried over to the file's."""
    n_old = len(hunk.old())
    return _error(
        "indent_mismatch",
        where,
        range(place.start, place.start + n_old),
        f"the file indents these lines otherwise, which leaves the indentation of {quoted(added)} open; in the file:",
        excerpt(texts, place.start, place.start + min(n_old, _MAX_SHOWN)),
        "write all lines of the hunk with the file's own indentation (→ is a tab)",
    )


def file_not_found(path: str, names: Callable[[], Iterable[str]] | None, *, update: bool) -> PatchError:
    """There is no such file."""
    near = near_names(path, names()) if names is not None else []
    text = "there is no such file"
    if near:
        text += f"; did you mean {' or '.join(near)}?"
        if unicodedata.normalize("NFC", near[0]) == unicodedata.normalize("NFC", path):
            marks = ", ".join([f"U+{ord(char):04X}" for char in near[0] if unicodedata.combining(char)])
            spelled = f"with the combining {marks}" if marks else "without combining characters"
            text += f" (that looks the same, but is spelled {spelled}: copy the name)"
    elif update:
        text += f"; to create it, use *** Add File: {path}"
    return PatchError("file_not_found", text, path=path)
